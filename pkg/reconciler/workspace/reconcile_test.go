package workspace_test

import (
	"context"
	"sync"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/workspace"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const uuid = "9acbf567-a188-4c75-9c40-3c3bec1a775f"

// kcp is a fake kcp with one Workspace.
type kcp struct {
	ws *kcptenancyv1alpha1.Workspace

	mu    sync.Mutex
	ns    *corev1.Namespace
	roles map[string]*rbacv1.ClusterRole
	// memberResources are those of every binding.
	memberResources []string
	bindings        []*kcpapisv1alpha2.APIBinding
	missing         int
	members         []string
	restored        int
	// now returns the Workspace in kcp if the cache is outdated.
	now func() (*kcptenancyv1alpha1.Workspace, error)

	clock *clocktesting.FakePassiveClock
	// more changes the configuration; nil for no change.
	more   func(*workspace.Config)
	policy *policy
	// holds is the number of failing patches among those that remove the finalizer.
	holds int
	// running is one reconciler for all reconciliations; nil creates a new one for each,
	// as after a restart.
	running controller.Func
}

func newKCP() *kcp {
	k := &kcp{ws: &kcptenancyv1alpha1.Workspace{}, roles: map[string]*rbacv1.ClusterRole{}, missing: 1, policy: &policy{inPlace: true}, clock: clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))}
	k.ws.Name, k.ws.UID, k.ws.ResourceVersion, k.ws.Generation = uuid, "uid", "1", 2
	k.ws.Annotations = map[string]string{"kcp.io/cluster": "org1", v1alpha1.CreatedByAnnotation: "alice"}
	k.ws.Spec.Cluster = "ws1"
	k.ws.Finalizers = []string{v1alpha1.CascadeFinalizer}
	k.ws.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseInitializing
	k.bindings = []*kcpapisv1alpha2.APIBinding{accessBinding()}
	return k
}

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
		work = k.reconciler(t)
	}
	return work(t.Context(), controller.Key{Cluster: "org1", Name: uuid})
}

func (k *kcp) reconciler(t *testing.T) controller.Func {
	config := workspace.Config{
		Clock: k.clock, RightsClock: k.clock,
		Cache: workspace.Cache{
			Namespace:     func(string, string) (*corev1.Namespace, bool) { return k.ns, k.ns != nil },
			AccessMissing: func(controller.Key) int { return k.missing },
			Default:       func(string, string) bool { return true },
			User:          func(string) (*v1alpha1.User, bool) { return &v1alpha1.User{}, true },
		},
		Roles: workspace.RolesCache{
			ClusterRoles: func(string) []*rbacv1.ClusterRole {
				var out []*rbacv1.ClusterRole
				for _, r := range k.roles {
					out = append(out, r)
				}
				return out
			},
			Bindings:        func(string) []*kcpapisv1alpha2.APIBinding { return k.bindings },
			MemberResources: func(string, *kcpapisv1alpha2.APIBinding) []string { return k.memberResources },
		},
		Workspaces: workspace.Workspaces{
			Get: func(controller.Key) (*kcptenancyv1alpha1.Workspace, bool) { return k.ws, k.ws != nil },
			Read: func(_ context.Context, cluster, name string) (*kcptenancyv1alpha1.Workspace, error) {
				require.Equal(t, "org1/"+uuid, cluster+"/"+name)
				if k.now != nil {
					return k.now()
				}
				return k.ws, nil
			},
			Patch: func(_ context.Context, _ controller.Key, patch []byte, subresource string) error {
				require.Empty(t, subresource, "kcp's own status is never written")
				if k.ws == nil {
					return apierrors.NewNotFound(kcptenancyv1alpha1.Resource("workspaces"), uuid)
				}
				changed := kcptest.Patched(t, k.ws, patch)
				if kcptest.Gone(changed) && k.holds > 0 {
					k.holds--
					return kcptest.ErrDown
				}
				if k.ws = changed; kcptest.Gone(changed) {
					k.ws = nil
				}
				return nil
			},
		},
		Memberships: workspace.Memberships{
			Create: func(_ context.Context, cluster string, m *v1alpha1.Membership) error {
				k.members = append(k.members, cluster+"/"+m.Name+"/"+string(m.Spec.Role))
				return nil
			},
		},
		Clusters: workspace.Clusters{Deactivated: func(string) bool { return false }},
		Content: workspace.Content{
			ApplyNamespace: func(_ context.Context, cluster string, n *corev1.Namespace) error {
				k.mu.Lock()
				defer k.mu.Unlock()
				require.Equal(t, "ws1", cluster)
				k.ns = n
				return nil
			},
			KeepClusterRoles: func(ctx context.Context, _ string, held, wanted []tenancy.RBAC) error {
				k.mu.Lock()
				defer k.mu.Unlock()
				for _, r := range tenancy.CompareRBAC(held, wanted, controller.Forced(ctx)).Write {
					k.roles[r.GetName()] = r.(*rbacv1.ClusterRole)
				}
				return nil
			},
		},
		Bindings: tenancy.Bindings{
			Wanted: []*kcpapisv1alpha2.APIBinding{accessBinding()},
			Held:   func(string) []*kcpapisv1alpha2.APIBinding { return k.bindings },
			List: func(context.Context, string) (held []kcpapisv1alpha2.APIBinding, _ error) {
				for _, b := range k.bindings {
					held = append(held, *b)
				}
				return held, nil
			},
			Write: func(_ context.Context, cluster string, _ *kcpapisv1alpha2.APIBinding) error {
				require.Equal(t, "ws1", cluster)
				k.restored++
				return nil
			},
		},
		Policy: k.policy,
	}
	if k.more != nil {
		k.more(&config)
	}
	return workspace.New(config)
}

