package server

import (
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// everybody is who is looked at again where a change may concern anyone.
const everybody = ""

// cutStreams has the proxy look again at what is open whenever something changes that a
// right comes from. It subscribes after the views, which the proxy asks.
func cutStreams(in *views.Informers, p *proxy.Proxy) {
	in.Memberships.OnChange(func(old, new *v1alpha1.Membership) { p.Recheck(current(old, new).Spec.UserRef.Name) })
	in.Indexes.OnChange(func(old, new *v1alpha1.UserMembershipIndex) { p.Recheck(current(old, new).Name) })
	in.Users.OnChange(func(old, new *v1alpha1.User) { p.Recheck(current(old, new).Name) })
	in.Organizations.OnChange(func(old, new *v1alpha1.Organization) {
		if old != nil && (new == nil || old.Spec.DefaultAccess != new.Spec.DefaultAccess || gone(old) != gone(new)) {
			p.Recheck(everybody)
		}
	})
	in.Workspaces.OnChange(func(old, new *kcptenancyv1alpha1.Workspace) {
		if old != nil && (new == nil || old.Spec.Cluster != new.Spec.Cluster || tenancy.WorkspaceOf("", old).Deleted() != tenancy.WorkspaceOf("", new).Deleted()) {
			p.Recheck(everybody)
		}
	})
}

// lags are when kcp's own authorization is taken to have followed what the hub sees of
// it: mostly by the first. How far it is behind when it is busy, nothing tells.
var lags = [...]time.Duration{500 * time.Millisecond, 2 * time.Second, 5 * time.Second}

// cutUnbound ends what whoever loses a binding has open. The cut at the change of
// their Membership came before: who opened a stream anew until now is let in by the
// gate with what they still have, and by kcp with what they had.
func cutUnbound(in *views.Informers, v *views.Views, p *proxy.Proxy) {
	later := func(d time.Duration, cut func()) { time.AfterFunc(d, cut) }
	in.ClusterRoleBindings.OnChange(unbound(p.Unbound, later))
	in.Memberships.OnChange(stopped(p.Unbound, later, func(m *v1alpha1.Membership) (clusters []string) {
		org, ok := v.OrgByCluster(kcp.ClusterOf(m))
		if !ok {
			return nil
		}
		for _, ws := range v.Workspaces(org.UUID()) {
			if uuid := tenancy.WorkspaceUUID(m); uuid == "" || uuid == ws.UUID {
				clusters = append(clusters, ws.ClusterID)
			}
		}
		return clusters
	}))
}

// unbound has cut called when a binding of a person is gone, and again after each of
// the lags.
func unbound(cut func(user, cluster, clusterRole string), after func(time.Duration, func())) func(old, new *rbacv1.ClusterRoleBinding) {
	return func(old, new *rbacv1.ClusterRoleBinding) {
		if old == nil || new != nil && old.UID == new.UID {
			return
		}
		user, cluster, clusterRole := old.Labels[v1alpha1.UserLabel], kcp.ClusterOf(old), old.RoleRef.Name
		if user == "" {
			return
		}
		untilFollowed(func() { cut(user, cluster, clusterRole) }, after)
	}
}

// stopped has cut called when somebody is admin no more, as unbound does. Whoever was can
// have hidden from the hub what was bound to them, and no binding tells then that it is
// gone. With sudo nobody opens anything that outlives the gate's next look. in are the
// logical clusters of a Membership's Workspaces.
func stopped(cut func(user, cluster, clusterRole string), after func(time.Duration, func()), in func(*v1alpha1.Membership) (clusters []string)) func(old, new *v1alpha1.Membership) {
	return func(old, new *v1alpha1.Membership) {
		if !tenancy.StopsAdmin(old, new) {
			return
		}
		for _, cluster := range in(old) {
			untilFollowed(func() { cut(old.Spec.UserRef.Name, cluster, tenancy.ClusterRoleAdmin) }, after)
		}
	}
}

func untilFollowed(cut func(), after func(time.Duration, func())) {
	cut()
	for _, lag := range lags {
		after(lag, cut)
	}
}

func gone(o *v1alpha1.Organization) bool { return tenancy.Org{Organization: o}.Deleted() }

// settled is followed, but that what the person has open has been looked at again
// when it holds: an answer must not be faster than the cut.
func settled(p *proxy.Proxy, followed func(org, workspace, user string) bool) func(org, workspace, user string) bool {
	return func(org, workspace, user string) bool {
		if !followed(org, workspace, user) {
			return false
		}
		p.Recheck(user)
		return true
	}
}
