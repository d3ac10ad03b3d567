package organization_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/organization"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const uuid = "231a151a-434e-4623-ad6e-69406abb9387"

// kcp is a fake kcp with one Org.
type kcp struct {
	kcptest.Calls
	org         *v1alpha1.Organization
	ws          *kcptenancyv1alpha1.Workspace
	waiting     bool
	memberships []*v1alpha1.Membership
	// now and held are the state in kcp if the cache is outdated.
	now     func() (*v1alpha1.Organization, error)
	held    []*v1alpha1.Membership
	failure error
	// came is when alice was made.
	came  time.Time
	clock *clocktesting.FakePassiveClock
	// more changes the configuration; nil for no change.
	more func(*organization.Config)
}

func newKCP() *kcp {
	o := tenancy.NewOrganization(uuid, "ACME", "alice")
	o.UID, o.ResourceVersion, o.Generation = "uid", "1", 1
	return &kcp{org: o, clock: clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))}
}

// MembershipsIn and the methods that follow are those of the views.
func (k *kcp) MembershipsIn(string) []*v1alpha1.Membership { return k.memberships }

func (k *kcp) MembershipsOf(string) []*v1alpha1.Membership { return nil }

func (k *kcp) Expired(string) []*v1alpha1.Membership { return nil }

func (k *kcp) Workspaces(string) []tenancy.Workspace { return nil }

func (k *kcp) WithGroup(v1alpha1.GroupHash) []*v1alpha1.User { return nil }

func (k *kcp) ByName(name string) (*v1alpha1.User, bool) {
	return &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(k.came)}}, name == "alice"
}

func (k *kcp) reconcile(t *testing.T) error {
	t.Helper()
	_, err := k.pass(t)
	return err
}

func (k *kcp) pass(t *testing.T) (controller.Result, error) {
	t.Helper()
	tree, err := tenancy.NewTree("root:kedge")
	require.NoError(t, err)
	key := controller.Key{Cluster: "orgs", Name: uuid}
	config := organization.Config{
		Tree: tree, Clock: k.clock, RightsClock: k.clock, PersonalRole: v1alpha1.RoleAdmin,
		Cache: organization.Cache{
			Workspace:    func(string) (*kcptenancyv1alpha1.Workspace, bool) { return k.ws, k.ws != nil },
			Initializing: func(string) (string, bool) { return "org1", k.waiting },
		},
		Views: k,
		Organizations: organization.Organizations{
			Get: func(controller.Key) (*v1alpha1.Organization, bool) { return k.org, k.org != nil },
			Patch: func(_ context.Context, _ controller.Key, patch []byte, subresource string) error {
				if k.org == nil {
					return apierrors.NewNotFound(v1alpha1.SchemeGroupVersion.WithResource("organizations").GroupResource(), uuid)
				}
				changed := kcptest.Patched(t, k.org, patch)
				if subresource == "" {
					require.True(t, equality.Semantic.DeepEqual(k.org.Status, changed.Status), "metadata or spec, and status, never change in one")
				}
				if k.org = changed; kcptest.Gone(changed) {
					k.org = nil
				}
				return nil
			},
			Read: func(context.Context, string) (*v1alpha1.Organization, error) {
				if k.now != nil {
					return k.now()
				}
				return k.org, nil
			},
		},
		Workspaces: organization.Workspaces{
			Create: func(_ context.Context, ws *kcptenancyv1alpha1.Workspace) error {
				k.Did = append(k.Did, "create workspace "+string(ws.Spec.Type.Name)+" of "+ws.Spec.Type.Path)
				if k.failure == nil {
					k.ws = ws
				}
				return k.failure
			},
			Take: func(_ context.Context, spare *kcptenancyv1alpha1.Workspace, rightful bool) error {
				if !rightful {
					k.Did, k.ws = append(k.Did, "throw the spare away"), nil
					return controller.ErrRetry
				}
				k.Did = append(k.Did, "take the spare")
				delete(spare.Labels, v1alpha1.SpareLabel)
				return nil
			},
		},
		Memberships: organization.Memberships{
			List: func(_ context.Context, cluster string) (list []*v1alpha1.Membership, err error) {
				require.Equal(t, "org1", cluster)
				return slices.Concat(k.memberships, k.held), k.failure
			},
			Create: func(_ context.Context, cluster string, m *v1alpha1.Membership) error {
				k.Did = append(k.Did, "create membership "+m.Name+" in "+cluster)
				k.memberships = append(k.memberships, m)
				return nil
			},
		},
		Clusters: organization.Clusters{
			Deactivated: func(string) bool { return false },
			Initialize: func(_ context.Context, _, cluster string) error {
				k.Did = append(k.Did, "initialized "+cluster)
				k.waiting = false
				return nil
			},
		},
	}
	if k.more != nil {
		k.more(&config)
	}
	return organization.New(config)(t.Context(), key)
}

func (k *kcp) phase() v1alpha1.Phase { return k.org.Status.Phase }

