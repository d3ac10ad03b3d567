package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// RestoreEtcd makes the data of etcd in its folder from a snapshot: snapshot.Restore of the embedded kcp. It is a
// parameter, so that programs that restore nothing do not link etcd.
type RestoreEtcd func(snapshot, etcdDir string) error

// Unpack fills an empty data folder, or one that does not exist yet, from an archive. It checks every hash before the
// folder has any of it, leaves the manifest in ManifestFile, and starts nothing. After an error the folder is as it was.
func Unpack(r io.Reader, dir string, restore RestoreEtcd) (m Manifest, err error) {
	f, err := begin(dir)
	if err != nil {
		return Manifest{}, err
	}
	defer func() { err = errors.Join(err, f.end(err == nil)) }()
	partial := filepath.Join(dir, Partial)
	if m, err = unpackInto(r, partial); err != nil {
		return Manifest{}, err
	}
	snapshot := filepath.Join(partial, etcdEntry)
	if err := restore(snapshot, filepath.Join(partial, etcdDir)); err != nil {
		return Manifest{}, fmt.Errorf("restore etcd: %w", err)
	}
	if err := os.Remove(snapshot); err != nil {
		return Manifest{}, err
	}
	return m, f.fill()
}

// unpackInto makes the files of an archive in a folder, which has the snapshot of etcd and the manifest besides.
func unpackInto(r io.Reader, dir string) (m Manifest, err error) {
	plain, err := uncompressed(r)
	if err != nil {
		return Manifest{}, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Manifest{}, err
	}
	defer func() { _ = root.Close() }()
	u := &unpacked{root: root, from: tar.NewReader(plain)}
	raw, err := u.entries()
	if err != nil {
		return Manifest{}, fmt.Errorf("read the backup: %w", err)
	}
	if m, err = u.check(raw); err != nil {
		return Manifest{}, err
	}
	if n, err := plain.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return Manifest{}, errors.Join(errors.New("the backup goes on behind its end"), ignoreEOF(err))
	}
	return m, u.file(ManifestFile, bytes.NewReader(raw))
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// uncompressed returns the archive in a file, which is compressed or not.
func uncompressed(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	begin, err := buffered.Peek(len(ageHeader))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the backup: %w", err)
	case isEncrypted(begin):
		return nil, errors.New("the backup is encrypted; decrypt it first: age --decrypt --identity KEYFILE BACKUP")
	case !bytes.HasPrefix(begin, []byte{0x1f, 0x8b}):
		return buffered, nil
	}
	plain, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, fmt.Errorf("read the backup: %w", err)
	}
	return plain, nil
}

// unpacked is an archive that is read.
type unpacked struct {
	root  *os.Root
	from  *tar.Reader
	files []File
}

// entries makes all files, and returns the manifest.
func (u *unpacked) entries() (manifest []byte, err error) {
	for {
		h, err := u.from.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, errors.New("it is cut off: it has no manifest")
		case err != nil:
			return nil, err
		case h.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("its entry %q is no regular file", h.Name)
		case slices.ContainsFunc(u.files, func(f File) bool { return f.Name == h.Name }):
			return nil, fmt.Errorf("its entry %q is there twice", h.Name)
		case h.Name == manifestEntry:
			return u.manifest(h.Size)
		case h.Name != etcdEntry && h.Name != recordsEntry && !kept(h.Name):
			return nil, fmt.Errorf("its entry %q is none that a backup has", h.Name)
		}
		if err := u.file(h.Name, u.from); err != nil {
			return nil, err
		}
	}
}

// manifest reads the last entry.
func (u *unpacked) manifest(size int64) ([]byte, error) {
	if size > maxSmall {
		return nil, fmt.Errorf("its manifest has more than %d bytes", maxSmall)
	}
	raw, err := io.ReadAll(u.from)
	if err != nil {
		return nil, err
	}
	switch h, err := u.from.Next(); {
	case err == nil:
		return nil, fmt.Errorf("its entry %q stands behind the manifest", h.Name)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return raw, nil
}

// file makes a file that is not there yet.
func (u *unpacked) file(name string, from io.Reader) error {
	if err := u.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(f, sum), from)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	u.files = append(u.files, File{Name: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// check compares the manifest with what was unpacked.
func (u *unpacked) check(raw []byte) (m Manifest, err error) {
	if err := json.Unmarshal(raw, &m); err != nil {
		return Manifest{}, fmt.Errorf("read the manifest: %w", err)
	}
	if m.Format > Format {
		return Manifest{}, fmt.Errorf("the backup has format %d, and this version reads up to %d; restore it with kedge-hub %s, which made it",
			m.Format, Format, m.Hub)
	}
	if m.Format < 1 {
		return Manifest{}, errors.New("the manifest has no format")
	}
	for i, f := range u.files {
		if i >= len(m.Files) || m.Files[i].Name != f.Name {
			return Manifest{}, fmt.Errorf("the manifest does not have %s in its place", f.Name)
		}
		if m.Files[i] != f {
			return Manifest{}, fmt.Errorf("%s was changed: it has not the size or the hash of the manifest", f.Name)
		}
	}
	if len(m.Files) > len(u.files) {
		return Manifest{}, fmt.Errorf("%s is missing", m.Files[len(u.files)].Name)
	}
	return m, u.checkEtcd(m.Etcd)
}

// checkEtcd compares the hash at the end of the snapshot with that of the manifest. RestoreEtcd compares it with the
// snapshot.
func (u *unpacked) checkEtcd(e Etcd) error {
	f, err := u.root.Open(etcdEntry)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the backup has no snapshot of etcd")
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	sum := make([]byte, sha256.Size)
	if _, err := f.Seek(-sha256.Size, io.SeekEnd); err != nil {
		return errors.New("the snapshot of etcd has no hash")
	}
	if _, err := io.ReadFull(f, sum); err != nil {
		return err
	}
	if hex.EncodeToString(sum) != e.SHA256 {
		return errors.New("the snapshot of etcd has not the hash of the manifest")
	}
	return nil
}
