package user_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/user"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const grace = 720 * time.Hour

var (
	// began is the creation time of all objects.
	began = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	// own is the UUID of alice's personal Org.
	own = tenancy.PersonalOrgUUID("uid of alice")
)

// kcp is a fake kcp with the User alice.
type kcp struct {
	// spares are the Workspaces in spare Organizations.
	spares map[string]string
	kcptest.Calls
	user       *v1alpha1.User
	clock      *clocktesting.FakePassiveClock
	orgs       map[string]tenancy.Org
	workspaces map[string]tenancy.Workspace
	// held has the Memberships by the cluster of their Org.
	held     map[string]map[string]v1alpha1.Membership
	inactive map[string]bool
	bare     bool
	// billing is that of a new personal Org.
	billing *v1alpha1.Billing
	// unseen hides the Orgs from the cache; unknown is the error of reading an Org from
	// kcp.
	unseen  bool
	unknown error
	// now returns the User in kcp if the cache is outdated.
	now func() (*v1alpha1.User, error)
	// withdrawn runs when the User is deleted, if it is not nil.
	withdrawn func()
	// hold is true while nothing is purged.
	hold bool

	purged []map[string]int
	// holds is the number of failing patches among those that remove the finalizer.
	holds int
	// running is one reconciler for all reconciliations; nil creates a new one on each
	// settle, as after a restart.
	running controller.Func
}

func newKCP() *kcp {
	u := &v1alpha1.User{Spec: v1alpha1.UserSpec{DisplayName: "Alice", Issuer: "static", Subject: "alice", RBACIdentity: "alice", Registration: v1alpha1.RegistrationApproved}}
	u.Name, u.UID, u.ResourceVersion, u.Generation = "alice", "uid of alice", "1", 1
	u.CreationTimestamp = metav1.NewTime(began)
	return &kcp{
		user: u, clock: clocktesting.NewFakePassiveClock(began),
		orgs: map[string]tenancy.Org{}, workspaces: map[string]tenancy.Workspace{},
		held: map[string]map[string]v1alpha1.Membership{}, inactive: map[string]bool{},
	}
}

// put creates a Ready Org. Each member has joined a minute after the previous one.
func (k *kcp) put(uuid, cluster string, members ...*v1alpha1.Membership) {
	o := tenancy.NewOrganization(uuid, uuid, "somebody")
	o.UID = types.UID("uid of " + uuid)
	o.Status.Phase = v1alpha1.PhaseReady
	k.orgs[uuid] = tenancy.Org{Organization: o, ClusterID: cluster}
	k.held[cluster] = map[string]v1alpha1.Membership{}
	for i, m := range members {
		m.UID, m.CreationTimestamp = types.UID("uid of "+m.Name), metav1.NewTime(began.Add(time.Duration(i)*time.Minute))
		k.held[cluster][m.Name] = *m
	}
}

// members returns the Memberships in a cluster with their roles.
func (k *kcp) members(cluster string) []string {
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(k.held[cluster])) {
		names = append(names, name+" "+string(k.held[cluster][name].Spec.Role))
	}
	return names
}

