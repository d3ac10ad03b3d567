// Package kubeconfig writes the kubeconfig of a Workspace as an answer.
package kubeconfig
