package rights

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// definition writes a CustomResourceDefinition with a status subresource to a file for
// kubectl.
func definition(t *testing.T, plural, group string) (file string) {
	t.Helper()
	kind := strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s")
	raw := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"%[1]s.%[2]s","annotations":{"api-approved.kubernetes.io":"unapproved, for a test"}},
		"spec":{"group":%[2]q,"scope":"Cluster","names":{"plural":%[1]q,"singular":%[4]q,"kind":%[3]q,"listKind":"%[3]sList"},
		"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
			"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`,
		plural, group, kind, strings.ToLower(kind))
	require.True(t, json.Valid([]byte(raw)), raw)
	file = filepath.Join(t.TempDir(), "crd.json")
	require.NoError(t, os.WriteFile(file, []byte(raw), 0o600))
	return file
}

// may asks kcp through a hub whether a user has a right.
func may(hub *framework.Hub, as, cluster, verb, resource, subresource, group string) (bool, error) {
	a, err := hub.Try(call{
		As: as, Method: http.MethodPost, Path: "/clusters/" + cluster + "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		Body: map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": map[string]any{
			"resourceAttributes": map[string]string{"verb": verb, "group": group, "resource": resource, "subresource": subresource},
		}},
	})
	if err != nil {
		return false, err
	}
	if a.Code != http.StatusCreated {
		return false, fmt.Errorf("%d: %s", a.Code, a.Raw)
	}
	verdict, _ := a.JSON["status"].(map[string]any)
	return verdict["allowed"] == true, nil
}

var (
	reading = []string{"get", "list", "watch"}
	writing = []string{"create", "update", "patch", "delete", "deletecollection"}
)

// exactly returns nil if a user has these verbs on a resource and no others.
func exactly(hub *framework.Hub, as, cluster, resource, subresource, group string, verbs ...string) error {
	for _, verb := range slices.Concat(reading, writing, []string{"*", "escalate", "bind", "impersonate"}) {
		allowed, err := may(hub, as, cluster, verb, resource, subresource, group)
		if err != nil {
			return err
		}
		if allowed != slices.Contains(verbs, verb) {
			return fmt.Errorf("%s may %s %s/%s.%s: %t", as, verb, resource, subresource, group, allowed)
		}
	}
	return nil
}

// covers returns the roles of a Workspace that have a rule on the group.
func (p platform) covers(t *testing.T, cluster, group string) (roles []string) {
	t.Helper()
	for _, name := range []string{tenancy.ClusterRoleAdmin, tenancy.ClusterRoleMember, tenancy.ClusterRoleViewer} {
		r, err := p.ClusterRoles(cluster).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		if slices.ContainsFunc(r.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.APIGroups, group) }) {
			roles = append(roles, name)
		}
	}
	return roles
}

// crdScene is a Workspace with bob as admin, carol as member and dave as viewer.
func crdScene(t *testing.T, hub *framework.Hub) (org, cluster string) {
	t.Helper()
	org = hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "platform")
	framework.SignUp(t, hub, "bob", "carol", "dave")
	ws := made.Text("uuid")
	hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "", `{"defaultAccess":"view"}`), http.StatusOK)
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("dave", "member")), http.StatusCreated)
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("bob", "admin")), http.StatusCreated)
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("carol", "member")), http.StatusCreated)
	return org, made.Text("clusterID")
}

// rightsFollow waits until every user has, through every hub, exactly the rights of their
// role on a tenant's resource.
func rightsFollow(t *testing.T, hubs []*framework.Hub, cluster, resource, group string) {
	t.Helper()
	for _, hub := range hubs {
		for person, verbs := range map[string][]string{"bob": slices.Concat(reading, writing), "carol": slices.Concat(reading, writing), "dave": reading} {
			for _, subresource := range []string{"", "status"} {
				framework.Eventually(t, framework.Long, func() error {
					return exactly(hub, person, cluster, resource, subresource, group, verbs...)
				})
			}
			require.NoError(t, exactly(hub, person, cluster, "others", "", group), "a right to one resource is none to its group")
		}
	}
}

