package user_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/user"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

const grace = 720 * time.Hour

var (
	// began is the creation time of all objects.
	began = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	// own is the UUID of alice's personal Org.
	own = tenancy.PersonalOrgUUID("uid of alice")
)

// kcp is a kcp with the User alice.
type kcp struct {
	*kcptest.KCP
	kcptest.Calls
	// user is the User at the end of the last pass. The next pass finds it as the test changed it.
	user *v1alpha1.User
	// stale is what the cache has of the User, if it is outdated.
	stale *v1alpha1.User
	// spares are the Workspaces in spare Organizations.
	spares map[string]string
	// clusters are those of the Orgs that have Memberships.
	clusters []string
	inactive map[string]bool
	bare     bool
	// billing is that of a new personal Org.
	billing *v1alpha1.Billing
	// unseen hides the Orgs from the cache; unknown makes every read of an Org from kcp fail.
	unseen, unknown bool
	// withdrawn runs when the User is deleted, if it is not nil.
	withdrawn func()
	// hold is true while nothing is purged, and replaying while a restored hub ends what ended after its backup.
	hold, replaying bool

	purged []map[string]int
	// holds is the number of failing patches among those that remove the finalizer.
	holds int
	// running is one reconciler for all reconciliations; nil creates a new one on each
	// settle, as after a restart.
	running controller.Func
}

func newKCP(t *testing.T) *kcp {
	t.Helper()
	u := &v1alpha1.User{Spec: v1alpha1.UserSpec{DisplayName: "Alice", Issuer: "static", Subject: "alice", RBACIdentity: "alice", Registration: v1alpha1.RegistrationApproved}}
	u.Name, u.UID, u.CreationTimestamp = "alice", "uid of alice", metav1.NewTime(began)
	k := &kcp{KCP: kcptest.New(t), user: u, inactive: map[string]bool{}}
	k.Clock.SetTime(began)
	k.FailBefore(func(in kcpfake.Request) error { return k.request(in, false) })
	k.FailAfter(func(in kcpfake.Request) error { return k.request(in, true) })
	k.store()
	return k
}

// request counts the calls of the reconciler, before or after they are carried out.
func (k *kcp) request(in kcpfake.Request, after bool) error {
	var body struct{ Metadata metav1.ObjectMeta }
	_ = json.Unmarshal(in.Body, &body)
	what := map[string]string{
		"delete users": "remove the user", "create organizations": "create org " + body.Metadata.Name, "patch organizations": "delete org " + in.Name,
		"delete organizations": "remove org " + in.Name, "create workspaces": "create workspace " + body.Metadata.Name + " in " + in.Cluster,
		"list memberships": "list " + in.Cluster, "patch memberships": "make " + in.Name + " admin", "delete memberships": "remove " + in.Name,
	}[in.Verb+" "+in.Resource]
	switch {
	case in.Verb == "get" && in.Resource == "organizations" && k.unknown:
		return apierrors.NewInternalError(kcptest.ErrDown)
	case !after && in.Verb == "patch" && in.Resource == "users" && strings.Contains(string(in.Body), `"finalizers"`) &&
		k.holds > 0 && !k.user.DeletionTimestamp.IsZero():
		k.holds--
		return apierrors.NewInternalError(kcptest.ErrDown)
	case !after && in.Verb == "delete" && in.Resource == "users" && k.withdrawn != nil:
		k.withdrawn()
	case !after && in.Verb == "delete" && in.Resource == "organizations":
		// The controller of Organizations removes it at once.
		org, _ := k.Org(in.Name)
		k.clusters = slices.DeleteFunc(k.clusters, func(cluster string) bool { return cluster == org.ClusterID })
		org.Finalizers = nil
		k.Put(kcptest.Orgs, org.Organization)
	}
	if what != "" && after == k.Late {
		if err := k.Call(what, func() {}); err != nil {
			return apierrors.NewInternalError(err)
		}
	}
	return nil
}

// store has kcp keep the User as the test changed it.
func (k *kcp) store() {
	if k.user != nil && !equality.Semantic.DeepEqual(k.user, k.stored()) {
		k.Put(kcptest.Users, k.user)
		k.user = k.stored()
	}
}

// stored is the User in kcp.
func (k *kcp) stored() *v1alpha1.User {
	u, _ := k.Caches.Users.Get(kcptest.Users, "alice")
	return u
}

// Get and InCluster are those of a cache that has the stale User.
func (k *kcp) Get(string, string) (*v1alpha1.User, bool) { return k.stale, true }

func (k *kcp) InCluster(string) []*v1alpha1.User { return nil }

// OrgsCreatedBy, Org and ByName are those of the views.
func (k *kcp) OrgsCreatedBy(string) []string { return nil }

func (k *kcp) Org(uuid string) (tenancy.Org, bool) {
	if k.unseen {
		return tenancy.Org{}, false
	}
	return k.KCP.Org(uuid)
}

