package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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

// made returns the folder of KEDGE_TEST_IMAGE, which make image fills, and the image in it.
func made(t *testing.T) (string, v1.Image) {
	t.Helper()
	dir := os.Getenv("KEDGE_TEST_IMAGE")
	if dir == "" {
		t.Skip("KEDGE_TEST_IMAGE does not name an image; run make test-deploy")
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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// unpack extracts an image as a container engine does, and returns the names of its files.
func unpack(t *testing.T, image v1.Image) (root string, names []string) {
	t.Helper()
	// A user without rights must reach it.
	root, err := os.MkdirTemp("", "kedge-image-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	must(t, os.Chmod(root, 0o755))
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
	for _, name := range []string{"kedge-hub", "kedge", "stdlib", "github.com/kcp-dev/kcp", "go.etcd.io/etcd/server/v3"} {
		if !listed[name] {
			t.Errorf("the SBOM does not list %s", name)
		}
	}
}

func TestImage_runsAsItsUserWithAReadOnlyRoot(t *testing.T) {
	_, image := made(t)
	root, names := unpack(t, image)
	want := "etc/group etc/passwd etc/ssl/certs/ca-certificates.crt kedge kedge-hub usr/share/doc/kedge-hub/sbom.spdx.json"
	if got := strings.Join(slices.Sorted(slices.Values(names)), " "); got != want {
		t.Fatalf("it has the files %s", got)
	}
	if os.Geteuid() != 0 {
		t.Skip("chroot needs root")
	}
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir, cmd.Env = "/", []string{"PATH=/", "SSL_CERT_FILE=/" + caFile, "KEDGE_HUB_DATA_DIR=/" + dataDir}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: user}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, args := range [][]string{{"/kedge-hub", "--help"}, {"/kedge", "--help"}, {"/kedge-hub", "check"}} {
		if out, err := run(args...); err != nil {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	// The folders of the root belong to root: nothing but the data folder can be written.
	if out, err := run("/kedge-hub", "check", "--data-dir", "/elsewhere"); err == nil || !strings.Contains(out, "--data-dir") {
		t.Errorf("it can write beside its data: %v: %s", err, out)
	}
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

func TestMozillaRoots_areMany(t *testing.T) {
	raw, err := mozillaRoots()
	must(t, err)
	if n := strings.Count(string(raw), "BEGIN CERTIFICATE"); n < 100 {
		t.Errorf("%d CA certificates", n)
	}
}
