// Package config sets flags from environment variables and from a file.
//
// Every flag can be given in three places. The command line wins over the environment, and the
// environment wins over the file:
//
//   - --listen-address on the command line
//   - KEDGE_HUB_LISTEN_ADDRESS in the environment, lists with commas
//   - listen-address in the file that --config names
//
// An unknown key of the file is an error, and so is an environment variable whose name differs from
// that of a flag by one or two letters. The error suggests the nearest known name. Other variables
// that begin with KEDGE_HUB_ are ignored, because Kubernetes sets some for a Service called kedge-hub.
//
// No flag contains a secret: flags name the files that contain secrets.
package config
