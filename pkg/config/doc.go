// Package config completes the command line from the environment and from a file.
//
// Every flag can be given in three places. The command line wins over the environment, and the
// environment wins over the file:
//
//   - --listen-address on the command line
//   - KEDGE_HUB_LISTEN_ADDRESS in the environment, lists with commas
//   - listen-address in the file that --config names
//
// Mistakes are errors that name the nearest known name: an unknown key of the file, and a variable
// of the environment that differs from a flag's by one or two letters. Other variables that begin
// with KEDGE_HUB_ are ignored, because Kubernetes sets some for a Service called kedge-hub.
//
// Secrets are not flags, so they stand in none of the three places: flags name the files that
// hold them.
package config
