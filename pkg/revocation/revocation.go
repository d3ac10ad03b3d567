package revocation

import (
	"context"
	"fmt"
	"sync"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

const (
	// everybody is the User of a Recheck that is about all Users.
	everybody = ""
	// deadline is when the last cut is made whether kcp has followed or not.
	deadline = 10 * time.Second
	// firstDelay and lastDelay bound the back-off between two questions to kcp.
	firstDelay = 20 * time.Millisecond
	lastDelay  = time.Second
	// unboundWithin is the time that the removal of a binding usually takes after a change of
	// the Membership. kcp is asked meanwhile only if the views do not have the binding, and
	// later also if they do, because they may lag behind kcp.
	unboundWithin = 250 * time.Millisecond
	// askTimeout bounds one question to kcp.
	askTimeout = 2 * time.Second
	// workers is the number of questions to kcp at a time.
	workers = 4
)

// Streams are what people have open. The methods read memory and must not block.
type Streams interface {
	// Recheck ends what the User, or every User where user is empty, has open and has no
	// right to any more.
	Recheck(user string)
	// RecheckClusters is Recheck for what everybody has open in logical clusters.
	RecheckClusters(clusters ...string)
	// Unbound ends what the User has open in a logical cluster, unless they have the rights
	// of the role, which is in the form of tenancy.RoleName.
	Unbound(user, cluster, role string)
}

// Kcp asks kcp about rights.
type Kcp interface {
	// Followed tells whether kcp goes by what is left to the User in the logical cluster,
	// and not by the role any more. The role is in the form of tenancy.RoleName.
	Followed(ctx context.Context, user, role string, left tenancy.Entry) (bool, error)
}

// Config is what a Revocation works with.
type Config struct {
	Views *views.Views
	// Enter is tenancy.Gate's.
	Enter   func(user, cluster string) (tenancy.Entry, error)
	Kcp     Kcp
	Streams Streams
	Clock   clock.WithTicker
	Metrics prometheus.Registerer
}

// Revocation ends what people have open when the right to it has ended.
type Revocation struct {
	config  Config
	queue   workqueue.TypedRateLimitingInterface[loss]
	metrics metrics

	mu sync.Mutex
	// since has the time of the latest end of each right that kcp is asked about.
	since map[loss]time.Time
}

// loss is a role that a User does not have any more in a logical cluster. The role is in
// the form of tenancy.RoleName.
type loss struct{ user, cluster, role string }

// New returns a Revocation that is subscribed to the views.
func New(c Config) (*Revocation, error) {
	r := &Revocation{config: c, metrics: newMetrics(), since: map[loss]time.Time{}}
	if err := r.metrics.register(c.Metrics); err != nil {
		return nil, fmt.Errorf("register the metrics of revocation: %w", err)
	}
	r.queue = workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[loss](firstDelay, lastDelay),
		workqueue.TypedRateLimitingQueueConfig[loss]{Clock: c.Clock})
	c.Views.Memberships.OnChange(r.onMembership)
	c.Views.Indexes.OnChange(func(c views.Change[*v1alpha1.UserMembershipIndex]) { r.Recheck(c.Object().Name) })
	c.Views.Users.OnChange(r.onUser)
	c.Views.Sessions.OnChange(r.onSession)
	c.Views.Bots.OnChange(r.onBot)
	c.Views.Organizations.OnChange(r.onOrganization)
	c.Views.OrgWorkspaces.OnChange(r.onOrgWorkspace)
	c.Views.ChildWorkspaces.OnChange(r.onWorkspace)
	c.Views.ClusterRoleBindings.OnChange(r.onClusterRoleBinding)
	c.Views.RoleBindings.OnChange(r.onRoleBinding)
	return r, nil
}

// Recheck looks again at what the User has open.
func (r *Revocation) Recheck(user string) { r.config.Streams.Recheck(user) }

// RecheckAll is Recheck of every User.
func (r *Revocation) RecheckAll() { r.Recheck(everybody) }

func (r *Revocation) onMembership(c views.Change[*v1alpha1.Membership]) {
	if !c.Moved(func(m *v1alpha1.Membership) any { return m.Spec }) {
		return
	}
	m, user := c.Object(), c.Object().Spec.UserRef.Name
	r.Recheck(user)
	if !c.Ends(func(m *v1alpha1.Membership) any { return []any{m.Spec.Role, m.Spec.Roles, m.Spec.Extra} }) {
		return
	}
	org, ok := r.config.Views.OrgByCluster(c.Cluster())
	if !ok {
		return
	}
	for _, ws := range r.config.Views.Workspaces(org.UUID()) {
		if uuid := tenancy.WorkspaceUUID(m); uuid != "" && uuid != ws.UUID || ws.ClusterID == "" {
			continue
		}
		for _, role := range tenancy.BoundRolesOf(c.Old) {
			r.lost(loss{user, ws.ClusterID, role})
		}
	}
}

