// Package embedded runs a kcp and its etcd inside the hub's process, on loopback. It is the
// only package that imports the server side of kcp, so that only binaries that need it
// compile and link it.
//
// # Decisions
//
//   - Ports that were chosen automatically are stored with the data and reused at the next
//     start, because kcp stores URLs that contain its port.
//   - Only one process at a time uses a data directory. Its lock ends with the process.
//   - etcd ends the process at the first write for which the disk has no room, and other
//     programs can fill the disk at any time. Disk space is therefore reserved for etcd, and
//     the hub refuses writes while little is left besides. /readyz reports that and stays 200,
//     because no other replica could serve the reads.
package embedded
