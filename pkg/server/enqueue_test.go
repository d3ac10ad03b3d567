package server

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/freeze"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
	"github.com/faroshq/kedge-hub/pkg/kcp/kcpfake"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/access"
	"github.com/faroshq/kedge-hub/pkg/reconciler/workspace"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// The platform of these tests. Alice is admin of acme, which has the Workspaces w1 and
// w2; bob is a member of acme and of w1, and has a personal Organization. The Organization
// shop has the Workspace w4 and a CatalogEntry.
const (
	usersCluster, orgsCluster = "users", "orgs"
	acmeCluster, homeCluster  = "c-acme", "c-home"
	shopCluster               = "c-shop"
	sentinel                  = "sentinel"
	initializer               = "root:kedge:organization"
)

// orgBinding is the APIBinding that every Organization's own workspace needs.
func orgBinding() *kcpapisv1alpha2.APIBinding {
	b := &kcpapisv1alpha2.APIBinding{ObjectMeta: metav1.ObjectMeta{Name: "tenancy.kedge.faros.sh"}}
	b.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Path: "root:kedge:providers", Name: tenancy.ExportTenancy}
	return b
}

// platform is a hub whose controllers do not run: what is enqueued is recorded.
type platform struct {
	*kcpfake.Server
	v *views.Views

	mu       sync.Mutex
	enqueued map[string]bool
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	p := &platform{Server: kcpfake.New(t), enqueued: map[string]bool{}}
	for _, o := range p.objects() {
		p.Put(o.cluster, o.Object)
	}
	clients, registry := p.Clients(), prometheus.NewRegistry()
	clusters := bootstrap.Clusters{
		Root: "root", Users: usersCluster, Orgs: orgsCluster, Providers: "providers",
		Initializer: initializer, OrgBindings: []*kcpapisv1alpha2.APIBinding{orgBinding()},
	}
	var err error
	p.v, err = views.New(views.Config{
		Clusters: views.Clusters{Root: clusters.Root, Users: usersCluster, Orgs: orgsCluster, Providers: clusters.Providers, Hub: clusters.IDs()},
		Clients:  clients, Admin: clients, OrgBindings: clusters.OrgBindings, Metrics: registry,
	})
	require.NoError(t, err)
	options := NewOptions()
	options.Clock = clock.RealClock{}
	config, err := options.Complete()
	require.NoError(t, err)
	metrics, err := controller.NewMetrics(registry)
	require.NoError(t, err)
	d := reconciler.Deps{
		Clients: clients, Freezer: freeze.New(clients, nil, p.v.Inactive, ""), Views: p.v, Clusters: clusters,
		Settings: settings(config, config.Clock), Metrics: metrics, Audit: audit.New(t.Context(), nil), OnEnqueue: p.record,
	}
	controllers(d, access.NewReconciler(d), workspace.TemplateOf(d))

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	v := p.v
	running.Go(func() {
		informer.Watch(ctx, []string{p.URL()}, v.Users, v.Sessions, v.Organizations, v.ChildWorkspaces, v.Memberships, v.Indexes, v.OrgBindings,
			v.Namespaces, v.ClusterRoles, v.ClusterRoleBindings, v.Roles, v.RoleBindings, v.Bindings, v.Bots, v.ServiceAccounts, v.BotSecrets, v.CatalogEntries, v.Initializing, v.Inactive)
	})
	for _, o := range p.objects() {
		p.flush(t, o.Object)
	}
	p.taken()
	return p
}

// placed is an object of a logical cluster.
type placed struct {
	cluster string
	kcp.Object
}

