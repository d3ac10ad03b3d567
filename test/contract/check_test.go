package contract_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/contract"
)

const small = `
openapi: 3.1.0
paths:
  /api/things/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: string, pattern: "^[a-z]+$"}}
      - {name: X-Kedge-Org, in: header, required: true, schema: {type: string}}
    get:
      parameters:
        - {name: limit, in: query, schema: {type: integer, maximum: 5}}
        - {name: all, in: query, schema: {type: boolean}}
      responses:
        "200": {$ref: "#/components/responses/Thing"}
        "404": {$ref: "#/components/responses/NotFound"}
    put:
      requestBody:
        required: true
        content:
          application/json: {schema: {$ref: "#/components/schemas/Thing"}}
          application/x-www-form-urlencoded: {schema: {$ref: "#/components/schemas/Thing"}}
      responses:
        "204": {description: Done.}
  /clusters/{cluster}/{path}:
    get: {responses: {default: {description: kcp's answer.}}}
components:
  responses:
    Thing:
      headers:
        X-Request-Id: {required: true, schema: {type: string}}
        ETag: {required: true, schema: {type: string, pattern: '^".+"$'}}
        Retry-After: {schema: {type: integer}}
      content:
        application/json: {schema: {allOf: [{$ref: "#/components/schemas/Thing"}, {properties: {state: {type: string}}}]}}
        application/yaml: {schema: {$ref: "#/components/schemas/Thing"}}
        text/html: {schema: {type: string}}
    NotFound:
      content:
        application/json: {schema: {$ref: "#/components/schemas/Status"}}
  schemas:
    Thing:
      type: object
      required: [name]
      properties:
        name: {type: string}
        parts: {type: array, items: {type: object, properties: {at: {type: string, format: date-time}}}}
    Status:
      type: object
      required: [kind, code]
      properties: {kind: {const: Status}, code: {type: integer}}
`

// exchange is a good one, in which a case changes something.
type exchange struct {
	method, target, body, media string
	header                      http.Header
	status                      int
	answer, answered            string
	answerHeader                http.Header
	bare                        bool
}

