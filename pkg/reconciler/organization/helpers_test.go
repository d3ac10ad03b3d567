package organization_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/organization"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

const (
	uuid  = "231a151a-434e-4623-ad6e-69406abb9387"
	grace = 720 * time.Hour
)

// The requests of the reconciler.
const (
	creation   = "create workspaces/" + uuid + " in orgs"
	removal    = "delete organizations/" + uuid + " in orgs"
	adminAdded = "create memberships/alice in org1"
)

// kcp is a kcp with one Org, whose workspace is the logical cluster org1.
type kcp struct {
	*kcptest.KCP
	kcptest.Calls
	// org and ws are the Org and its kcp Workspace at the end of the last pass. The next pass finds them as the test
	// changed them.
	org *v1alpha1.Organization
	ws  *kcptenancyv1alpha1.Workspace
	// stale is what the cache has of the Org, if it is outdated; blind hides Memberships from the cache.
	stale *v1alpha1.Organization
	blind bool
	// waiting is true while org1 waits for the hub.
	waiting bool
	// failure is how kcp fails to create Workspaces and to list Memberships.
	failure error
	// reads says that Did has what is read from kcp, too.
	reads bool
	// frozen are the logical clusters that are deactivated, and full is one that kcp deactivates in part. refused is how
	// kcp refuses to deactivate any.
	frozen  map[string]bool
	full    string
	refused error
	// thawing runs before one is activated, if it is not nil.
	thawing func(cluster string)
	// withdrawn runs when the Org is deleted, if it is not nil.
	withdrawn func()
	// hold is true while nothing is purged.
	hold   bool
	purged []map[string]int
	// role is that of a person in their own Org.
	role v1alpha1.Role
}

func newKCP(t *testing.T) *kcp {
	t.Helper()
	k := &kcp{KCP: kcptest.New(t), frozen: map[string]bool{}, role: v1alpha1.RoleAdmin}
	k.org = tenancy.NewOrganization(uuid, "ACME", "alice")
	k.PutUser("alice")
	k.FailBefore(func(in kcpfake.Request) error { return k.request(in, false) })
	k.FailAfter(func(in kcpfake.Request) error { return k.request(in, true) })
	k.put()
	return k
}

// request counts the requests of the reconciler, before or after they are carried out. The patches of the Org are not
// among them.
func (k *kcp) request(in kcpfake.Request, after bool) error {
	if in.Name == "" {
		var body struct{ Metadata metav1.ObjectMeta }
		_ = json.Unmarshal(in.Body, &body)
		in.Name = body.Metadata.Name
	}
	what := in.String()
	switch {
	case !after && k.frozen[in.Cluster]:
		return apierrors.NewForbidden(kcpcorev1alpha1.Resource("logicalclusters"), in.Cluster, errors.New("it is deactivated"))
	case !after && k.failure != nil && (what == creation || what == "list memberships in org1"):
		return apierrors.NewInternalError(k.failure)
	case !after && k.withdrawn != nil && what == removal:
		k.withdrawn()
	}
	counted := in.Mutating() && in.Resource != "organizations" || what == removal
	if k.reads {
		counted = counted || in.Verb == "list" || what == "get workspaces/"+uuid+" in orgs"
	}
	if counted && after == k.Late {
		if err := k.Call(what, func() {}); err != nil {
			return apierrors.NewInternalError(err)
		}
	}
	return nil
}

// put has kcp keep the Org and its Workspace as the test changed them.
func (k *kcp) put() {
	org, ws := k.held()
	if equality.Semantic.DeepEqual(k.org, org) && equality.Semantic.DeepEqual(k.ws, ws) {
		return
	}
	if k.org != nil && !equality.Semantic.DeepEqual(k.org, org) {
		k.Put(kcptest.Orgs, k.org)
	}
	switch {
	case k.ws == nil && ws != nil:
		k.Remove(kcptest.Orgs, ws)
	case k.ws != nil && !equality.Semantic.DeepEqual(k.ws, ws):
		k.Put(kcptest.Orgs, k.ws)
	}
	k.org, k.ws = k.held()
}

