package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// kcp is the embedded one of a hub.
func (h *hub) kcp() *framework.KCP {
	return &framework.KCP{Kubeconfig: h.dir + "/kcp/admin.kubeconfig"}
}

// sees returns the answers to people and bots, in short.
func (e *estate) sees(t *testing.T, h *hub) (map[string]string, error) {
	t.Helper()
	got := map[string]string{}
	ask := func(what string, c framework.Call, fields ...string) error {
		a, err := h.Try(c)
		got[what] = fmt.Sprint(a.Code, " ", strings.Join(fieldsOf(a, fields), "; "))
		return err
	}
	get := func(as, path string) framework.Call {
		return framework.Call{As: as, Method: http.MethodGet, Path: path}
	}
	for _, person := range framework.People() {
		for _, r := range []struct {
			what   string
			call   framework.Call
			fields []string
		}{
			{" at all", get(person, "/api/users/me"), []string{"name", "phase", "registration", "personalOrg", "defaultWorkspace"}},
			{" lists", get(person, "/api/orgs"), []string{"uuid", "displayName", "role", "phase"}},
			{" in the org", framework.InOrg(person, http.MethodGet, e.Org, "", nil), []string{"displayName", "description", "role", "billing", "phase", "createdAt"}},
			{" in the second", framework.InOrg(person, http.MethodGet, e.Second, "", nil), []string{"displayName", "role"}},
			{" in the cluster", get(person, "/clusters/"+e.Cluster+"/api/v1/namespaces"), nil},
		} {
			if err := ask(person+r.what, r.call, r.fields...); err != nil {
				return nil, err
			}
		}
		got[person+" in kcp"] = fmt.Sprint(h.kcp().Straight(t, person, e.Cluster, "/api/v1/namespaces"))
	}
	objects := "/clusters/" + e.Cluster + "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name!=kube-root-ca.crt"
	for what, r := range map[string]struct {
		call   framework.Call
		fields []string
	}{
		"members":       {e.in(http.MethodGet, "/members", nil), []string{"user", "scope", "role", "sudo", "expiresAt"}},
		"inside":        {e.inside(http.MethodGet, "/members", nil), []string{"user", "scope", "role", "sudo", "expiresAt"}},
		"workspaces":    {e.in(http.MethodGet, "/workspaces", nil), []string{"uuid", "displayName", "description", "clusterID", "phase", "billing", "createdBy"}},
		"bots":          {e.inside(http.MethodGet, "/serviceaccounts", nil), []string{"uuid", "displayName", "role", "phase"}},
		"trust":         {e.inside(http.MethodGet, "/serviceaccounts/"+e.bot(t, h, "kept")+"/trust", nil), []string{"id", "issuer", "claims"}},
		"tokens":        {e.inside(http.MethodGet, "/serviceaccounts/"+e.bot(t, h, "kept")+"/tokens", nil), []string{"id", "name", "expirationTimestamp"}},
		"objects":       {get("alice", objects), []string{"metadata"}},
		"deleted":       {framework.InWorkspace("alice", http.MethodGet, e.Org, e.Gone, "", nil), []string{"uuid", "phase"}},
		"registrations": {get("heidi", "/api/admin/users"), []string{"name", "registration"}},
	} {
		if err := ask(what, r.call, r.fields...); err != nil {
			return nil, err
		}
	}
	for name, b := range e.Bots {
		if err := ask("the bot "+name, framework.Call{Token: b.Secret, Method: http.MethodGet, Path: "/clusters/" + e.Cluster + "/api/v1/namespaces"}); err != nil {
			return nil, err
		}
	}
	for name, cookie := range e.sessions {
		c := get("", "/api/users/me")
		c.Header = http.Header{"Cookie": {cookie}}
		if err := ask("the session of "+name, c, "name"); err != nil {
			return nil, err
		}
	}
	if len(e.invitations) > 0 {
		if err := ask("invitations", e.inside(http.MethodGet, "/invitations", nil), "id", "state", "acceptedBy"); err != nil {
			return nil, err
		}
	}
	return got, nil
}

// fieldsOf returns fields of an answer, or of the items of a list in their order.
func fieldsOf(a framework.Answer, fields []string) (rows []string) {
	if len(fields) == 0 {
		return nil
	}
	objects, list := a.JSON["items"].([]any)
	if !list {
		objects = []any{a.JSON}
	}
	for _, o := range objects {
		of, _ := o.(map[string]any)
		row := map[string]any{}
		for _, name := range fields {
			if v, ok := of[name]; ok {
				row[name] = v
			}
		}
		raw, err := json.Marshal(row)
		rows = append(rows, fmt.Sprint(string(raw), err))
	}
	slices.Sort(rows)
	return rows
}

// specs are the specs of the estate's objects as kcp stores them, by field.
func (e *estate) specs(t *testing.T, h *hub) map[string]string {
	t.Helper()
	p := h.kcp().Platform(t, "root:kedge")
	out := map[string]string{}
	for path, kinds := range map[string][]string{
		p.OrgsPath(): {"organizations"}, p.UsersPath(): {"users"}, p.OrgPath(e.Org): {"memberships", "bots"}, p.OrgPath(e.Second): {"memberships"},
	} {
		for _, kind := range kinds {
			raw, err := p.Organizations(path).GetClient().Get().Resource(kind).DoRaw(t.Context())
			require.NoError(t, err)
			var list struct {
				Items []struct {
					Metadata struct{ Name string }
					Spec     map[string]any
				}
			}
			require.NoError(t, json.Unmarshal(raw, &list))
			for _, o := range list.Items {
				if kind == "organizations" && o.Metadata.Name != e.Org && o.Metadata.Name != e.Second {
					continue
				}
				for field, value := range o.Spec {
					text, err := json.Marshal(value)
					require.NoError(t, err)
					out[kind+"/"+o.Metadata.Name+" "+field] = string(text)
				}
			}
		}
	}
	return out
}

// belongings are what an estate shows, and what kcp stores of it.
type belongings struct{ Seen, Specs map[string]string }

// settled returns what the estate has when nothing more changes.
func (e *estate) settled(t *testing.T, h *hub) (b belongings) {
	t.Helper()
	e.keepsOut(t, h)
	framework.Eventually(t, framework.Long, func() (err error) {
		was := b.Seen
		if b.Seen, err = e.sees(t, h); err != nil {
			return err
		}
		return differs(was, b.Seen)
	})
	framework.Eventually(t, framework.Long, func() error {
		b.Specs = e.specs(t, h)
		for what, value := range b.Specs {
			if strings.HasSuffix(what, "Changes") {
				return fmt.Errorf("%s is being carried out: %s", what, value)
			}
		}
		return nil
	})
	return b
}

// holds requires that a hub has what another one had. A newer version may store more.
func (e *estate) holds(t *testing.T, h *hub, want belongings) {
	t.Helper()
	e.keepsOut(t, h)
	framework.Eventually(t, framework.Long, func() error {
		seen, err := e.sees(t, h)
		if err != nil {
			return err
		}
		return differs(want.Seen, seen)
	})
	require.NoError(t, differs(want.Specs, e.specs(t, h)))
}

// differs returns an error with what another look does not have, or has otherwise.
func differs(want, got map[string]string) error {
	for _, what := range slices.Sorted(maps.Keys(want)) {
		if got[what] != want[what] {
			return fmt.Errorf("%s: %s, and before: %s", what, got[what], want[what])
		}
	}
	return framework.Check(want != nil, "this is the first look")
}
