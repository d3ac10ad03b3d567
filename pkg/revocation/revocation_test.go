package revocation

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

func workspace(name, cluster string) *kcptenancyv1alpha1.Workspace {
	ws := &kcptenancyv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	ws.Spec.Cluster = cluster
	return ws
}

func binding(uid, user string) *rbacv1.ClusterRoleBinding {
	b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b", Labels: map[string]string{
		v1alpha1.ManagedByLabel: v1alpha1.ManagedByHub, "uid": uid,
	}}}
	if user != "" {
		b.Labels[v1alpha1.UserLabel] = user
	}
	b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: tenancy.ClusterRoleAdmin}
	return b
}

func namespacedBinding(user string) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "dev", Labels: binding("1", user).Labels}}
	b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "editor"}
	return b
}

// session is a Session of Bob.
func session() *v1alpha1.Session {
	s := &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	s.Spec.UserRef.Name = "bob"
	return s
}

// watched is a Revocation over the views of a fake kcp. Alice's Org acme has the Workspaces
// w1 and w2. Bob is a member of the Org and admin in w1.
func watched(t *testing.T) (*scene, *kcpfake.Server) {
	t.Helper()
	server := kcpfake.New(t)
	login := session()
	bob := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "bob"}}
	for cluster, objects := range map[string][]runtime.Object{
		"users": {bob, login, &v1alpha1.UserMembershipIndex{ObjectMeta: metav1.ObjectMeta{Name: "bob"}}},
		"orgs":  {tenancy.NewOrganization("acme", "ACME", "alice"), workspace("acme", "c-acme")},
		"c-acme": {
			workspace("w1", "c-w1"), workspace("w2", "c-w2"),
			tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin), tenancy.NewMembership("bob", "w1", v1alpha1.RoleAdmin),
		},
		"c-w1": {binding("1", "bob"), namespacedBinding("bob")},
		"c-w2": {binding("1", "")},
	} {
		for _, o := range objects {
			server.Put(cluster, o)
		}
	}
	clients := server.Clients()
	v, err := views.New(views.Config{
		Clusters: views.Clusters{Users: "users", Orgs: "orgs", Hub: []string{"users", "orgs"}}, Clients: clients, Admin: clients, Metrics: prometheus.NewRegistry(),
	})
	require.NoError(t, err)
	s := newScene(t, v)
	// Nothing is left to anybody, so that each loss is cut once.
	s.set(func() { s.refusal = errs.New(errs.Forbidden, "no access") })
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		informer.Watch(ctx, []string{server.URL()}, v.Users, v.Indexes, v.Sessions, v.Organizations, v.ChildWorkspaces, v.Memberships, v.ClusterRoleBindings, v.RoleBindings)
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		// The additions of Bob, of his index and of his Memberships were published.
		return len(s.calls) == 4 && len(v.MembershipsOf("bob")) == 2 && len(v.Workspaces("acme")) == 2 && len(v.People()) == 1 && len(v.SessionsOf("bob")) == 1 && v.Index("bob") == nil &&
			len(v.ClusterRoleBindings.InCluster("c-w1"))+len(v.ClusterRoleBindings.InCluster("c-w2")) == 2 &&
			len(v.RoleBindings.InCluster("c-w1")) == 1 &&
			slices.ContainsFunc(v.Orgs(), func(o tenancy.Org) bool { return o.ClusterID == "c-acme" }) && len(v.Indexes.InCluster("users")) == 1
	}, time.Minute, time.Millisecond)
	s.set(func() { s.calls = nil })
	return s, server
}

