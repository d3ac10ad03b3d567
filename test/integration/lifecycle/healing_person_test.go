package lifecycle

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/framework"
)

const nobodysUUID = "11111111-2222-4333-8444-555555555555"

// O-11: the hub restores the status and the derived objects of Users, Orgs, Workspaces
// and Memberships after manual edits and deletions.
func TestO11_WhatPeopleHaveComesBack(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root, personal)
	p := newPlatform(t, root)
	own, home, cluster := arrived(t, hub, "alice")
	p.Settles(t, true)
	patchOrg := func(patch string, subresources ...string) func() error {
		return func() error {
			_, err := p.Organizations(p.OrgsPath()).Patch(t.Context(), own, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
			return err
		}
	}
	patchUser := func(patch string, subresources ...string) func() error {
		return func() error {
			_, err := p.Users(p.UsersPath()).Patch(t.Context(), "alice", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
			return err
		}
	}
	patchWorkspace := func(patch string) func() error {
		return func() error {
			_, err := p.Workspaces(p.OrgPath(own)).Patch(t.Context(), home, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		}
	}
	patchMembership := func(patch string) func() error {
		return func() error {
			_, err := p.Memberships(p.OrgPath(own)).Patch(t.Context(), "alice", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
			return err
		}
	}
	bindings, roles := p.ClusterRoleBindings(cluster), p.ClusterRoles(cluster)
	binding, taken := "kedge:workspace:admin:user:alice", fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, v1alpha1.ManagedByLabel)
	finalizer := `{"metadata":{"finalizers":null}}`
	for _, c := range []struct {
		name   string
		damage func() error
		// healed checks more than Platform.Settles does; nil if there is nothing more to
		// check.
		healed func() error
	}{
		{"a person's status", patchUser(`{"status":null}`, "status"), nil},
		{"a person's phase", patchUser(`{"status":{"phase":"Progressing","observedGeneration":0}}`, "status"), nil},
		{"a person's conditions", patchUser(`{"status":{"conditions":null}}`, "status"), func() error {
			if n := len(p.AllUsers(t)["alice"].Status.Conditions); n < 5 {
				return fmt.Errorf("%d conditions", n)
			}
			return nil
		}},
		{"where a person's own Org is", patchUser(fmt.Sprintf(`{"status":{"personalOrg":%q}}`, nobodysUUID), "status"), nil},
		{"where a person's default Workspace is", patchUser(fmt.Sprintf(`{"status":{"defaultWorkspace":%q}}`, nobodysUUID), "status"), nil},
		{"the landing hint", patchUser(`{"spec":{"defaultCluster":"elsewhere"}}`), nil},
		{"that there is a landing hint", patchUser(`{"spec":{"defaultCluster":null}}`), nil},
		{"a person's finalizer", patchUser(finalizer), func() error {
			if u := p.AllUsers(t)["alice"]; !slices.Contains(u.Finalizers, v1alpha1.CascadeFinalizer) {
				return fmt.Errorf("%v", u.Finalizers)
			}
			return nil
		}},
		{"an Org's finalizer", patchOrg(finalizer), func() error {
			if o := p.OrganizationsBy(t, "alice")[own]; !slices.Contains(o.Finalizers, v1alpha1.CascadeFinalizer) {
				return fmt.Errorf("%v", o.Finalizers)
			}
			return nil
		}},
		{"an Org's status", patchOrg(`{"status":null}`, "status"), nil},
		{"an Org's path", patchOrg(`{"status":{"workspacePath":"root:elsewhere"}}`, "status"), func() error {
			if path := p.OrganizationsBy(t, "alice")[own].Status.WorkspacePath; path != p.OrgPath(own) {
				return errors.New(path)
			}
			return nil
		}},
		{"an Org's phase", patchOrg(`{"status":{"phase":"Terminating"}}`, "status"), nil},
		{"an Org's conditions", patchOrg(`{"status":{"conditions":[{"type":"Active","status":"False","reason":"Waiting","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "status"), nil},
		{"a Membership's status", patchMembership(`{"status":null}`), nil},
		{"a Membership's phase", patchMembership(`{"status":{"phase":"Progressing"}}`), nil},
		{"the only Membership of the Org itself", func() error {
			return p.Memberships(p.OrgPath(own)).Delete(t.Context(), "alice", metav1.DeleteOptions{})
		}, nil},
		{"all Memberships of an Org", func() error {
			return errors.Join(
				p.Memberships(p.OrgPath(own)).Delete(t.Context(), home+".alice", metav1.DeleteOptions{}),
				p.Memberships(p.OrgPath(own)).Delete(t.Context(), "alice", metav1.DeleteOptions{}),
			)
		}, nil},
		{"a Workspace's finalizer", func() error {
			_, err := p.Workspaces(p.OrgPath(own)).Patch(t.Context(), home, types.JSONPatchType,
				fmt.Appendf(nil, `[{"op":"test","path":"/metadata/finalizers/0","value":%q},{"op":"remove","path":"/metadata/finalizers/0"}]`, v1alpha1.CascadeFinalizer), metav1.PatchOptions{})
			return err
		}, func() error {
			if ws := p.WorkspacesOf(t, own)[home]; !slices.Contains(ws.Finalizers, v1alpha1.CascadeFinalizer) {
				return fmt.Errorf("%v", ws.Finalizers)
			}
			return nil
		}},
		{"a Workspace's status, made unreadable", patchWorkspace(fmt.Sprintf(`{"metadata":{"annotations":{%q:"nonsense"}}}`, v1alpha1.StatusAnnotation)), nil},
		{"a Workspace's status, forged", patchWorkspace(fmt.Sprintf(`{"metadata":{"annotations":{%q:"{\"phase\":\"Terminating\"}"}}}`, v1alpha1.StatusAnnotation)), nil},
		{"a role", func() error { return roles.Delete(t.Context(), "kedge:workspace:member", metav1.DeleteOptions{}) }, nil},
		{"all roles and bindings", func() error {
			var gone []error
			for _, name := range []string{"admin", "member", "viewer"} {
				gone = append(gone, roles.Delete(t.Context(), "kedge:workspace:"+name, metav1.DeleteOptions{}))
			}
			return errors.Join(append(gone, bindings.Delete(t.Context(), binding, metav1.DeleteOptions{}))...)
		}, nil},
		{"a binding's label", func() error {
			_, err := bindings.Patch(t.Context(), binding, types.MergePatchType, []byte(taken), metav1.PatchOptions{})
			return err
		}, func() error {
			held, err := p.BindingsIn(t, cluster)
			if _, ok := held[binding]; err == nil && !ok {
				err = errors.New("the label is gone")
			}
			return err
		}},
		{"a binding's other label", func() error {
			_, err := bindings.Patch(t.Context(), binding, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:"mallory"}}}`, v1alpha1.UserLabel), metav1.PatchOptions{})
			return err
		}, func() error {
			held, err := p.BindingsIn(t, cluster)
			if user := held[binding].Labels[v1alpha1.UserLabel]; err == nil && user != "alice" {
				err = errors.New(user)
			}
			return err
		}},
		{"the index", func() error { return p.Indexes(p.UsersPath()).Delete(t.Context(), "alice", metav1.DeleteOptions{}) }, nil},
	} {
		require.NoError(t, c.damage(), c.name)
		began := time.Now()
		t.Log(c.name)
		if c.healed != nil {
			framework.Eventually(t, framework.Long, c.healed)
		}
		p.Settles(t, true)
		t.Logf("%s: healed after %s", c.name, time.Since(began).Round(time.Millisecond))
	}
	require.NoError(t, shownAs(hub, "alice", own, home, cluster, true, true))
}

