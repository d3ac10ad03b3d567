// Package client is the HTTP client of the hub's REST API for the commands of kedge. Errors
// are the messages of the hub's metav1.Status answers.
package client
