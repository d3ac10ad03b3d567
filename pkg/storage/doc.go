// Package storage decides what is written while the store of the embedded kcp fills up: the database
// of its etcd and the disk below it.
//
// # Decisions
//
//   - There are two floors. From 80% on nothing grows, for every tenant: 507. From 95% on only what
//     takes rights or space away is written. What lies between the floors and etcd's own limit is a
//     reserve that nothing else can use, so a removal works on a full store.
//   - Every write is an Ending, a Change or Growth, and says so once: a request of the API by its
//     audit intent, a proxied request by its verb and the size of its result, a write of a controller
//     by its method. A request that says nothing and uses POST grows.
//   - A floor holds until the store is two points below it, so that it does not flap.
//   - Of a disk of more than 10 GiB the last 10 GiB count: 2 GiB and 512 MiB of free space are enough
//     for etcd, however large the disk is.
//   - Only when the space that is allocated for etcd ahead is used up, nothing at all is written: etcd
//     ends the process at a write without room.
//   - It imports nothing of kcp. With an external kcp nothing is measured, and everything is written.
package storage
