// Command image makes the container image of kedge-hub without a container engine: an OCI image
// layout and a tarball that container engines load. The image has the static programs, the CA
// certificates of Mozilla, the kedge programs that the hub offers for download, a user and a data
// folder, and nothing else. The same programs give the
// same image, byte by byte.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// options are the flags.
type options struct {
	out, tag, version, arch string
	// downloads is the folder of the programs for people's computers, or empty.
	downloads string
	created   int64
	programs  []string
}

func main() {
	var o options
	flag.StringVar(&o.out, "out", "", "folder that gets the layout in oci/, the tarball image.tar, and the SBOM sbom.spdx.json")
	flag.StringVar(&o.tag, "tag", "kedge-hub:dev", "name of the image in the tarball")
	flag.StringVar(&o.version, "version", "dev", "version of the programs")
	flag.StringVar(&o.arch, "arch", "amd64", "architecture of the programs, as GOARCH")
	flag.StringVar(&o.downloads, "downloads", "", "folder of the kedge programs that the hub offers to people, with a folder OS-ARCH for each platform")
	flag.Int64Var(&o.created, "created", 0, "time of the image in seconds since 1970")
	flag.Parse()
	o.programs = flag.Args()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	if o.out == "" || len(o.programs) == 0 {
		return errors.New("give --out and the programs; the first one is the entry point")
	}
	image, sbom, err := build(o)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.out, "sbom.spdx.json"), sbom, 0o644); err != nil {
		return err
	}
	oci := filepath.Join(o.out, "oci")
	if err := os.RemoveAll(oci); err != nil {
		return err
	}
	path, err := layout.Write(oci, empty.Index)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(o.tag)
	if err != nil {
		return fmt.Errorf("--tag: %w", err)
	}
	if err := path.AppendImage(image, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: o.arch}),
		layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag.TagStr()})); err != nil {
		return err
	}
	if err := tarball.WriteToFile(filepath.Join(o.out, "image.tar"), tag, image); err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	fmt.Println(o.tag, digest)
	return nil
}

// build returns the image and its SBOM. Files that change with every version are in a layer of
// their own.
func build(o options) (v1.Image, []byte, error) {
	created := time.Unix(o.created, 0).UTC()
	sbom, err := newSBOM(o, created)
	if err != nil {
		return nil, nil, err
	}
	base, err := baseFiles()
	if err != nil {
		return nil, nil, err
	}
	programs := []file{{path: "usr/share/doc/kedge-hub/sbom.spdx.json", mode: 0o444, content: sbom}}
	for _, program := range o.programs {
		content, err := os.ReadFile(program)
		if err != nil {
			return nil, nil, err
		}
		programs = append(programs, file{path: filepath.Base(program), mode: 0o555, content: content})
	}
	offered, err := downloads(o.downloads, created)
	if err != nil {
		return nil, nil, err
	}
	programs = append(programs, offered...)
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, files := range [][]file{base, programs} {
		layer, err := newLayer(files, created)
		if err != nil {
			return nil, nil, err
		}
		if image, err = mutate.Append(image, mutate.Addendum{
			Layer: layer, MediaType: types.OCILayer,
			History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "make image"},
		}); err != nil {
			return nil, nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", o.arch, v1.Time{Time: created}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", user, user), WorkingDir: "/", Entrypoint: []string{"/" + filepath.Base(o.programs[0])},
		Env: []string{
			"PATH=/", "SSL_CERT_FILE=/" + caFile,
			"KEDGE_HUB_DATA_DIR=/" + dataDir, "KEDGE_HUB_LISTEN_ADDRESS=0.0.0.0:9443", "KEDGE_HUB_METRICS_LISTEN_ADDRESS=0.0.0.0:9464",
		},
		ExposedPorts: map[string]struct{}{"9443/tcp": {}, "9464/tcp": {}},
		Volumes:      map[string]struct{}{"/" + dataDir: {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "kedge-hub",
			"org.opencontainers.image.description": "Organizations, workspaces and memberships in front of a kcp",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.source":      "https://github.com/faroshq/kedge-hub",
			"org.opencontainers.image.version":     strings.TrimSpace(o.version),
			"org.opencontainers.image.created":     created.Format(time.RFC3339),
		},
	}
	if len(offered) > 0 {
		config.Config.Env = append(config.Config.Env, "KEDGE_HUB_DOWNLOADS_DIR=/"+downloadsDir)
	}
	image, err = mutate.ConfigFile(image, config)
	return image, sbom, err
}
