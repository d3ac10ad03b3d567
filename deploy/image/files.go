package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// user is the user and the group of the programs.
	user    = 65532
	caFile  = "etc/ssl/certs/ca-certificates.crt"
	dataDir = "var/lib/kedge-hub"
)

// file is a file of the image. Without content it is a folder that belongs to user.
type file struct {
	path    string
	mode    int64
	content []byte
}

// baseFiles are the files that do not change with a version of the programs.
func baseFiles() ([]file, error) {
	roots, err := mozillaRoots()
	if err != nil {
		return nil, err
	}
	return []file{
		{path: "etc/passwd", mode: 0o444, content: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nkedge:x:%d:%d:kedge-hub:/%s:/sbin/nologin\n", user, user, dataDir)},
		{path: "etc/group", mode: 0o444, content: fmt.Appendf(nil, "root:x:0:\nkedge:x:%d:\n", user)},
		{path: caFile, mode: 0o444, content: roots},
		{path: dataDir, mode: 0o700},
	}, nil
}

// mozillaRoots returns the CA certificates that Mozilla trusts without further conditions, as PEM.
func mozillaRoots() ([]byte, error) {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		// A condition cannot be written to the file.
		if root.Constraint != nil {
			continue
		}
		c, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return nil, fmt.Errorf("read a CA certificate: %w", err)
		}
		fmt.Fprintf(&out, "# %s\n", c.Subject)
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// newLayer returns a layer with files and the folders above them, all with one time and, but for
// the folders of user, the owner root.
func newLayer(files []file, at time.Time) (v1.Layer, error) {
	var raw bytes.Buffer
	w, made := tar.NewWriter(&raw), map[string]bool{}
	for _, f := range files {
		for i := range strings.Split(path.Dir(f.path), "/") {
			dir := strings.Join(strings.Split(path.Dir(f.path), "/")[:i+1], "/")
			if dir == "." || made[dir] {
				continue
			}
			made[dir] = true
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: at}); err != nil {
				return nil, err
			}
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.path, Mode: f.mode, Size: int64(len(f.content)), ModTime: at}
		if f.content == nil {
			h.Typeflag, h.Name, h.Uid, h.Gid = tar.TypeDir, f.path+"/", user, user
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}