func (p *platform) objects() []placed {
	return []placed{
		{usersCluster, person("alice")}, {usersCluster, person("bob")},
		{usersCluster, loginOf("s1", "bob")},
		{usersCluster, index("alice")}, {usersCluster, index("bob")},
		{orgsCluster, org("acme", "alice")}, {orgsCluster, personal("home", "bob")},
		{orgsCluster, own("acme", acmeCluster)}, {orgsCluster, own("home", homeCluster)},
		{acmeCluster, child("w1")}, {acmeCluster, child("w2")}, {homeCluster, child("w3")},
		{acmeCluster, tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin)},
		{acmeCluster, tenancy.NewMembership("bob", "", v1alpha1.RoleMember)},
		{acmeCluster, withRoles(tenancy.NewMembership("bob", "w1", v1alpha1.RoleMember), "auditor", "dev/editor")},
		{homeCluster, tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin)},
		{"c-w1", managed(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})},
		{"c-w1", &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "auditor"}}},
		{"c-w1", roleBinding("b1", "bob")},
		{"c-w1", apiBinding("things")}, {acmeCluster, orgBinding()},
		{"c-w1", logicalCluster("")},
		{homeCluster, robot("b1")}, {"c-w3", tenancy.BotAccount(robot("b1"))}, {"c-w3", tenancy.BotTokenSecret(robot("b1"), "t")},
		{orgsCluster, org("shop", "dave")}, {orgsCluster, own("shop", shopCluster)}, {shopCluster, child("w4")},
		{shopCluster, entry("widgets")}, {"c-w4", grantOf("widgets")},
	}
}

// entry is a CatalogEntry of shop.
func entry(slug string) *v1alpha1.CatalogEntry {
	e := tenancy.NewCatalogEntry("shop", v1alpha1.CatalogEntrySpec{DisplayName: slug, Slug: slug}, &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "dave"}}, "")
	e.Name, e.Generation = "e-"+slug, 1
	return e
}

// global is a Global CatalogEntry.
func global(slug string) *v1alpha1.CatalogEntry {
	e := entry(slug)
	e.Name = "g-" + slug
	return e
}

// grantOf is the right to bind the export of an entry of shop.
func grantOf(slug string) kcp.Object {
	e := entry(slug)
	e.Annotations["kcp.io/cluster"] = shopCluster
	return tenancy.CatalogGrantOf(e, tenancy.GlobalAudience())[1]
}

// robot is a Bot of w3.
func robot(name string) *v1alpha1.Bot {
	return tenancy.NewBot(name, "w3", name, v1alpha1.RoleMember, "bob", "")
}

func person(name string) *v1alpha1.User {
	u := &v1alpha1.User{Spec: tenancy.NewUserSpec("https://issuer.example.com", name, name, name, name+"@example.com")}
	u.Name, u.Generation = name, 1
	return u
}

func loginOf(name, user string) *v1alpha1.Session {
	s := &v1alpha1.Session{Spec: v1alpha1.SessionSpec{UserRef: v1alpha1.NamedRef{Name: user}, Client: v1alpha1.SessionCLI}}
	s.Name = name
	return s
}

func index(name string) *v1alpha1.UserMembershipIndex {
	return &v1alpha1.UserMembershipIndex{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func org(name, by string) *v1alpha1.Organization {
	o := tenancy.NewOrganization(name, name, by)
	o.Generation = 1
	return o
}

func personal(name, by string) *v1alpha1.Organization {
	o := org(name, by)
	o.Spec.Personal = true
	return o
}

func own(name, cluster string) *kcptenancyv1alpha1.Workspace {
	ws := &kcptenancyv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	ws.Spec.Cluster = cluster
	return ws
}

func child(name string) *kcptenancyv1alpha1.Workspace {
	ws := own(name, "c-"+name)
	ws.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseReady
	return ws
}

func withRoles(m *v1alpha1.Membership, names ...string) *v1alpha1.Membership {
	for _, name := range names {
		namespace, name, ok := strings.Cut(name, "/")
		if !ok {
			namespace, name = "", namespace
		}
		m.Spec.Roles = append(m.Spec.Roles, v1alpha1.RoleRef{Namespace: namespace, Name: name})
	}
	return m
}

func managed[T kcp.Object](o T) T {
	o.SetLabels(map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByHub})
	return o
}

func roleBinding(name, user string) *rbacv1.ClusterRoleBinding {
	b := managed(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}})
	b.Labels[v1alpha1.UserLabel] = user
	return b
}

