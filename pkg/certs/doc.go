// Package certs provides the hub's serving certificate. It loads the one given by flags, or
// creates and renews one that is signed by a CA of the hub's own, so that the hub serves
// HTTPS in every setup, development included.
package certs
