package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"time"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

// maxSmall is the maximum size of a file that is read whole.
const maxSmall = 4 << 20

// Source is a hub that runs.
type Source struct {
	// Dir is the data folder.
	Dir string
	// Hub and KCP are the versions of the programs, and Replica is the id of the hub in the audit log.
	Hub, KCP, Replica string
	Now               func() time.Time
	// Heads returns the ends of the chains of the hub, and those of other hubs that have ended.
	Heads func(ctx context.Context) (own, ended []audit.Head, err error)
	// Etcd calls write with a snapshot of etcd, which ends with its hash, and with the revision of etcd when it was
	// asked for.
	Etcd func(ctx context.Context, write func(revision, size int64, r io.Reader) error) error
	// Records calls write with a consistent copy of the records database. It is nil if that is not in Dir.
	Records func(ctx context.Context, write func(size int64, r io.Reader) error) error
}

// Write writes an archive of a hub that runs to w. What it has written is no archive until it has returned nil.
func Write(ctx context.Context, w io.Writer, s Source) (Manifest, error) {
	a := &archive{to: tar.NewWriter(w), manifest: Manifest{
		Format: Format, Time: s.Now().UTC(), Hub: s.Hub, KCP: s.KCP, Replica: s.Replica,
	}}
	if err := a.smallFiles(s.Dir); err != nil {
		return Manifest{}, err
	}
	var err error
	if a.manifest.Heads, a.manifest.Ended, err = s.Heads(ctx); err != nil {
		return Manifest{}, fmt.Errorf("read the ends of the audit log: %w", err)
	}
	if err := s.Etcd(ctx, a.etcd); err != nil {
		return Manifest{}, fmt.Errorf("save etcd: %w", err)
	}
	if s.Records != nil {
		begun := false
		err := s.Records(ctx, func(size int64, r io.Reader) error {
			begun = true
			return a.add(recordsEntry, size, r, sha256.New())
		})
		switch {
		case err != nil && (begun || ctx.Err() != nil):
			return Manifest{}, fmt.Errorf("save the records database: %w", err)
		case err != nil:
			// The records are the past. What people have is in etcd, and is worth more than nothing.
			a.manifest.RecordsLeftOut = err.Error()
		}
	}
	return a.manifest, a.close()
}

// archive is an archive that is written.
type archive struct {
	to       *tar.Writer
	manifest Manifest
}

// header begins an entry.
func (a *archive) header(name string, size int64) error {
	return a.to.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: a.manifest.Time.Truncate(time.Second)})
}

// add writes an entry of exactly size bytes.
func (a *archive) add(name string, size int64, r io.Reader, sum hash.Hash) error {
	if err := a.header(name, size); err != nil {
		return err
	}
	if err := copyExactly(io.MultiWriter(a.to, sum), r, size); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	a.did(name, size, sum)
	return nil
}

func (a *archive) did(name string, size int64, sum hash.Hash) {
	a.manifest.Files = append(a.manifest.Files, File{Name: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))})
}

func (a *archive) smallFiles(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	names, err := keptIn(root.FS())
	if err != nil {
		return fmt.Errorf("read the data folder: %w", err)
	}
	for _, name := range names {
		raw, err := readSmall(root, name)
		if err != nil {
			return fmt.Errorf("read the data folder: %w", err)
		}
		if err := a.add(name, int64(len(raw)), bytes.NewReader(raw), sha256.New()); err != nil {
			return err
		}
	}
	return nil
}

// readSmall reads a file whole, so that one that is renamed into its place meanwhile has a length that is right.
func readSmall(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, maxSmall+1))
	if err == nil && len(raw) > maxSmall {
		err = fmt.Errorf("%s has more than %d bytes", name, maxSmall)
	}
	return raw, err
}

// etcd writes the entry of a snapshot, and compares it with the hash at its end.
func (a *archive) etcd(revision, size int64, r io.Reader) error {
	database := size - sha256.Size
	if database <= 0 {
		return errors.New("the snapshot has no hash")
	}
	if err := a.header(etcdEntry, size); err != nil {
		return err
	}
	sum, theirs := sha256.New(), bytes.Buffer{}
	if err := copyExactly(io.MultiWriter(a.to, sum), r, database); err != nil {
		return err
	}
	ours := sum.Sum(nil)
	if err := copyExactly(io.MultiWriter(a.to, sum, &theirs), r, sha256.Size); err != nil {
		return err
	}
	if !bytes.Equal(ours, theirs.Bytes()) {
		return errors.New("the snapshot does not have the hash that etcd says")
	}
	a.manifest.Etcd = Etcd{Revision: revision, SHA256: hex.EncodeToString(ours)}
	a.did(etcdEntry, size, sum)
	return nil
}

func (a *archive) close() error {
	raw, err := json.MarshalIndent(a.manifest, "", "  ")
	if err != nil {
		return err
	}
	if err := a.header(manifestEntry, int64(len(raw))); err != nil {
		return err
	}
	if _, err := a.to.Write(raw); err != nil {
		return err
	}
	return a.to.Close()
}

// copyExactly copies size bytes. Fewer are an error.
func copyExactly(to io.Writer, from io.Reader, size int64) error {
	n, err := io.CopyN(to, from, size)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("it ends after %d of %d bytes: %w", n, size, io.ErrUnexpectedEOF)
	}
	return err
}
