package contract

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/config"
)

// clusters is the path of the pass-through to kcp, and clustersRoute what it is in the router:
// a parameter of an OpenAPI path has no slashes.
const (
	clusters      = "/clusters/{cluster}/{path}"
	clustersRoute = "/clusters/*"
)

// methods are the members of a path item that are operations.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// Contract is the OpenAPI document of the hub.
type Contract struct {
	document map[string]any
	router   *chi.Mux

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

var load = sync.OnceValues(func() (*Contract, error) { return Parse(config.OpenAPI) })

// Load returns the document of the hub. It is parsed once in a process.
func Load() (*Contract, error) { return load() }

// Parse returns the Contract of a document in YAML.
func Parse(document string) (*Contract, error) {
	c := &Contract{router: chi.NewRouter(), compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	if err := yaml.UnmarshalStrict([]byte(document), &c.document); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	for _, o := range c.Operations() {
		c.router.MethodFunc(o.Method, o.Pattern, func(http.ResponseWriter, *http.Request) {})
	}
	// The compiler gets a document of its own, in which objects are closed.
	raw, err := json.Marshal(c.document)
	if err != nil {
		return nil, err
	}
	var closed map[string]any
	if err := json.Unmarshal(raw, &closed); err != nil {
		return nil, err
	}
	closer{root: closed}.schemas(closed)
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	return c, c.compiler.AddResource(resource, closed)
}

// Operation is a method and a pattern of the router.
type Operation struct{ Method, Pattern string }

// Operations returns all operations of the document.
func (c *Contract) Operations() []Operation {
	var all []Operation
	paths, _ := c.document["paths"].(map[string]any)
	for path, item := range paths {
		members, _ := item.(map[string]any)
		for _, method := range methods {
			if _, ok := members[strings.ToLower(method)]; ok {
				all = append(all, Operation{method, route(path)})
			}
		}
	}
	slices.SortFunc(all, func(a, b Operation) int { return strings.Compare(a.Pattern+a.Method, b.Pattern+b.Method) })
	return all
}

// Answers reports whether the document has a status for an operation.
func (c *Contract) Answers(o Operation, status int) bool {
	found, _ := c.at(pointerTo(o) + "/responses/" + strconv.Itoa(status))
	return found != nil
}

func route(path string) string {
	if path == clusters {
		return clustersRoute
	}
	return path
}

// path is the reverse of route.
func path(route string) string {
	if route == clustersRoute {
		return clusters
	}
	return route
}

// operation finds the operation of a request as the router of the hub does. HEAD is answered
// as GET is.
func (c *Contract) operation(r *http.Request) (pointer string, params chi.RouteParams, ok bool) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	routing := chi.NewRouteContext()
	if !c.router.Match(routing, method, cmp.Or(r.URL.RawPath, r.URL.Path)) {
		return "", chi.RouteParams{}, false
	}
	return pointerTo(Operation{method, routing.RoutePattern()}), routing.URLParams, true
}

// pointerTo is the JSON pointer of an operation.
func pointerTo(o Operation) string {
	return "/paths/" + escape(path(o.Pattern)) + "/" + strings.ToLower(o.Method)
}

func escape(s string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(s) }

// at returns the object at a JSON pointer and where it is, following references.
func (c *Contract) at(pointer string) (map[string]any, string) {
	node := any(c.document)
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch in := node.(type) {
		case map[string]any:
			node = in[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
		case []any:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil || i >= len(in) {
				return nil, pointer
			}
			node = in[i]
		}
	}
	found, _ := node.(map[string]any)
	if ref, ok := found["$ref"].(string); ok {
		return c.at(strings.TrimPrefix(ref, "#"))
	}
	return found, pointer
}

// resource is the name of the document for the compiler.
const resource = "openapi.json"

// schema returns the compiled schema at a JSON pointer.
func (c *Contract) schema(pointer string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.compiled[pointer]; ok {
		return s, nil
	}
	s, err := c.compiler.Compile(resource + "#" + fragment(pointer))
	if err != nil {
		return nil, err
	}
	c.compiled[pointer] = s
	return s, nil
}

// fragment percent-encodes what a JSON pointer may have and the fragment of a URL may not.
func fragment(pointer string) string {
	return strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D", " ", "%20", `"`, "%22").Replace(pointer)
}
