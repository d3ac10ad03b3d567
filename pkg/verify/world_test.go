package verify_test

import (
	"fmt"
	"testing"
	"time"

	kcpapisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/kcp-dev/sdk/apis/core"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/access"
	"github.com/faroshq/kedge-hub/pkg/reconciler/membershipindex"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/verify"
	"github.com/faroshq/kedge-hub/pkg/views"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// The world of these tests. Alice is admin of acme, with the Workspace w1, in which bob is a member and robot a
// bot with one token. Bob has a Session. There are a spare Organization, and a spare Workspace in acme.
const (
	users, orgs, providers = "users", "orgs", "providers"
	inAcme, inW1, inSpare  = "c-acme", "c-w1", "c-s1"
	token, account, secret = "t1", "uid-account", "uid-secret"
	spareHash              = "h1"
)

type world struct {
	*kcpfake.Server
	verify.Source
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Server: kcpfake.New(t)}
	tree, err := tenancy.NewTree("root:kedge")
	require.NoError(t, err)
	policy, err := tenancy.NewPolicy("hub")
	require.NoError(t, err)
	w.Source = verify.Source{
		Admin: w.Server.Clients(), Timeout: 30 * time.Second, Settle: 80 * time.Millisecond,
		Deps: reconciler.Deps{
			Clients: w.Server.Clients(),
			Clusters: bootstrap.Clusters{
				Root: "root-kedge", Users: users, Orgs: orgs, Providers: providers, WorkspacePolicy: policy,
				OrgBindings: []*kcpapisv1alpha2.APIBinding{apiBinding(tenancy.ExportTenancy)}, WorkspaceBindings: []*kcpapisv1alpha2.APIBinding{apiBinding(tenancy.ExportAccess)},
			},
			Settings: reconciler.Settings{
				Tree: tree, Clock: clock.RealClock{}, RightsClock: clock.RealClock{}, SessionIdleTimeout: time.Hour,
				Spares: reconciler.Spares{Organizations: 1, Workspaces: 1, Hash: spareHash},
			},
		},
	}
	for _, export := range []string{tenancy.ExportTenancy, tenancy.ExportAccess} {
		slice := &kcpapisv1alpha1.APIExportEndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: export}}
		slice.Status.APIExportEndpoints = []kcpapisv1alpha1.APIExportEndpoint{{URL: w.URL()}}
		w.Put(providers, slice)
	}
	w.people()
	w.places()
	w.bot()
	w.derived(t)
	return w
}

func (w *world) people() {
	for _, name := range []string{"alice", "bob"} {
		u := &v1alpha1.User{Spec: tenancy.NewUserSpec("https://issuer.example.com", name, name, name, name+"@example.com")}
		u.Name, u.Spec.Registration = name, v1alpha1.RegistrationApproved
		if name == "alice" {
			u.Spec.OrgClaims = []v1alpha1.Claim{{UUID: "acme"}}
		}
		w.Put(users, u)
	}
	w.Put(users, login("s1", "bob"))
}

func login(name, user string) *v1alpha1.Session {
	s := &v1alpha1.Session{Spec: v1alpha1.SessionSpec{UserRef: v1alpha1.NamedRef{Name: user}, Client: v1alpha1.SessionCLI}}
	s.Name = name
	s.Spec.LastUsedAt, s.Spec.ExpiresAt = metav1.Now(), metav1.NewTime(time.Now().Add(time.Hour))
	return s
}

func (w *world) places() {
	o := tenancy.NewOrganization("acme", "ACME", "alice")
	o.Spec.WorkspaceClaims = []v1alpha1.Claim{{UUID: "w1"}}
	o.Status.Phase = v1alpha1.PhaseReady
	w.Put(orgs, o)
	w.place(orgs, "acme", inAcme, "root:kedge:orgs:acme", nil)
	w.place(inAcme, "w1", inW1, "root:kedge:orgs:acme:w1", nil)
	w.place(orgs, "s0", "c-s0", "root:kedge:orgs:s0", map[string]string{v1alpha1.SpareLabel: spareHash})
	w.place(inAcme, "s1", inSpare, "root:kedge:orgs:acme:s1", map[string]string{v1alpha1.SpareLabel: spareHash})
	w.Put(inAcme, apiBinding(tenancy.ExportTenancy))
	w.content(inW1)
	w.content(inSpare)
	w.Put(inAcme, tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin))
	w.Put(inAcme, tenancy.NewMembership("bob", "w1", v1alpha1.RoleMember))
}

