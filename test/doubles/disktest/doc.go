// Package disktest gives tests a disk of their own, which they may fill.
package disktest
