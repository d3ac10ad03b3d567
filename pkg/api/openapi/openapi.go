package openapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// Document is the document as it is served.
type Document struct {
	body []byte
	etag string
	// Parameters are the query parameters of its operations. No parameter of the API is a list, so none may be given twice.
	Parameters httpapi.Parameters
}

// New converts the document from YAML.
func New(document string) (*Document, error) {
	raw, err := yaml.YAMLToJSONStrict([]byte(document))
	if err != nil {
		return nil, fmt.Errorf("the OpenAPI document: %w", err)
	}
	var body bytes.Buffer
	if err := json.Compact(&body, raw); err != nil {
		return nil, fmt.Errorf("the OpenAPI document: %w", err)
	}
	parameters, err := parametersIn(raw)
	if err != nil {
		return nil, fmt.Errorf("the OpenAPI document: %w", err)
	}
	sum := sha256.Sum256(body.Bytes())
	return &Document{body: body.Bytes(), etag: `"` + hex.EncodeToString(sum[:16]) + `"`, Parameters: parameters}, nil
}

// ServeHTTP answers a GET. Caches may store the document and must ask each time whether it
// is still current, because another version of the hub has another one.
func (d *Document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "public, no-cache")
	header.Set("ETag", d.etag)
	header.Set("X-Content-Type-Options", "nosniff")
	if d.known(r) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(d.body)))
	_, _ = w.Write(d.body)
}

// known reports whether the client has the document. The comparison is weak, as RFC 9110,
// section 13.1.2, says.
func (d *Document) known(r *http.Request) bool {
	for _, line := range r.Header.Values("If-None-Match") {
		for tag := range strings.SplitSeq(line, ",") {
			tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
			if tag == "*" || tag == d.etag {
				return true
			}
		}
	}
	return false
}
