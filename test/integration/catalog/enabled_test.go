package catalog

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// bot makes a bot in the Workspace and returns a token of it.
func (s shop) bot(t testing.TB, role string) string {
	t.Helper()
	uuid := s.hub.Do(t, s.call("alice", http.MethodPost, "/serviceaccounts", map[string]string{"displayName": "CI", "role": role}), http.StatusCreated).Text("uuid")
	return s.hub.Do(t, s.call("alice", http.MethodPost, "/serviceaccounts/"+uuid+"/tokens", `{}`), http.StatusCreated).Text("token")
}

// with is a request with a token in place of that of a person.
func with(token string, r call) call {
	r.As, r.Token = "", token
	return r
}

// admins does something as kcp's admin.
func (s shop) admins(t testing.TB, cluster string, args ...string) {
	t.Helper()
	_, errOut, err := kcp.Kubectl(t, "", cluster, args...)
	require.NoError(t, err, errOut)
}

// eventually waits until the state of the entry is this one.
func (s shop) eventually(t testing.TB, state string) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		got := s.state(t)
		return framework.Check(got == state, "%s instead of %s", got, state)
	})
}

func TestProvider_livesOnInTheWorkspace(t *testing.T) {
	t.Parallel()
	s := newShop(t)

	t.Run("a bot enables it", func(t *testing.T) {
		admin, member := s.bot(t, "admin"), s.bot(t, "member")
		s.hub.Do(t, with(member, call{Method: http.MethodGet, Path: "/api/providers", Org: s.org, Workspace: s.ws}), http.StatusOK)
		s.hub.Do(t, with(member, s.enable("", answered)), http.StatusForbidden)
		org := s.hub.CreateOrg(t, "carol", "Rival")
		ws := s.hub.CreateWorkspace(t, "carol", org, "Elsewhere").Text("uuid")
		s.hub.Do(t, with(admin, framework.InWorkspace("", http.MethodPost, org, ws, "/providers/"+s.entry+"/enable", answered)), http.StatusForbidden)
		made := s.hub.Do(t, with(admin, s.enable("", answered)), http.StatusCreated)
		require.Equal(t, "Enabled", made.Text("state"))
		uses := func(args ...string) string {
			out, errOut, err := s.hub.KubectlWith(t, admin, s.cluster, args...)
			require.NoError(t, err, "%v: %s", args, errOut)
			return out
		}
		manifest := filepath.Join(t.TempDir(), "widget.json")
		require.NoError(t, os.WriteFile(manifest, fmt.Appendf(nil, widget, "of-a-bot"), 0o600))
		uses("apply", "-f", manifest)
		require.Contains(t, uses("get", "widgets", "-o", "jsonpath={.items[*].spec.color}"), "red")
		s.hub.Do(t, with(member, s.disable("", "?confirm=true")), http.StatusForbidden)
		s.hub.Do(t, with(admin, s.disable("", "")), http.StatusConflict)
		s.hub.Do(t, with(admin, s.disable("", "?confirm=true")), http.StatusOK, http.StatusAccepted)
		s.eventually(t, "Disabled")
		_, _, err := s.hub.KubectlWith(t, admin, s.cluster, "get", "widgets")
		require.Error(t, err, "its API has left the workspace")
		// The next part goes on with a widget.
		framework.Eventually(t, framework.Long, func() error {
			a, err := s.hub.Try(with(admin, s.enable("", answered)))
			return framework.Check(err == nil && a.Code == http.StatusCreated, "%d %s %v", a.Code, a.Raw, err)
		})
		uses("apply", "-f", manifest)
	})

	t.Run("its provider asks for more", func(t *testing.T) {
		s.admins(t, s.export.Path, "patch", "apiexport", s.export.Name, "--type=json", "-p", `[{"op":"add","path":"/spec/permissionClaims/0/verbs/-","value":"update"}]`)
		s.eventually(t, "ClaimsPending")
		one := s.hub.Do(t, s.call("bob", http.MethodGet, "/providers/"+s.entry, nil), http.StatusOK)
		require.Contains(t, list(t, one, "claims"), `"state":"Pending"`)
		require.Contains(t, list(t, one, "claims"), `"state":"Rejected"`)
		s.hub.Do(t, s.enable("alice", answered), http.StatusCreated)
		require.Equal(t, "Enabled", s.state(t))
		all := strings.NewReplacer(`],"rejectClaims":[`, ",").Replace(answered)
		accepted := s.hub.Do(t, s.enable("alice", all), http.StatusCreated)
		require.NotContains(t, list(t, accepted, "claims"), "Rejected")
		s.hub.Do(t, s.enable("alice", answered), http.StatusCreated)
		s.hub.Do(t, s.enable("alice", all), http.StatusCreated)
	})

	t.Run("its entry is deleted", func(t *testing.T) {
		s.admins(t, s.Root+":providers", "delete", "catalogentry", s.entry)
		framework.Eventually(t, framework.Long, func() error {
			a, err := s.hub.Try(s.call("bob", http.MethodGet, "/providers/"+s.entry, nil))
			return framework.Check(err == nil && a.Text("scope") == "Deleted", "%s %v", a.Raw, err)
		})
		require.Equal(t, "Enabled", s.state(t))
		require.Equal(t, http.StatusOK, s.works(t, "bob", http.MethodGet, widgets+"/of-a-bot", ""))
		require.Equal(t, http.StatusForbidden, s.works(t, "bob", http.MethodPost, classes, aClass), "the limit of members stays")
		s.hub.Do(t, s.enable("alice", answered), http.StatusNotFound)
	})

	t.Run("a finalizer holds it", func(t *testing.T) {
		var held map[string]any
		require.NoError(t, json.Unmarshal([]byte(fmt.Sprintf(widget, "held")), &held))
		held["metadata"] = map[string]any{"name": "held", "finalizers": []string{"example.org/held"}}
		raw, err := json.Marshal(held)
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, s.works(t, "alice", http.MethodPost, widgets, string(raw)))
		refused := s.hub.Do(t, s.disable("alice", ""), http.StatusConflict)
		require.Contains(t, refused.Text("message"), "2 widgets.widgets.example.org")
		disabled := s.disable("alice", "?confirm=true")
		disabled.Header = http.Header{"Prefer": {"respond-async"}}
		framework.Eventually(t, framework.Long, func() error {
			waits := s.hub.Do(t, disabled, http.StatusAccepted)
			require.Equal(t, "Disabled", waits.Text("state"))
			return framework.Check(strings.Contains(waits.Text("message"), "example.org/held"), "%s", waits.Raw)
		})
		s.admins(t, s.cluster, "patch", "widgets.widgets.example.org", "held", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		framework.Eventually(t, framework.Long, func() error {
			a, err := s.hub.Try(s.disable("alice", "?confirm=true"))
			return framework.Check(err == nil && a.Code == http.StatusNotFound, "%d %s %v", a.Code, a.Raw, err)
		})
	})
}

