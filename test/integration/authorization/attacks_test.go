package authorization

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// attacked names the Org that the attackers belong to. Bob has sudo in its Workspace.
const attacked = "attacked"

// attacks runs the attacks that apply to many routes of the matrix. The cells of the
// matrix are the positive control: they send the same requests in their valid form.
func (w *matrixWorld) attacks(t *testing.T) {
	t.Parallel()
	t.Run("a body is read whole or refused", w.bodies)
	t.Run("nobody is found by a strange name", w.strangeNames)
	t.Run("a query says what it may and no more", w.queries)
	t.Run("a path leads to one place or nowhere", w.paths)
	t.Run("a Workspace is reached through its own Org alone", w.crossedPlaces)
	t.Run("a key that repeats a request is one that can be kept", w.idempotencyKeys)
	t.Run("no header makes somebody else of a caller", w.forgedHeaders)
	t.Run("nobody is impersonated but with sudo oneself", w.impersonation)
	t.Run("what is not HTTP does no harm", w.wire)
	t.Run("who does not finish is not waited for", w.slowHeaders)
}

// matrixBodies lists what can be wrong with any body. Each entry changes a valid body or
// its content type.
var matrixBodies = map[string]struct {
	contentType string
	change      func(body string) string
	want        string
	// field is the field that the answer must name.
	field string
}{
	"plain text":           {contentType: "text/plain", want: "415"},
	"a form":               {contentType: "application/x-www-form-urlencoded", want: "415"},
	"a form with files":    {contentType: "multipart/form-data; boundary=x", want: "415"},
	"YAML":                 {contentType: "application/yaml", want: "415"},
	"another charset":      {contentType: "application/json; charset=utf-16", want: "415"},
	"two types":            {contentType: "application/json, text/plain", want: "415"},
	"a JSON patch":         {contentType: "application/json-patch+json", want: "415"},
	"a byte over 64 KiB":   {change: func(b string) string { return b + strings.Repeat(" ", 64<<10+1-len(b)) }, want: "413"},
	"nothing":              {change: func(string) string { return "" }, want: "400"},
	"null":                 {change: func(string) string { return "null" }, want: "400"},
	"a list":               {change: func(b string) string { return "[" + b + "]" }, want: "400"},
	"a text":               {change: func(string) string { return `"{}"` }, want: "400"},
	"half of it":           {change: func(b string) string { return b[:len(b)-1] }, want: "400"},
	"something behind it":  {change: func(b string) string { return b + "{}" }, want: "400"},
	"a byte order mark":    {change: func(b string) string { return "\ufeff" + b }, want: "400"},
	"broken UTF-8":         {change: func(b string) string { return strings.Replace(b, `"`, "\"\xff", 1) }, want: "400"},
	"a comment":            {change: func(b string) string { return "/**/" + b }, want: "400"},
	"every field twice":    {change: func(b string) string { return b[:len(b)-1] + "," + b[1:] }, want: "400"},
	"a deep nest":          {change: func(string) string { return `{"x":` + strings.Repeat("[", 10_000) }, want: "400"},
	"an unknown field":     {change: withField(`"isAdmin":true`), want: "400", field: "isAdmin"},
	"somebody else's UUID": {change: withField(`"uuid":"11111111-1111-4111-8111-111111111111"`), want: "400", field: "uuid"},
	"a personal Org":       {change: withField(`"personal":true`), want: "400", field: "personal"},
	"an object's metadata": {change: withField(`"metadata":{"name":"alice"}`), want: "400", field: "metadata"},
	"a prototype":          {change: withField(`"__proto__":{}`), want: "400", field: "__proto__"},
}

func withField(field string) func(body string) string {
	return func(body string) string { return "{" + field + "," + body[1:] }
}

// matrixLibraryWords are typical of the error texts of libraries. An answer must not
// pass such a text on.
var matrixLibraryWords = []string{"json:", "unmarshal", "struct", "Go ", "runtime error", "goroutine", "reflect", ".go:", "invalid character", "strconv"}

