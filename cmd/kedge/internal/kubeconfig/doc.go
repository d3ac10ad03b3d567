// Package kubeconfig names the entries of workspaces in a kubeconfig, prints them, and merges them
// into a file that other programs write, too. A merge edits the YAML document: all other entries,
// fields and comments stay as they are. It takes the same lock file as kubectl config.
package kubeconfig