func TestRoles_followTheDefinitionsThatTenantsMake(t *testing.T) {
	t.Parallel()
	hubs := kcp.Shared(t, 2)
	p := newPlatform(t, hubs[0].Options.RootWorkspace)
	org, cluster := crdScene(t, hubs[0])
	sibling := hubs[0].CreateWorkspace(t, "alice", org, "sibling").Text("clusterID")
	foreign := hubs[0].CreateWorkspace(t, "erin", hubs[0].CreateOrg(t, "erin", "Other"), "other").Text("clusterID")
	for _, hub := range hubs {
		framework.Eventually(t, framework.Long, func() error {
			return exactly(hub, "carol", cluster, "configmaps", "", "", slices.Concat(reading, writing)...)
		})
		require.NoError(t, exactly(hub, "bob", cluster, "widgets", "", "a.example.com"), "nobody has a right to what is not there")
	}

	// Each hub gets one definition, because only one of the hubs is the leader.
	for i, group := range []string{"a.example.com", "b.example.com"} {
		by, other := hubs[i], hubs[1-i]
		file := definition(t, "widgets", group)
		_, errOut, err := by.Kubectl(t, "carol", cluster, "apply", "-f", file)
		require.Error(t, err)
		require.Contains(t, errOut, "forbidden", "a member defines nothing")
		_, errOut, err = by.Kubectl(t, "bob", cluster, "apply", "-f", file)
		require.NoError(t, err, errOut)
		began := time.Now()
		rightsFollow(t, hubs, cluster, "widgets", group)
		t.Logf("the rights on %s were there, and looked at, after %s", group, time.Since(began))

		objects := "/clusters/" + cluster + "/apis/" + group + "/v1/widgets"
		object := func(name string) map[string]any {
			return map[string]any{"apiVersion": group + "/v1", "kind": "Widget", "metadata": map[string]any{"name": name}, "status": map[string]any{"a": "b"}}
		}
		for _, person := range []string{"bob", "carol"} {
			framework.Eventually(t, framework.Long, func() error {
				// kcp serves a new resource only after its definition is Established.
				a, err := other.Try(call{As: person, Method: http.MethodPost, Path: objects, Body: object(person)})
				if err == nil && a.Code != http.StatusCreated && a.Code != http.StatusConflict {
					err = fmt.Errorf("%d: %s", a.Code, a.Raw)
				}
				return err
			})
			merge := http.Header{"Content-Type": {"application/merge-patch+json"}}
			by.Do(t, call{As: person, Method: http.MethodPatch, Path: objects + "/" + person, Header: merge, Body: `{"spec":{"a":1}}`}, http.StatusOK)
			by.Do(t, call{As: person, Method: http.MethodPatch, Path: objects + "/" + person + "/status", Header: merge, Body: `{"status":{"a":1}}`}, http.StatusOK)
		}
		by.Do(t, call{As: "dave", Method: http.MethodGet, Path: objects}, http.StatusOK)
		other.Do(t, call{As: "dave", Method: http.MethodGet, Path: objects + "/bob"}, http.StatusOK)
		by.Do(t, call{As: "dave", Method: http.MethodPost, Path: objects, Body: object("dave")}, http.StatusForbidden)
		by.Do(t, call{As: "dave", Method: http.MethodDelete, Path: objects + "/bob"}, http.StatusForbidden)
		by.Do(t, call{As: "erin", Method: http.MethodGet, Path: objects}, http.StatusForbidden)
		by.Do(t, call{As: "carol", Method: http.MethodDelete, Path: objects + "/carol"}, http.StatusOK)
		for person, want := range map[string]string{"bob": "yes", "carol": "yes", "dave": "no"} {
			out, errOut, _ := other.Kubectl(t, person, cluster, "auth", "can-i", "create", "widgets."+group)
			answer, _, _ := strings.Cut(strings.TrimSpace(out), " ")
			require.Equal(t, want, answer, errOut)
		}
		require.Len(t, p.covers(t, cluster, group), 3)
		require.Empty(t, p.covers(t, sibling, group), "another Workspace of the Org gets nothing")
		require.Empty(t, p.covers(t, foreign, group), "a foreign Workspace gets nothing")
		require.Equal(t, http.StatusForbidden, kcp.Straight(t, "erin", cluster, "/apis/"+group+"/v1/widgets"))
	}

	// The hub repairs a manually changed role, with the rules on the tenants' resources.
	_, errOut, err := kcp.Kubectl(t, "", cluster, "patch", "clusterrole", tenancy.ClusterRoleMember, "--type=merge", "-p", `{"rules":[]}`)
	require.NoError(t, err, errOut)
	rightsFollow(t, hubs, cluster, "widgets", "a.example.com")

	// One definition is deleted through the other hub while an object of it exists. The
	// rules on the other definition stay.
	_, errOut, err = hubs[1].Kubectl(t, "bob", cluster, "delete", "crd", "widgets.a.example.com")
	require.NoError(t, err, errOut)
	for _, hub := range hubs {
		for _, person := range []string{"bob", "carol", "dave"} {
			framework.Eventually(t, framework.Long, func() error { return exactly(hub, person, cluster, "widgets", "", "a.example.com") })
		}
	}
	require.Empty(t, p.covers(t, cluster, "a.example.com"))
	rightsFollow(t, hubs, cluster, "widgets", "b.example.com")
	_, errOut, err = hubs[0].Kubectl(t, "bob", cluster, "delete", "crd", "--all")
	require.NoError(t, err, errOut)
	framework.Eventually(t, framework.Long, func() error {
		if left := p.covers(t, cluster, "b.example.com"); len(left) > 0 {
			return fmt.Errorf("%v still have it", left)
		}
		return nil
	})
}

