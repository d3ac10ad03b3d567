package repair

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

const exportKCP = "tenancy.kcp.io"

// O-11: the workspace of an Org binds the tenancy API, with the permission claim on
// Workspaces, and kcp's API. If kcp's admin changes such a binding, the Org's conditions
// report it and the hub repairs it. Other Orgs are unaffected.
func TestO11_TheBindingsOfAnOrgComeBack(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	p := newPlatform(t, hub.Options.RootWorkspace)
	framework.SignUp(t, hub, "alice", "bob", "carol")
	others := newBoundOrg(t, hub, p, "bob", true)
	for _, c := range []struct {
		name, export string
		damage       func(o boundOrg, b *kcpapisv1alpha2.APIBinding)
		// empty selects an Org without Workspaces.
		empty bool
		// kcp removes the Workspaces or the Memberships with the binding.
		lostWorkspaces, lostMemberships bool
	}{
		{name: "the claim on Workspaces is rejected", export: tenancy.ExportTenancy, damage: rejectClaims("workspaces")},
		{name: "the claim is for some Workspaces only", export: tenancy.ExportTenancy, damage: narrowClaims("workspaces")},
		{name: "all claims are rejected", export: tenancy.ExportTenancy, damage: rejectClaims("workspaces", "apibindings")},
		{name: "the binding of the tenancy model is deleted", export: tenancy.ExportTenancy, damage: deleteBinding, lostMemberships: true},
		{name: "the binding of kcp's API is deleted", export: exportKCP, damage: deleteBinding, lostWorkspaces: true},
		{name: "the claim on Workspaces is rejected in an Org without any", export: tenancy.ExportTenancy, damage: rejectClaims("workspaces"), empty: true},
		{name: "the claim on bindings is rejected", export: tenancy.ExportTenancy, damage: rejectClaims("apibindings"), empty: true},
		{name: "the claim is for some bindings only", export: tenancy.ExportTenancy, damage: narrowClaims("apibindings"), empty: true},
		{name: "all claims are for some objects only", export: tenancy.ExportTenancy, damage: narrowClaims("workspaces", "apibindings"), empty: true},
		{name: "the binding of the tenancy model is deleted in an Org without Workspaces", export: tenancy.ExportTenancy, damage: deleteBinding, empty: true, lostMemberships: true},
		{name: "kcp's binding is deleted in an Org without Workspaces", export: exportKCP, damage: deleteBinding, empty: true},
		{name: "kcp's binding is deleted where no binding is shown", export: exportKCP, damage: deleteUnshown, empty: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			by := "alice"
			if c.empty {
				by = "carol"
			}
			o := newBoundOrg(t, hub, p, by, !c.empty)
			hub.Do(t, framework.InOrg(by, http.MethodPost, o.uuid, "/members", framework.Adding("bob", "member")), http.StatusCreated)
			before := o.bindings(t)
			untouched := others.bindings(t)
			said := o.saysSo(t)

			damaged, began := before[c.export], time.Now()
			c.damage(o, &damaged)
			said()
			framework.Eventually(t, framework.Long, func() error { return o.sound(by, !c.empty && !c.lostWorkspaces) })
			t.Logf("healed after %s", time.Since(began).Round(time.Millisecond))
			after := o.bindings(t)
			for export := range before {
				require.Equal(t, before[export].Spec, after[export].Spec, export)
			}
			framework.Eventually(t, framework.Long, func() error {
				members := framework.RolesListed(hub.Do(t, framework.InOrg(by, http.MethodGet, o.uuid, "/members", nil), http.StatusOK))
				if members[by] != "admin" || c.lostMemberships == (members["bob"] == "member") {
					return fmt.Errorf("%v", members)
				}
				return nil
			})
			// The repaired Org works: a new Workspace is listed and accessible.
			cluster := hub.CreateWorkspace(t, by, o.uuid, "made afterwards").Text("clusterID")
			hub.Enters(t, by, cluster)

			require.Equal(t, untouched, others.bindings(t), "another Org's are left alone")
			require.NoError(t, others.whole("bob", true))
			hub.Enters(t, "bob", others.cluster)
		})
	}
}

// O-11: a hub that starts repairs the damage that was done while no hub was running.
func TestO11_TheBindingsOfAnOrgComeBackAfterAStart(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	p := newPlatform(t, root)
	rejected, removed := newBoundOrg(t, hub, p, "alice", true), newBoundOrg(t, hub, p, "alice", false)
	hub.Stop(t)
	b := rejected.bindings(t)[tenancy.ExportTenancy]
	rejectClaims("workspaces")(rejected, &b)
	kcps := removed.bindings(t)[exportKCP]
	deleteBinding(removed, &kcps)
	hub = framework.StartHub(t, kcp, root)
	for _, o := range []*boundOrg{&rejected, &removed} {
		o.hub = hub
		framework.Eventually(t, framework.Long, func() error { return o.sound("alice", o.ws != "") })
	}
}