func namespacedBinding(name, user string) *rbacv1.RoleBinding {
	b := managed(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "dev"}})
	b.Labels[v1alpha1.UserLabel] = user
	return b
}

func apiBinding(name string) *kcpapisv1alpha2.APIBinding {
	return &kcpapisv1alpha2.APIBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// logicalCluster is one in a phase, or Ready where that is empty.
func logicalCluster(phase kcpcorev1alpha1.LogicalClusterPhaseType) *kcpcorev1alpha1.LogicalCluster {
	lc := &kcpcorev1alpha1.LogicalCluster{ObjectMeta: metav1.ObjectMeta{Name: kcpcorev1alpha1.LogicalClusterName}}
	lc.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseReady
	if phase != "" {
		lc.Status.Phase = phase
		lc.Labels = map[string]string{kcptenancyv1alpha1.WorkspacePhaseLabel: string(phase)}
	}
	return lc
}

func initializing(org string) *kcpcorev1alpha1.LogicalCluster {
	lc := logicalCluster(kcpcorev1alpha1.LogicalClusterPhaseInitializing)
	lc.Spec.Owner = &kcpcorev1alpha1.LogicalClusterOwner{Cluster: orgsCluster, Name: org}
	lc.Status.Initializers = []kcpcorev1alpha1.LogicalClusterInitializer{initializer}
	return lc
}

func (p *platform) record(controller string, key controller.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if key.Cluster != sentinel && key.Name != sentinel {
		p.enqueued[controller+" "+strings.ReplaceAll(key.String(), "c-", "")] = true
	}
}

// taken are the keys that were enqueued since the last call.
func (p *platform) taken() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var keys []string
	for key := range p.enqueued {
		keys = append(keys, key)
	}
	p.enqueued = map[string]bool{}
	return keys
}

// changed returns the object after a change of its metadata or spec, which gives it a
// new generation.
func changed[T kcp.Object](o T, change func(T)) T {
	change(o)
	o.SetGeneration(2)
	return o
}

// reported returns the object after a change of its status, which leaves the
// generation as it is.
func reported[T kcp.Object](o T, change func(T)) T {
	change(o)
	return o
}

func annotated[T kcp.Object](o T, name, value string) T {
	o.SetAnnotations(map[string]string{name: value})
	return o
}

const (
	// inAcme is everything that is derived from acme.
	inAcme = "access acme|w1, access acme|w2, membership acme|alice, membership acme|bob, membership acme|w1.bob, membershipindex users|alice, membershipindex users|bob, workspace acme|w1, workspace acme|w2"
	// ofBob is everything that is derived from bob.
	ofBob = "access acme|w1, access acme|w2, access home|w3, membership acme|bob, membership acme|w1.bob, membership home|bob, membershipindex users|bob, workspace acme|w1, workspace acme|w2, workspace home|w3"
	// rightsInAcme is the rights in the Workspaces of acme.
	rightsInAcme = "access acme|w1, access acme|w2, workspace acme|w1, workspace acme|w2"
	// rightsInW1 is the rights in w1.
	rightsInW1 = "access acme|w1, workspace acme|w1"
)

// change is one that kcp tells the hub of.
type change struct {
	name    string
	cluster string
	object  kcp.Object
	removed bool
	// want are the controllers' keys that it enqueues.
	want string
}