func (w *matrixWorld) bodies(t *testing.T) {
	t.Parallel()
	for _, r := range firstMatrixRows(func(r matrixRow) bool { return r.body != "" && strings.HasPrefix(r.pattern(), "/api/") }) {
		method := r.routes(server.Routes())[0].Method
		for name, bad := range matrixBodies {
			if bad.change == nil {
				bad.change = func(body string) string { return body }
			}
			t.Run(r.name()+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := w.spare(r.rightful())
				send := func(want string) framework.Answer {
					c := s.call(r, method)
					c.Body = bad.change(c.Body.(string))
					if bad.contentType != "" {
						c.Header.Set("Content-Type", bad.contentType)
					}
					a := s.send(t, c)
					s.judge(t, c, a, want)
					return a
				}
				a := send(bad.want)
				for _, word := range matrixLibraryWords {
					require.NotContains(t, string(a.Raw), word)
				}
				if bad.field != "" {
					require.Contains(t, string(a.Raw), `"field":"`+bad.field+`"`)
				}
				// The hub authenticates and authorizes the caller before it reads the body.
				s.position = asAnonymous
				send("401")
				if s.position = asNobody; r.want(asNobody) == "403" && r.pattern() != "/api/credentials" {
					send("403")
				}
			})
		}
	}
}

func (w *matrixWorld) strangeNames(t *testing.T) {
	t.Parallel()
	for _, r := range firstMatrixRows(func(r matrixRow) bool {
		return r.authenticated() && (strings.Contains(r.pattern(), "{user}") || strings.Contains(r.pattern(), "{name}"))
	}) {
		t.Run(r.name(), func(t *testing.T) {
			t.Parallel()
			s := w.spare(r.rightful())
			for _, name := range []string{
				".", "..", "%2e%2e", "..%2f" + s.org, "%00", "%ff", "%0d%0aX-Kedge-Org:%20x", "ALICE", "Alice", "%61lice", "alice%20", "alice.", "alice,bob", "alice;bob",
				"system:admin", "system:masters", "*", "-", "'%20OR%20'1'='1", "%F0%9F%92%A9", strings.Repeat("a", 64), strings.Repeat("a", 5000),
				s.ws + "." + matrixPeople[asWorkspaceMember], "uid-alice", "user%20of%20alice", "alice@example.com", "__proto__", "${jndi:ldap:x}", "%25s%25n",
			} {
				c := s.call(r, r.routes(server.Routes())[0].Method)
				c.Path = strings.Replace(c.Path, s.target, name, 1)
				s.judge(t, c, s.send(t, c), "404")
			}
		})
	}
}

