package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/faroshq/kedge-hub/"

// recorder is the source of a package that a traced hub has beside its own.
//
//go:embed recorder.go.txt
var recorder []byte

// traced is a hub in which every function of this module reports that it is entered.
type traced struct {
	program   string
	functions []function
	// deps has the packages that each package imports, also indirectly.
	deps map[string][]string
	// lines has the number of lines of each package.
	lines map[string]lines
	// recorder talks to the recorder package in the hub.
	recorder *http.Client
}

type lines struct{ production, tests int }

type function struct {
	pkg   string
	lines int
}

// call is that of a function, whose number is ID, from the nearest function of this module on
// the stack. Request tells that the goroutine serves a request of a client.
type call struct {
	Caller, Callee string
	ID             int
	Request        bool
}

// record returns how often which functions are entered while do runs.
func (t *traced) record(do func() error) (map[call]int, error) {
	if _, err := t.ask("arm"); err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	return t.ask("")
}

func (t *traced) ask(query string) (map[call]int, error) {
	response, err := t.recorder.Get("http://recorder/?" + query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var all []struct {
		call
		Count int
	}
	err = json.NewDecoder(response.Body).Decode(&all)
	calls := map[call]int{}
	for _, c := range all {
		calls[c.call] = c.Count
	}
	return calls, err
}

// packageOf returns the package of a function, relative to the module.
func packageOf(name string) string {
	name = strings.TrimPrefix(name, module)
	path := name[:strings.LastIndex(strings.SplitN(name, "[", 2)[0], "/")+1]
	last, _, _ := strings.Cut(name[len(path):], ".")
	return path + last
}

// trace builds a traced hub from the source in root. Lines stay where they are, because the
// compiler gets a copy of each file with the calls within its lines.
func trace(root, dir string) (*traced, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	t := &traced{program: filepath.Join(dir, "kedge-hub"), deps: map[string][]string{}, lines: map[string]lines{}}
	socket := filepath.Join(dir, "recorder")
	if err := os.Setenv("RECORDER_SOCKET", socket); err != nil {
		return nil, err
	}
	t.recorder = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	overlay := map[string]string{}
	replace := func(path string, source []byte) error {
		copied := filepath.Join(dir, fmt.Sprintf("%d.go", len(overlay)))
		overlay[path] = copied
		return os.WriteFile(copied, source, 0o600)
	}
	if err := replace(filepath.Join(root, "recorder", "recorder.go"), recorder); err != nil {
		return nil, err
	}
	for _, part := range []string{"apis", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, part), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" {
				return err
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			pkg, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			sum, n := t.lines[pkg], bytes.Count(source, []byte("\n"))
			if strings.HasSuffix(path, "_test.go") {
				t.lines[pkg] = lines{sum.production, sum.tests + n}
				return nil
			}
			t.lines[pkg] = lines{sum.production + n, sum.tests}
			if source, err = t.instrument(pkg, source); err != nil {
				return err
			}
			return replace(path, source)
		})
		if err != nil {
			return nil, err
		}
	}
	raw, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return nil, err
	}
	if _, err := goTool(root, "build", "-overlay", file, "-o", t.program, "./cmd/kedge-hub"); err != nil {
		return nil, err
	}
	imports, err := goTool(root, "list", "-f", "{{.ImportPath}} {{join .Deps \" \"}}", "./apis/...", "./pkg/...")
	for line := range strings.Lines(imports) {
		fields := strings.Fields(strings.ReplaceAll(line, module, ""))
		t.deps[fields[0]] = fields[1:]
	}
	return t, err
}

func goTool(root string, args ...string) (string, error) {
	c := exec.Command("go", args...)
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s", err, failed.Stderr)
		}
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return string(out), nil
}

// instrument adds a call to the start of each function.
func (t *traced) instrument(pkg string, source []byte) ([]byte, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	type insertion struct {
		at   int
		text string
	}
	insertions := []insertion{{set.Position(file.Name.End()).Offset, `; import kedgerecorder "` + module + `recorder"`}}
	ast.Inspect(file, func(n ast.Node) bool {
		var body *ast.BlockStmt
		switch f := n.(type) {
		case *ast.FuncDecl:
			body = f.Body
		case *ast.FuncLit:
			body = f.Body
		}
		if body != nil {
			insertions = append(insertions, insertion{set.Position(body.Lbrace).Offset + 1, fmt.Sprintf("kedgerecorder.Enter(%d);", len(t.functions))})
			t.functions = append(t.functions, function{pkg, set.Position(body.Rbrace).Line - set.Position(n.Pos()).Line + 1})
		}
		return true
	})
	for _, i := range slices.Backward(insertions) {
		source = slices.Insert(source, i.at, []byte(i.text)...)
	}
	// A file without functions uses the import, too.
	return append(source, "\nvar _ = kedgerecorder.Enter\n"...), nil
}
