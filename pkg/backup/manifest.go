package backup

import (
	"time"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

// Format is the version of the archives that this package writes, and the highest that it reads.
const Format = 1

// Manifest says what is in an archive. It is its last entry.
type Manifest struct {
	Format int `json:"format"`
	// Time is that of the backup, in UTC: what was answered before it is in the backup.
	Time time.Time `json:"time"`
	// Hub and KCP are the versions of the programs.
	Hub string `json:"hub"`
	KCP string `json:"kcp"`
	// Replica is the id of the hub in the audit log. It is empty if the audit log has no chains.
	Replica string `json:"replica,omitempty"`
	Etcd    Etcd   `json:"etcd"`
	// Heads are the ends of the chains of Replica at Time. Ended are those of others that the records database has:
	// hubs that were lost before, whose chains go no further.
	Heads []audit.Head `json:"heads"`
	Ended []audit.Head `json:"ended,omitempty"`
	// RecordsLeftOut says why the records database is not in the archive, though the data folder has it.
	RecordsLeftOut string `json:"recordsLeftOut,omitempty"`
	// Files are all entries before the manifest, in their order.
	Files []File `json:"files"`
}

// Etcd is what a snapshot of etcd says of itself.
type Etcd struct {
	// Revision is that of etcd when the snapshot was asked for. The snapshot has it, and may have later ones.
	Revision int64 `json:"revision"`
	// SHA256 is the hash of the database, which etcd appends to it.
	SHA256 string `json:"sha256"`
}

// File is an entry of an archive.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

const (
	// RestoreDir is the folder below the data folder for what a restore leaves to the next start of the hub. A hub
	// whose data folder has it is in restore mode.
	RestoreDir = "restore"
	// ManifestFile is where Unpack leaves the manifest, below the data folder.
	ManifestFile = RestoreDir + "/manifest.json"
	// Partial is the folder below the data folder in which Unpack works. While it is there the folder is not whole.
	Partial = ".restoring"
)
