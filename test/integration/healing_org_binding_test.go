package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
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

// O-11: an Org's own workspace binds the tenancy model, with the hub's claim on
// Workspaces, and kcp's API. What kcp's admin does to one of these is said in the Org's
// conditions and put right, and nothing happens to other Orgs.
func TestO11_TheBindingsOfAnOrgComeBack(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	p := newPlatform(t, root)
	present(t, hub, "alice", "bob")
	others := newBoundOrg(t, hub, p, "bob", true)
	for _, c := range []struct {
		name, export string
		damage       func(o boundOrg, b *kcpapisv1alpha2.APIBinding)
		// empty is of Orgs that have no Workspace.
		empty bool
		// hint makes the hub see what is wrong, where by itself it would do so only
		// after minutes; nil for none.
		hint func(o boundOrg)
		// lost says that kcp removed the Workspaces, or the Memberships.
		lostWorkspaces, lostMemberships bool
	}{
		{name: "the claim on Workspaces is rejected", export: tenancy.ExportTenancy, damage: rejectClaims},
		{name: "the claim is for some Workspaces only", export: tenancy.ExportTenancy, damage: narrowClaims},
		{name: "the binding of the tenancy model is deleted", export: tenancy.ExportTenancy, damage: deleteBinding, lostMemberships: true},
		{name: "the binding of kcp's API is deleted", export: exportKCP, damage: deleteBinding, lostWorkspaces: true},
		{name: "the claim is rejected in an Org without Workspaces", export: tenancy.ExportTenancy, damage: rejectClaims, empty: true, hint: askForWorkspace},
		{name: "the claim is rejected, and somebody asks for a reconciliation", export: tenancy.ExportTenancy, damage: rejectClaims, empty: true, hint: askToReconcile},
		{name: "kcp's binding is deleted in an Org without Workspaces", export: exportKCP, damage: deleteBinding, empty: true, hint: askForWorkspace},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newBoundOrg(t, hub, p, "alice", !c.empty)
			hub.Do(t, inOrg("alice", http.MethodPost, o.uuid, "/members", adding("bob", "member")), http.StatusCreated)
			before := o.bindings(t)
			untouched := others.bindings(t)
			said := o.saysSo(t)

			damaged, began := before[c.export], time.Now()
			c.damage(o, &damaged)
			if c.hint != nil {
				c.hint(o)
			}
			said()
			framework.Eventually(t, framework.Long, func() error { return o.whole("alice", !c.empty && !c.lostWorkspaces) })
			t.Logf("healed after %s", time.Since(began).Round(time.Millisecond))
			after := o.bindings(t)
			for export := range before {
				require.Equal(t, before[export].Spec, after[export].Spec, export)
			}
			members := listed(hub.Do(t, inOrg("alice", http.MethodGet, o.uuid, "/members", nil), http.StatusOK))
			require.Equal(t, "admin", members["alice"])
			require.Equal(t, !c.lostMemberships, members["bob"] == "member", "%v", members)
			// The Org works: what is made in it shows, and can be entered.
			cluster := hub.CreateWorkspace(t, "alice", o.uuid, "made afterwards").Text("clusterID")
			hub.Enters(t, "alice", cluster)

			require.Equal(t, untouched, others.bindings(t), "another Org's are left alone")
			require.NoError(t, others.whole("bob", true))
			hub.Enters(t, "bob", others.cluster)
		})
	}
}

// O-11: what was done while no hub ran is found, too.
func TestO11_TheBindingsOfAnOrgComeBackAfterAStart(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	p := newPlatform(t, root)
	o := newBoundOrg(t, hub, p, "alice", true)
	hub.Stop(t)
	b := o.bindings(t)[tenancy.ExportTenancy]
	rejectClaims(o, &b)
	o.hub = framework.StartHub(t, kcp, root)
	framework.Eventually(t, framework.Long, func() error { return o.whole("alice", true) })
}

// boundOrg is an Org whose bindings are looked at.
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

