// Package embedded runs a kcp and its etcd inside this process, on loopback. It
// is the one package that imports the server side of kcp, so that no other pays
// for it when it compiles or links.
package embedded