// O-11: an Org becomes Ready only when everything in it exists, and the order is fixed.
func TestO11_anOrgBecomesReadyStepByStep(t *testing.T) {
	t.Parallel()
	k := newKCP()
	require.NoError(t, k.reconcile(t))
	require.Equal(t, v1alpha1.PhaseProgressing, k.phase())
	require.Equal(t, "root:kedge:orgs:"+uuid, k.org.Status.WorkspacePath)

	k.waiting = true
	require.NoError(t, k.reconcile(t))
	require.Equal(t, v1alpha1.PhaseProgressing, k.phase(), "kcp has not said Ready")
	require.NoError(t, k.reconcile(t))
	require.Equal(t, v1alpha1.PhaseProgressing, k.phase())

	k.ws.Status.Phase, k.ws.Spec.Cluster = kcpcorev1alpha1.LogicalClusterPhaseReady, "org1"
	require.NoError(t, k.reconcile(t))
	require.Equal(t, v1alpha1.PhaseReady, k.phase())
	require.True(t, meta.IsStatusConditionTrue(k.org.Status.Conditions, v1alpha1.ConditionReady))
	require.Equal(t, []string{
		"create workspace organization of root:kedge", "create membership alice in org1", "initialized org1",
	}, k.Did)
	k.Did = nil
	require.NoError(t, k.reconcile(t))
	require.Empty(t, k.Did, "a Ready Org is left alone")
}

func TestReconcile_readdsAFormerAdminToAnEmptyOrgOnly(t *testing.T) {
	t.Parallel()
	k := newKCP()
	k.waiting = true
	require.NoError(t, k.reconcile(t))
	k.ws.Status.Phase, k.ws.Spec.Cluster = kcpcorev1alpha1.LogicalClusterPhaseReady, "org1"
	require.NoError(t, k.reconcile(t))
	k.memberships = []*v1alpha1.Membership{tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin)}
	k.Did = nil
	require.NoError(t, k.reconcile(t))
	require.Empty(t, k.Did)
	for _, left := range [][]*v1alpha1.Membership{nil, {tenancy.NewMembership("bob", "w", v1alpha1.RoleAdmin)}} {
		k.memberships, k.Did = left, nil
		require.NoError(t, k.reconcile(t))
		require.Equal(t, []string{"create membership alice in org1"}, k.Did)
	}
}

// A leader with an outdated cache sees an Org as new or without its members.
func TestReconcile_doesNotReaddTheFounderFromAStaleCache(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ready bool // in the cache
		held  []*v1alpha1.Membership
		done  bool // in kcp
		made  bool
	}{
		"somebody is in it":                   {ready: true, held: []*v1alpha1.Membership{tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin)}, done: true},
		"nobody is in it":                     {ready: true, done: true, made: true},
		"somebody is in a Workspace of it":    {ready: true, held: []*v1alpha1.Membership{tenancy.NewMembership("bob", "w", v1alpha1.RoleAdmin)}, done: true, made: true},
		"it is not new":                       {held: []*v1alpha1.Membership{tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin)}, done: true},
		"it is new, and somebody is in it":    {held: []*v1alpha1.Membership{tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin)}, made: true},
		"it is new, and the founder is in it": {held: []*v1alpha1.Membership{tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin)}, made: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKCP()
			k.waiting = true
			done := k.org.DeepCopy()
			meta.SetStatusCondition(&done.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionFirstAdmin, Status: metav1.ConditionTrue, Reason: "Done"})
			if c.ready {
				k.org.Status = *done.Status.DeepCopy()
			}
			k.held = c.held
			k.now = func() (*v1alpha1.Organization, error) {
				if c.done {
					return done, nil
				}
				return k.org, nil
			}
			require.NoError(t, k.reconcile(t))
			if c.made {
				require.Contains(t, k.Did, "create membership alice in org1")
			} else {
				require.NotContains(t, k.Did, "create membership alice in org1")
			}
		})
	}
}

func TestReconcile_addsNobodyWhileKCPDoesNotAnswer(t *testing.T) {
	t.Parallel()
	k := newKCP()
	k.waiting = true
	require.NoError(t, k.reconcile(t))
	k.ws.Status.Phase, k.ws.Spec.Cluster = kcpcorev1alpha1.LogicalClusterPhaseReady, "org1"
	k.memberships, k.Did, k.failure = nil, nil, errors.New("kcp does not answer")
	require.Error(t, k.reconcile(t))
	require.Empty(t, k.Did)
	k.failure = nil
	require.NoError(t, k.reconcile(t))
	require.Equal(t, []string{"create membership alice in org1"}, k.Did[:1], "the control: of an Org without people kcp is believed")
}

// The cascade has ended, so nothing would delete the new workspace.
func TestReconcile_createsNothingForAPurgedOrg(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(o *v1alpha1.Organization) error{
		"gone":    func(*v1alpha1.Organization) error { return controller.ErrRetry },
		"another": func(o *v1alpha1.Organization) error { o.UID = "another"; return nil },
		"on its way": func(o *v1alpha1.Organization) error {
			o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKCP()
			k.now = func() (*v1alpha1.Organization, error) {
				o := k.org.DeepCopy()
				return o, change(o)
			}
			require.ErrorIs(t, k.reconcile(t), controller.ErrRetry)
			require.Empty(t, k.Did)
			k.now = nil
			require.NoError(t, k.reconcile(t))
			require.Equal(t, []string{"create workspace organization of root:kedge"}, k.Did, "the control")
		})
	}
}

