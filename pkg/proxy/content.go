package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// Before kcp asks its admission policy about a request, it has decoded the body and, for a role, has made a rule of
// each action that the rules permit. A few KiB can become more than kcp has memory for, and nothing ends that. So the hub
// reads these bodies first.

const (
	yamlType = "application/yaml"
	// maxYAML is the length of the longest role in YAML. The parser takes a hundred times as much.
	maxYAML = 512 << 10
	// maxAnchors is the number of anchors in a body in YAML, of those that could be anchors.
	maxAnchors = 1000
)

// admitContent refuses a body that kcp would make very much of, and waits for the turn of one that takes kcp long.
func (p *Proxy) admitContent(r *http.Request, e *exchange, info *request.RequestInfo) error {
	isYAML := inYAML(r)
	if !writes(r.Method) || r.ContentLength == 0 || !isYAML && !compares(r.Method, info) {
		return nil
	}
	most := int64(maxBody)
	if compares(r.Method, info) {
		most = largestObject
	}
	body, err := e.read(r, most)
	if err != nil {
		return err
	}
	// What is JSON is the same in YAML, and has no alias in it.
	if isYAML = isYAML && !json.Valid(body); isYAML {
		if err := checkAliases(body); err != nil {
			return err
		}
	}
	if !compares(r.Method, info) {
		return nil
	}
	if info.Resource == "roles" || info.Resource == "clusterroles" {
		if isYAML {
			if body, err = p.toJSON(body); err != nil {
				return err
			}
		}
		if err := checkRole(mediaType(r), body); err != nil {
			return err
		}
	}
	leave, err := p.load.comparison(r.Context(), e.stream.key.user, e.stream.payer)
	if err == nil {
		e.leave = sync.OnceFunc(leave)
	}
	return err
}

// toJSON converts a role in YAML, one at a time.
func (p *Proxy) toJSON(body []byte) ([]byte, error) {
	if len(body) > maxYAML {
		return nil, errs.New(errs.TooLarge, fmt.Sprintf("a role in YAML has at most %d KiB; send JSON", maxYAML>>10))
	}
	p.converting.Lock()
	defer p.converting.Unlock()
	converted, err := yaml.YAMLToJSONStrict(body)
	if err != nil {
		return nil, errs.UnprocessableField("body", "this is no YAML that can be read; send JSON")
	}
	return converted, nil
}

// read returns the body of a request, which is sent to kcp later. It refuses one of more than most bytes.
func (e *exchange) read(r *http.Request, most int64) ([]byte, error) {
	if e.whole != nil {
		return e.whole, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, most+1))
	switch {
	case err != nil:
		return nil, errs.Wrap(errs.Invalid, err, "the body of the request ended early")
	case int64(len(body)) > most:
		return nil, errs.New(errs.TooLarge, "the body of the request is too large")
	}
	e.whole = body
	return body, nil
}

// inYAML reports whether kcp could decode the body of a request as YAML.
func inYAML(r *http.Request) bool {
	return strings.Contains(strings.ToLower(strings.Join(r.Header["Content-Type"], ",")), "yaml")
}

// mediaType returns the media type by which kcp decodes the body of a request, or one that it refuses.
func mediaType(r *http.Request) string {
	switch values := r.Header["Content-Type"]; {
	case len(values) > 1:
		return ""
	case len(values) == 0 || values[0] == "":
		return jsonType
	case r.Method == http.MethodPatch:
		media, _, _ := strings.Cut(values[0], ";")
		return media
	default:
		media, _, err := mime.ParseMediaType(values[0])
		if err != nil {
			return ""
		}
		return media
	}
}

// checkAliases refuses a body in YAML with aliases: kcp converts it to JSON, and writes what an anchor names once for each
// alias. The parser bounds the number of aliases and not their length. Everything that could be an anchor and an alias of
// its name counts, in texts and comments, too.
func checkAliases(body []byte) error {
	if !utf8.Valid(body) {
		return errs.InvalidField("body", "YAML here is in UTF-8")
	}
	text, anchors := string(body), map[string]bool{}
	for name := range marked(text, '&') {
		if anchors[name] = true; len(anchors) > maxAnchors {
			return errs.UnprocessableField("body", "this YAML has too many anchors; send JSON")
		}
	}
	for name := range marked(text, '*') {
		if anchors[name] {
			return errs.UnprocessableField("body", "YAML with anchors and aliases is not accepted: "+
				"write out what *"+name[:min(len(name), 32)]+" stands for, or send JSON")
		}
	}
	return nil
}

// marked yields the names that follow a mark in a text, as long as the names of anchors are.
func marked(text string, mark byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for {
			_, rest, found := strings.Cut(text, string(mark))
			if !found {
				return
			}
			text = rest
			end := strings.IndexFunc(rest, func(c rune) bool { return !inAnchor(c) })
			if end < 0 {
				end = len(rest)
			}
			if end > 0 && !yield(rest[:end]) {
				return
			}
		}
	}
}

// inAnchor reports whether c can be in the name of an anchor.
func inAnchor(c rune) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-'
}

// checkRole refuses a role, or a change of one, with rules that permit too many actions. The rules of a role are one list
// that every patch but a JSON patch replaces as a whole.
func checkRole(media string, body []byte) (err error) {
	switch media {
	case jsonType, yamlType, string(types.MergePatchType), string(types.StrategicMergePatchType), string(types.ApplyYAMLPatchType):
		_, err = inJSON(body)
	case protobufType:
		_, err = inProtobuf(body)
	case string(types.JSONPatchType):
		err = checkJSONPatch(body)
	default:
		err = errs.New(errs.UnsupportedMediaType,
			"send a role as JSON (Content-Type: application/json), and a patch of one as a merge patch (application/merge-patch+json)")
	}
	return err
}
