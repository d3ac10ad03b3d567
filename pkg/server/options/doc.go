// Package options has the flags of kedge-hub: their names, defaults and help texts, and the Config
// that Complete makes of them.
//
// Options are the flags as they are given. Complete validates them together and reads the files
// that they name. Its error names every flag that is wrong, and how to correct it. The methods of
// Config give other packages the part that they need, in their own types.
//
// Each group of flags is a file: its fields, defaults, help texts and validation stand together.
// The table of flags in deploy/README.md is made from this package.
package options
