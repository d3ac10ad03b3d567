package catalog

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// shop is an Org of alice with a Workspace in which bob is a member, and a Global entry of the
// example's provider. carol has an Org of her own.
type shop struct {
	framework.Platform
	hub              *framework.Hub
	org, ws, cluster string
	export           v1alpha1.APIExportRef
	slug, entry      string
}

func newShop(t testing.TB) shop {
	t.Helper()
	hub := kcp.Shared(t, 1)[0]
	s := shop{Platform: kcp.Platform(t, hub.Options.RootWorkspace), hub: hub, slug: fresh()}
	s.export = framework.Provider(t, kcp, s.Root+":providers:"+fresh())

	kcp.Applies(t, s.Root+":providers", exampleEntry(t, s.slug, s.export.Path))
	s.entry = tenancy.CatalogEntryName("", s.slug)
	framework.SignUp(t, hub, "alice", "bob", "carol")
	s.org = hub.CreateOrg(t, "alice", "Acme")
	ws := hub.CreateWorkspace(t, "alice", s.org, "Build")
	s.ws, s.cluster = ws.Text("uuid"), ws.Text("clusterID")
	hub.Do(t, s.call("alice", http.MethodPost, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	framework.Eventually(t, framework.Long, func() error {
		a, err := hub.Try(s.call("alice", http.MethodGet, "/providers/"+s.entry, nil))
		return framework.Check(err == nil && a.Code == http.StatusOK, "%d %s %v", a.Code, a.Raw, err)
	})
	return s
}

func (s shop) call(as, method, below string, body any) call {
	return framework.InWorkspace(as, method, s.org, s.ws, below, body)
}

const (
	answered = `{"acceptClaims":[{"group":"","resource":"configmaps"}],"rejectClaims":[{"group":"","resource":"secrets"}]}`
	widget   = `{"apiVersion":"widgets.example.org/v1","kind":"Widget","metadata":{"name":"%s"},"spec":{"color":"red"}}`
	widgets  = "/apis/widgets.example.org/v1/namespaces/default/widgets"
	classes  = "/apis/widgets.example.org/v1/widgetclasses"
	aClass   = `{"apiVersion":"widgets.example.org/v1","kind":"WidgetClass","metadata":{"name":"a"}}`
)

func (s shop) enable(as, body string) call {
	return s.call(as, http.MethodPost, "/providers/"+s.entry+"/enable", body)
}

func (s shop) disable(as, query string) call {
	return s.call(as, http.MethodDelete, "/providers/"+s.entry+"/enable"+query, nil)
}

// state is the state of the entry as bob lists it.
func (s shop) state(t testing.TB) string {
	t.Helper()
	a := s.hub.Do(t, call{As: "bob", Method: http.MethodGet, Path: "/api/providers", Org: s.org, Workspace: s.ws}, http.StatusOK)
	items, _ := a.JSON["items"].([]any)
	for _, item := range items {
		if p, _ := item.(map[string]any); p["uuid"] == s.entry {
			return fmt.Sprint(p["state"])
		}
	}
	return ""
}

// works sends a request into the Workspace and returns the code. It repeats what kcp answers
// with 429 while it begins to serve an API, as clients of Kubernetes do.
func (s shop) works(t testing.TB, as, method, path, body string) (code int) {
	t.Helper()
	r := call{As: as, Method: method, Path: "/clusters/" + s.cluster + path}
	if body != "" {
		r.Body = body
	}
	framework.Eventually(t, framework.Long, func() error {
		a, err := s.hub.Try(r)
		code = a.Code
		return framework.Check(err == nil && code != http.StatusTooManyRequests, "%d %s %v", code, a.Raw, err)
	})
	return code
}

func TestEnable_letsMembersUseTheAPIAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	require.Equal(t, "Disabled", s.state(t))
	require.Equal(t, http.StatusForbidden, s.works(t, "alice", http.MethodGet, widgets, ""), "no role has a resource that is not there")

	a := s.hub.Do(t, s.call("alice", http.MethodPost, "/providers/"+s.entry+"/enable?dryRun=true", answered), http.StatusOK)
	require.Equal(t, "true", a.Text("dryRun"))
	require.Equal(t, "Disabled", a.Text("state"))
	bindings, err := s.bindings(t)
	require.NoError(t, err)
	require.NotContains(t, bindings, s.slug)

	for _, refused := range []struct {
		as, body string
		code     int
	}{
		{"bob", answered, http.StatusForbidden},
		{"carol", answered, http.StatusForbidden},
		{"alice", `{}`, http.StatusUnprocessableEntity},
		{"alice", `{"acceptClaims":[{"group":"","resource":"configmaps"}]}`, http.StatusUnprocessableEntity},
		{"alice", strings.Replace(answered, `"rejectClaims":[`, `"rejectClaims":[{"group":"","resource":"pods"},`, 1), http.StatusUnprocessableEntity},
		{"alice", `{"acceptClaims":"all"}`, http.StatusBadRequest},
	} {
		s.hub.Do(t, s.enable(refused.as, refused.body), refused.code)
	}
	for _, path := range []string{tenancy.CatalogEntryName("", "other"), "..%2F" + s.entry, "widgets"} {
		s.hub.Do(t, s.call("alice", http.MethodPost, "/providers/"+path+"/enable", answered), http.StatusNotFound)
	}
	require.Equal(t, "Disabled", s.state(t))

	made := s.hub.Do(t, s.enable("alice", answered), http.StatusCreated)
	// What follows the 201 is not repeated: the role of members covers the API already.
	require.Equal(t, http.StatusCreated, s.works(t, "bob", http.MethodPost, widgets, fmt.Sprintf(widget, "first")))
	require.Equal(t, "Enabled", made.Text("state"))
	require.Equal(t, "/api/orgs/"+s.org+"/workspaces/"+s.ws+"/providers/"+s.entry, made.Header.Get("Location"))
	require.Equal(t, http.StatusForbidden, s.works(t, "bob", http.MethodPost, classes, aClass), "memberResources does not list it")
	require.Equal(t, http.StatusOK, s.works(t, "bob", http.MethodGet, classes, ""))
}

// bindings are the names of the APIBindings in the Workspace, with their UIDs.
func (s shop) bindings(t testing.TB) (map[string]string, error) {
	t.Helper()
	out, errOut, err := kcp.Kubectl(t, "", s.cluster, "get", "apibindings", "-o", `jsonpath={range .items[*]}{.metadata.name}={.metadata.uid}{"\n"}{end}`)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, errOut)
	}
	names := map[string]string{}
	for line := range strings.Lines(out) {
		name, uid, _ := strings.Cut(strings.TrimSpace(line), "=")
		names[name] = uid
	}
	return names, nil
}

// list is a field of an answer that is a list, as JSON.
func list(t testing.TB, a framework.Answer, field string) string {
	t.Helper()
	raw, err := json.Marshal(a.JSON[field])
	require.NoError(t, err)
	return string(raw)
}
