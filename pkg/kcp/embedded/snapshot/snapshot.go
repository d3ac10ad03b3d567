// Package snapshot makes the data of an etcd from a snapshot. It imports nothing of kcp, so that packages that do not
// link kcp can use it.
package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const (
	// name, peer and token are those of an etcd that was given none. An etcd of one member takes the address of its
	// peers from its flags.
	name, peer, token = "default", "https://localhost:2380", "etcd-cluster"
	// raised is added to the revision of etcd. A store of 8 GiB has fewer writes between two backups.
	raised = 1_000_000_000
	// member is the folder of the data of etcd.
	member = "member"
)

// Restore makes the data of etcd in its folder dir, which can have other files, from a snapshot that ends with its hash.
// The revision is raised, and all up to it are compacted: a client that goes on from a revision of the lost etcd, which
// may be later than the snapshot, is told to list again instead of getting a part of what happened.
func Restore(file, dir string) (err error) {
	// etcd makes its data in an empty folder.
	to := dir + ".restored"
	defer func() { err = errors.Join(err, os.RemoveAll(to)) }()
	if err := restore(file, to); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.Rename(filepath.Join(to, member), filepath.Join(dir, member))
}

// restore turns a panic of etcd at a database that it cannot read into an error.
func restore(file, dir string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("etcd cannot read the snapshot: %v", p)
		}
	}()
	// etcd ends the process with its logger at some errors.
	logger := zap.NewNop().WithOptions(zap.WithFatalHook(zapcore.WriteThenPanic))
	return snapshot.NewV3(logger).Restore(snapshot.RestoreConfig{
		SnapshotPath: file, Name: name, OutputDataDir: dir, PeerURLs: []string{peer},
		InitialCluster: name + "=" + peer, InitialClusterToken: token,
		RevisionBump: raised, MarkCompacted: true,
	})
}
