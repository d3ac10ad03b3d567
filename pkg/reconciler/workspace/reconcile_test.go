package workspace_test

import (
	"context"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/workspace"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

const uuid = "9acbf567-a188-4c75-9c40-3c3bec1a775f"

// kcp is a kcp with one Workspace.
type kcp struct {
	*kcptest.KCP
	apply func(context.Context, string, *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// ws is the Workspace at the end of the last pass. The next pass finds it as the test changed it.
	ws *kcptenancyv1alpha1.Workspace
	// stale is what the cache has of the Workspace, if it is outdated.
	stale *kcptenancyv1alpha1.Workspace
	// memberResources are those of every binding.
	memberResources []string
	missing         int
	// more changes the configuration; nil for no change.
	more   func(*workspace.Config)
	policy *policy
	// running is one reconciler for all reconciliations; nil creates a new one for each,
	// as after a restart.
	running controller.Func
}

func newKCP(t *testing.T) *kcp {
	t.Helper()
	k := &kcp{KCP: kcptest.New(t), ws: &kcptenancyv1alpha1.Workspace{}, missing: 1, policy: &policy{inPlace: true}}
	k.apply = k.Clients().Apply
	o := tenancy.NewOrganization("o", "O", "alice")
	o.Spec.Personal, o.Annotations[v1alpha1.DefaultWorkspaceAnnotation] = true, uuid
	k.PutOrg(o, "org1")
	k.PutUser("alice")
	k.ws.Name = uuid
	k.ws.Annotations = map[string]string{v1alpha1.CreatedByAnnotation: "alice"}
	k.ws.Spec.Cluster = "ws1"
	k.ws.Finalizers = []string{v1alpha1.CascadeFinalizer}
	k.ws.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseInitializing
	k.Put("ws1", accessBinding())
	k.put()
	return k
}

// put has kcp keep the Workspace as the test changed it.
func (k *kcp) put() {
	if k.ws != nil && !equality.Semantic.DeepEqual(k.ws, k.held()) {
		k.Put("org1", k.ws)
		k.ws = k.held()
	}
}

// held is the Workspace in kcp.
func (k *kcp) held() *kcptenancyv1alpha1.Workspace {
	ws, _ := k.Caches.Workspaces.Get("org1", uuid)
	return ws
}

// Get and InCluster are those of a cache that has the stale Workspace.
func (k *kcp) Get(string, string) (*kcptenancyv1alpha1.Workspace, bool) { return k.stale, true }

func (k *kcp) InCluster(string) []*kcptenancyv1alpha1.Workspace { return nil }

func (k *kcp) reconcile(t *testing.T) tenancy.Workspace {
	t.Helper()
	_, err := k.pass(t)
	require.NoError(t, err)
	return tenancy.WorkspaceOf("o", k.ws)
}

func (k *kcp) pass(t *testing.T) (controller.Result, error) {
	t.Helper()
	work := k.running
	if work == nil {
		work = k.reconciler()
	}
	k.put()
	result, err := work(t.Context(), controller.Key{Cluster: "org1", Name: uuid})
	k.ws = k.held()
	return result, err
}

func (k *kcp) reconciler() controller.Func {
	config := workspace.Config{
		Objects: k.Stored, Clock: k.Clock, RightsClock: k.Clock, OrgsCluster: kcptest.Orgs, Views: k.KCP, Namespaces: k.Spaces,
		Roles: workspace.RolesCache{
			ClusterRoles: k.Caches.ClusterRoles.InCluster, Bindings: k.Caches.Bindings.InCluster,
			MemberResources: func(string, *kcpapisv1alpha2.APIBinding) []string { return k.memberResources },
		},
		Clusters: &clusters{}, Missing: func(controller.Key) int { return k.missing }, Apply: k.apply,
		Wanted: []*kcpapisv1alpha2.APIBinding{accessBinding()}, Policy: k.policy,
	}
	if k.stale != nil {
		config.Workspaces.Cache = k
	}
	if k.more != nil {
		k.more(&config)
	}
	return workspace.New(config)
}

// hasNamespace reports whether the default namespace is there.
func (k *kcp) hasNamespace() bool {
	_, ok := k.Spaces.Get("ws1", tenancy.DefaultNamespace)
	return ok
}

func (k *kcp) roles() []*rbacv1.ClusterRole { return k.Caches.ClusterRoles.InCluster("ws1") }

func (k *kcp) memberRole() *rbacv1.ClusterRole {
	role, _ := k.Caches.ClusterRoles.Get("ws1", tenancy.ClusterRoleMember)
	return role
}

// members returns the Memberships in kcp with their roles.
func (k *kcp) members() (members []string) {
	for _, m := range k.Caches.Memberships.InCluster("org1") {
		members = append(members, m.Name+" "+string(m.Spec.Role))
	}
	return members
}

// restored is the number of APIBindings that were written.
func (k *kcp) restored() (n int) {
	for _, w := range k.Writes() {
		if w.Resource == "apibindings" && w.Cluster == "ws1" {
			n++
		}
	}
	return n
}

// O-11: a Workspace becomes Ready only when everything in it exists.
func TestO11_aWorkspaceBecomesReadyStepByStep(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	require.False(t, k.reconcile(t).Ready())
	require.Equal(t, []string{uuid + ".alice admin"}, k.members(), "while kcp is still at it")
	require.False(t, k.hasNamespace(), "nothing is written before kcp has finished")
	k.ws.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseReady
	ws := k.reconcile(t)
	require.False(t, ws.Ready(), "nobody is bound yet")
	require.True(t, k.hasNamespace())
	require.Len(t, k.roles(), 3)
	k.missing = 0
	require.True(t, k.reconcile(t).Ready())
	require.Len(t, k.members(), 1, "the creator is made admin once")
}

// A leader that was paused has an outdated cache. The Workspace in it looks new, although
// others have changed it since.
func TestReconcile_doesNotReaddTheCreatorFromAStaleCache(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		now   func(k *kcp)
		retry bool
		made  int
	}{
		"it is as it was": {now: func(*kcp) {}, made: 1},
		"they were admin": {now: func(k *kcp) { k.ws.Annotations = takenOver(t).Annotations }, retry: true},
		"it is gone":      {now: func(k *kcp) { k.Remove("org1", k.ws); k.ws = nil }, retry: true},
		"it is another":   {now: func(k *kcp) { k.ws.UID = "another" }, retry: true},
		"it is on its way": {now: func(k *kcp) {
			k.ws.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}, retry: true},
		"kcp does not know": {now: func(k *kcp) {
			k.FailBefore(func(in kcpfake.Request) error {
				if in.Verb == "get" && in.Resource == "workspaces" {
					return apierrors.NewInternalError(kcptest.ErrDown)
				}
				return nil
			})
		}, retry: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKCP(t)
			k.stale = k.ws.DeepCopy()
			c.now(k)
			_, err := k.pass(t)
			require.Equal(t, c.retry, err != nil)
			require.Len(t, k.members(), c.made)
		})
	}
}