func TestRevocation_tellsWhatEndsRights(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	change := func(cluster string, o runtime.Object) func(*kcpfake.Server) {
		return func(s *kcpfake.Server) { s.Put(cluster, o) }
	}
	remove := func(cluster string, o runtime.Object) func(*kcpfake.Server) {
		return func(s *kcpfake.Server) { s.Remove(cluster, o) }
	}
	organization := func(alter func(*v1alpha1.Organization)) func(*kcpfake.Server) {
		o := tenancy.NewOrganization("acme", "ACME", "alice")
		alter(o)
		return change("orgs", o)
	}
	annotated := workspace("w1", "c-w1")
	annotated.Annotations = map[string]string{v1alpha1.DeletionRequestedAtAnnotation: "2026-01-01T00:00:00Z"}
	renamed := workspace("w1", "c-w1")
	renamed.Annotations = map[string]string{v1alpha1.DisplayNameAnnotation: "new"}
	status := tenancy.NewMembership("bob", "w1", v1alpha1.RoleAdmin)
	status.Status.Phase = v1alpha1.PhaseReady
	rejected := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "bob"}}
	rejected.Spec.Registration = v1alpha1.RegistrationRejected
	claiming := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "bob"}}
	claiming.Spec.OrgClaims = []v1alpha1.Claim{{UUID: "x"}}
	signedOut := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "bob"}}
	signedOut.Spec.TokensValidAfter = &now
	ended, used := session(), session()
	ended.Spec.EndedAt, used.Spec.LastUsedAt = &now, now
	index := &v1alpha1.UserMembershipIndex{ObjectMeta: metav1.ObjectMeta{Name: "bob"}}
	index.Spec.Entries = []v1alpha1.MembershipIndexEntry{{OrgUUID: "acme", Role: v1alpha1.RoleMember}}
	const (
		recheckBob, recheckAll = "recheck bob", "recheck "
		recheckW1, recheckAcme = "recheck in c-w1", "recheck in c-w1 c-w2"
		cutW1, cutW2           = "cut bob c-w1 kedge:workspace:admin", "cut bob c-w2 kedge:workspace:admin"
	)
	for name, c := range map[string]struct {
		change func(*kcpfake.Server)
		calls  []string
	}{
		"demoted in a Workspace":  {change("c-acme", tenancy.NewMembership("bob", "w1", v1alpha1.RoleMember)), []string{recheckBob, cutW1}},
		"removed from one":        {remove("c-acme", tenancy.NewMembership("bob", "w1", "")), []string{recheckBob, cutW1}},
		"demoted in the Org":      {change("c-acme", tenancy.NewMembership("bob", "", v1alpha1.RoleMember)), []string{recheckBob, cutW1, cutW2}},
		"removed from the Org":    {remove("c-acme", tenancy.NewMembership("bob", "", "")), []string{recheckBob, cutW1, cutW2}},
		"a status":                {change("c-acme", status), nil},
		"index":                   {change("users", index), []string{recheckBob}},
		"User rejected":           {change("users", rejected), []string{recheckBob}},
		"User gone":               {remove("users", rejected), []string{recheckBob}},
		"a claim of a User":       {change("users", claiming), nil},
		"signed out everywhere":   {change("users", signedOut), []string{recheckBob}},
		"session ended":           {change("users", ended), []string{recheckBob}},
		"session gone":            {remove("users", session()), []string{recheckBob}},
		"session used":            {change("users", used), nil},
		"binding gone":            {remove("c-w1", binding("", "bob")), []string{cutW1}},
		"namespaced binding gone": {remove("c-w1", namespacedBinding("bob")), []string{"cut bob c-w1 dev/editor"}},
		"nobody's binding gone":   {remove("c-w2", binding("", "")), nil},
		"binding changed":         {change("c-w1", binding("2", "bob")), nil},
		"default access":          {organization(func(o *v1alpha1.Organization) { o.Spec.DefaultAccess = v1alpha1.DefaultAccessView }), []string{recheckAcme}},
		"Org soft-deleted":        {organization(func(o *v1alpha1.Organization) { o.Status.DeletionRequestedAt = &now }), []string{recheckAcme}},
		"Org gone":                {remove("orgs", tenancy.NewOrganization("acme", "", "")), []string{recheckAll}},
		"quota of an Org":         {organization(func(o *v1alpha1.Organization) { o.Spec.WorkspaceQuota = 7 }), nil},
		"Org's workspace gone":    {remove("orgs", workspace("acme", "")), []string{recheckAll}},
		"Workspace soft-deleted":  {change("c-acme", annotated), []string{recheckW1}},
		"Workspace gone":          {remove("c-acme", workspace("w1", "")), []string{recheckW1}},
		"Workspace moved":         {change("c-acme", workspace("w1", "c-w9")), []string{recheckW1 + " c-w9"}},
		"Workspace renamed":       {change("c-acme", renamed), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, server := watched(t)
			c.change(server)
			// A Membership of somebody else comes behind it, and a User and a binding.
			for cluster, o := range map[string]runtime.Object{
				"c-acme": tenancy.NewMembership("last", "", v1alpha1.RoleMember),
				"users":  &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "last"}},
			} {
				server.Put(cluster, o)
			}
			var calls []string
			require.Eventually(t, func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				calls = slices.DeleteFunc(slices.Clone(s.calls), func(c string) bool { return c == "recheck last" })
				return len(s.calls)-len(calls) == 2 && len(calls) >= len(c.calls)
			}, time.Minute, time.Millisecond)
			require.ElementsMatch(t, c.calls, calls)
		})
	}
}

// kcp goes by a binding that exists, so no question is needed to know that.
func TestLost_asksKcpWhenTheBindingIsRemoved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		role string
		held runtime.Object
	}{
		"of the cluster": {tenancy.ClusterRoleAdmin, binding("1", "bob")},
		"of a namespace": {"dev/editor", namespacedBinding("bob")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, server := watched(t)
			s.set(func() { s.refusal = nil })
			l := loss{"bob", "c-w1", c.role}
			cut, ask := "cut bob c-w1 "+c.role, "ask bob c-w1 "+c.role
			s.lost(l)
			require.Eventually(t, func() bool { return s.queue.NumRequeues(l) > 0 }, time.Minute, time.Millisecond)
			s.set(func() { require.Equal(t, []string{cut}, s.calls) })
			server.Remove("c-w1", c.held)
			require.Eventually(t, func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return len(s.calls) == 4
			}, time.Minute, time.Millisecond, "the removal needs no time to pass")
			require.Equal(t, []string{cut, cut, ask, cut}, s.settled(t))
		})
	}
}

// The views may have a binding longer than kcp.
func TestLost_asksKcpDespiteABindingThatStays(t *testing.T) {
	t.Parallel()
	s, _ := watched(t)
	s.set(func() { s.refusal = nil })
	began := s.clock.Now()
	s.lost(loss{"bob", "c-w1", tenancy.ClusterRoleAdmin})
	const cut, ask = "cut bob c-w1 kedge:workspace:admin", "ask bob c-w1 kedge:workspace:admin"
	require.Equal(t, []string{cut, ask, cut}, s.settled(t))
	require.Less(t, s.clock.Since(began), 2*time.Second)
}
