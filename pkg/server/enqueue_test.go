package server

import (
	"context"
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
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/access"
	"github.com/faroshq/kedge-hub/pkg/reconciler/workspace"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// The platform of these tests. Alice is admin of acme, which has the Workspaces w1 and
// w2; bob is a member of acme and of w1, and has a personal Organization. The Organization
// shop has the Workspace w4 and a CatalogEntry. Erin is admin and frank a member of old, which has no creator.
// Gail is in guild by a group.
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
		Settings: settings(config, config.Clock, "", func() bool { return false }), Metrics: metrics, Audit: audit.New(t.Context(), nil), OnEnqueue: p.record,
	}
	controllers(d, access.NewReconciler(d), workspace.TemplateOf(d))

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	v := p.v
	running.Go(func() {
		informer.Watch(ctx, []string{p.URL()}, v.Users, v.Sessions, v.Organizations, v.ChildWorkspaces, v.Memberships, v.Indexes, v.OrgBindings,
			v.Namespaces, v.ClusterRoles, v.ClusterRoleBindings, v.Roles, v.RoleBindings, v.Bindings, v.Bots, v.Invitations, v.AccessRequests, v.ServiceAccounts, v.BotSecrets, v.CatalogEntries, v.Initializing, v.Inactive)
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
		{orgsCluster, org("old", "")}, {orgsCluster, own("old", "c-old")},
		{usersCluster, inGroups(0, "kedge:dev")}, {"c-guild", byGroup()},
		{orgsCluster, mapping("guild")}, {orgsCluster, own("guild", "c-guild")},
		{orgsCluster, spareOrg("ready")},
		{"c-old", tenancy.NewMembership("erin", "", v1alpha1.RoleAdmin)}, {"c-old", tenancy.NewMembership("frank", "", v1alpha1.RoleMember)},
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

// heardAt is when a credential said the groups of gail.
func heardAt() time.Time { return time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC) }

// inGroups is gail with the groups that a credential said some time after heardAt.
func inGroups(after time.Duration, groups ...string) *v1alpha1.User {
	u := person("gail")
	at := heardAt().Add(after)
	u.Spec.Groups = tenancy.HeardGroups{Groups: groups, IssuedAt: at}.Learn(nil, at, 24*time.Hour)
	return u
}

// mapping is an Organization that maps two groups.
func mapping(name string) *v1alpha1.Organization {
	o := org(name, "dave")
	o.Spec.Groups = []v1alpha1.GroupMapping{
		{ID: "g1", Group: "kedge:dev", Role: v1alpha1.RoleMember}, {ID: "g2", Group: "kedge:ops", Role: v1alpha1.RoleMember},
	}
	return o
}

// byGroup is the Membership of gail by kedge:dev.
func byGroup() *v1alpha1.Membership {
	m := tenancy.NewMembership("gail", "", "")
	end := metav1.NewTime(heardAt().Add(24 * time.Hour))
	m.Spec.Extra = []v1alpha1.MembershipExtra{{Source: tenancy.GroupSource("g1"), Role: v1alpha1.RoleMember, ExpiresAt: &end}}
	return m
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

// spareOrg is the workspace of an Organization that nobody has created yet.
func spareOrg(name string) *kcptenancyv1alpha1.Workspace {
	ws := child(name)
	ws.Labels = map[string]string{v1alpha1.SpareLabel: "hash"}
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