func TestControllers_enqueueWhatAChangeTouches(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	for _, change := range []change{
		{name: "User added", cluster: usersCluster, object: person("carol"), want: "membershipindex users|carol, user users|carol"},
		{name: "User changed", cluster: usersCluster, object: changed(person("bob"), func(u *v1alpha1.User) { u.Spec.DisplayName = "Bob" }), want: ofBob + ", user users|bob"},
		{name: "User reported", cluster: usersCluster, object: reported(person("bob"), func(u *v1alpha1.User) { u.Status.Phase = v1alpha1.PhaseReady }), want: "user users|bob"},
		{name: "User deleted softly", cluster: usersCluster, object: reported(person("bob"), func(u *v1alpha1.User) { u.Status.DeletionRequestedAt = &now }), want: ofBob + ", session users|s1, user users|bob"},
		{name: "User rejected", cluster: usersCluster, object: changed(person("bob"), func(u *v1alpha1.User) { u.Spec.Registration = v1alpha1.RegistrationRejected }), want: ofBob + ", session users|s1, user users|bob"},
		{name: "User removed", cluster: usersCluster, object: person("bob"), removed: true, want: ofBob + ", session users|s1, user users|bob"},
		{name: "Session added", cluster: usersCluster, object: loginOf("s2", "alice"), want: "session users|s2"},
		{name: "Session ended", cluster: usersCluster, object: changed(loginOf("s1", "bob"), func(s *v1alpha1.Session) { s.Spec.EndedAt = &now }), want: "session users|s1"},
		{name: "Session removed", cluster: usersCluster, object: loginOf("s1", "bob"), removed: true, want: ""},
		{name: "Index changed", cluster: usersCluster, object: changed(index("bob"), func(i *v1alpha1.UserMembershipIndex) {
			i.Spec.Entries = []v1alpha1.MembershipIndexEntry{{OrgUUID: "forged"}}
		}), want: "membershipindex users|bob"},
		{name: "Index removed", cluster: usersCluster, object: index("bob"), removed: true, want: "membershipindex users|bob"},

		{name: "Organization added", cluster: orgsCluster, object: org("new", "alice"), want: "organization orgs|new, user users|alice"},
		{name: "Organization renamed", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Spec.DisplayName = "ACME" }), want: inAcme + ", organization orgs|acme"},
		{name: "Organization opened to its members", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Spec.DefaultAccess = "view" }), want: inAcme + ", organization orgs|acme"},
		{name: "Workspace claimed in an Organization", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) {
			o.Spec.WorkspaceClaims = []v1alpha1.Claim{{UUID: "w9"}}
		}), want: "organization orgs|acme"},
		{name: "Organization reported", cluster: orgsCluster, object: reported(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Status.Phase = v1alpha1.PhaseReady }), want: "organization orgs|acme"},
		{name: "Organization deleted softly", cluster: orgsCluster, object: reported(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Status.DeletionRequestedAt = &now }), want: inAcme + ", organization orgs|acme"},
		{name: "Organization annotated", cluster: orgsCluster, object: annotated(org("acme", "alice"), v1alpha1.OperationAnnotation, v1alpha1.OperationReconcile), want: inAcme + ", organization orgs|acme"},
		{name: "Organization removed", cluster: orgsCluster, object: org("acme", "alice"), removed: true, want: "organization orgs|acme, user users|alice"},
		{name: "Personal Organization reported", cluster: orgsCluster, object: reported(personal("home", "bob"), func(o *v1alpha1.Organization) { o.Status.Phase = v1alpha1.PhaseReady }), want: "organization orgs|home, user users|bob"},
		{name: "Personal Organization removed", cluster: orgsCluster, object: personal("home", "bob"), removed: true, want: "organization orgs|home, user users|bob"},

		{name: "Own Workspace reported", cluster: orgsCluster, object: reported(own("acme", acmeCluster), func(ws *kcptenancyv1alpha1.Workspace) {
			ws.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseReady
		}), want: "organization orgs|acme"},
		{name: "Own Workspace moved", cluster: orgsCluster, object: changed(own("acme", acmeCluster), func(ws *kcptenancyv1alpha1.Workspace) { ws.Spec.Cluster = "c-other" }), want: "organization orgs|acme"},
		{name: "Own Workspace removed", cluster: orgsCluster, object: own("acme", acmeCluster), removed: true, want: "organization orgs|acme"},

		{name: "Workspace added", cluster: acmeCluster, object: child("w8"), want: "access acme|w8, organization orgs|acme, workspace acme|w8"},
		{name: "Workspace renamed", cluster: acmeCluster, object: annotated(child("w1"), v1alpha1.DisplayNameAnnotation, "One"), want: rightsInW1 + ", membership acme|w1.bob, membershipindex users|bob"},
		{name: "Workspace became Ready", cluster: acmeCluster, object: annotated(child("w1"), v1alpha1.StatusAnnotation, `{"phase":"Ready"}`), want: "customresources-sweep acme|w1, workspace acme|w1"},
		{name: "Workspace reported", cluster: acmeCluster, object: annotated(child("w1"), v1alpha1.StatusAnnotation, `{"phase":"Progressing"}`), want: "workspace acme|w1"},
		{name: "Workspace's definitions changed", cluster: acmeCluster, object: annotated(child("w1"), tenancy.CustomResourcesAnnotation, "things.example.com"), want: "workspace acme|w1"},
		{name: "Workspace deleted softly", cluster: acmeCluster, object: annotated(child("w1"), v1alpha1.DeletionRequestedAtAnnotation, now.Format(time.RFC3339)), want: rightsInW1 + ", membership acme|w1.bob, membershipindex users|bob"},
		{name: "Workspace left by kcp", cluster: acmeCluster, object: reported(child("w1"), func(ws *kcptenancyv1alpha1.Workspace) {
			ws.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseUnavailable
		}), want: rightsInW1 + ", membership acme|w1.bob, membershipindex users|bob"},
		{name: "Workspace removed", cluster: acmeCluster, object: child("w1"), removed: true, want: rightsInW1 + ", membership acme|w1.bob, membershipindex users|bob, organization orgs|acme"},
		{name: "Workspace of a personal Organization renamed", cluster: homeCluster, object: annotated(child("w3"), v1alpha1.DisplayNameAnnotation, "Three"), want: "access home|w3, bot home|b1, user users|bob, workspace home|w3"},

		{name: "Membership of an Organization added", cluster: acmeCluster, object: tenancy.NewMembership("carol", "", v1alpha1.RoleMember), want: rightsInAcme + ", membership acme|carol, membershipindex users|carol, organization orgs|acme"},
		{name: "Membership of an Organization changed", cluster: acmeCluster, object: changed(tenancy.NewMembership("bob", "", v1alpha1.RoleMember), func(m *v1alpha1.Membership) { m.Spec.Role = v1alpha1.RoleAdmin }), want: rightsInAcme + ", membership acme|bob, membershipindex users|bob, organization orgs|acme"},
		{name: "Membership of an Organization reported", cluster: acmeCluster, object: reported(tenancy.NewMembership("bob", "", v1alpha1.RoleMember), func(m *v1alpha1.Membership) { m.Status.Phase = v1alpha1.PhaseReady }), want: "membership acme|bob"},
		{name: "Membership of an Organization removed", cluster: acmeCluster, object: tenancy.NewMembership("bob", "", v1alpha1.RoleMember), removed: true, want: rightsInAcme + ", membership acme|bob, membershipindex users|bob, organization orgs|acme"},
		{name: "Membership of a Workspace added", cluster: acmeCluster, object: tenancy.NewMembership("carol", "w2", v1alpha1.RoleMember), want: "access acme|w2, membership acme|w2.carol, membershipindex users|carol, workspace acme|w2"},
		{name: "Membership of a Workspace changed", cluster: acmeCluster, object: changed(withRoles(tenancy.NewMembership("bob", "w1", v1alpha1.RoleMember), "auditor", "dev/editor"), func(m *v1alpha1.Membership) { m.Spec.Sudo = true }), want: rightsInW1 + ", membership acme|w1.bob, membershipindex users|bob"},
		{name: "Membership of a Workspace removed", cluster: acmeCluster, object: tenancy.NewMembership("bob", "w1", v1alpha1.RoleMember), removed: true, want: rightsInW1 + ", membership acme|w1.bob, membershipindex users|bob"},

		{name: "Namespace removed", cluster: "c-w1", object: managed(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}), removed: true, want: rightsInW1},
		{name: "Namespace that a Membership names added", cluster: "c-w1", object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "dev"}}, want: rightsInW1 + ", membership acme|w1.bob"},
		{name: "Namespace of a tenant added", cluster: "c-w1", object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, want: ""},
		{name: "Role that a Membership names added", cluster: "c-w1", object: &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "editor", Namespace: "dev"}}, want: rightsInW1 + ", membership acme|w1.bob"},
		{name: "Role of a tenant added", cluster: "c-w1", object: &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "editor", Namespace: "other"}}, want: ""},
		{name: "ClusterRole of a tenant added", cluster: "c-w1", object: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, want: ""},
		{name: "RoleBinding of a person added", cluster: "c-w1", object: namespacedBinding("b1", "bob"), want: rightsInW1 + ", membership acme|w1.bob"},
		{name: "RoleBinding of a tenant added", cluster: "c-w1", object: &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "own", Namespace: "dev"}}, want: ""},
		{name: "Namespace outside of Workspaces", cluster: acmeCluster, object: managed(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}), want: ""},
		{name: "ClusterRole that a Membership names removed", cluster: "c-w1", object: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "auditor"}}, removed: true, want: rightsInW1 + ", membership acme|w1.bob"},
		{name: "ClusterRole of the hub added", cluster: "c-w1", object: managed(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: tenancy.ClusterRoleMember}}), want: rightsInW1},
		{name: "ClusterRole of the hub that limits roles added", cluster: "c-w1", object: managed(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: tenancy.ClusterRoleAdmin}}), want: rightsInW1 + ", membership acme|w1.bob"},
		{name: "ClusterRoleBinding of a person removed", cluster: "c-w1", object: roleBinding("b1", "bob"), removed: true, want: rightsInW1 + ", membership acme|w1.bob"},
		{name: "ClusterRoleBinding of nobody added", cluster: "c-w1", object: managed(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "sudo"}}), want: rightsInW1},
		{name: "APIBinding of a Workspace removed", cluster: "c-w1", object: apiBinding("things"), removed: true, want: rightsInW1},
		{name: "APIBinding of an Organization removed", cluster: acmeCluster, object: orgBinding(), removed: true, want: "organization orgs|acme"},
		{name: "APIBinding of an Organization as wanted", cluster: acmeCluster, object: annotated(orgBinding(), "a", "b"), want: ""},

		{name: "Bot added", cluster: homeCluster, object: robot("b2"), want: "bot home|b2"},
		{name: "Bot changed", cluster: homeCluster, object: changed(robot("b1"), func(b *v1alpha1.Bot) { b.Spec.Role = v1alpha1.RoleAdmin }), want: "bot home|b1"},
		{name: "Bot removed", cluster: homeCluster, object: robot("b1"), removed: true, want: "bot home|b1"},
		{name: "ServiceAccount of a Bot removed", cluster: "c-w3", object: tenancy.BotAccount(robot("b1")), removed: true, want: "bot home|b1"},
		{name: "ServiceAccount of a tenant added", cluster: "c-w3", object: &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: "default"}}, want: ""},
		{name: "Secret of a Bot removed", cluster: "c-w3", object: tenancy.BotTokenSecret(robot("b1"), "t"), removed: true, want: "bot home|b1"},
		{name: "ClusterRoleBinding of a Bot added", cluster: "c-w3", object: tenancy.BotBinding(robot("b1"), "account"), want: "access home|w3, bot home|b1, workspace home|w3"},
		{name: "Bot claimed in a Workspace", cluster: homeCluster, object: annotated(child("w3"), v1alpha1.BotClaimsAnnotation, "{}"), want: "user users|bob, workspace home|w3"},

		{name: "CatalogEntry added", cluster: shopCluster, object: entry("gadgets"), want: "catalogbackend shop|e-gadgets, catalogentry shop|e-gadgets"},
		{name: "CatalogEntry reported", cluster: shopCluster, object: reported(entry("widgets"), func(e *v1alpha1.CatalogEntry) { e.Status.Phase = v1alpha1.PhaseReady }), want: "catalogentry shop|e-widgets"},
		{name: "CatalogEntry with the slug of another one added", cluster: "providers", object: global("widgets"), want: "catalogbackend providers|g-widgets, catalogentry providers|g-widgets, catalogentry shop|e-widgets"},
		{name: "CatalogEntry removed", cluster: shopCluster, object: entry("widgets"), removed: true, want: "catalogbackend shop|e-widgets, catalogentry shop|e-widgets, organization orgs|shop"},
		{name: "Grant of a CatalogEntry removed", cluster: "c-w4", object: grantOf("widgets"), removed: true, want: "access shop|w4, catalogentry shop|e-widgets, workspace shop|w4"},
		{name: "Grant of a CatalogEntry that is gone added", cluster: "c-w4", object: grantOf("gone"), want: "access shop|w4, catalogentry shop|e-gone, workspace shop|w4"},
		{name: "Organization with a catalog deleted softly", cluster: orgsCluster, object: reported(org("shop", "dave"), func(o *v1alpha1.Organization) { o.Status.DeletionRequestedAt = &now }), want: "access shop|w4, catalogbackend shop|e-widgets, catalogentry shop|e-widgets, organization orgs|shop, workspace shop|w4"},
		{name: "Workspace beside a catalog deleted softly", cluster: shopCluster, object: annotated(child("w4"), v1alpha1.DeletionRequestedAtAnnotation, now.Format(time.RFC3339)), want: "access shop|w4, catalogentry shop|e-widgets, workspace shop|w4"},
		{name: "Admin of a catalog's Organization added", cluster: shopCluster, object: tenancy.NewMembership("dave", "w4", v1alpha1.RoleAdmin), want: "access shop|w4, catalogentry shop|e-widgets, membership shop|w4.dave, membershipindex users|dave, workspace shop|w4"},
		{name: "Member who published an entry added", cluster: shopCluster, object: tenancy.NewMembership("dave", "w4", v1alpha1.RoleMember), want: "access shop|w4, catalogentry shop|e-widgets, membership shop|w4.dave, membershipindex users|dave, workspace shop|w4"},
		{name: "Member of a catalog's Organization added", cluster: shopCluster, object: tenancy.NewMembership("carol", "w4", v1alpha1.RoleMember), want: "access shop|w4, membership shop|w4.carol, membershipindex users|carol, workspace shop|w4"},
		{name: "Bot beside a catalog added", cluster: shopCluster, object: robot("b9"), want: "bot shop|b9, catalogentry shop|e-widgets"},

		{name: "Logical cluster of an Organization waits for the hub", cluster: acmeCluster, object: initializing("acme"), want: "organization orgs|acme"},
		{name: "Logical cluster of an Organization deactivated", cluster: acmeCluster, object: logicalCluster(kcpcorev1alpha1.LogicalClusterPhaseUnavailable), want: "organization orgs|acme"},
		{name: "Logical cluster of a Workspace deactivated", cluster: "c-w1", object: logicalCluster(kcpcorev1alpha1.LogicalClusterPhaseUnavailable), want: "organization orgs|acme, workspace acme|w1"},
	} {
		t.Run(change.name, func(t *testing.T) {
			t.Parallel()
			p := newPlatform(t)
			if change.removed {
				require.True(t, p.Remove(change.cluster, change.object))
			} else {
				p.Put(change.cluster, change.object)
			}
			p.flush(t, change.object)
			want := slices.DeleteFunc(strings.Split(change.want, ", "), func(key string) bool { return key == "" })
			require.ElementsMatch(t, want, p.taken())
		})
	}
}