// kcp cannot restore a workspace that was deleted by hand, so the conditions report it.
func TestO11_anOrgIsNotReadyWhileItsWorkspaceTerminates(t *testing.T) {
	t.Parallel()
	k := newKCP()
	k.waiting = true
	require.NoError(t, k.reconcile(t))
	now := metav1.Now()
	k.ws.Status.Phase, k.ws.Spec.Cluster, k.ws.DeletionTimestamp = kcpcorev1alpha1.LogicalClusterPhaseReady, "org1", &now
	k.Did = nil
	require.NoError(t, k.reconcile(t))
	require.Equal(t, v1alpha1.PhaseProgressing, k.phase())
	require.Contains(t, meta.FindStatusCondition(k.org.Status.Conditions, v1alpha1.ConditionReady).Message, "lost")
	require.Empty(t, k.Did)
}

func TestReconcile_showsAFailureWithoutInternals(t *testing.T) {
	t.Parallel()
	k := newKCP()
	k.failure = errors.New("dial tcp 10.0.0.1: refused")
	require.Error(t, k.reconcile(t))
	require.Equal(t, v1alpha1.PhaseProgressing, k.phase())
	c := meta.FindStatusCondition(k.org.Status.Conditions, v1alpha1.ConditionWorkspaceBound)
	require.NotNil(t, c)
	require.NotContains(t, c.Message, "10.0.0.1")
	k.failure = nil
	require.NoError(t, k.reconcile(t))
}

// The named creator becomes admin only if the User is old enough to be the creator: the name of
// a deleted User can belong to another one.
func TestFirstAdmin_isTheCreatorOfTheOrg(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by       string
		made     time.Duration
		personal bool
		role     v1alpha1.Role
		want     []string
	}{
		"a person":                      {by: "alice", want: []string{"alice admin"}},
		"nobody":                        {want: nil},
		"one who is gone":               {by: "bob", want: nil},
		"one who came later":            {by: "alice", made: time.Hour, want: nil},
		"one who came before":           {by: "alice", made: -time.Hour, want: []string{"alice admin"}},
		"in their own":                  {by: "alice", personal: true, role: v1alpha1.RoleAdmin, want: []string{"alice admin"}},
		"in their own, as a member":     {by: "alice", personal: true, role: v1alpha1.RoleMember, want: []string{"alice member"}},
		"in a shared one, always admin": {by: "alice", role: v1alpha1.RoleMember, want: []string{"alice admin"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKCP()
			k.waiting = true
			k.org.Spec.Personal = c.personal
			k.org.Annotations[v1alpha1.CreatedByAnnotation] = c.by
			k.org.CreationTimestamp = metav1.NewTime(k.clock.Now())
			k.came = k.clock.Now().Add(c.made)
			k.more = func(config *organization.Config) {
				if c.role != "" {
					config.PersonalRole = c.role
				}
			}
			require.NoError(t, k.reconcile(t))
			require.NoError(t, k.reconcile(t))
			var got []string
			for _, m := range k.memberships {
				require.Equal(t, v1alpha1.ScopeOrg, m.Spec.Scope)
				got = append(got, m.Spec.UserRef.Name+" "+string(m.Spec.Role))
			}
			require.Equal(t, c.want, got)
		})
	}
}

// With a spare, one pass makes the Organization Ready: nothing waits for kcp.
func TestReconcile_takesASpareOfTheCreator(t *testing.T) {
	t.Parallel()
	for reservation, rightful := range map[string]bool{"": true, `{"user":"alice"}`: true, `{"user":"bob"}`: false, "{": false} {
		k := newKCP()
		k.ws = &kcptenancyv1alpha1.Workspace{}
		k.ws.Name, k.ws.Labels = uuid, map[string]string{v1alpha1.SpareLabel: "hash"}
		k.ws.Status.Phase, k.ws.Spec.Cluster = kcpcorev1alpha1.LogicalClusterPhaseReady, "org1"
		if reservation != "" {
			k.ws.Annotations = map[string]string{v1alpha1.SpareReservedAnnotation: reservation}
		}
		err := k.reconcile(t)
		if !rightful {
			require.ErrorIs(t, err, controller.ErrRetry, reservation)
			require.Equal(t, []string{"throw the spare away"}, k.Did)
			require.NoError(t, k.reconcile(t))
			require.Equal(t, []string{"throw the spare away", "create workspace organization of root:kedge"}, k.Did)
			continue
		}
		require.NoError(t, err, reservation)
		require.Equal(t, []string{"take the spare", "create membership alice in org1"}, k.Did)
		require.Equal(t, v1alpha1.PhaseReady, k.phase())
	}
}
