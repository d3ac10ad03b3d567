// Package kubeconfig names the entries of workspaces in a kubeconfig, prints them, and merges them
// into a file that others write, too. A merge edits the YAML document: entries, fields and
// comments of others stay as they are. It takes the lock file that kubectl config takes.
package kubeconfig
