package backup_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/backup"
)

// entry is one of a tar.
type entry struct {
	tar.Header
	content string
}

// entriesOf are those of an archive.
func entriesOf(t *testing.T, raw []byte) (all []entry) {
	t.Helper()
	from := tar.NewReader(bytes.NewReader(raw))
	for {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		content, err := io.ReadAll(from)
		require.NoError(t, err)
		all = append(all, entry{*h, string(content)})
	}
}

// archiveOf has entries. Their sizes are those of their contents.
func archiveOf(t *testing.T, entries []entry) []byte {
	t.Helper()
	out := &bytes.Buffer{}
	to := tar.NewWriter(out)
	for _, e := range entries {
		e.Size, e.Format = int64(len(e.content)), tar.FormatUnknown
		require.NoError(t, to.WriteHeader(&e.Header))
		_, err := to.Write([]byte(e.content))
		require.NoError(t, err)
	}
	require.NoError(t, to.Close())
	return out.Bytes()
}

// resealed has a manifest that agrees with the entries, as an attacker would make it.
func resealed(t *testing.T, entries []entry, change ...func(*backup.Manifest)) []byte {
	t.Helper()
	entries = slices.Clone(entries)
	last := len(entries) - 1
	m := backup.Manifest{}
	require.NoError(t, json.Unmarshal([]byte(entries[last].content), &m))
	m.Files = nil
	for _, e := range entries[:last] {
		sum := sha256.Sum256([]byte(e.content))
		m.Files = append(m.Files, backup.File{Name: e.Name, Size: int64(len(e.content)), SHA256: hex.EncodeToString(sum[:])})
	}
	for _, f := range change {
		f(&m)
	}
	raw, err := json.Marshal(m)
	require.NoError(t, err)
	entries[last].content = string(raw)
	return archiveOf(t, entries)
}

// requireRefused unpacks an archive that has to fail, into a folder that is empty and one that is none.
func requireRefused(t *testing.T, name string, raw []byte, says string) {
	t.Helper()
	parent := t.TempDir()
	empty := filepath.Join(parent, "empty")
	require.NoError(t, os.Mkdir(empty, 0o700))
	for _, dir := range []string{empty, filepath.Join(parent, "none")} {
		_, err := backup.Unpack(bytes.NewReader(raw), dir, restoreEtcd)
		require.Error(t, err, name)
		require.ErrorContains(t, err, says, name)
	}
	require.Empty(t, get(t, parent), name)
	left, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Len(t, left, 1, "%s: the folder that was made is gone", name)
	left, err = os.ReadDir(empty)
	require.NoError(t, err)
	require.Empty(t, left, name)
}

func TestUnpack_refusesAnArchiveThatWasCutOff(t *testing.T) {
	t.Parallel()
	raw, _ := write(t, newSource(t))
	for _, size := range []int{0, 1, 100, 512, 1024, len(raw) / 3, len(raw) / 2, len(raw) - 4096} {
		requireRefused(t, "cut off", raw[:size], "")
	}
	compressed := &bytes.Buffer{}
	z := gzip.NewWriter(compressed)
	_, err := z.Write(raw)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	requireRefused(t, "the checksum is missing", compressed.Bytes()[:compressed.Len()-4], "")
}

func TestUnpack_refusesAnArchiveThatWasChanged(t *testing.T) {
	t.Parallel()
	raw, _ := write(t, newSource(t))
	for i, e := range entriesOf(t, raw) {
		if e.Name == "manifest.json" {
			continue
		}
		changed := entriesOf(t, raw)
		changed[i].content = strings.ToUpper(e.content[:1]) + "x" + e.content[1:]
		requireRefused(t, e.Name, archiveOf(t, changed), "was changed")
		changed = entriesOf(t, raw)
		requireRefused(t, e.Name, archiveOf(t, append(changed[:i:i], changed[i+1:]...)), "")
	}
	entries := entriesOf(t, raw)
	for name, c := range map[string]struct {
		change func(*backup.Manifest)
		says   string
	}{
		"a later format":              {func(m *backup.Manifest) { m.Format, m.Hub = backup.Format+1, "v9" }, "restore it with kedge-hub v9"},
		"no format":                   {func(m *backup.Manifest) { m.Format = 0 }, "has no format"},
		"another hash of the store":   {func(m *backup.Manifest) { m.Etcd.SHA256 = strings.Repeat("0", 64) }, "not the hash of the manifest"},
		"a file more":                 {func(m *backup.Manifest) { m.Files = append(m.Files, backup.File{Name: "kcp/more"}) }, "kcp/more is missing"},
		"a file less":                 {func(m *backup.Manifest) { m.Files = m.Files[1:] }, "in its place"},
		"another size":                {func(m *backup.Manifest) { m.Files[0].Size++ }, "was changed"},
		"a manifest without anything": {func(m *backup.Manifest) { *m = backup.Manifest{} }, "has no format"},
	} {
		requireRefused(t, name, resealed(t, entries, c.change), c.says)
	}
	requireRefused(t, "something behind its end", append(raw[:len(raw):len(raw)], "more"...), "behind its end")
	requireRefused(t, "garbage", bytes.Repeat([]byte("garbage"), 1000), "")
	_, err := backup.Unpack(bytes.NewReader(resealed(t, entries)), t.TempDir(), restoreEtcd)
	require.NoError(t, err, "the control")
}

