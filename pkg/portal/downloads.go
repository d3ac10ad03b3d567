package portal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

const (
	caPath        = prefix + "ca.crt"
	downloadsPath = prefix + "downloads/"
	// sumSuffix is the end of the path of the hash of a file.
	sumSuffix = ".sha256"
)

// Options are what a hub serves beside the pages.
type Options struct {
	// CA returns the CA of the hub's certificate, as PEM. It is nil if every computer knows that.
	CA func() []byte
	// DownloadsDir is the directory of the programs to download, or empty.
	DownloadsDir string
	// ExternalURL is the URL of the hub, without a trailing slash.
	ExternalURL string
	// Version is that of the programs.
	Version string
}

// program is a file to download.
type program struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// OS and Arch are those of Go, and empty for a file that does not name them.
	OS   string `json:"os,omitempty"`
	Arch string `json:"arch,omitempty"`

	modified time.Time
}

// index is what the pages know of the hub's files.
type index struct {
	// CA is true if people need the CA of the hub.
	CA    bool      `json:"ca"`
	Files []program `json:"files"`
}

var (
	// programName matches the names of files that are served.
	programName = regexp.MustCompile(`^kedge[A-Za-z0-9._-]{0,120}$`)
	// platform matches the names of programs for a platform.
	platform = regexp.MustCompile(`^kedge-(linux|darwin|windows)-(amd64|arm64)(\.tar\.gz|\.zip|\.exe)?$`)
	// release matches the versions that krew takes.
	release = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
)

// pluginName is the file that krew installs the kubectl plugin from.
const pluginName = "kedge.yaml"

// downloads are the files of a directory as they were at the start.
type downloads struct {
	root  *os.Root
	files map[string]program
	// made are small files that the hub makes of the list.
	made map[string][]byte
}