// kcp accepts definitions in its own API groups. The policy refuses them to a Workspace admin. The hub adds no rules for
// one that is older than the policy, or of kcp's admin.
func TestDefinition_inAnothersGroupGivesNoRight(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	_, cluster := crdScene(t, hub)
	var groups metav1.APIGroupList
	require.NoError(t, json.Unmarshal(hub.Do(t, call{As: "bob", Method: http.MethodGet, Path: "/clusters/" + cluster + "/apis"}, http.StatusOK).Raw, &groups))
	require.Greater(t, len(groups.Groups), 5)
	for _, g := range groups.Groups {
		require.Empty(t, tenancy.EncodeCustomResources([]string{"widgets." + g.Name}), "what kcp serves by itself is not a tenant's to give")
	}
	for plural, group := range map[string]string{
		"roles": "rbac.authorization.k8s.io", "workspaces": "tenancy.kcp.io", "memberships": "tenancy.kedge.faros.sh", "widgets": "core.kcp.io",
	} {
		file := definition(t, plural, group)
		_, errOut, err := hub.Kubectl(t, "bob", cluster, "apply", "-f", file)
		require.Error(t, err, group)
		require.Contains(t, errOut, refusesKcpGroup)
		_, errOut, err = kcp.Kubectl(t, "", cluster, "apply", "-f", file)
		require.NoError(t, err, errOut)
	}
	_, errOut, err := hub.Kubectl(t, "bob", cluster, "apply", "-f", definition(t, "widgets", "example.com"))
	require.NoError(t, err, errOut)
	// The positive control: the roles cover the last definition, so the hub has seen all of
	// them.
	rightsFollow(t, []*framework.Hub{hub}, cluster, "widgets", "example.com")
	require.NoError(t, exactly(hub, "carol", cluster, "roles", "", "rbac.authorization.k8s.io", reading...))
	require.NoError(t, exactly(hub, "bob", cluster, "logicalclusters", "", "core.kcp.io", reading...))
	for _, person := range []string{"bob", "carol", "dave"} {
		for resource, group := range map[string]string{"workspaces": "tenancy.kcp.io", "memberships": "tenancy.kedge.faros.sh", "widgets": "core.kcp.io"} {
			require.NoError(t, exactly(hub, person, cluster, resource, "", group))
		}
	}
}

// O-11: the next leader finds a definition that appears while no hub runs.
func TestO11_ADefinitionThatNoHubSawIsFoundAtTheStart(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	_, cluster := crdScene(t, hub)
	_, errOut, err := hub.Kubectl(t, "bob", cluster, "apply", "-f", definition(t, "gadgets", "example.com"))
	require.NoError(t, err, errOut)
	rightsFollow(t, []*framework.Hub{hub}, cluster, "gadgets", "example.com")
	hub.Stop(t)
	_, errOut, err = kcp.Kubectl(t, "", cluster, "apply", "-f", definition(t, "widgets", "example.org"))
	require.NoError(t, err, errOut)
	_, errOut, err = kcp.Kubectl(t, "", cluster, "delete", "crd", "gadgets.example.com")
	require.NoError(t, err, errOut)

	hub = framework.StartHub(t, kcp, root)
	rightsFollow(t, []*framework.Hub{hub}, cluster, "widgets", "example.org")
	framework.Eventually(t, framework.Long, func() error {
		if len(newPlatform(t, root).covers(t, cluster, "example.com")) > 0 {
			return errors.New("the roles still cover what was deleted meanwhile")
		}
		return nil
	})
}
