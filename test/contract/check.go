package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"sigs.k8s.io/yaml"
)

// Exchange is a request and its answer.
type Exchange struct {
	Request *http.Request
	// RequestBody is nil if it is not known.
	RequestBody []byte
	Status      int
	Header      http.Header
	Body        []byte
	// Bare means that the handler runs without the middleware that gives the request an id.
	Bare bool
}

// requestID is the header that every answer has.
const requestID = "X-Request-Id"

// discovers reports whether a request is for aggregated discovery, the refusals of which are
// plain text.
func (x Exchange) discovers() bool {
	return strings.Contains(x.Request.Header.Get("Accept"), "as=APIGroupDiscoveryList")
}

// Passes reports whether a request is for the Kubernetes API of a Workspace. Its answers are
// those of kcp.
func Passes(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/clusters/") }

// Check compares an exchange with the document. The request is compared if it succeeded.
func (c *Contract) Check(x Exchange) error {
	if Passes(x.Request) || x.Status == http.StatusRequestHeaderFieldsTooLarge {
		return nil
	}
	err := c.check(x)
	if err != nil {
		err = fmt.Errorf("openapi.yaml: %s %s: %d: %w", x.Request.Method, x.Request.URL.Path, x.Status, err)
	}
	return err
}

func (c *Contract) check(x Exchange) error {
	operation, params, ok := c.operation(x.Request)
	if !ok {
		return c.nowhere(x)
	}
	response, at := c.at(operation + "/responses/" + strconv.Itoa(x.Status))
	if response == nil && x.Bare && x.Status == http.StatusInternalServerError {
		// The unit tests of handlers cause failures that no hub has.
		response, at = c.at(operation + "/responses/default")
	}
	if response == nil {
		return fmt.Errorf("the status is not documented: %s", x.Body)
	}
	if err := c.headers(x, response, at); err != nil {
		return err
	}
	if err := c.answer(x, response, at); err != nil {
		return err
	}
	if x.Status >= http.StatusBadRequest {
		return nil
	}
	if err := c.parameters(x, operation, params); err != nil {
		return fmt.Errorf("the request: %w", err)
	}
	if err := c.body(x, operation); err != nil {
		return fmt.Errorf("the body of the request: %w", err)
	}
	return nil
}

// nowhere checks the answer for a path or a method that is not in the document.
func (c *Contract) nowhere(x Exchange) error {
	switch x.Status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
		http.StatusMethodNotAllowed, http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		return errors.New("the operation is not documented")
	}
	if !x.Bare && x.Header.Get(requestID) == "" {
		return errors.New(requestID + " is missing")
	}
	if x.discovers() || x.Request.Method == http.MethodHead {
		return nil
	}
	return c.status(x, "/components/schemas/Status")
}

// status checks a body that is a metav1.Status.
func (c *Contract) status(x Exchange, schema string) error {
	var value any
	if err := json.Unmarshal(x.Body, &value); err != nil {
		return fmt.Errorf("the body is not a Status: %s", x.Body)
	}
	if err := c.valid(schema, value); err != nil {
		return err
	}
	if is, ok := value.(map[string]any); ok && is["kind"] == "Status" && is["code"] != float64(x.Status) {
		return fmt.Errorf("the Status has another code: %s", x.Body)
	}
	return nil
}

func (c *Contract) headers(x Exchange, response map[string]any, at string) error {
	documented, _ := response["headers"].(map[string]any)
	for name := range documented {
		header, at := c.at(at + "/headers/" + name)
		values := x.Header.Values(name)
		switch {
		case x.Bare && name == requestID:
		case len(values) == 0 && header["required"] == true:
			return fmt.Errorf("the header %s is missing", name)
		case len(values) > 0:
			if err := c.text(at+"/schema", values[0]); err != nil {
				return fmt.Errorf("the header %s: %w", name, err)
			}
		}
	}
	return nil
}

func (c *Contract) answer(x Exchange, response map[string]any, at string) error {
	content, _ := response["content"].(map[string]any)
	switch {
	case x.Request.Method == http.MethodHead:
		return nil
	case len(content) == 0 && len(x.Body) > 0:
		return fmt.Errorf("there is a body: %s", x.Body)
	case len(content) == 0:
		return nil
	case x.discovers() && x.Status >= http.StatusBadRequest:
		return nil
	}
	media, _, err := mime.ParseMediaType(x.Header.Get("Content-Type"))
	if err != nil || content[media] == nil {
		return fmt.Errorf("the content type %q is not documented", x.Header.Get("Content-Type"))
	}
	schema := at + "/content/" + escape(media) + "/schema"
	switch media {
	case "application/json":
		return c.status(x, schema)
	case "application/yaml":
		var value any
		if err := yaml.Unmarshal(x.Body, &value); err != nil {
			return err
		}
		return c.valid(schema, value)
	}
	return nil
}