// indexPage is the page that lists the downloads.
const indexPage = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Downloads - kedge</title><h1>Downloads</h1>
<ul>{{if .CA}}<li><a href="../ca.crt">ca.crt</a>, the CA that signs the certificate of this hub</li>{{end}}
{{range .Files}}<li><a href="{{.Name}}">{{.Name}}</a> {{.Size}} bytes, <a href="{{.Name}}.sha256">SHA-256</a> <code>{{.SHA256}}</code></li>
{{end}}</ul>{{if .Files}}<p>To verify: <code>sha256sum -c --ignore-missing SHA256SUMS</code> with <a href="SHA256SUMS">SHA256SUMS</a>.</p>{{else}}<p>This hub has no programs to download.</p>{{end}}</html>
`

// newDownloads reads the directory of the options and hashes its files.
func newDownloads(o Options) (*downloads, error) {
	d := &downloads{files: map[string]program{}, made: map[string][]byte{}}
	all := index{CA: o.CA != nil, Files: []program{}}
	if o.DownloadsDir != "" {
		var err error
		if d.root, err = os.OpenRoot(o.DownloadsDir); err != nil {
			return nil, err
		}
		entries, err := fs.ReadDir(d.root.FS(), ".")
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			name := entry.Name()
			if !programName.MatchString(name) || strings.HasSuffix(name, sumSuffix) || name == pluginName {
				continue
			}
			p, err := d.read(name)
			if errors.Is(err, errNoFile) {
				continue
			}
			if err != nil {
				return nil, err
			}
			d.files[name] = p
			all.Files = append(all.Files, p)
		}
	}
	return d, d.make(o, all)
}

// errNoFile means that something is not a regular file.
var errNoFile = errors.New("not a regular file")

// read hashes a file.
func (d *downloads) read(name string) (p program, err error) {
	f, info, err := d.open(name)
	if err != nil {
		return p, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return p, err
	}
	p = program{Name: name, Size: info.Size(), SHA256: hex.EncodeToString(hash.Sum(nil)), modified: info.ModTime()}
	if parts := platform.FindStringSubmatch(name); parts != nil {
		p.OS, p.Arch = parts[1], parts[2]
	}
	return p, nil
}

// open opens a regular file of the directory.
func (d *downloads) open(name string) (*os.File, fs.FileInfo, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoFile
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// make makes the small files.
func (d *downloads) make(o Options, all index) error {
	var sums, page bytes.Buffer
	for _, p := range all.Files {
		line := p.SHA256 + "  " + p.Name + "\n"
		sums.WriteString(line)
		d.made[p.Name+sumSuffix] = []byte(line)
	}
	d.made["SHA256SUMS"] = sums.Bytes()
	t, err := template.New("").Parse(indexPage)
	if err == nil {
		err = t.Execute(&page, all)
	}
	if err != nil {
		return err
	}
	d.made[""] = page.Bytes()
	raw, err := json.Marshal(all)
	if err != nil {
		return err
	}
	d.made["index.json"] = raw
	if plugin := pluginOf(o.ExternalURL, o.Version, all.Files); plugin != nil {
		d.made[pluginName], err = yaml.Marshal(plugin)
	}
	return err
}

// pluginOf returns the manifest from which krew installs kubectl kedge, or nil without archives. A version that
// krew does not take is v0.0.0 in it.
func pluginOf(hub, v string, files []program) map[string]any {
	var platforms []any
	for _, p := range files {
		if p.OS == "" || !strings.HasSuffix(p.Name, ".tar.gz") && !strings.HasSuffix(p.Name, ".zip") {
			continue
		}
		bin := "kedge"
		if p.OS == "windows" {
			bin += ".exe"
		}
		platforms = append(platforms, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]string{"os": p.OS, "arch": p.Arch}},
			"uri":      hub + downloadsPath + p.Name, "sha256": p.SHA256, "bin": bin,
		})
	}
	if len(platforms) == 0 {
		return nil
	}
	if !release.MatchString(v) {
		v = "v0.0.0"
	}
	return map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin", "metadata": map[string]string{"name": "kedge"},
		"spec": map[string]any{
			"version": v, "homepage": hub + prefix, "shortDescription": "Work with the workspaces of a kedge-hub", "platforms": platforms,
		},
	}
}

// serveDownload answers with a program, its hash or one of the lists.
func (h *Handler) serveDownload(w http.ResponseWriter, r *http.Request) error {
	name := chi.URLParam(r, "*")
	if made, ok := h.downloads.made[name]; ok {
		kind := "text/plain; charset=utf-8"
		switch name {
		case "":
			kind = "text/html; charset=utf-8"
		case "index.json":
			kind = "application/json"
		}
		serveMade(w, r, kind, made)
		return nil
	}
	p, ok := h.downloads.files[name]
	if !ok {
		httpapi.NotFound(w, r)
		return nil
	}
	f, info, err := h.downloads.open(name)
	if err != nil {
		return fmt.Errorf("open a file of --downloads-dir: %w", err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	// The hash is that of the file at the start.
	if info.Size() != p.Size || !info.ModTime().Equal(p.modified) {
		return fmt.Errorf("%s in --downloads-dir has changed since the start", name)
	}
	header := w.Header()
	secure(header)
	header.Set("ETag", `"`+p.SHA256+`"`)
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	http.ServeContent(w, r, "", time.Time{}, f)
	return nil
}

// serveCA answers with the CA of the hub.
func (h *Handler) serveCA(w http.ResponseWriter, r *http.Request) error {
	if h.ca == nil {
		httpapi.NotFound(w, r)
		return nil
	}
	w.Header().Set("Content-Disposition", `attachment; filename="kedge-ca.crt"`)
	serveMade(w, r, "application/x-pem-file", h.ca())
	return nil
}

// serveMade answers with bytes.
func serveMade(w http.ResponseWriter, r *http.Request, kind string, body []byte) {
	hash := sha256.Sum256(body)
	secure(w.Header())
	w.Header().Set("ETag", `"`+hex.EncodeToString(hash[:16])+`"`)
	w.Header().Set("Content-Type", kind)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
