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
	"github.com/faroshq/kedge-hub/pkg/reconciler/organization"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const grace = 720 * time.Hour

var errDown = errors.New("kcp cannot be reached")

// mortal is a kcp whose Org can be deleted. The call with the number fails fails;
// none where it is zero.
type mortal struct {
	*kcp
	// children are the Workspaces in the Org, and held its Memberships, in kcp itself.
	children map[string]tenancy.Workspace
	held     map[string]v1alpha1.Membership
	frozen   map[string]bool
	// withdrawn happens when the Org is to be removed, where it is not nil.
	withdrawn func()
	// thawing happens before a cluster is opened, where it is not nil.
	thawing func(cluster string)
	refused error
	purged  []map[string]int
	calls   int
	fails   int
	late    bool
}

func (m *mortal) call(what string, do func()) error {
	if m.calls++; m.calls != m.fails {
		m.did = append(m.did, what)
		do()
		return nil
	}
	if m.late {
		do()
	}
	return errDown
}

// newMortal is an Org that is Ready, with three Workspaces, one of them soft-deleted,
// and two people.
func newMortal(t *testing.T) *mortal {
	m := &mortal{kcp: newKCP(), children: map[string]tenancy.Workspace{}, held: map[string]v1alpha1.Membership{}, frozen: map[string]bool{"ws3": true}}
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
	_, err := m.settle(t)
	require.NoError(t, err)
	require.Equal(t, v1alpha1.PhaseReady, m.phase())
	m.did = nil
	return m
}

func (m *mortal) configure(c *organization.Config) {
	c.Grace, c.Orgs = grace, "orgs"
	c.Children = func(string) []tenancy.Workspace {
		return slices.SortedFunc(maps.Values(m.children), func(a, b tenancy.Workspace) int { return strings.Compare(a.UUID, b.UUID) })
	}
	c.Freeze = func(_ context.Context, cluster string) error {
		if m.refused != nil {
			return m.refused
		}
		return m.call("freeze "+cluster, func() { m.frozen[cluster] = true })
	}
	c.Thaw = func(_ context.Context, cluster string) error {
		if m.thawing != nil {
			m.thawing(cluster)
		}
		return m.call("thaw "+cluster, func() { delete(m.frozen, cluster) })
	}
	c.Release = func(_ context.Context, cluster string) error { return m.call("release "+cluster, func() {}) }
	c.Remove = func(_ context.Context, o *v1alpha1.Organization) error {
		return m.call("remove it", func() {
			if m.withdrawn != nil {
				m.withdrawn()
			}
			if m.org.ResourceVersion != o.ResourceVersion {
				return
			}
			m.org = m.org.DeepCopy()
			now := metav1.NewTime(m.clock.Now())
			if m.org.DeletionTimestamp = &now; len(m.org.Finalizers) == 0 {
				m.org = nil
			}
		})
	}
	c.OwnWorkspace = func(context.Context, string) (ws *kcptenancyv1alpha1.Workspace, ok bool, err error) {
		err = m.call("look", func() { ws, ok = m.ws, m.ws != nil })
		return ws, ok, err
	}
	c.ListWorkspaces = func(_ context.Context, cluster string) (list []kcptenancyv1alpha1.Workspace, err error) {
		err = m.call("workspaces of "+cluster, func() {
			for _, ws := range c.Children(uuid) {
				o := kcptenancyv1alpha1.Workspace{}
				o.Name = ws.UUID
				list = append(list, o)
			}
		})
		return list, err
	}
	c.RemoveWorkspace = func(_ context.Context, cluster string, ws *kcptenancyv1alpha1.Workspace) error {
		return m.call("remove workspace "+ws.Name+" from "+cluster, func() {
			if delete(m.children, ws.Name); ws.Name == uuid {
				m.ws = nil
			}
		})
	}
	c.ListMemberships = func(_ context.Context, cluster string) (list []v1alpha1.Membership, err error) {
		err = m.call("memberships of "+cluster, func() {
			for _, name := range slices.Sorted(maps.Keys(m.held)) {
				list = append(list, m.held[name])
			}
		})
		return list, err
	}
	c.RemoveMembership = func(_ context.Context, _ string, held *v1alpha1.Membership) error {
		return m.call("remove "+held.Name, func() { delete(m.held, held.Name) })
	}
	c.Purged = func(_ context.Context, _ *v1alpha1.Organization, counts map[string]int) {
		m.purged = append(m.purged, counts)
	}
	c.ChildExists = func(context.Context, string, string) (bool, error) { return true, nil }
}

// mark sets the time of deletion, or takes it.
func (m *mortal) mark(at *time.Time) {
	m.org = m.org.DeepCopy()
	m.org.ResourceVersion += "+"
	m.org.Status.DeletionRequestedAt = nil
	if at != nil {
		m.org.Status.DeletionRequestedAt = &metav1.Time{Time: *at}
	}
}

func (m *mortal) deleted() {
	now := m.clock.Now()
	m.mark(&now)
}

// settle reconciles until nothing changes any more and returns when to look again.
func (m *mortal) settle(t *testing.T) (time.Duration, error) {
	t.Helper()
	for range 20 {
		before, ws, children := m.org, m.ws, len(m.children)
		result, err := m.pass(t)
		if err != nil || m.org == nil || m.org == before && m.ws == ws && len(m.children) == children {
			return result.After, err
		}
	}
	require.Fail(t, "it never comes to an end", "%v", m.did)
	return 0, nil
}

func (m *mortal) active() metav1.Condition {
	if c := meta.FindStatusCondition(m.org.Status.Conditions, v1alpha1.ConditionActive); c != nil {
		return *c
	}
	return metav1.Condition{}
}