// A hub updates bindings from an older hub to its own permission claims. It can then
// watch kcp's APIBindings in these workspaces.
func TestO11_TheBindingsThatAnOlderHubMadeAreBroughtUpToDate(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	p := newPlatform(t, root)
	o := newBoundOrg(t, hub, p, "alice", false)
	hub.Stop(t)
	providers := root + ":providers"
	unclaimed := func(apply func(patch []byte) error) {
		require.NoError(t, apply([]byte(`[{"op":"test","path":"/spec/permissionClaims/1/resource","value":"apibindings"},{"op":"remove","path":"/spec/permissionClaims/1"}]`)))
	}
	unclaimed(func(patch []byte) error {
		_, err := p.APIExports(providers).Patch(t.Context(), tenancy.ExportTenancy, types.JSONPatchType, patch, metav1.PatchOptions{})
		return err
	})
	b := o.bindings(t)[tenancy.ExportTenancy]
	for cluster, name := range map[string]string{providers: tenancy.ExportTenancy, p.UsersPath(): tenancy.ExportTenancy, p.OrgsPath(): tenancy.ExportTenancy, p.OrgPath(o.uuid): b.Name} {
		unclaimed(func(patch []byte) error {
			_, err := p.APIBindings(cluster).Patch(t.Context(), name, types.JSONPatchType, patch, metav1.PatchOptions{})
			return err
		})
	}
	o.hub = framework.StartHub(t, kcp, root)
	framework.Eventually(t, framework.Long, func() error { return o.sound("alice", o.ws != "") })

	said := o.saysSo(t)
	kcps := o.bindings(t)[exportKCP]
	deleteBinding(o, &kcps)
	said()
	framework.Eventually(t, framework.Long, func() error { return o.sound("alice", o.ws != "") })
}

// boundOrg is an Org under test, with access to its APIBindings.
type boundOrg struct {
	testing.TB
	hub *framework.Hub
	p   platform
	// ws is empty for an Org without Workspaces.
	uuid, ws, cluster string
}

func newBoundOrg(t testing.TB, hub *framework.Hub, p platform, as string, workspace bool) boundOrg {
	t.Helper()
	o := boundOrg{TB: t, hub: hub, p: p, uuid: hub.CreateOrg(t, as, "ACME")}
	if workspace {
		made := hub.CreateWorkspace(t, as, o.uuid, "dev")
		o.ws, o.cluster = made.Text("uuid"), made.Text("clusterID")
		hub.Enters(t, as, o.cluster)
	}
	return o
}

// bindings returns the APIBindings of the Org's workspace by export. It fails if an
// export is bound twice.
func (o boundOrg) bindings(t testing.TB) map[string]kcpapisv1alpha2.APIBinding {
	t.Helper()
	var list kcpapisv1alpha2.APIBindingList
	require.NoError(t, o.p.APIBindings(o.p.OrgPath(o.uuid)).GetClient().Get().Resource("apibindings").Do(t.Context()).Into(&list))
	out := map[string]kcpapisv1alpha2.APIBinding{}
	for _, b := range list.Items {
		export := b.Spec.Reference.Export.Name
		require.NotContains(t, out, export)
		// kcp updates the metadata at any time.
		b.ManagedFields, b.ResourceVersion = nil, ""
		// A repaired claim is appended at the end, so the order is normalized.
		slices.SortFunc(b.Spec.PermissionClaims, func(x, y kcpapisv1alpha2.AcceptablePermissionClaim) int {
			return -strings.Compare(x.Resource, y.Resource)
		})
		out[export] = b
	}
	require.ElementsMatch(t, []string{tenancy.ExportTenancy, exportKCP}, slices.Collect(maps.Keys(out)))
	return out
}

// saysSo starts a watch and returns a func that waits until the Org reports a broken
// binding.
func (o boundOrg) saysSo(t testing.TB) (wait func()) {
	t.Helper()
	now, err := o.p.Organizations(o.p.OrgsPath()).Get(t.Context(), o.uuid, metav1.GetOptions{})
	require.NoError(t, err)
	w, err := o.p.Organizations(o.p.OrgsPath()).Watch(t.Context(), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", o.uuid).String(), ResourceVersion: now.ResourceVersion,
	})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return func() {
		t.Helper()
		var last []metav1.Condition
		framework.Eventually(t, framework.Long, func() error {
			for {
				select {
				case event := <-w.ResultChan():
					org, ok := event.Object.(*v1alpha1.Organization)
					if !ok {
						return fmt.Errorf("%v", event.Object)
					}
					last = org.Status.Conditions
					c := meta.FindStatusCondition(org.Status.Conditions, v1alpha1.ConditionWatched)
					if c != nil && c.Status == metav1.ConditionFalse {
						require.NotEqual(t, v1alpha1.PhaseReady, org.Status.Phase)
						require.Contains(t, c.Message, "binding")
						return nil
					}
				default:
					return fmt.Errorf("the Org says nothing of its bindings: %v", last)
				}
			}
		})
	}
}