func (w *matrixWorld) queries(t *testing.T) {
	t.Parallel()
	place := w.places[attacked]
	members := "/api/orgs/" + place.org + "/members"
	for name, c := range map[string]struct {
		path, query, want, field string
		as                       int
	}{
		"no limit at all":            {path: "/api/orgs", query: "limit=0", want: "400", field: "limit"},
		"a negative limit":           {path: "/api/orgs", query: "limit=-1", want: "400", field: "limit"},
		"too high a limit":           {path: members, query: "limit=501", want: "400", field: "limit"},
		"a limit that overflows":     {path: members, query: "limit=99999999999999999999", want: "400", field: "limit"},
		"a limit with a fraction":    {path: members, query: "limit=1e2", want: "400", field: "limit"},
		"a limit":                    {path: members, query: "limit=500", want: "200"},
		"a forged continue":          {path: "/api/orgs", query: "continue=YWxpY2U", want: "400", field: "continue"},
		"a continue in another code": {path: members, query: "continue=%00%ff", want: "400", field: "continue"},
		"a forged one, for admins":   {path: "/api/admin/users", query: "continue=..%2f..%2f", want: "400", field: "continue", as: asPlatformAdmin},
		"an unknown registration":    {path: "/api/admin/users", query: "registration=approved", want: "400", field: "registration", as: asPlatformAdmin},
		"a known registration":       {path: "/api/admin/users", query: "registration=Rejected", want: "200", as: asPlatformAdmin},
		"a maybe":                    {path: "/api/users/me/memberships", query: "deleted=maybe", want: "400", field: "deleted"},
		"a search for everybody":     {path: "/api/users", query: "q=", want: "400", field: "q"},
		"a search for one letter":    {path: "/api/users", query: "q=a%20", want: "400", field: "q"},
		"a search by a novel":        {path: "/api/users", query: "q=" + strings.Repeat("a", 129), want: "400", field: "q"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &matrixScene{matrixWorld: w, matrixPlace: place, position: c.as}
			if c.as == asAnonymous {
				s.position = asOrgAdmin
			}
			question := s.call(matrixRow{route: "GET " + c.path}, http.MethodGet)
			question.Path += "?" + c.query
			question.Org = place.org
			a := s.send(t, question)
			s.judge(t, question, a, c.want)
			if c.field != "" {
				require.Contains(t, string(a.Raw), `"field":"query:`+c.field+`"`)
			}
		})
	}
	t.Run("what is not a parameter is refused", func(t *testing.T) {
		t.Parallel()
		// Dave is a member of one Workspace. The hub says so instead of answering as if it had understood.
		s := &matrixScene{matrixWorld: w, matrixPlace: place, position: asWorkspaceMember}
		stranger := &matrixScene{matrixWorld: w, matrixPlace: place, position: asNobody}
		for _, path := range []string{"/api/users/me", "/api/orgs/" + place.org + "/workspaces/" + place.ws, "/api/orgs/" + place.org + "/workspaces"} {
			plain := call{Method: http.MethodGet, Path: path, Org: place.org, Workspace: place.ws}
			plain.As = matrixPeople[stranger.position]
			outside := stranger.send(t, plain)
			for query, field := range map[string]string{
				"org=" + w.foreign.org: "query:org", "X-Kedge-Org=" + w.foreign.org: "query:X-Kedge-Org", "user=alice": "query:user",
				"as=alice&as-group=system:masters": "query:as", "platformAdmin=true": "query:platformAdmin", "role=admin": "query:role",
				"access_token=" + framework.Token(matrixPeople[asOrgAdmin]): "query:access_token", "_method=DELETE": "query:_method",
				"fieldSelector=metadata.name%3Dalice": "query:fieldSelector", "watch=true": "query:watch", "pretty=true": "query:pretty",
				"actors=bob": "query:actors",
				"%zz":        "query", ";": "query", "a=b;c=d": "query", "%7f": "query:", strings.Repeat("a=b&", 1000): "query:a",
			} {
				c := plain
				c.As, c.Path = matrixPeople[s.position], path+"?"+query
				a := s.sendBy(t, s.hub.Uncompared(), c)
				s.judge(t, c, a, "400")
				require.Contains(t, string(a.Raw), `"field":"`+field, query)
				if path != "/api/users/me" {
					c.As = matrixPeople[stranger.position]
					stranger.same(t, c, outside, stranger.sendBy(t, s.hub.Uncompared(), c))
				}
			}
		}
		refused := call{Method: http.MethodGet, Path: "/api/users/me?access_token=" + framework.Token("alice")}
		s.judge(t, refused, s.send(t, refused), "401")
	})
}

// paths sends paths that a proxy or a lenient router could resolve to another resource.
func (w *matrixWorld) paths(t *testing.T) {
	t.Parallel()
	s := &matrixScene{matrixWorld: w, matrixPlace: w.places[attacked], position: asOrgAdmin}
	foreign := w.foreign
	for _, path := range []string{
		"/api/orgs/{org}/../" + foreign.org, "/api/orgs/{org}/%2e%2e/" + foreign.org, "/api/orgs/{org}/..%2f" + foreign.org, "/api/orgs/" + foreign.org + "/../{org}",
		"/api/orgs/{org}%2f..%2f" + foreign.org, "/api/orgs/{org}\\..\\" + foreign.org, "/api/orgs/{org}%00", "/api/orgs/{org}%20", "/api/orgs/{org};", "/api/orgs/{org};x=y",
		"/api/orgs/{org}.json", "/api/orgs/{org}/", "/api/orgs/{org}//members", "/api/orgs//{org}", "/api//orgs/{org}", "//api/orgs/{org}", "/api/./orgs/{org}", "/./api/orgs/{org}",
		"/API/orgs/{org}", "/api/Orgs/{org}", "/api/%6frgs/{org}", "/%61pi/orgs/{org}", "/api%2forgs%2f{org}", "/api/orgs%2f{org}", "/api/orgs/{org}/workspaces/{ws}/..",
		"/api/orgs/{org}/members/%2e%2e/%2e%2e/" + foreign.org + "/members", "/api/admin", "/api/admin/", "/api/users/..;/admin/users", "/api/users/me/../../admin/users", "/api/users/me/",
		"/healthz/../api/orgs/{org}", "/healthz%2f..%2fapi%2forgs", "/health%7a/x", "/readyz/x", "/version/x",
		"/metrics", "/debug/pprof/", "/debug/pprof/heap", "/debug/vars", "/configz", "/statusz", "/flagz", "/logs", "/api/openapi", "/swagger.json", "/.git/config", "/favicon.ico", "/index.html", "/",
		"/clusters", "/clusters/", "/clusters//", "/clusters/*/api/v1/namespaces", "/clusters/{cluster}/../" + foreign.cluster + "/api/v1/namespaces", "/clusters/{cluster}/%2e%2e/" + foreign.cluster + "/api/v1/namespaces",
		"/clusters/{cluster}/api/v1/../../../" + foreign.cluster + "/api/v1/namespaces", "/clusters/{cluster}%2fapi/v1/namespaces", "/clusters/{cluster}/clusters/" + foreign.cluster + "/api/v1/namespaces",
		"/clusters/{cluster},{cluster}/api", "/clusters/system:admin/api/v1/namespaces", "/clusters/{root}%3Aorgs/api", "/clusters/{path}:deeper/api", "/clusters/{cluster}/metrics", "/clusters/{cluster}/debug/pprof/",
		"/clusters/{cluster}/services/apiexport/root/x/clusters/*/api", "/services/apiexport/{root}:providers/tenancy.kedge.faros.sh/clusters/*/apis/tenancy.kedge.faros.sh/v1alpha1/memberships",
		"/services/initializingworkspaces/x/clusters/*/apis", "/clusters/{cluster}/apis/../../" + foreign.cluster + "/api", "/clusters/{cluster}/api/v1/namespaces/default%2f..%2fkube-system/secrets",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
				c := s.call(matrixRow{route: method + " " + path}, method)
				c.Org, c.Workspace = s.org, s.ws
				a := s.send(t, c)
				// The router answers 405 if the path exists with other methods.
				require.Contains(t, []int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed}, a.Code, "%s: %s", method, a.Raw)
				require.Empty(t, a.Header.Get("Location"), "nobody is sent anywhere")
				require.NotContains(t, string(a.Raw), "goroutine")
			}
		})
	}
}