// held are the Org and its Workspace in kcp.
func (k *kcp) held() (*v1alpha1.Organization, *kcptenancyv1alpha1.Workspace) {
	org, _ := k.Caches.Organizations.Get(kcptest.Orgs, uuid)
	ws, _ := k.Caches.Workspaces.Get(kcptest.Orgs, uuid)
	return org, ws
}

// Get and InCluster are those of a cache that has the stale Org.
func (k *kcp) Get(string, string) (*v1alpha1.Organization, bool) { return k.stale, true }

func (k *kcp) InCluster(string) []*v1alpha1.Organization { return nil }

// MembershipsIn and Expired are those of the views.
func (k *kcp) MembershipsIn(cluster string) []*v1alpha1.Membership {
	if k.blind {
		return nil
	}
	return k.KCP.MembershipsIn(cluster)
}

func (k *kcp) Expired(string) []*v1alpha1.Membership { return nil }

// InitializingCluster and Initialize are those of the hub.
func (k *kcp) InitializingCluster(string) (string, bool) { return "org1", k.waiting }

func (k *kcp) Initialize(_ context.Context, _, cluster string) error {
	return k.Call("initialize "+cluster, func() { k.waiting = false })
}

func (k *kcp) reconcile(t *testing.T) error {
	t.Helper()
	_, err := k.pass(t)
	return err
}

func (k *kcp) pass(t *testing.T) (controller.Result, error) {
	t.Helper()
	k.put()
	config := organization.Config{
		Objects: k.Stored, Tree: k.Tree, Clock: k.Clock, RightsClock: k.Clock, Grace: grace, Hold: func() bool { return k.hold },
		PersonalRole: k.role, OrgsCluster: kcptest.Orgs, Views: k, Clusters: k, Initializer: k,
		Audit: func(_ string, _ bool, _ string, _ *v1alpha1.Membership, _, _ v1alpha1.MembershipSpec, write func() error) error {
			return write()
		},
		Purged: func(_ context.Context, _ *v1alpha1.Organization, counts map[string]int) {
			k.purged = append(k.purged, counts)
		},
	}
	if k.stale != nil {
		config.Organizations.Cache = k
	}
	result, err := organization.New(config)(t.Context(), controller.Key{Cluster: kcptest.Orgs, Name: uuid})
	k.org, k.ws = k.held()
	return result, err
}

func (k *kcp) phase() v1alpha1.Phase { return k.org.Status.Phase }

// finish has kcp report the Org's Workspace Ready.
func (k *kcp) finish() {
	k.ws.Status.Phase, k.ws.Spec.Cluster = kcpcorev1alpha1.LogicalClusterPhaseReady, "org1"
	k.put()
}

// join replaces the Memberships.
func (k *kcp) join(memberships ...*v1alpha1.Membership) {
	for _, m := range k.Caches.Memberships.InCluster("org1") {
		k.Remove("org1", m)
	}
	for _, m := range memberships {
		k.Put("org1", m)
	}
}

// Deactivated and the methods that follow are those of the logical clusters.
func (k *kcp) Deactivated(cluster string) bool { return k.frozen[cluster] }

func (k *kcp) Deactivate(_ context.Context, cluster string) error {
	if k.refused != nil {
		return k.refused
	}
	if cluster == k.full {
		return errs.New(errs.TooLarge, "watches stay open")
	}
	return k.Call("freeze "+cluster, func() { k.frozen[cluster] = true })
}

func (k *kcp) Activate(_ context.Context, cluster string) error {
	if k.thawing != nil {
		k.thawing(cluster)
	}
	return k.Call("thaw "+cluster, func() { delete(k.frozen, cluster) })
}

func (k *kcp) ActivateForDeletion(_ context.Context, cluster string) error {
	return k.Call("release "+cluster, func() {})
}