func TestUnpack_refusesEntriesThatEscape(t *testing.T) {
	t.Parallel()
	raw, _ := write(t, newSource(t))
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600} }
	for name, planted := range map[string]tar.Header{
		"path traversal":                file("../x"),
		"path traversal below a folder": file("kcp/../../x"),
		"a path that is not clean":      file("kcp//x"),
		"an absolute name":              file("/etc/x"),
		"a backslash":                   file(`kcp/..\x`),
		"another folder":                file("audit/rights.jsonl"),
		"an order for the hub":          file("restore/order.json"),
		"data of etcd":                  file("kcp/etcd-server/member/snap/db"),
		"a lock":                        file("kcp/lock"),
		"the program's own folder":      file(".restoring/x"),
		"a symlink":                     {Typeflag: tar.TypeSymlink, Name: "kcp/x", Linkname: "/etc"},
		"a hard link":                   {Typeflag: tar.TypeLink, Name: "kcp/x", Linkname: "/etc/passwd"},
		"a folder":                      {Typeflag: tar.TypeDir, Name: "kcp/x/", Mode: 0o777},
		"a device":                      {Typeflag: tar.TypeChar, Name: "kcp/x"},
		"a pipe":                        {Typeflag: tar.TypeFifo, Name: "kcp/x"},
		"an entry that is there twice":  file("kcp/sa.key"),
		"a folder that is a file":       file("kcp/etcd-server/secrets/ca"),
	} {
		entries := entriesOf(t, raw)
		last := len(entries) - 1
		requireRefused(t, name, resealed(t, append(entries[:last:last], entry{planted, ""}, entries[last])), "")
	}
	entries := entriesOf(t, raw)
	requireRefused(t, "behind the manifest", archiveOf(t, append(entries, entry{file("kcp/x"), ""})), "stands behind")
	_, err := os.Lstat("/etc/x")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestUnpack_refusesAFolderThatIsUsed(t *testing.T) {
	t.Parallel()
	raw, _ := write(t, newSource(t))
	for _, used := range []string{"kcp/sa.key", ".hidden", "audit/rights.jsonl"} {
		dir := t.TempDir()
		put(t, dir, map[string]string{used: "mine"})
		_, err := backup.Unpack(bytes.NewReader(raw), dir, restoreEtcd)
		require.ErrorContains(t, err, "is not empty")
		require.Equal(t, "mine", mustRead(t, filepath.Join(dir, used)))
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, left, 1)
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := backup.Unpack(bytes.NewReader(raw), file, restoreEtcd)
	require.Error(t, err)
}

func mustRead(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(raw)
}

func TestUnpack_refusesASecondOneAtATime(t *testing.T) {
	t.Parallel()
	raw, _ := write(t, newSource(t))
	dir := t.TempDir()
	_, err := backup.Unpack(bytes.NewReader(raw), dir, func(snapshot, etcdDir string) error {
		_, err := backup.Unpack(bytes.NewReader(raw), dir, restoreEtcd)
		require.ErrorContains(t, err, "another restore")
		return restoreEtcd(snapshot, etcdDir)
	})
	require.NoError(t, err)
}

func TestUnpack_leavesNothingOfAnEtcdThatFails(t *testing.T) {
	t.Parallel()
	raw, _ := write(t, newSource(t))
	dir := t.TempDir()
	_, err := backup.Unpack(bytes.NewReader(raw), dir, func(snapshot, etcdDir string) error {
		return errors.Join(restoreEtcd(snapshot, etcdDir), errors.New("no space left on device"))
	})
	require.ErrorContains(t, err, "no space left")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