// crossedPlaces requests, as an Org admin, another Org's Workspace under the admin's own
// Org, and the own Workspace under another Org. The tenant headers agree with the path.
func (w *matrixWorld) crossedPlaces(t *testing.T) {
	t.Parallel()
	own := w.places[attacked]
	for _, r := range firstMatrixRows(matrixRow.inWorkspace) {
		t.Run(r.name(), func(t *testing.T) {
			t.Parallel()
			method := r.routes(server.Routes())[0].Method
			s := &matrixScene{matrixWorld: w, position: asOrgAdmin, target: "not-there"}
			ask := func(org, ws string) (call, framework.Answer) {
				s.matrixPlace = matrixPlace{org: org, ws: ws}
				c := s.call(r, method)
				a := s.send(t, c)
				s.judge(t, c, a, "403")
				return c, a
			}
			_, missing := ask(own.org, uuid.NewString())
			for _, pair := range [][2]string{
				{own.org, w.foreign.ws}, {own.org, w.places[""].ws}, {own.org, own.org}, {own.org, w.foreign.org},
				{w.foreign.org, own.ws}, {w.foreign.org, w.foreign.ws}, {own.ws, own.org}, {own.ws, own.ws},
			} {
				c, a := ask(pair[0], pair[1])
				s.same(t, c, missing, a)
			}
			if method == http.MethodGet {
				s.matrixPlace = own
				c := s.call(r, method)
				s.judge(t, c, s.send(t, c), r.read())
			}
		})
	}
}

func (w *matrixWorld) idempotencyKeys(t *testing.T) {
	t.Parallel()
	creating := firstMatrixRows(func(r matrixRow) bool {
		return slices.Contains([]string{
			"POST /api/orgs", "POST /api/orgs/{org}/workspaces",
			"POST /api/orgs/{org}/members", "POST /api/orgs/{org}/workspaces/{ws}/members",
		}, r.route)
	})
	require.Len(t, creating, 4)
	for _, r := range creating {
		for name, values := range map[string][]string{
			"an empty one": {""}, "two": {"a", "b"}, "the same twice": {"a", "a"}, "one with a space": {"a b"}, "one that is not ASCII": {"ключ"}, "a long one": {strings.Repeat("a", 256)},
		} {
			t.Run(r.route+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := w.spare(asOrgAdmin)
				c := s.call(r, http.MethodPost)
				c.Header["Idempotency-Key"] = values
				a := s.send(t, c)
				s.judge(t, c, a, "400")
				require.Contains(t, string(a.Raw), `"field":"header:Idempotency-Key"`)
			})
		}
	}
}