func (k *kcp) config(t *testing.T) user.Config {
	active := func(name string) bool { return !k.inactive[name] }
	return user.Config{
		Clock: k.clock, RightsClock: k.clock, Grace: grace, Hold: func() bool { return k.hold }, PersonalOrgs: !k.bare, Billing: k.billing,
		Cache: user.Cache{
			OrgsCreatedBy: func(string) []string { return nil },
			Org:           func(uuid string) (tenancy.Org, bool) { o, ok := k.orgs[uuid]; return o, ok && !k.unseen },
			SpareIn:       func(org string) string { return k.spares[org] },
			OrgIn: func(cluster string) (tenancy.Org, bool) {
				for _, o := range k.orgs {
					if o.ClusterID == cluster {
						return o, true
					}
				}
				return tenancy.Org{}, false
			},
			Workspace:   func(_, uuid string) (tenancy.Workspace, bool) { ws, ok := k.workspaces[uuid]; return ws, ok },
			OrgClusters: func(string) []string { return slices.Sorted(maps.Keys(k.held)) },
			Active:      active,
		},
		Users: user.Users{
			Get: func(controller.Key) (*v1alpha1.User, bool) { return k.user, k.user != nil },
			Patch: func(_ context.Context, _ controller.Key, patch []byte, subresource string) error {
				return k.patch(t, patch, subresource)
			},
			Read: func(context.Context, string) (*v1alpha1.User, error) {
				if k.now != nil {
					return k.now()
				}
				return k.user, nil
			},
			Delete: func(_ context.Context, u *v1alpha1.User) error {
				return k.Call("remove the user", func() {
					if k.withdrawn != nil {
						k.withdrawn()
					}
					k.user = kcptest.Removed(k.user, u, k.clock.Now())
				})
			},
		},
		Organizations: user.Organizations{
			Create: func(_ context.Context, o *v1alpha1.Organization) error {
				return k.Call("create org "+o.Name, func() {
					o.UID = types.UID("uid of " + o.Name)
					k.orgs[o.Name] = tenancy.Org{Organization: o}
				})
			},
			Exists: func(_ context.Context, uuid string) (bool, error) { _, ok := k.orgs[uuid]; return ok, k.unknown },
			SoftDelete: func(_ context.Context, o tenancy.Org, _ string) error {
				return k.Call("delete org "+o.Name, func() {
					o.Organization = o.DeepCopy()
					now := metav1.NewTime(k.clock.Now())
					o.Status.DeletionRequestedAt = &now
					k.orgs[o.Name] = o
				})
			},
			Delete: func(_ context.Context, uuid string) (gone bool, err error) {
				if _, ok := k.orgs[uuid]; !ok {
					return true, nil
				}
				return false, k.Call("remove org "+uuid, func() {
					delete(k.held, k.orgs[uuid].ClusterID)
					delete(k.orgs, uuid)
				})
			},
		},
		Memberships: user.Memberships{
			List: func(_ context.Context, cluster string) (list []*v1alpha1.Membership, err error) {
				err = k.Call("list "+cluster, func() {
					for _, m := range k.held[cluster] {
						list = append(list, m.DeepCopy())
					}
				})
				return list, err
			},
			Promote: func(_ context.Context, cluster string, m *v1alpha1.Membership) error {
				return k.Call("make "+m.Name+" admin", func() {
					changed := *m
					changed.Spec.Role, changed.Spec.ExpiresAt = v1alpha1.RoleAdmin, nil
					k.held[cluster][m.Name] = changed
				})
			},
			Delete: func(_ context.Context, cluster string, m *v1alpha1.Membership) error {
				return k.Call("remove "+m.Name, func() { delete(k.held[cluster], m.Name) })
			},
		},
		CreateWorkspace: func(_ context.Context, cluster string, ws tenancy.Workspace) error {
			return k.Call("create workspace "+ws.UUID+" in "+cluster, func() { k.workspaces[ws.UUID] = ws })
		},
		Purged: func(_ context.Context, _ *v1alpha1.User, counts map[string]int) { k.purged = append(k.purged, counts) },
	}
}

// patch deletes a terminating object with its last finalizer, as kcp does.
func (k *kcp) patch(t *testing.T, patch []byte, subresource string) error {
	if k.user == nil {
		return apierrors.NewNotFound(v1alpha1.SchemeGroupVersion.WithResource("users").GroupResource(), "alice")
	}
	changed := kcptest.Patched(t, k.user, patch)
	if subresource == "" {
		require.True(t, equality.Semantic.DeepEqual(k.user.Status, changed.Status), "metadata or spec, and status, never change in one")
	}
	if changed.Spec.DefaultCluster != k.user.Spec.DefaultCluster {
		changed.Generation++
	}
	if kcptest.Gone(changed) && k.holds > 0 {
		k.holds--
		return kcptest.ErrDown
	}
	if k.user = changed; kcptest.Gone(changed) {
		k.user = nil
	}
	return nil
}

// converge reconciles until nothing changes or a call fails, and returns the requeue delay.
func (k *kcp) converge(t *testing.T) (time.Duration, error) {
	t.Helper()
	reconcile := k.running
	if reconcile == nil {
		reconcile = user.New(k.config(t))
	}
	key := controller.Key{Cluster: "users", Name: "alice"}
	return k.Converge(t, func() (controller.Result, error) { return reconcile(t.Context(), key) }, func() any { return [...]any{k.user, len(k.Did)} })
}

// converged calls settle and requires that it succeeds.
func (k *kcp) converged(t *testing.T) time.Duration {
	t.Helper()
	after, err := k.converge(t)
	require.NoError(t, err)
	return after
}

// deleted requests the deletion of the User.
func (k *kcp) deleted(at time.Time) {
	k.user = k.user.DeepCopy()
	k.user.Status.DeletionRequestedAt = &metav1.Time{Time: at}
	k.user.ResourceVersion += "+"
}

// undeleted withdraws the deletion request.
func (k *kcp) undeleted() {
	k.user = k.user.DeepCopy()
	k.user.Status.DeletionRequestedAt = nil
	k.user.ResourceVersion += "-"
}

func in(name, workspace string, role v1alpha1.Role) *v1alpha1.Membership {
	return tenancy.NewMembership(name, workspace, role)
}
