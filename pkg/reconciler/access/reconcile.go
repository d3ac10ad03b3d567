package access

import (
	"context"
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Views are the caches of Memberships and of those who have them.
type Views interface {
	OrgByCluster(cluster string) (tenancy.Org, bool)
	Workspace(org, workspace string) (tenancy.Workspace, bool)
	// MembershipsOver returns the Memberships that grant rights in a Workspace of the Organization.
	// Membership finds one in the Organization by name.
	MembershipsOver(orgCluster, workspace string) []*v1alpha1.Membership
	Membership(orgCluster, name string) (*v1alpha1.Membership, bool)
	ByName(user string) (*v1alpha1.User, bool)
}

// Reconciler keeps the bindings in child Workspaces.
type Reconciler struct {
	views Views
	rbac  objects.RBAC
	// roles returns the roles of a logical cluster that Memberships may name.
	roles func(cluster string) tenancy.RoleSource
}

// New returns the reconciler.
func New(v Views, rbac objects.RBAC, roles func(cluster string) tenancy.RoleSource) *Reconciler {
	return &Reconciler{v, rbac, roles}
}

// Reconcile establishes the bindings in one Workspace.
func (r *Reconciler) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	cluster, c := r.changes(key, "")
	if cluster == "" {
		return controller.Result{}, nil
	}
	return controller.Result{}, r.rbac.Apply(ctx, cluster, c)
}

// Changes are the writes that establish the bindings in one Workspace.
func (r *Reconciler) Changes(key controller.Key) tenancy.RBACChanges {
	_, c := r.changes(key, "")
	return c
}

// Missing is the number of objects in a Workspace that are not as desired.
func (r *Reconciler) Missing(key controller.Key) int { return r.Changes(key).Count() }

// MissingOf is the number of objects of one User in a Workspace that are not as desired.
func (r *Reconciler) MissingOf(key controller.Key, user string) int {
	_, c := r.changes(key, user)
	return c.OnlyOf(user).Count()
}

// MissingFor returns the people who have objects in a Workspace that are not as desired.
func (r *Reconciler) MissingFor(key controller.Key) map[string]bool {
	people := map[string]bool{}
	c := r.Changes(key)
	for _, o := range slices.Concat(c.Write, c.Remove) {
		if user := o.GetLabels()[v1alpha1.UserLabel]; user != "" {
			people[user] = true
		}
	}
	return people
}

// changes compares the current with the desired objects. If only is not empty, it considers the
// Memberships of that User only, and the result for other Users is meaningless.
func (r *Reconciler) changes(key controller.Key, only string) (cluster string, c tenancy.RBACChanges) {
	org, ok := r.views.OrgByCluster(key.Cluster)
	if !ok {
		return "", c
	}
	ws, ok := r.views.Workspace(org.UUID(), key.Name)
	deleted := org.Deleted() || ws.Deleted()
	// A deactivated Workspace keeps its bindings: undeleted, it is as it was.
	deactivated := deleted && !tenancy.DeactivationForbidden(org.Status.Conditions) && !tenancy.DeactivationForbidden(ws.Status.Conditions)
	if !ok || deactivated || !ws.KCPReady {
		return "", c
	}
	// The objects are read before the Memberships from which they are derived.
	held := r.rbac.Held(ws.ClusterID)
	var memberships []*v1alpha1.Membership
	// A soft-deleted Organization or Workspace grants nothing.
	switch {
	case deleted:
	case only == "":
		memberships = r.views.MembershipsOver(key.Cluster, ws.UUID)
	default:
		for _, workspace := range []string{"", ws.UUID} {
			if m, ok := r.views.Membership(key.Cluster, tenancy.MembershipName(only, workspace)); ok {
				memberships = append(memberships, m)
			}
		}
	}
	grants := tenancy.Grants(org, ws.UUID, memberships, r.views.ByName)
	return ws.ClusterID, tenancy.AccessChanges(held, tenancy.AccessOf(ws.UUID, grants, r.roles(ws.ClusterID).Resolve))
}