// bindings are those in the Org's own workspace by their exports; there are never two
// of one.
func (o boundOrg) bindings(t testing.TB) map[string]kcpapisv1alpha2.APIBinding {
	t.Helper()
	var list kcpapisv1alpha2.APIBindingList
	require.NoError(t, o.p.APIBindings(o.p.org(o.uuid)).GetClient().Get().Resource("apibindings").Do(t.Context()).Into(&list))
	out := map[string]kcpapisv1alpha2.APIBinding{}
	for _, b := range list.Items {
		export := b.Spec.Reference.Export.Name
		require.NotContains(t, out, export)
		// kcp writes there what it has done, whenever it likes.
		b.ManagedFields, b.ResourceVersion = nil, ""
		out[export] = b
	}
	require.ElementsMatch(t, []string{tenancy.ExportTenancy, exportKCP}, slices.Collect(maps.Keys(out)))
	return out
}

// saysSo waits until the Org has said, since this was called, that it is not whole.
func (o boundOrg) saysSo(t testing.TB) (wait func()) {
	t.Helper()
	now, err := o.p.Organizations(o.p.orgs()).Get(t.Context(), o.uuid, metav1.GetOptions{})
	require.NoError(t, err)
	w, err := o.p.Organizations(o.p.orgs()).Watch(t.Context(), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", o.uuid).String(), ResourceVersion: now.ResourceVersion,
	})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return func() {
		t.Helper()
		var last *v1alpha1.Organization
		framework.Eventually(t, framework.Long, func() error {
			for {
				select {
				case event := <-w.ResultChan():
					org, ok := event.Object.(*v1alpha1.Organization)
					if !ok {
						return fmt.Errorf("%v", event.Object)
					}
					last = org
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

// whole tells whether the Org is Ready and shows its Workspace, where it has one.
func (o boundOrg) whole(as string, workspace bool) error {
	a, err := o.hub.Try(inOrg(as, http.MethodGet, o.uuid, "", nil))
	if err == nil && a.Text("phase") != "Ready" {
		err = errors.New(string(a.Raw))
	}
	if err != nil || !workspace {
		return err
	}
	a, err = o.hub.Try(inWorkspace(as, http.MethodGet, o.uuid, o.ws, "", nil))
	if err == nil && (a.Text("phase") != "Ready" || a.Text("clusterID") != o.cluster) {
		err = errors.New(string(a.Raw))
	}
	return err
}

func (o boundOrg) patch(b *kcpapisv1alpha2.APIBinding, kind types.PatchType, patch string) error {
	_, err := o.p.APIBindings(o.p.org(o.uuid)).Patch(o.Context(), b.Name, kind, []byte(patch), metav1.PatchOptions{})
	return err
}

func rejectClaims(o boundOrg, b *kcpapisv1alpha2.APIBinding) {
	require.NoError(o, o.patch(b, types.JSONPatchType, `[{"op":"replace","path":"/spec/permissionClaims/0/state","value":"Rejected"}]`))
}

// narrowClaims takes the claim out first, because its selector cannot be changed; the
// hub may be faster than what follows.
func narrowClaims(o boundOrg, b *kcpapisv1alpha2.APIBinding) {
	narrow := b.Spec.PermissionClaims[0]
	narrow.Selector = kcpapisv1alpha2.PermissionClaimSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"nobody": "has"}}}
	claims, err := json.Marshal([]kcpapisv1alpha2.AcceptablePermissionClaim{narrow})
	require.NoError(o, err)
	framework.Eventually(o, framework.Long, func() error {
		if err := o.patch(b, types.MergePatchType, `{"spec":{"permissionClaims":null}}`); err != nil {
			return err
		}
		return o.patch(b, types.MergePatchType, `{"spec":{"permissionClaims":`+string(claims)+`}}`)
	})
}

func deleteBinding(o boundOrg, b *kcpapisv1alpha2.APIBinding) {
	require.NoError(o, o.p.APIBindings(o.p.org(o.uuid)).Delete(o.Context(), b.Name, metav1.DeleteOptions{}))
}

// askForWorkspace asks for one that cannot be made, or does not show, before the binding
// is right; that may be so within the request.
func askForWorkspace(o boundOrg) {
	o.hub.Do(o, inOrg("alice", http.MethodPost, o.uuid, "/workspaces", map[string]string{"displayName": "asked for"}), http.StatusCreated, http.StatusAccepted)
}

func askToReconcile(o boundOrg) {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.OperationAnnotation, v1alpha1.OperationReconcile)
	_, err := o.p.Organizations(o.p.orgs()).Patch(o.Context(), o.uuid, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(o, err)
}
