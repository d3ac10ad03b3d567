package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// whole is the folder that make image fills with the image of the real programs. Without it
// kedge stands in for kedge-hub: to build that without a C library compiles kcp once more.
var whole = os.Getenv("KEDGE_TEST_IMAGE")

// made returns the folder of an image, and the image in it.
func made(t *testing.T) (string, v1.Image) {
	t.Helper()
	dir := whole
	if dir == "" {
		dir = t.TempDir()
		must(t, run(options{out: dir, tag: "kedge-hub:test", version: "test", arch: runtime.GOARCH, programs: standIns(t), downloads: offered(t)}))
	}
	path, err := layout.FromPath(filepath.Join(dir, "oci"))
	must(t, err)
	index, err := path.ImageIndex()
	must(t, err)
	manifest, err := index.IndexManifest()
	must(t, err)
	if len(manifest.Manifests) != 1 {
		t.Fatalf("%d images in the layout", len(manifest.Manifests))
	}
	image, err := path.Image(manifest.Manifests[0].Digest)
	must(t, err)
	return dir, image
}

// platforms are those of the programs that the hub offers.
var platforms = []string{"darwin-amd64", "darwin-arm64", "linux-amd64", "linux-arm64", "windows-amd64", "windows-arm64"}

// offered returns a folder with something in place of the programs that the hub offers.
func offered(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, platform := range platforms {
		must(t, os.Mkdir(filepath.Join(dir, platform), 0o700))
		name := "kedge"
		if strings.HasPrefix(platform, "windows") {
			name = "kedge.exe"
		}
		must(t, os.WriteFile(filepath.Join(dir, platform, name), []byte("program for "+platform), 0o600))
	}
	return dir
}

// standIns returns kedge under the names of both programs.
func standIns(t *testing.T) []string {
	t.Helper()
	hub, cli := filepath.Join(t.TempDir(), "kedge-hub"), filepath.Join(t.TempDir(), "kedge")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", cli, "./cmd/kedge")
	cmd.Dir, cmd.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("build kedge: %v: %s", err, out)
	}
	must(t, os.Link(cli, hub))
	return []string{hub, cli}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// unpack extracts an image as a container engine does, and returns the names of its files.
func unpack(t *testing.T, image v1.Image) (root string, names []string) {
	t.Helper()
	// A user without rights must reach it, and only read it.
	root, err := os.MkdirTemp("", "kedge-image-")
	must(t, err)
	t.Cleanup(func() { _ = os.Chmod(root, 0o700); _ = os.RemoveAll(root) })
	defer func() { must(t, os.Chmod(root, 0o555)) }()
	content := mutate.Extract(image)
	defer func() { _ = content.Close() }()
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return root, names
		}
		must(t, err)
		at := filepath.Join(root, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			must(t, os.MkdirAll(at, os.FileMode(h.Mode)))
		} else {
			names = append(names, h.Name)
			raw, err := io.ReadAll(r)
			must(t, err)
			must(t, os.WriteFile(at, raw, os.FileMode(h.Mode)))
		}
		if os.Geteuid() == 0 {
			must(t, os.Chown(at, h.Uid, h.Gid))
		}
	}
}

func TestImage_isValidAndSaysWhatItIs(t *testing.T) {
	dir, image := made(t)
	must(t, validate.Image(image))
	loaded, err := tarball.ImageFromPath(filepath.Join(dir, "image.tar"), nil)
	must(t, err)
	config, err := image.ConfigFile()
	must(t, err)
	same, err := loaded.ConfigFile()
	must(t, err)
	if config.RootFS.DiffIDs[1] != same.RootFS.DiffIDs[1] {
		t.Error("the tarball is another image than the layout")
	}
	if config.Config.User != "65532:65532" || config.Config.Entrypoint[0] != "/kedge-hub" {
		t.Errorf("it runs %v as %s", config.Config.Entrypoint, config.Config.User)
	}
	for _, label := range []string{"title", "version", "source", "licenses"} {
		if config.Config.Labels["org.opencontainers.image."+label] == "" {
			t.Errorf("it has no label %s", label)
		}
	}
	var sbom document
	raw, err := os.ReadFile(filepath.Join(dir, "sbom.spdx.json"))
	must(t, err)
	must(t, json.Unmarshal(raw, &sbom))
	listed := map[string]bool{}
	for _, p := range sbom.Packages {
		listed[p.Name] = true
	}
	modules := []string{"kedge-hub", "kedge", "stdlib", "github.com/spf13/cobra"}
	if whole != "" {
		modules = append(modules, "github.com/kcp-dev/kcp", "go.etcd.io/etcd/server/v3")
	}
	for _, name := range modules {
		if !listed[name] {
			t.Errorf("the SBOM does not list %s", name)
		}
	}
}