// If somebody deletes the kcp Workspace of an Org by hand, its content is lost. The Org's
// conditions report this until the hub has created an empty workspace. The creator can
// then work in it.
func TestO11_AnOrgWhoseWorkspaceWasDeletedByHandSaysSoAndIsMadeAnew(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	p := newPlatform(t, hub.Options.RootWorkspace)
	framework.SignUp(t, hub, "carol", "bob")
	org := hub.CreateOrg(t, "carol", "ACME")
	made := hub.CreateWorkspace(t, "carol", org, "dev")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	hub.Do(t, framework.InOrg("carol", http.MethodPost, org, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	// kcp cannot finish the deletion while an object in the workspace has a finalizer.
	_, err := p.Workspaces(p.OrgPath(org)).Patch(t.Context(), ws, types.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/held"}]`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.NoError(t, p.Workspaces(p.OrgsPath()).Delete(t.Context(), org, metav1.DeleteOptions{}))
	framework.Eventually(t, framework.Long, func() error {
		o, err := p.Organizations(p.OrgsPath()).Get(t.Context(), org, metav1.GetOptions{})
		if err != nil || o.Status.Phase == v1alpha1.PhaseReady {
			return fmt.Errorf("it is %s: %w", o.Status.Phase, err)
		}
		for _, c := range o.Status.Conditions {
			if c.Type == v1alpha1.ConditionWorkspaceBound && c.Status == metav1.ConditionFalse {
				require.Contains(t, c.Message, "its content is lost")
				return nil
			}
		}
		return fmt.Errorf("%v", o.Status.Conditions)
	})
	// Until kcp deletes the Workspace, the hub puts its own finalizer back.
	framework.Eventually(t, framework.Long, func() error {
		child, err := p.Workspaces(p.OrgPath(org)).Get(t.Context(), ws, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return framework.Check(!child.DeletionTimestamp.IsZero(), "kcp has not begun to delete the Workspace")
	})
	framework.Eventually(t, framework.Long, func() error {
		_, err := p.Workspaces(p.OrgPath(org)).Patch(t.Context(), ws, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		return err
	})
	framework.NowAndThen(t, func() error {
		a, err := hub.Try(framework.InOrg("carol", http.MethodGet, org, "", nil))
		if err == nil && a.Text("phase") != "Ready" {
			err = errors.New(string(a.Raw))
		}
		return err
	})
	p.SettlesIn(t, org, "carol", "bob")
	require.Empty(t, p.WorkspacesOf(t, org))
	hub.Do(t, framework.InWorkspace("carol", http.MethodGet, org, ws, "", nil), http.StatusForbidden)
	hub.Do(t, call{As: "carol", Method: http.MethodGet, Path: "/clusters/" + cluster + "/api/v1/namespaces"}, http.StatusForbidden)
	hub.CreateWorkspace(t, "carol", org, "again")
}