// place adds a Workspace that is Ready in kcp, and its logical cluster.
func (w *world) place(in, name, cluster, path string, labels map[string]string) {
	ws := &kcptenancyv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	ws.Spec.Cluster, ws.Status.Phase = cluster, kcpcorev1alpha1.LogicalClusterPhaseReady
	ws.Annotations = map[string]string{v1alpha1.StatusAnnotation: `{"phase":"Ready"}`}
	w.Put(in, ws)
	w.Put(cluster, logicalCluster(in, name, path))
}

func logicalCluster(in, name, path string) *kcpcorev1alpha1.LogicalCluster {
	lc := &kcpcorev1alpha1.LogicalCluster{ObjectMeta: metav1.ObjectMeta{
		Name: kcpcorev1alpha1.LogicalClusterName, Annotations: map[string]string{core.LogicalClusterPathAnnotationKey: path},
	}}
	lc.Spec.Owner = &kcpcorev1alpha1.LogicalClusterOwner{Cluster: in, Name: name}
	return lc
}

// content adds what every child Workspace has.
func (w *world) content(cluster string) {
	policy := w.Clusters.WorkspacePolicy
	for _, o := range []kcp.Object{apiBinding(tenancy.ExportAccess), policy.Policy.DeepCopy(), policy.Binding.DeepCopy(), tenancy.Namespace()} {
		w.Put(cluster, o)
	}
	for _, role := range tenancy.ClusterRoles(nil) {
		w.Put(cluster, role)
	}
}

func robot() *v1alpha1.Bot {
	b := tenancy.NewBot("robot", "w1", "Robot", v1alpha1.RoleMember, "alice", "")
	b.Spec.Tokens = []v1alpha1.BotToken{{ID: token, CreatedAt: metav1.Now(), ExpiresAt: metav1.NewTime(time.Now().Add(time.Hour)), SecretUID: secret}}
	b.Status.Phase, b.Status.ServiceAccountUID, b.Status.AuthorizedRole = v1alpha1.PhaseReady, account, v1alpha1.RoleMember
	return b
}

func (w *world) bot() {
	b := robot()
	w.Put(inAcme, b)
	w.Put(inW1, identified(tenancy.BotAccount(b), account))
	w.Put(inW1, identified(tenancy.BotTokenSecret(b, token), secret))
	w.Put(inW1, tenancy.BotBinding(b, account))
}

func identified[T kcp.Object](o T, uid string) T {
	o.SetUID(types.UID(uid))
	return o
}

func apiBinding(export string) *kcpapisv1alpha2.APIBinding {
	b := &kcpapisv1alpha2.APIBinding{ObjectMeta: metav1.ObjectMeta{Name: export}}
	b.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Path: "root:kedge:providers", Name: export}
	return b
}

// derived has the controllers write the indexes and the bindings of people.
func (w *world) derived(t *testing.T) {
	t.Helper()
	v, err := views.New(views.Config{
		Clusters: views.Clusters{Root: "root-kedge", Users: users, Orgs: orgs, Providers: providers},
		Clients:  w.Server.Clients(), Admin: w.Admin, Metrics: prometheus.NewRegistry(),
	})
	require.NoError(t, err)
	go informer.Watch(t.Context(), []string{w.URL()}, v.Users, v.Organizations, v.ChildWorkspaces, v.Memberships, v.Indexes, v.ClusterRoles, v.ClusterRoleBindings, v.RoleBindings)
	require.Eventually(t, func() bool {
		_, in := v.Org("acme")
		_, at := v.Workspace("acme", "w1")
		return in && at && len(v.MembershipsIn(inAcme)) == 2 && len(v.Users.Keys()) == 2 && len(v.ClusterRoles.InCluster(inW1)) == 3
	}, 30*time.Second, 5*time.Millisecond)
	d := w.Deps
	d.Views = v
	index := membershipindex.New(v, d.Objects().Indexes)
	for _, user := range []string{"alice", "bob"} {
		_, err := index(t.Context(), controller.Key{Cluster: users, Name: user})
		require.NoError(t, err)
	}
	_, err = access.NewReconciler(d).Reconcile(t.Context(), controller.Key{Cluster: inAcme, Name: "w1"})
	require.NoError(t, err)
}

// edit changes an object as somebody does past the hub.
func edit[T kcp.Object](w *world, cluster string, o T, change func(T)) {
	if !w.Server.Read(cluster, o) {
		panic(fmt.Sprintf("%s is not in %s", o.GetName(), cluster))
	}
	change(o)
	w.Put(cluster, o)
}

func named[T kcp.Object](name string) T {
	o := kcp.Empty[T]()
	o.SetName(name)
	return o
}

func inDefault[T kcp.Object](name string) T {
	o := named[T](name)
	o.SetNamespace(corev1.NamespaceDefault)
	return o
}