func (k *kcp) ByName(name string) (*v1alpha1.User, bool) {
	if k.inactive[name] {
		return nil, false
	}
	return &v1alpha1.User{Spec: v1alpha1.UserSpec{Registration: v1alpha1.RegistrationApproved}}, true
}

// put creates a Ready Org. Each member has joined a minute after the previous one.
func (k *kcp) put(uuid, cluster string, members ...*v1alpha1.Membership) {
	o := tenancy.NewOrganization(uuid, uuid, "somebody")
	o.Status.Phase = v1alpha1.PhaseReady
	k.PutOrg(o, cluster)
	k.clusters = append(k.clusters, cluster)
	for i, m := range members {
		m.CreationTimestamp = metav1.NewTime(began.Add(time.Duration(i) * time.Minute))
		k.Put(cluster, m)
	}
}

// edit changes an Org.
func (k *kcp) edit(t *testing.T, uuid string, change func(o *v1alpha1.Organization)) {
	t.Helper()
	o := &v1alpha1.Organization{}
	o.Name = uuid
	kcptest.Change(t, k.KCP, kcptest.Orgs, o, change)
}

// has reports whether kcp has an Org.
func (k *kcp) has(uuid string) bool {
	_, ok := k.KCP.Org(uuid)
	return ok
}

// discard removes an Org.
func (k *kcp) discard(uuid string) {
	o := &v1alpha1.Organization{}
	o.Name = uuid
	k.Remove(kcptest.Orgs, o)
}

// org is an Org in kcp.
func (k *kcp) org(uuid string) tenancy.Org {
	o, _ := k.KCP.Org(uuid)
	return o
}

// workspaces are those in alice's Org.
func (k *kcp) workspaces() []tenancy.Workspace { return k.Workspaces(own) }

// members returns the Memberships in a cluster with their roles.
func (k *kcp) members(cluster string) []string {
	names := []string{}
	for _, m := range k.Caches.Memberships.InCluster(cluster) {
		names = append(names, m.Name+" "+string(m.Spec.Role))
	}
	return names
}

func (k *kcp) config() user.Config {
	memberships := k.Stored.Memberships
	config := user.Config{
		Objects: k.Stored, Clock: k.Clock, RightsClock: k.Clock, Grace: grace, Hold: func() bool { return k.hold },
		Replaying: k.replaying, PersonalOrgs: !k.bare, Billing: k.billing,
		UsersCluster: kcptest.Users, OrgsCluster: kcptest.Orgs, Views: k, SpareIn: func(org string) string { return k.spares[org] },
		Held: user.Held{
			Clusters: func(string) []string { return slices.Sorted(slices.Values(k.clusters)) },
			List:     memberships.List, Promote: memberships.Promote, Delete: memberships.DeleteUnchanged,
		},
		SoftDelete: func(ctx context.Context, org tenancy.Org, _ string) error {
			requested := map[string]any{"deletionRequestedAt": metav1.NewTime(k.Clock.Now())}
			return k.Stored.Organizations.Merge(ctx, kcptest.Orgs, org.Organization, map[string]any{"status": requested}, "status")
		},
		Purged: func(_ context.Context, _ *v1alpha1.User, counts map[string]int) { k.purged = append(k.purged, counts) },
	}
	if k.stale != nil {
		config.Users.Cache = k
	}
	return config
}

func (k *kcp) pass(t *testing.T) (controller.Result, error) {
	t.Helper()
	reconcile := k.running
	if reconcile == nil {
		reconcile = user.New(k.config())
	}
	k.store()
	result, err := reconcile(t.Context(), controller.Key{Cluster: kcptest.Users, Name: "alice"})
	k.user = k.stored()
	return result, err
}

// converge reconciles until nothing changes or a call fails, and returns the requeue delay. A pass that meets a
// conflict is repeated.
func (k *kcp) converge(t *testing.T) (time.Duration, error) {
	t.Helper()
	for range 50 {
		before, did := k.user, len(k.Did)
		result, err := k.pass(t)
		if !errors.Is(err, controller.ErrRetry) && (err != nil || len(k.Did) == did && equality.Semantic.DeepEqual(before, k.user)) {
			return result.RequeueAfter, err
		}
	}
	require.Fail(t, "it never comes to an end", "%v", k.Did)
	return 0, nil
}

// converged calls converge and requires that it succeeds.
func (k *kcp) converged(t *testing.T) time.Duration {
	t.Helper()
	after, err := k.converge(t)
	require.NoError(t, err)
	return after
}

// deleted requests the deletion of the User.
func (k *kcp) deleted(at time.Time) {
	k.user.Status.DeletionRequestedAt = &metav1.Time{Time: at}
	k.store()
}

// undeleted withdraws the deletion request.
func (k *kcp) undeleted() {
	k.user.Status.DeletionRequestedAt = nil
	k.store()
}

func in(name, workspace string, role v1alpha1.Role) *v1alpha1.Membership {
	return tenancy.NewMembership(name, workspace, role)
}