// takenOver returns a Workspace after its creator was made admin.
func takenOver(t *testing.T) *kcptenancyv1alpha1.Workspace {
	t.Helper()
	k := newKCP(t)
	k.reconcile(t)
	require.Len(t, k.members(), 1)
	return k.ws
}

func TestReconcile_repairsAnAlteredWorkspace(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	k.ws.Status.Phase, k.missing = kcpcorev1alpha1.LogicalClusterPhaseReady, 0
	require.True(t, k.reconcile(t).Ready())

	k.Remove("ws1", accessBinding())
	require.False(t, k.reconcile(t).Ready())
	require.Zero(t, k.restored(), "it is reported before it is repaired")
	require.False(t, k.reconcile(t).Ready())
	require.Equal(t, 1, k.restored(), "the binding that the hub watches through is missing")
	k.Put("ws1", accessBinding())
	require.True(t, k.reconcile(t).Ready())

	altered := k.memberRole()
	altered.Rules = nil
	k.Put("ws1", altered)
	k.Remove("ws1", tenancy.Namespace())
	k.reconcile(t)
	require.NotEmpty(t, k.memberRole().Rules)
	require.True(t, k.hasNamespace())

	other := &kcpapisv1alpha2.APIBinding{}
	other.Name, other.Spec.Reference.Export = "widgets", &kcpapisv1alpha2.ExportBindingReference{Name: "widgets"}
	other.Status.BoundResources = []kcpapisv1alpha2.BoundAPIResource{{Group: "example.com", Resource: "widgets"}}
	k.Put("ws1", other)
	k.reconcile(t)
	require.Equal(t, 1, k.restored())
	groups := ""
	for _, rule := range k.memberRole().Rules {
		for _, g := range rule.APIGroups {
			groups += g + " "
		}
	}
	require.Contains(t, groups, "example.com", "the roles follow the APIs that are bound")
	before := k.memberRole()
	k.reconcile(t)
	require.Equal(t, before.ResourceVersion, k.memberRole().ResourceVersion)
	k.memberResources = []string{"gadgets"}
	k.reconcile(t)
	require.False(t, tenancy.SameRBAC(before, k.memberRole()), "members may only read widgets now")

	rejected := accessBinding()
	rejected.Spec.PermissionClaims[0].State = kcpapisv1alpha2.ClaimRejected
	k.Put("ws1", rejected)
	for range 2 {
		require.False(t, k.reconcile(t).Ready())
	}
	require.Equal(t, 2, k.restored(), "a tenant took a claim away")
}

// accessBinding returns the APIBinding through which the hub watches, with all permission
// claims.
func accessBinding() *kcpapisv1alpha2.APIBinding {
	b := &kcpapisv1alpha2.APIBinding{}
	b.Name = "access"
	b.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Name: tenancy.ExportAccess}
	claim := kcpapisv1alpha2.AcceptablePermissionClaim{State: kcpapisv1alpha2.ClaimAccepted}
	claim.Resource, claim.Selector.MatchAll = "namespaces", true
	b.Spec.PermissionClaims = []kcpapisv1alpha2.AcceptablePermissionClaim{claim}
	b.Status.Phase = kcpapisv1alpha2.APIBindingPhaseBound
	return b
}