// parameters checks the parameters of a request.
func (c *Contract) parameters(x Exchange, operation string, path chi.RouteParams) error {
	query, err := url.ParseQuery(x.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	for _, at := range c.parametersOf(operation) {
		parameter, at := c.at(at)
		name, _ := parameter["name"].(string)
		var values []string
		switch parameter["in"] {
		case "query":
			values = query[name]
		case "header":
			values = x.Request.Header.Values(name)
		case "path":
			for i, key := range path.Keys {
				if key == name {
					values = []string{path.Values[i]}
				}
			}
		}
		if len(values) == 0 && parameter["required"] == true {
			return fmt.Errorf("%s is missing", name)
		}
		// An empty parameter is one that is not given.
		if len(values) > 0 && values[0] != "" {
			if err := c.text(at+"/schema", values[0]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return c.CheckQuery(x.Request)
}

// parametersOf returns the JSON pointers of the parameters of an operation, and of those of its path.
func (c *Contract) parametersOf(operation string) (pointers []string) {
	for _, in := range []string{operation[:strings.LastIndex(operation, "/")], operation} {
		item, _ := c.at(in)
		list, _ := item["parameters"].([]any)
		for i := range list {
			pointers = append(pointers, in+"/parameters/"+strconv.Itoa(i))
		}
	}
	return pointers
}

// CheckQuery returns an error for a query parameter that the operation of a request does not have, or that is given twice. The
// hub refuses it. Requests for other paths have no error.
func (c *Contract) CheckQuery(r *http.Request) error {
	operation, _, ok := c.operation(r)
	// OAuth has servers ignore parameters that they do not know.
	if !ok || strings.HasPrefix(r.URL.Path, "/auth/") {
		return nil
	}
	known := map[string]bool{}
	for _, at := range c.parametersOf(operation) {
		if parameter, _ := c.at(at); parameter["in"] == "query" {
			known[parameter["name"].(string)] = true
		}
	}
	for name, values := range r.URL.Query() {
		switch {
		case !known[name]:
			return fmt.Errorf("the parameter %s is not documented", name)
		case len(values) > 1:
			return fmt.Errorf("the parameter %s is given twice", name)
		}
	}
	return nil
}

func (c *Contract) body(x Exchange, operation string) error {
	item, _ := c.at(operation)
	if item["requestBody"] == nil || x.RequestBody == nil {
		return nil
	}
	documented, at := c.at(operation + "/requestBody")
	if len(x.RequestBody) == 0 {
		if documented["required"] == true {
			return errors.New("it is missing")
		}
		return nil
	}
	content, _ := documented["content"].(map[string]any)
	media, _, err := mime.ParseMediaType(x.Request.Header.Get("Content-Type"))
	if err != nil || content[media] == nil {
		return fmt.Errorf("the content type %q is not documented", x.Request.Header.Get("Content-Type"))
	}
	schema := at + "/content/" + escape(media) + "/schema"
	if media != "application/x-www-form-urlencoded" {
		var value any
		if err := json.Unmarshal(x.RequestBody, &value); err != nil {
			return err
		}
		return c.valid(schema, value)
	}
	form, err := url.ParseQuery(string(x.RequestBody))
	if err != nil {
		return err
	}
	value := map[string]any{}
	for name := range form {
		value[name] = form.Get(name)
	}
	return c.valid(schema, value)
}

// text validates a header or a parameter, which is text for every schema.
func (c *Contract) text(schema, value string) error {
	resolved, _ := c.at(schema)
	var typed any = value
	switch resolved["type"] {
	case "integer":
		n, err := strconv.Atoi(value)
		if err != nil {
			return err
		}
		typed = float64(n)
	case "boolean":
		typed = value == "true"
		if value != "true" && value != "false" {
			return fmt.Errorf("%q is not a boolean", value)
		}
	}
	return c.valid(schema, typed)
}

func (c *Contract) valid(schema string, value any) error {
	s, err := c.schema(schema)
	if err != nil {
		return err
	}
	if err := s.Validate(value); err != nil {
		return errors.New(brief(err.Error()))
	}
	return nil
}

// brief leaves out that no field counts as evaluated in an object that is not valid, if there
// is another reason.
func brief(text string) string {
	var reasons []string
	other := false
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); !strings.HasSuffix(line, ": false schema") {
			reasons = append(reasons, line)
			other = other || strings.Contains(line, "- at") && !strings.HasSuffix(line, " failed")
		}
	}
	if !other {
		return text
	}
	return strings.Join(reasons, "\n")
}
