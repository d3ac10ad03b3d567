package template

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Load reads the manifests in a directory, in the order of the file names. The error lists
// all problems, each with its file and document.
func Load(folder string) ([]*unstructured.Unstructured, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	l := loader{seen: map[id]string{}, exports: map[string]string{}}
	files := os.DirFS(folder)
	for _, entry := range entries {
		// A mounted ConfigMap has symbolic links to files in hidden directories.
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		l.entry(files, entry)
	}
	if len(l.objects) == 0 && len(l.bad) == 0 {
		l.fail("%s", "it contains no manifest; give a directory of .yaml, .yml or .json files")
	}
	if err := errors.Join(l.bad...); err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	return l.objects, nil
}

// loader collects the objects and the problems of all files.
type loader struct {
	objects []*unstructured.Unstructured
	bad     []error
	// seen and exports hold the file and document of each object, and of the binding of
	// each export.
	seen    map[id]string
	exports map[string]string
}

func (l *loader) fail(format string, args ...any) {
	l.bad = append(l.bad, fmt.Errorf(format, args...))
}

func (l *loader) entry(files fs.FS, entry fs.DirEntry) {
	name := entry.Name()
	if entry.IsDir() {
		l.fail("%s is a directory; put all manifests into one directory", name)
		return
	}
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
	default:
		return
	}
	raw, err := fs.ReadFile(files, name)
	if err != nil {
		l.fail("%w", err)
		return
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for n := 1; ; n++ {
		where := fmt.Sprintf("%s, document %d", name, n)
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			l.fail("%s: %w", where, err)
			return
		}
		l.document(where, document)
	}
}

func (l *loader) document(where string, document []byte) {
	raw, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		l.fail("%s: %w", where, err)
		return
	}
	if string(raw) == "null" {
		// The document has only comments.
		return
	}
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &o.Object); err != nil {
		l.fail("%s: it is not an object; a manifest has apiVersion and kind", where)
		return
	}
	if problem := malformed(o); problem != "" {
		l.fail("%s: %s", where, problem)
		return
	}
	key := idOf(o)
	if first, ok := l.seen[key]; ok {
		l.fail("%s: duplicate of %s in %s", where, key, first)
		return
	}
	l.seen[key] = where
	if err := l.check(where, o, raw); err != nil {
		l.fail("%s: %s: %w", where, key, err)
		return
	}
	l.objects = append(l.objects, o)
}
