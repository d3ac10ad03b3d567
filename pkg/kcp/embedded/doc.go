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
//     package storage refuses writes while little is left besides. /readyz reports that and stays
//     200, because no other replica could serve the reads.
//   - etcd's own quota is larger than --etcd-quota by a reserve of 64 MiB. The hub refuses growth at 80%
//     of --etcd-quota, and at 95% all but endings, by what is in use. Its file is compared with
//     etcd's own quota, above which etcd refuses everything: what ends rights has at least the reserve.
//   - History counts, because it takes the same room. The keeper compacts it by size: a key that is
//     written again and again makes history, and not a full store. A defragmentation stops etcd for its
//     time, so it is made only when the file is larger than the quota. After NOSPACE the
//     keeper compacts, defragments and disarms the alarm, with the same rules.
//   - etcd starts before kcp, with certificates of the hub: kcp makes a connection to etcd for each kind of each workspace,
//     and the handshakes with the keys that embeddedetcd makes (P-521) took a quarter of the CPU of a start.
//   - An etcd and a kcp of their own serve the same folder (Standalone). The flags of that kcp come from the options
//     of the embedded one. It has no flag for two of them, and none changes its data: it runs MutatingAdmissionPolicies, and
//     delays every new CRD by five seconds.
//   - A snapshot for a backup and a defragmentation never run at once: together they would stop etcd until the backup is
//     done. One that is due waits for a snapshot for ten seconds, and then ends it.
package embedded