// O-11: a Workspace becomes Ready only when everything in it exists.
func TestO11_aWorkspaceBecomesReadyStepByStep(t *testing.T) {
	t.Parallel()
	k := newKCP()
	require.False(t, k.reconcile(t).Ready())
	require.Equal(t, []string{"org1/" + uuid + ".alice/admin"}, k.members, "while kcp is still at it")
	require.Nil(t, k.ns, "nothing is written before kcp has finished")
	k.ws.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseReady
	ws := k.reconcile(t)
	require.False(t, ws.Ready(), "nobody is bound yet")
	require.NotNil(t, k.ns)
	require.Len(t, k.roles, 3)
	k.missing = 0
	require.True(t, k.reconcile(t).Ready())
	require.Len(t, k.members, 1, "the creator is made admin once")
}

// A leader that was paused has an outdated cache. The Workspace in it looks new, although
// others have changed it since.
func TestReconcile_doesNotReaddTheCreatorFromAStaleCache(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		now   func(ws *kcptenancyv1alpha1.Workspace) error
		retry bool
		made  int
	}{
		"it is as it was": {now: func(*kcptenancyv1alpha1.Workspace) error { return nil }, made: 1},
		"they were admin": {now: func(ws *kcptenancyv1alpha1.Workspace) error { ws.Annotations = takenOver(t).Annotations; return nil }},
		"it is gone":      {now: func(*kcptenancyv1alpha1.Workspace) error { return controller.ErrRetry }, retry: true},
		"it is another":   {now: func(ws *kcptenancyv1alpha1.Workspace) error { ws.UID = "another"; return nil }, retry: true},
		"it is on its way": {now: func(ws *kcptenancyv1alpha1.Workspace) error {
			ws.DeletionTimestamp = &metav1.Time{}
			ws.DeletionTimestamp.Time = time.Unix(1, 0)
			return nil
		}, retry: true},
		"kcp does not know": {now: func(*kcptenancyv1alpha1.Workspace) error { return kcptest.ErrDown }, retry: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKCP()
			k.now = func() (*kcptenancyv1alpha1.Workspace, error) {
				ws := k.ws.DeepCopy()
				return ws, c.now(ws)
			}
			for range 2 {
				_, err := k.pass(t)
				require.Equal(t, c.retry, err != nil)
			}
			require.Len(t, k.members, c.made)
		})
	}
}

// takenOver returns a Workspace after its creator was made admin.
func takenOver(t *testing.T) *kcptenancyv1alpha1.Workspace {
	t.Helper()
	k := newKCP()
	k.reconcile(t)
	require.Len(t, k.members, 1)
	return k.ws
}

func TestReconcile_repairsAnAlteredWorkspace(t *testing.T) {
	t.Parallel()
	k := newKCP()
	k.ws.Status.Phase, k.missing = kcpcorev1alpha1.LogicalClusterPhaseReady, 0
	require.True(t, k.reconcile(t).Ready())

	k.bindings = nil
	require.False(t, k.reconcile(t).Ready())
	require.Equal(t, 1, k.restored, "the binding that the hub watches through is missing")
	k.bindings = []*kcpapisv1alpha2.APIBinding{accessBinding()}
	require.True(t, k.reconcile(t).Ready())

	altered := k.roles[tenancy.ClusterRoleMember].DeepCopy()
	altered.Rules, altered.ResourceVersion = nil, "9"
	k.roles[altered.Name] = altered
	k.ns = nil
	k.reconcile(t)
	require.NotEmpty(t, k.roles[tenancy.ClusterRoleMember].Rules)
	require.Equal(t, "9", k.roles[tenancy.ClusterRoleMember].ResourceVersion, "it replaces just what it saw")
	require.NotNil(t, k.ns)

	other := &kcpapisv1alpha2.APIBinding{}
	other.Status.BoundResources = []kcpapisv1alpha2.BoundAPIResource{{Group: "example.com", Resource: "widgets"}}
	k.bindings = append(k.bindings, other)
	k.reconcile(t)
	require.Equal(t, 1, k.restored)
	groups := ""
	for _, rule := range k.roles[tenancy.ClusterRoleMember].Rules {
		for _, g := range rule.APIGroups {
			groups += g + " "
		}
	}
	require.Contains(t, groups, "example.com", "the roles follow the APIs that are bound")
	version := k.roles[tenancy.ClusterRoleMember]
	k.reconcile(t)
	require.Same(t, version, k.roles[tenancy.ClusterRoleMember])
	k.memberResources = []string{"gadgets"}
	k.reconcile(t)
	require.False(t, tenancy.SameRBAC(version, k.roles[tenancy.ClusterRoleMember]), "members may only read widgets now")

	k.bindings[0].Spec.PermissionClaims[0].State = kcpapisv1alpha2.ClaimRejected
	require.False(t, k.reconcile(t).Ready())
	require.Equal(t, 2, k.restored, "a tenant took a claim away")
}

// accessBinding returns the APIBinding through which the hub watches, with all permission
// claims.
func accessBinding() *kcpapisv1alpha2.APIBinding {
	b := &kcpapisv1alpha2.APIBinding{}
	b.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Name: tenancy.ExportAccess}
	claim := kcpapisv1alpha2.AcceptablePermissionClaim{State: kcpapisv1alpha2.ClaimAccepted}
	claim.Resource, claim.Selector.MatchAll = "namespaces", true
	b.Spec.PermissionClaims = []kcpapisv1alpha2.AcceptablePermissionClaim{claim}
	b.Status.Phase = kcpapisv1alpha2.APIBindingPhaseBound
	return b
}
