// Package backup writes the state of a hub with an embedded kcp to an archive, and fills an empty data folder from
// one.
//
// # Decisions
//
//   - The archive is a tar. It has the small files of the data folder under their own names, then the snapshot of etcd,
//     then a copy of the records database if that is in the data folder, and the Manifest last: hashes are known only
//     when everything was streamed, and an archive that was cut off has no manifest and is refused.
//   - The heads of the audit chains are read before the snapshot begins. What is in a chain up to its head is in the
//     snapshot; what follows may be, and is replayed.
//   - What a name in an archive can be is one function, for the writer and for the reader. The reader follows no link and
//     makes regular files only.
//   - Unpack works in the folder Partial below the data folder, which can be the root of a volume, where nothing can be
//     renamed over it. The hub does not start while Partial is there, so a restore that was killed at any moment is
//     no hub. What Unpack has filled has the manifest in it: a hub that finds it is in restore mode.
//   - The revision of etcd is raised by far more than were written since, and those up to it count as compacted. A
//     client that watches from a revision of the lost hub lists again.
//   - The operator's command compresses and encrypts, not the hub, which serves meanwhile.
//   - Nothing of the audit files is in the archive: they belong elsewhere, and are newer when they are needed.
package backup