func TestEnable_refusesWhatTheWorkspaceHasFromElsewhere(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	crd := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.widgets.example.org"},
		"spec":{"group":"widgets.example.org","scope":"Cluster","names":{"kind":"Widget","plural":"widgets","singular":"widget","listKind":"WidgetList"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
	other := s
	ws := s.hub.CreateWorkspace(t, "alice", s.org, "Own definitions")
	other.ws, other.cluster = ws.Text("uuid"), ws.Text("clusterID")
	require.Equal(t, http.StatusCreated, other.works(t, "alice", http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd))
	refused := s.hub.Do(t, other.enable("alice", answered), http.StatusConflict)
	require.Contains(t, refused.Text("message"), "widgets.widgets.example.org")

	// A binding that kubectl made is the same thing.
	byHand := fmt.Sprintf(`{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIBinding","metadata":{"name":"by-hand"},"spec":{"reference":{"export":{"path":%q,"name":%q}}}}`, s.export.Path, s.export.Name)
	require.Equal(t, http.StatusCreated, s.works(t, "alice", http.MethodPost, "/apis/apis.kcp.io/v1alpha2/apibindings", byHand))
	s.eventually(t, "ClaimsPending")
	require.Equal(t, "Enabled", s.hub.Do(t, s.enable("alice", answered), http.StatusCreated).Text("state"))
	bindings, err := s.bindings(t)
	require.NoError(t, err)
	require.Contains(t, bindings, "by-hand")
	require.NotContains(t, bindings, s.slug)
}
