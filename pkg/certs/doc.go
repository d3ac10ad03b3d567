// Package certs provides the hub's serving certificate, and makes the certificates of an embedded etcd. It loads the certificate that flags name, or
// creates and renews one that is signed by a CA of the hub's own. So the hub always serves HTTPS,
// even in development. The CA has name constraints: its key, if stolen, signs for the hub's hosts
// only.
package certs