// whole checks that the Org is Ready and, if workspace is true, shows its Workspace.
func (o boundOrg) whole(as string, workspace bool) error {
	a, err := o.hub.Try(framework.InOrg(as, http.MethodGet, o.uuid, "", nil))
	if err == nil && a.Text("phase") != "Ready" {
		err = errors.New(string(a.Raw))
	}
	if err != nil || !workspace {
		return err
	}
	a, err = o.hub.Try(framework.InWorkspace(as, http.MethodGet, o.uuid, o.ws, "", nil))
	if err == nil && (a.Text("phase") != "Ready" || a.Text("clusterID") != o.cluster) {
		err = errors.New(string(a.Raw))
	}
	return err
}

// sound checks that kcp has all bindings with accepted claims, and that the Org is whole.
func (o boundOrg) sound(as string, workspace bool) error {
	var list kcpapisv1alpha2.APIBindingList
	if err := o.p.APIBindings(o.p.OrgPath(o.uuid)).GetClient().Get().Resource("apibindings").Do(o.Context()).Into(&list); err != nil {
		return err
	}
	accepted := map[string]int{}
	for _, b := range list.Items {
		if !b.DeletionTimestamp.IsZero() || b.Status.Phase != kcpapisv1alpha2.APIBindingPhaseBound {
			return fmt.Errorf("%s is %s", b.Name, b.Status.Phase)
		}
		accepted[b.Spec.Reference.Export.Name] = len(slices.DeleteFunc(b.Spec.PermissionClaims, func(c kcpapisv1alpha2.AcceptablePermissionClaim) bool {
			return c.State != kcpapisv1alpha2.ClaimAccepted || !c.Selector.MatchAll
		}))
	}
	if want := map[string]int{exportKCP: 0, tenancy.ExportTenancy: 2}; !maps.Equal(want, accepted) {
		return fmt.Errorf("claims that are accepted: %v", accepted)
	}
	return o.whole(as, workspace)
}

func (o boundOrg) patch(b *kcpapisv1alpha2.APIBinding, kind types.PatchType, patch string) error {
	_, err := o.p.APIBindings(o.p.OrgPath(o.uuid)).Patch(o.Context(), b.Name, kind, []byte(patch), metav1.PatchOptions{})
	return err
}

func rejectClaims(resources ...string) func(o boundOrg, b *kcpapisv1alpha2.APIBinding) {
	return func(o boundOrg, b *kcpapisv1alpha2.APIBinding) {
		require.NoError(o, o.claims(b, resources, func(c *kcpapisv1alpha2.AcceptablePermissionClaim) {
			c.State = kcpapisv1alpha2.ClaimRejected
		}))
	}
}

// narrowClaims removes the claims first, because the selector of a claim is immutable. It
// retries, because the hub can repair the binding between the two patches.
func narrowClaims(resources ...string) func(o boundOrg, b *kcpapisv1alpha2.APIBinding) {
	return func(o boundOrg, b *kcpapisv1alpha2.APIBinding) {
		framework.Eventually(o, framework.Long, func() error {
			if err := o.patch(b, types.MergePatchType, `{"spec":{"permissionClaims":null}}`); err != nil {
				return err
			}
			return o.claims(b, resources, func(c *kcpapisv1alpha2.AcceptablePermissionClaim) {
				c.Selector = kcpapisv1alpha2.PermissionClaimSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"nobody": "has"}}}
			})
		})
	}
}

// claims alters the named claims of the binding and keeps the others.
func (o boundOrg) claims(b *kcpapisv1alpha2.APIBinding, resources []string, alter func(c *kcpapisv1alpha2.AcceptablePermissionClaim)) error {
	altered := slices.Clone(b.Spec.PermissionClaims)
	n := 0
	for i := range altered {
		if slices.Contains(resources, altered[i].Resource) {
			alter(&altered[i])
			n++
		}
	}
	require.Len(o, resources, n)
	claims, err := json.Marshal(altered)
	require.NoError(o, err)
	return o.patch(b, types.MergePatchType, `{"spec":{"permissionClaims":`+string(claims)+`}}`)
}

func deleteBinding(o boundOrg, b *kcpapisv1alpha2.APIBinding) {
	require.NoError(o, o.p.APIBindings(o.p.OrgPath(o.uuid)).Delete(o.Context(), b.Name, metav1.DeleteOptions{}))
}

// deleteUnshown rejects the claim on APIBindings before it deletes the binding, so the
// hub cannot watch the deletion.
func deleteUnshown(o boundOrg, b *kcpapisv1alpha2.APIBinding) {
	tenancys := o.bindings(o)[tenancy.ExportTenancy]
	rejectClaims("apibindings")(o, &tenancys)
	deleteBinding(o, b)
}