func (r *Revocation) onUser(c views.Change[*v1alpha1.User]) {
	fields := func(u *v1alpha1.User) any {
		spec := u.Spec
		spec.DisplayName, spec.OrgClaims, spec.OrgQuota = "", nil, 0
		return []any{spec, u.Status.DeletionRequestedAt}
	}
	if c.Moved(fields) {
		r.Recheck(c.Object().Name)
	}
}

// onSession learns of the end of a Session that was written. An end that follows from the
// time alone needs no event: streams end when their credential expires.
func (r *Revocation) onSession(c views.Change[*v1alpha1.Session]) {
	if c.Ends(func(s *v1alpha1.Session) any { return s.Spec.EndedAt }) {
		r.Recheck(c.Old.Spec.UserRef.Name)
	}
}

func (r *Revocation) onOrganization(c views.Change[*v1alpha1.Organization]) {
	switch {
	case c.Removed() || c.Terminating():
		// The views may not list its Workspaces any more.
		r.RecheckAll()
	case c.Differs(func(o *v1alpha1.Organization) any { return []any{o.Status.DeletionRequestedAt, o.Spec.DefaultAccess} }):
		var clusters []string
		for _, ws := range r.config.Views.Workspaces(c.New.Name) {
			clusters = append(clusters, ws.ClusterID)
		}
		r.config.Streams.RecheckClusters(clusters...)
	}
}

func (r *Revocation) onOrgWorkspace(c views.Change[*kcptenancyv1alpha1.Workspace]) {
	if c.Removed() || c.Differs(func(ws *kcptenancyv1alpha1.Workspace) any { return ws.Spec.Cluster }) {
		r.RecheckAll()
	}
}

func (r *Revocation) onWorkspace(c views.Change[*kcptenancyv1alpha1.Workspace]) {
	fields := func(ws *kcptenancyv1alpha1.Workspace) any {
		return []any{ws.Annotations[v1alpha1.DeletionRequestedAtAnnotation], ws.Spec.Cluster}
	}
	if c.Ends(fields) {
		r.config.Streams.RecheckClusters(c.Old.Spec.Cluster, c.Object().Spec.Cluster)
	}
}

// onClusterRoleBinding learns of a right that ended, however it did: by the access
// controller for a Membership, or by a deletion in kcp.
func (r *Revocation) onClusterRoleBinding(c views.Change[*rbacv1.ClusterRoleBinding]) {
	if !c.Removed() {
		return
	}
	if user := c.Old.Labels[v1alpha1.UserLabel]; user != "" {
		r.lost(loss{user, c.Cluster(), c.Old.RoleRef.Name})
	}
}

// onRoleBinding is onClusterRoleBinding for a role in a namespace.
func (r *Revocation) onRoleBinding(c views.Change[*rbacv1.RoleBinding]) {
	if !c.Removed() {
		return
	}
	if user := c.Old.Labels[v1alpha1.UserLabel]; user != "" {
		r.lost(loss{user, c.Cluster(), tenancy.NamespacedName(c.Old.Namespace, c.Old.RoleRef.Name)})
	}
}

// lost cuts what the User has open, and has kcp asked until the last cut can be made.
func (r *Revocation) lost(l loss) {
	r.cut(l)
	if _, over := r.over(l); over {
		return
	}
	r.mu.Lock()
	r.since[l] = r.config.Clock.Now()
	r.mu.Unlock()
	r.queue.Forget(l)
	r.queue.Add(l)
}

func (r *Revocation) cut(l loss) { r.config.Streams.Unbound(l.user, l.cluster, l.role) }

// AfterRecheck returns followed with a recheck of the person's streams before it holds. A handler
// that asks it may see a change of the views before Revocation is told, and its answer must not be
// faster than the cut.
func (r *Revocation) AfterRecheck(followed func(org, workspace, user string) bool) func(org, workspace, user string) bool {
	return func(org, workspace, user string) bool {
		if !followed(org, workspace, user) {
			return false
		}
		r.Recheck(user)
		return true
	}
}
