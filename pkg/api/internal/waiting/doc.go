// Package waiting holds what every write that waits has in common.
package waiting