func TestCheck_findsEveryDifference(t *testing.T) {
	t.Parallel()
	c, err := contract.Parse(small)
	require.NoError(t, err)
	put := func(x *exchange) {
		x.method, x.body, x.media = http.MethodPut, `{"name":"a"}`, "application/json"
		x.status, x.answer = http.StatusNoContent, ""
	}
	for name, tc := range map[string]struct {
		change func(*exchange)
		// want is empty if the exchange is as documented.
		want string
	}{
		"as documented":            {func(*exchange) {}, ""},
		"a field of allOf":         {func(x *exchange) { x.answer = `{"name":"a","state":"Enabled"}` }, ""},
		"parameters":               {func(x *exchange) { x.target += "?limit=5&all=true" }, ""},
		"an empty parameter":       {func(x *exchange) { x.target += "?limit=" }, ""},
		"HEAD":                     {func(x *exchange) { x.method, x.answer = http.MethodHead, "" }, ""},
		"YAML":                     {func(x *exchange) { x.answered, x.answer = "application/yaml", "name: a" }, ""},
		"a page":                   {func(x *exchange) { x.answered, x.answer = "text/html; charset=utf-8", "<p>" }, ""},
		"a body":                   {put, ""},
		"a form":                   {func(x *exchange) { put(x); x.media, x.body = "application/x-www-form-urlencoded", "name=a" }, ""},
		"a bare handler":           {func(x *exchange) { x.bare = true; x.answerHeader.Del("X-Request-Id") }, ""},
		"an error":                 {func(x *exchange) { x.status, x.answer = 404, `{"kind":"Status","code":404}` }, ""},
		"an error and bad request": {func(x *exchange) { x.target += "?limit=9"; x.status, x.answer = 404, `{"kind":"Status","code":404}` }, ""},
		"the pass-through":         {func(x *exchange) { x.target, x.status, x.answer = "/clusters/a/api/v1", 418, "tea" }, ""},
		"headers too large":        {func(x *exchange) { x.status, x.answer = 431, "no" }, ""},
		"an unknown path":          {func(x *exchange) { x.target, x.status, x.answer = "/nowhere", 404, `{"kind":"Status","code":404}` }, ""},
		"plain text for discovery": {func(x *exchange) {
			x.header.Set("Accept", "application/json;as=APIGroupDiscoveryList")
			x.status, x.answer = 404, "no"
		}, ""},
		"an undocumented status":     {func(x *exchange) { x.status = 409 }, "GET /api/things/a: 409: the status is not documented"},
		"an undocumented path":       {func(x *exchange) { x.target = "/api/others" }, "the operation is not documented"},
		"an undocumented method":     {func(x *exchange) { x.method = http.MethodPost }, "the operation is not documented"},
		"an unknown path, no id":     {func(x *exchange) { x.target, x.status = "/nowhere", 404; x.answerHeader.Del("X-Request-Id") }, "X-Request-Id is missing"},
		"an unknown path, text":      {func(x *exchange) { x.target, x.status, x.answer = "/nowhere", 404, "no" }, "the body is not a Status: no"},
		"a missing header":           {func(x *exchange) { x.answerHeader.Del("ETag") }, "the header ETag is missing"},
		"a malformed header":         {func(x *exchange) { x.answerHeader.Set("ETag", "1") }, "the header ETag: "},
		"a malformed optional one":   {func(x *exchange) { x.answerHeader.Set("Retry-After", "soon") }, "the header Retry-After: "},
		"no request id":              {func(x *exchange) { x.answerHeader.Del("X-Request-Id") }, "X-Request-Id is missing"},
		"another content type":       {func(x *exchange) { x.answered = "text/plain" }, `the content type "text/plain" is not documented`},
		"an undocumented field":      {func(x *exchange) { x.answer = `{"name":"a","more":1}` }, "more"},
		"one in an item":             {func(x *exchange) { x.answer = `{"name":"a","parts":[{"more":1}]}` }, "more"},
		"a field of another type":    {func(x *exchange) { x.answer = `{"name":1}` }, "name"},
		"a malformed time":           {func(x *exchange) { x.answer = `{"name":"a","parts":[{"at":"now"}]}` }, "date-time"},
		"a missing field":            {func(x *exchange) { x.answer = `{}` }, "name"},
		"a Status with another code": {func(x *exchange) { x.status, x.answer = 404, `{"kind":"Status","code":403}` }, "the Status has another code"},
		"an undocumented body":       {func(x *exchange) { put(x); x.answer = "{}" }, "there is a body: {}"},
		"a missing request header":   {func(x *exchange) { x.header.Del("X-Kedge-Org") }, "the request: X-Kedge-Org is missing"},
		"a malformed path":           {func(x *exchange) { x.target = "/api/things/1" }, "the request: id: "},
		"a malformed parameter":      {func(x *exchange) { x.target += "?limit=6" }, "the request: limit: "},
		"no number":                  {func(x *exchange) { x.target += "?limit=a" }, "the request: limit: "},
		"no boolean":                 {func(x *exchange) { x.target += "?all=yes" }, "the request: all: "},
		"an undocumented parameter":  {func(x *exchange) { x.target += "?more=1" }, "the request: the parameter more is not documented"},
		"a parameter twice":          {func(x *exchange) { x.target += "?limit=5&limit=5" }, "the parameter limit is given twice"},
		"a missing request body":     {func(x *exchange) { put(x); x.body = "" }, "the body of the request: it is missing"},
		"a malformed request body":   {func(x *exchange) { put(x); x.body = `{"name":1}` }, "the body of the request: "},
		"another request type":       {func(x *exchange) { put(x); x.media = "text/plain" }, "the body of the request: the content type"},
		"a malformed form":           {func(x *exchange) { put(x); x.media, x.body = "application/x-www-form-urlencoded", "more=a" }, "the body of the request: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := exchange{
				method: http.MethodGet, target: "/api/things/a", header: http.Header{"X-Kedge-Org": {"acme"}}, status: http.StatusOK,
				answer: `{"name":"a"}`, answered: "application/json", answerHeader: http.Header{"X-Request-Id": {"1"}, "Etag": {`"1"`}},
			}
			tc.change(&x)
			r := httptest.NewRequest(x.method, x.target, strings.NewReader(x.body))
			r.Header = x.header
			r.Header.Set("Content-Type", x.media)
			x.answerHeader.Set("Content-Type", x.answered)
			err := c.Check(contract.Exchange{
				Request: r, RequestBody: []byte(x.body), Status: x.status, Header: x.answerHeader, Body: []byte(x.answer), Bare: x.bare,
			})
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// Paths of static segments come before those with parameters, as in the router of the hub.
func TestCheck_findsTheOperationOfTheRouter(t *testing.T) {
	t.Parallel()
	c, err := contract.Load()
	require.NoError(t, err)
	for path, want := range map[string]string{
		"/api/users/me":          "the status is not documented",
		"/api/users/alice":       "the operation is not documented",
		"/api/orgs/a%2Fb":        "the status is not documented",
		"/api/orgs/a/b":          "the operation is not documented",
		"/api/orgs/a/workspaces": "the status is not documented",
	} {
		at, err := url.Parse(path)
		require.NoError(t, err)
		err = c.Check(contract.Exchange{Request: &http.Request{Method: http.MethodGet, URL: at}, Status: http.StatusTeapot, Header: http.Header{}})
		require.ErrorContains(t, err, want, path)
	}
}
