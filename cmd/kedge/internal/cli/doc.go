// Package cli implements the commands of kedge, one file for each kind of object.
package cli
