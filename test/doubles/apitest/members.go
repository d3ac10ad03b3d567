package apitest

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Join makes the User a member of an Org, or of a Workspace where workspace is not
// empty: it puts a Membership that its controller has seen, and its row of the
// User's index.
func (w *World) Join(user, org, workspace string, role v1alpha1.Role) {
	w.PutMembership(org, Membership(user, workspace, role))
}

// Membership returns a Membership that its controller has seen.
func Membership(user, workspace string, role v1alpha1.Role) *v1alpha1.Membership {
	m := tenancy.NewMembership(user, workspace, role)
	m.ResourceVersion = FirstVersion
	m.UID, m.Generation, m.CreationTimestamp = types.UID("uid of "+m.Name), 1, Epoch()
	m.Status.ObservedGeneration, m.Status.Phase = 1, v1alpha1.PhaseReady
	return m
}

// PutMembership makes or replaces a Membership in an Org, and its row of the User's
// index as the Org and the Workspace are at present.
func (w *World) PutMembership(org string, m *v1alpha1.Membership) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.members[org] == nil {
		w.members[org] = map[string]*v1alpha1.Membership{}
	}
	w.members[org][m.Name] = m
	o := w.orgs[org]
	place := tenancy.IndexedMembership{Org: o, FirstAdmin: o.CreatedBy(), Role: tenancy.HighestRole(m), Manager: m.Spec.Manager}
	workspace := tenancy.WorkspaceUUID(m)
	if workspace != "" {
		ws := w.workspaces[workspace]
		place.Workspace = &ws
	}
	user := m.Spec.UserRef.Name
	w.index[user] = append(w.without(user, org, workspace), tenancy.IndexEntries([]tenancy.IndexedMembership{place})...)
	w.touch(tenancy.UserRef(user), tenancy.OrgRef(org), tenancy.WorkspaceRef(workspace))
}

// Leave takes a Membership and its row away.
func (w *World) Leave(user, org, workspace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.members[org], tenancy.MembershipName(user, workspace))
	w.index[user] = w.without(user, org, workspace)
	w.touch(tenancy.UserRef(user), tenancy.OrgRef(org), tenancy.WorkspaceRef(workspace))
}

// Unindex takes every row of the User's index away, as where nobody has made it.
func (w *World) Unindex(user string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.index, user)
	w.touch(tenancy.UserRef(user))
}

// Crowd gives the User's index n rows of Organizations that are not in the world.
func (w *World) Crowd(user string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.index[user] = make([]v1alpha1.MembershipIndexEntry, n)
}

func (w *World) without(user, org, workspace string) []v1alpha1.MembershipIndexEntry {
	rows := make([]v1alpha1.MembershipIndexEntry, 0, len(w.index[user])+1)
	for _, row := range w.index[user] {
		if row.OrgUUID != org || row.WorkspaceUUID != workspace {
			rows = append(rows, row)
		}
	}
	return rows
}

// Membership is the one of that name in the Org whose own workspace is in the cluster.
func (w *World) Membership(orgCluster, name string) (*v1alpha1.Membership, bool) {
	all := w.MembershipsIn(orgCluster)
	if i := slices.IndexFunc(all, func(m *v1alpha1.Membership) bool { return m.Name == name }); i >= 0 {
		return all[i], true
	}
	return nil, false
}

// MembershipsAt are those of the Org itself, or of one of its Workspaces.
func (w *World) MembershipsAt(orgCluster, workspace string) []*v1alpha1.Membership {
	return slices.DeleteFunc(w.MembershipsIn(orgCluster), func(m *v1alpha1.Membership) bool { return tenancy.WorkspaceUUID(m) != workspace })
}

// MembershipsIn are those of the Org whose own workspace is in the cluster.
func (w *World) MembershipsIn(orgCluster string) []*v1alpha1.Membership {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uuid, o := range w.orgs {
		if o.ClusterID == orgCluster {
			return slices.Collect(maps.Values(w.members[uuid]))
		}
	}
	return nil
}

// Rights judges authors by the world at Epoch, as if kcp were no newer.
func (w *World) Rights() httpmw.Rights { return w.rights(w) }

func (w *World) rights(store httpmw.RightsStore) httpmw.Rights {
	return httpmw.Rights{Membership: w.Membership, Store: store, Clock: clocktesting.NewFakePassiveClock(Epoch().Time)}
}

// RightsUntil are Rights of which kcp has nothing any more from when lost returns true: every author
// was removed, and the caches do not show it yet.
func (w *World) RightsUntil(lost func() bool) httpmw.Rights {
	return w.rights(lostRights{w, lost})
}

type lostRights struct {
	*World
	lost func() bool
}

func (r lostRights) GetMembership(ctx context.Context, orgCluster, name string) (*v1alpha1.Membership, error) {
	if r.lost() {
		return nil, nil
	}
	return r.World.GetMembership(ctx, orgCluster, name)
}

// GetMembership is Membership, read from kcp.
func (w *World) GetMembership(_ context.Context, orgCluster, name string) (*v1alpha1.Membership, error) {
	m, _ := w.Membership(orgCluster, name)
	return m, nil
}

// GetOrganization is Org, read from kcp.
func (w *World) GetOrganization(_ context.Context, uuid string) (*v1alpha1.Organization, error) {
	org, ok := w.Org(uuid)
	if !ok {
		return nil, errs.New(errs.NotFound, "gone")
	}
	return org.Organization, nil
}

// Creator decides by the world what creators may read.
func (w *World) Creator() tenancy.Creator {
	return tenancy.Creator{Org: w.Org, Workspace: w.Workspace, Membership: w.Membership, MembershipsAt: w.MembershipsAt}
}
