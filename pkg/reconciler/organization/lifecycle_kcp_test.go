package organization_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/organization"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const grace = 720 * time.Hour

// errDeactivated is the answer of kcp to a request to a deactivated logical cluster.
var errDeactivated = errors.New("the logical cluster is deactivated")

// lifecycleKCP is a fake kcp with an Org that can be deleted.
type lifecycleKCP struct {
	*kcp
	// children and held are the Workspaces and the Memberships of the Org in kcp.
	children map[string]tenancy.Workspace
	held     map[string]v1alpha1.Membership
	// entries is the number of CatalogEntries in kcp.
	entries int
	frozen  map[string]bool
	// withdrawn runs when the Org is deleted, if it is not nil.
	withdrawn func()
	// thawing runs before a logical cluster is activated, if it is not nil.
	thawing func(cluster string)
	refused error
	// hold is true while nothing is purged.
	hold bool
	// full is the logical cluster that kcp deactivates in part.
	full   string
	purged []map[string]int
}

// newMortal has an Org that is Ready, with two people and three Workspaces. One Workspace
// is soft-deleted.
func newMortal(t *testing.T) *lifecycleKCP {
	m := &lifecycleKCP{kcp: newKCP(), children: map[string]tenancy.Workspace{}, held: map[string]v1alpha1.Membership{}, frozen: map[string]bool{"ws3": true}}
	deleted := metav1.NewTime(m.clock.Now())
	for _, ws := range []tenancy.Workspace{
		{UUID: "w1", ClusterID: "ws1", KCPReady: true}, {UUID: "w2", ClusterID: "ws2", KCPReady: true},
		{UUID: "w3", ClusterID: "ws3", KCPReady: true, DeletionRequestedAt: &deleted},
	} {
		m.children[ws.UUID] = ws
	}
	for _, in := range []*v1alpha1.Membership{
		tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin), tenancy.NewMembership("bob", "", v1alpha1.RoleMember), tenancy.NewMembership("bob", "w1", v1alpha1.RoleMember),
	} {
		m.held[in.Name] = *in
	}
	m.ws = &kcptenancyv1alpha1.Workspace{}
	m.ws.Name, m.ws.Spec.Cluster, m.ws.Status.Phase = uuid, "org1", kcpcorev1alpha1.LogicalClusterPhaseReady
	m.memberships = []*v1alpha1.Membership{tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin)}
	m.more = m.configure
	m.converged(t)
	require.Equal(t, v1alpha1.PhaseReady, m.phase())
	m.Did = nil
	return m
}

// Workspaces is that of the views.
func (m *lifecycleKCP) Workspaces(string) []tenancy.Workspace {
	return slices.SortedFunc(maps.Values(m.children), func(a, b tenancy.Workspace) int { return strings.Compare(a.UUID, b.UUID) })
}

func (m *lifecycleKCP) configure(c *organization.Config) {
	c.Grace, c.OrgsCluster, c.Hold = grace, "orgs", func() bool { return m.hold }
	c.Views = m
	c.Clusters.Deactivate = func(_ context.Context, cluster string) error {
		if m.refused != nil {
			return m.refused
		}
		if cluster == m.full {
			return errs.New(errs.TooLarge, "watches stay open")
		}
		return m.Call("freeze "+cluster, func() { m.frozen[cluster] = true })
	}
	c.Clusters.Activate = func(_ context.Context, cluster string) error {
		if m.thawing != nil {
			m.thawing(cluster)
		}
		return m.Call("thaw "+cluster, func() { delete(m.frozen, cluster) })
	}
	c.Clusters.Deactivated = func(cluster string) bool { return m.frozen[cluster] }
	c.Organizations.Delete = func(_ context.Context, o *v1alpha1.Organization) error {
		return m.Call("remove it", func() {
			if m.withdrawn != nil {
				m.withdrawn()
			}
			m.org = kcptest.Removed(m.org, o, m.clock.Now())
		})
	}
	c.Workspaces.Own = func(context.Context, string) (ws *kcptenancyv1alpha1.Workspace, ok bool, err error) {
		err = m.Call("look", func() { ws, ok = m.ws, m.ws != nil })
		return ws, ok, err
	}
	c.Workspaces.List = func(_ context.Context, cluster string) (list []*kcptenancyv1alpha1.Workspace, err error) {
		if m.frozen[cluster] {
			return nil, errDeactivated
		}
		err = m.Call("workspaces of "+cluster, func() {
			for _, ws := range m.Workspaces(uuid) {
				o := &kcptenancyv1alpha1.Workspace{}
				o.Name = ws.UUID
				list = append(list, o)
			}
		})
		return list, err
	}
	c.Workspaces.Delete = func(_ context.Context, cluster string, ws *kcptenancyv1alpha1.Workspace) error {
		return m.Call("remove workspace "+ws.Name+" from "+cluster, func() {
			if delete(m.children, ws.Name); ws.Name == uuid {
				m.ws = nil
			}
		})
	}
	c.Memberships.List = func(_ context.Context, cluster string) (list []*v1alpha1.Membership, err error) {
		if m.frozen[cluster] {
			return nil, errDeactivated
		}
		err = m.Call("memberships of "+cluster, func() {
			for _, name := range slices.Sorted(maps.Keys(m.held)) {
				held := m.held[name]
				list = append(list, &held)
			}
		})
		return list, err
	}
	c.Memberships.Delete = func(_ context.Context, _ string, held *v1alpha1.Membership) error {
		return m.Call("remove "+held.Name, func() { delete(m.held, held.Name) })
	}
	c.RemoveEntries = func(_ context.Context, cluster string) (int, error) {
		return m.entries, m.Call("entries of "+cluster, func() {})
	}
	c.Purged = func(_ context.Context, _ *v1alpha1.Organization, counts map[string]int) {
		m.purged = append(m.purged, counts)
	}
}

// mark sets or removes the time of the deletion request.
func (m *lifecycleKCP) mark(at *time.Time) {
	m.org = m.org.DeepCopy()
	m.org.ResourceVersion += "+"
	m.org.Status.DeletionRequestedAt = nil
	if at != nil {
		m.org.Status.DeletionRequestedAt = &metav1.Time{Time: *at}
	}
}

func (m *lifecycleKCP) deleted() {
	now := m.clock.Now()
	m.mark(&now)
}

// converge reconciles until nothing changes and returns the requeue delay.
func (m *lifecycleKCP) converge(t *testing.T) (time.Duration, error) {
	t.Helper()
	return m.Converge(t, func() (controller.Result, error) { return m.pass(t) }, func() any { return [...]any{m.org, m.ws, len(m.children)} })
}

// converged calls settle and requires that it succeeds.
func (m *lifecycleKCP) converged(t *testing.T) time.Duration {
	t.Helper()
	after, err := m.converge(t)
	require.NoError(t, err)
	return after
}

func (m *lifecycleKCP) active() metav1.Condition {
	if c := meta.FindStatusCondition(m.org.Status.Conditions, v1alpha1.ConditionActive); c != nil {
		return *c
	}
	return metav1.Condition{}
}
