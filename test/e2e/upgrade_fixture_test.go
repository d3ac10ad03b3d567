package e2e

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

const (
	// upgradeFixture is the data folder of a hub of the version before, which make upgrade-fixture makes.
	upgradeFixture = "testdata/upgrade.tar.gz"
	// fixturePort is the port of kcp in the fixture. kcp stores it in URLs, and does not always change them when it gets
	// another one. Other ports of tests are higher.
	fixturePort = 9801
	// inventory is the file in it that says what the folder has.
	inventory = "inventory.json"
	// updateVariable is the environment variable that makes files of the repository anew.
	updateVariable = "KEDGE_TEST_UPDATE"
)

// fixture is what a data folder has.
type fixture struct {
	Estate *estate
	Has    belongings
}

// TestUpgrade_servesTheDataOfTheVersionBefore starts today's hub with a data folder that the version before has made.
// Nothing in it ends by time: tokens of bots, a membership and the grace of a deletion last a hundred years, certificates
// of the hub and of kcp are renewed at a start, and those between kcp and its etcd last ten years from the day on which
// the fixture was made. Sessions and invitations end, so the test is not about them.
func TestUpgrade_servesTheDataOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	if os.Getenv(updateVariable) != "" {
		makeFixture(t, versionBefore(t))
	}
	dir := filepath.Join(t.TempDir(), "data")
	unpackFixture(t, dir)
	raw, err := os.ReadFile(filepath.Join(dir, inventory))
	require.NoError(t, err)
	var had fixture
	require.NoError(t, json.Unmarshal(raw, &had))
	e := had.Estate

	today, err := framework.Bin("kedge-hub")
	require.NoError(t, err)
	h := startFixture(t, today, dir)
	e.holds(t, h, had.Has)
	verifiedByItself(t, h)
	e.mapsGroup(t, h)
	// People work on, and what ends now ends.
	e.does(t, h, e.in(http.MethodDelete, "/members/bob?cascade=true", nil))
	e.Removed = append(e.Removed, "bob")
	e.revokes(t, h, "kept")
	e.keepsOut(t, h)
	e.makesBot(t, h, "today")
	e.creates(t, h, "today")
	e.does(t, h, framework.InWorkspace("alice", http.MethodPost, e.Org, e.Gone, "/undelete", nil))
	made := h.CreateWorkspace(t, "alice", e.Org, "Today").Text("clusterID")
	require.NotEmpty(t, made)
	verifiedByItself(t, h)
	require.NoError(t, h.Stop(), "%s", h.Output)
}

// startFixture starts a kedge-hub with the data folder of the fixture. It waits for another run of the tests that has the
// port.
func startFixture(t *testing.T, program, dir string) *hub {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", fixturePort))
		if err != nil {
			return err
		}
		return l.Close()
	})
	return startProgram(t, program, dir, freePort(t), append(
		[]string{"--kcp-port", strconv.Itoa(fixturePort), "--etcd-client-port", "0", "--etcd-peer-port", "0"}, estateFlags()...)...)
}

// makeFixture makes the fixture with a kedge-hub of the version before.
func makeFixture(t *testing.T, before string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.Mkdir(dir, 0o700))
	h := startFixture(t, before, dir)
	e := newEstate(t, h)
	e.lives(t, h, 0)
	// These end by time.
	e.sessions, e.invitations = map[string]string{}, nil
	verifiedByItself(t, h)
	has := e.settled(t, h)
	require.NoError(t, h.Stop(), "%s", h.Output)
	raw, err := json.Marshal(fixture{e, has})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, inventory), raw, 0o600))
	packFixture(t, dir)
}

// left reports whether a file of a data folder is not in the fixture: locks, the ports of etcd, which were free on the
// machine that made it, sockets, and what the next start writes anyway.
func left(name string) bool {
	return name == "kcp/ports.json" || name == "tokens.csv" || strings.HasSuffix(name, "lock") || strings.HasPrefix(name, "run/")
}

// packFixture writes a data folder to upgradeFixture. Two of the same files are the same.
func packFixture(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(upgradeFixture), 0o755))
	file, err := os.Create(upgradeFixture)
	require.NoError(t, err)
	packed, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	require.NoError(t, err)
	archive := tar.NewWriter(packed)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || !d.Type().IsRegular() || left(filepath.ToSlash(name)) {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.Contains(string(raw), dir) {
			t.Errorf("%s names the folder that it was made in", name)
		}
		t.Logf("%8d %s", len(raw), name)
		header := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o600, Size: int64(len(raw)), ModTime: time.Unix(0, 0)}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err = archive.Write(raw)
		return err
	}))
	require.NoError(t, errors.Join(archive.Close(), packed.Close(), file.Close()))
}

// unpackFixture fills an empty data folder.
func unpackFixture(t *testing.T, dir string) {
	t.Helper()
	file, err := os.Open(upgradeFixture)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	packed, err := gzip.NewReader(file)
	require.NoError(t, err)
	for archive := tar.NewReader(packed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		path := filepath.Join(dir, filepath.FromSlash(header.Name))
		raw, err := io.ReadAll(archive)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, raw, 0o600))
	}
}
