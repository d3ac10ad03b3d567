package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// downloadsDir is where the hub finds the programs that it offers to people.
const downloadsDir = "usr/share/kedge-hub/downloads"

// downloads are the archives of the programs in a folder, which has a folder OS-ARCH for each platform.
func downloads(dir string, at time.Time) ([]file, error) {
	if dir == "" {
		return nil, nil
	}
	platforms, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := make([]file, 0, len(platforms))
	for _, platform := range platforms {
		program := "kedge"
		if strings.HasPrefix(platform.Name(), "windows-") {
			program += ".exe"
		}
		raw, err := os.ReadFile(filepath.Join(dir, platform.Name(), program))
		if err != nil {
			return nil, err
		}
		packed, err := archive(program, raw, at)
		if err != nil {
			return nil, err
		}
		files = append(files, file{path: downloadsDir + "/kedge-" + platform.Name() + ".tar.gz", mode: 0o444, content: packed})
	}
	return files, nil
}

// archive packs a program.
func archive(name string, content []byte, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(zipped)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(content)), ModTime: at}); err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