func TestImage_runsAsItsUserWithAReadOnlyRoot(t *testing.T) {
	_, image := made(t)
	root, names := unpack(t, image)
	want := "etc/group etc/passwd etc/ssl/certs/ca-certificates.crt kedge kedge-hub usr/share/doc/kedge-hub/sbom.spdx.json"
	for _, platform := range platforms {
		want += " " + downloadsDir + "/kedge-" + platform + ".tar.gz"
	}
	if got := strings.Join(slices.Sorted(slices.Values(names)), " "); got != want {
		t.Fatalf("it has the files %s", got)
	}
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir, cmd.Env = "/", []string{"PATH=/", "SSL_CERT_FILE=/" + caFile, "KEDGE_HUB_DATA_DIR=/" + dataDir}
		cmd.SysProcAttr = confined(root)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, program := range []string{"/kedge-hub", "/kedge"} {
		if out, err := run(program, "--help"); err != nil {
			t.Errorf("%s: %v: %s", program, err, out)
		}
	}
	if whole == "" {
		return
	}
	if out, err := run("/kedge-hub", "check"); err != nil {
		t.Errorf("it cannot run: %v: %s", err, out)
	}
	// The folders of the root belong to root: nothing but the data folder can be written.
	if out, err := run("/kedge-hub", "check", "--data-dir", "/elsewhere"); err == nil || !strings.Contains(out, "--data-dir") {
		t.Errorf("it can write beside its data: %v: %s", err, out)
	}
}

// confined makes a process the user of the image, with the unpacked image as its root. Who is
// not root may do so in a user namespace of its own.
func confined(root string) *syscall.SysProcAttr {
	as := &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: user}}
	if os.Geteuid() != 0 {
		as.Credential.NoSetGroups = true
		as.Cloneflags = syscall.CLONE_NEWUSER
		as.UidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Geteuid(), Size: 1}}
		as.GidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getegid(), Size: 1}}
	}
	return as
}

func TestBuild_sameProgramsMakeTheSameImage(t *testing.T) {
	program, err := os.Executable()
	must(t, err)
	digest := func(created int64) v1.Hash {
		image, _, err := build(options{version: "v1", arch: "amd64", tag: "x", created: created, programs: []string{program}})
		must(t, err)
		d, err := image.Digest()
		must(t, err)
		return d
	}
	if digest(1) != digest(1) {
		t.Error("two images of the same programs differ")
	}
	if digest(1) == digest(2) {
		t.Error("the time is not in the image")
	}
}

func TestDownloads_areProgramsInArchives(t *testing.T) {
	_, image := made(t)
	config, err := image.ConfigFile()
	must(t, err)
	if !slices.Contains(config.Config.Env, "KEDGE_HUB_DOWNLOADS_DIR=/"+downloadsDir) {
		t.Error("the hub does not offer its programs")
	}
	root, _ := unpack(t, image)
	for _, platform := range platforms {
		packed, err := os.Open(filepath.Join(root, downloadsDir, "kedge-"+platform+".tar.gz"))
		must(t, err)
		zipped, err := gzip.NewReader(packed)
		must(t, err)
		h, err := tar.NewReader(zipped).Next()
		must(t, err)
		if want := strings.HasPrefix(platform, "windows"); strings.HasSuffix(h.Name, ".exe") != want || h.Mode != 0o755 || h.Size == 0 {
			t.Errorf("%s has %s with mode %o and %d bytes", platform, h.Name, h.Mode, h.Size)
		}
		must(t, packed.Close())
	}
}

func TestMozillaRoots_areMany(t *testing.T) {
	raw, err := mozillaRoots()
	must(t, err)
	if n := strings.Count(string(raw), "BEGIN CERTIFICATE"); n < 100 {
		t.Errorf("%d CA certificates", n)
	}
}
