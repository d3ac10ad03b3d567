// Package server puts the hub together and holds nothing else: flags become
// options, options a completed config, and that a server that runs until its
// context ends.
package server
