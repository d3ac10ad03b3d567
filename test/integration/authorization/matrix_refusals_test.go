package authorization

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// rightful returns a position that the route authorizes, so that only the request itself
// can cause a refusal.
func (r matrixRow) rightful() int {
	for _, position := range []int{asOrgAdmin, asPlatformAdmin} {
		if code := r.want(position); code != "401" && code != "403" {
			return position
		}
	}
	return asOrgAdmin
}

// spare returns a scene for requests that must not change anything. Its target does not
// exist.
func (w *matrixWorld) spare(position int) *matrixScene {
	return &matrixScene{matrixWorld: w, matrixPlace: w.places["spare"], position: position, target: "not-there"}
}

// read returns the code of an authorized GET in a scene without an existing target.
func (r matrixRow) read() string {
	if strings.Contains(r.route, "{user}") || strings.Contains(r.route, "{sa}") || strings.Contains(r.route, "{entry}") {
		return "404"
	}
	return "200"
}

func (w *matrixWorld) tenantHeaders(t *testing.T) {
	t.Parallel()
	const org, workspace = "X-Kedge-Org", "X-Kedge-Workspace"
	for _, r := range firstMatrixRows(matrixRow.tenant) {
		s := w.spare(asOrgAdmin)
		cases := map[string]struct {
			as     int
			header string
			send   []string
			// path replaces the Org or the Workspace in the request's path.
			path string
		}{
			"no Org":                          {asOrgAdmin, org, nil, ""},
			"an empty Org":                    {asOrgAdmin, org, []string{""}, ""},
			"an Org that is no UUID":          {asOrgAdmin, org, []string{"acme"}, ""},
			"an Org in upper case":            {asOrgAdmin, org, []string{strings.ToUpper(s.org)}, ""},
			"the path has it in upper case":   {asOrgAdmin, org, []string{strings.ToUpper(s.org)}, strings.ToUpper(s.org)},
			"an Org that is not there":        {asOrgAdmin, org, []string{uuid.NewString()}, ""},
			"another Org of the caller":       {asOrgAdmin, org, []string{w.places[""].org}, ""},
			"a foreign admin's own Org":       {asForeignAdmin, org, []string{w.foreign.org}, ""},
			"a member of nothing's guess":     {asNobody, org, []string{w.foreign.org}, ""},
			"the Org twice":                   {asOrgAdmin, org, []string{s.org, s.org}, ""},
			"the Org and one of the caller's": {asOrgAdmin, org, []string{s.org, w.places[""].org}, ""},
		}
		if r.inWorkspace() {
			for name, values := range map[string][]string{
				"no Workspace": nil, "a Workspace that is no UUID": {"work"}, "a Workspace in upper case": {strings.ToUpper(s.ws)},
				"a Workspace that is not there": {uuid.NewString()}, "another Workspace of the Org": {s.other},
				"a Workspace of another Org of the caller": {w.places[""].ws}, "the Workspace twice": {s.ws, s.ws}, "the Org as the Workspace": {s.org},
			} {
				c := cases["no Org"]
				c.header, c.send = workspace, values
				cases[name] = c
			}
			c := cases["the path has it in upper case"]
			c.header, c.send, c.path = workspace, []string{strings.ToUpper(s.ws)}, strings.ToUpper(s.ws)
			cases["the path has the Workspace in upper case"] = c
		}
		method := r.routes(server.Routes())[0].Method
		for name, bad := range cases {
			t.Run(r.name()+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := w.spare(bad.as)
				c := s.call(r, method)
				c.Header[bad.header] = bad.send
				if bad.header == org {
					c.Path = strings.Replace(c.Path, s.org, cmp.Or(bad.path, s.org), 1)
					c.Org = ""
				} else {
					c.Path = strings.Replace(c.Path, s.ws, cmp.Or(bad.path, s.ws), 1)
					c.Workspace = ""
				}
				a := s.send(t, c)
				s.judge(t, c, a, "400")
				causes := a.JSON["details"].(map[string]any)["causes"].([]any)
				require.Equal(t, "header:"+bad.header, causes[0].(map[string]any)["field"])
			})
		}
		if method == http.MethodGet {
			t.Run(r.name()+"/as they should be", func(t *testing.T) {
				t.Parallel()
				c := s.call(r, method)
				s.judge(t, c, s.send(t, c), r.read())
			})
		}
	}
}

func (w *matrixWorld) authorizations(t *testing.T) {
	t.Parallel()
	for _, r := range firstMatrixRows(matrixRow.authenticated) {
		s := w.spare(r.rightful())
		own := "Bearer " + s.token()
		for name, values := range map[string][]string{
			"none":                  nil,
			"one token twice":       {own, own},
			"two people's":          {own, "Bearer " + framework.Token(matrixPeople[asOrgMember])},
			"two in one":            {own + ", " + own},
			"an unknown token":      {"Bearer " + uuid.NewString()},
			"no scheme":             {s.token()},
			"another scheme":        {"Basic " + s.token()},
			"nothing in the scheme": {"Bearer "},
			"something behind it":   {own + " admin"},
			"something before it":   {"Bearer  " + s.token()},
		} {
			t.Run(r.name()+"/"+name, func(t *testing.T) {
				t.Parallel()
				c := s.call(r, r.routes(server.Routes())[0].Method)
				c.Header["Authorization"] = values
				s.judge(t, c, s.send(t, c), "401")
			})
		}
	}
}

// matrixPathIs reports whether a path matches a pattern without a *.
func matrixPathIs(path, pattern string) bool {
	segments, wants := strings.Split(path, "/"), strings.Split(pattern, "/")
	return len(segments) == len(wants) && !slices.ContainsFunc(wants, func(want string) bool {
		got := segments[0]
		segments = segments[1:]
		return want != got && !strings.HasPrefix(want, "{")
	})
}

func (w *matrixWorld) otherMethods(t *testing.T) {
	t.Parallel()
	all := server.Routes()
	for _, r := range firstMatrixRows(func(r matrixRow) bool { return !strings.HasSuffix(r.pattern(), "*") && r.want(asAnonymous) != "404" }) {
		t.Run(r.name(), func(t *testing.T) {
			t.Parallel()
			s := w.spare(r.rightful())
			path := s.call(r, "").Path
			plain, _, _ := strings.Cut(path, "?")
			// A path can match several patterns. It has the methods of all of them.
			var has []string
			for _, route := range all {
				if matrixPathIs(plain, route.Pattern) {
					has = append(has, route.Method)
				}
			}
			for _, route := range r.routes(all) {
				require.Contains(t, has, route.Method)
			}
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "QUERY", "PROPFIND", "get"} {
				if slices.Contains(has, method) {
					continue
				}
				c := s.call(r, method)
				s.judge(t, c, s.send(t, c), "405")
				c.Header.Del("Authorization")
				require.Contains(t, []int{http.StatusUnauthorized, http.StatusMethodNotAllowed}, s.send(t, c).Code, "%s %s, anonymous", method, path)
			}
		})
	}
}