// newMortal has an Org that is Ready, with two people and three Workspaces. One Workspace
// is soft-deleted.
func newMortal(t *testing.T) *kcp {
	m := newKCP(t)
	m.populate()
	m.ws = &kcptenancyv1alpha1.Workspace{}
	m.ws.Name = uuid
	m.finish()
	m.converged(t)
	require.Equal(t, v1alpha1.PhaseReady, m.phase())
	m.Did = nil
	return m
}

// populate has kcp keep what is in the Org of newMortal.
func (k *kcp) populate() {
	k.reads, k.frozen = true, map[string]bool{"ws3": true}
	k.child("w1", "ws1", nil)
	k.child("w2", "ws2", nil)
	k.child("w3", "ws3", k.marked)
	k.join(
		tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin), tenancy.NewMembership("bob", "", v1alpha1.RoleMember),
		tenancy.NewMembership("bob", "w1", v1alpha1.RoleMember),
	)
}

// child has kcp keep a child Workspace that is Ready, with an edit.
func (k *kcp) child(name, cluster string, edit func(*kcptenancyv1alpha1.Workspace)) {
	ws := &kcptenancyv1alpha1.Workspace{}
	ws.Name, ws.Spec.Cluster, ws.Status.Phase = name, cluster, kcpcorev1alpha1.LogicalClusterPhaseReady
	if edit != nil {
		edit(ws)
	}
	k.Put("org1", ws)
}

// marked is the edit of a Workspace that is soft-deleted, and leaving that of one that kcp is deleting.
func (k *kcp) marked(ws *kcptenancyv1alpha1.Workspace) {
	ws.Annotations = map[string]string{v1alpha1.DeletionRequestedAtAnnotation: k.Clock.Now().UTC().Format(time.RFC3339)}
}

func (k *kcp) leaving(ws *kcptenancyv1alpha1.Workspace) {
	ws.DeletionTimestamp = &metav1.Time{Time: k.Clock.Now()}
	ws.Finalizers = []string{"core.kcp.io/logicalcluster"}
}

// children are the names of the child Workspaces, and members those of the Memberships.
func (k *kcp) children() (names []string) {
	for _, ws := range k.Caches.Workspaces.InCluster("org1") {
		names = append(names, ws.Name)
	}
	return names
}

func (k *kcp) members() (names []string) {
	for _, m := range k.Caches.Memberships.InCluster("org1") {
		names = append(names, m.Name)
	}
	return names
}

// clear removes child Workspaces.
func (k *kcp) clear(names ...string) {
	for _, name := range names {
		ws := &kcptenancyv1alpha1.Workspace{}
		ws.Name = name
		k.Remove("org1", ws)
	}
}

// mark sets or removes the time of the deletion request.
func (k *kcp) mark(at *time.Time) {
	k.org.Status.DeletionRequestedAt = nil
	if at != nil {
		k.org.Status.DeletionRequestedAt = &metav1.Time{Time: *at}
	}
	k.put()
}

func (k *kcp) deleted() {
	now := k.Clock.Now()
	k.mark(&now)
}

// removed has kcp delete the Org.
func (k *kcp) removed() {
	k.org.DeletionTimestamp = &metav1.Time{Time: k.Clock.Now()}
	k.put()
}

// converge reconciles until nothing is written and returns the requeue delay.
func (k *kcp) converge(t *testing.T) (time.Duration, error) {
	t.Helper()
	return k.KCP.Converge(t, func() (controller.Result, error) { return k.pass(t) })
}

// converged calls converge and requires that it succeeds.
func (k *kcp) converged(t *testing.T) time.Duration {
	t.Helper()
	after, err := k.converge(t)
	require.NoError(t, err)
	return after
}

func (k *kcp) active() metav1.Condition {
	if c := meta.FindStatusCondition(k.org.Status.Conditions, v1alpha1.ConditionActive); c != nil {
		return *c
	}
	return metav1.Condition{}
}
