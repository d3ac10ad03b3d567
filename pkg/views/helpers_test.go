package views_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

const (
	usersCluster = "userscluster"
	orgsCluster  = "orgscluster"
)

// numbered returns the i-th UUID of a kind.
func numbered(kind, i int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", kind, i) }

func orgUUID(i int) string       { return numbered(1, i) }
func workspaceUUID(i int) string { return numbered(2, i) }
func orgCluster(i int) string    { return fmt.Sprintf("org%013d", i) }
func personName(i int) string    { return fmt.Sprintf("person-%06d", i) }

var epoch = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

// from returns an object as it comes from kcp.
func from[T kcp.Object](cluster string, uid int, o T) T {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["kcp.io/cluster"] = cluster
	o.SetAnnotations(annotations)
	o.SetUID(types.UID(numbered(9, uid)))
	o.SetResourceVersion(fmt.Sprint(100 + uid))
	o.SetGeneration(1)
	o.SetCreationTimestamp(epoch)
	return o
}

// ready returns a status with conditions. The transition times depend on i.
func ready(i int, types ...string) v1alpha1.CommonStatus {
	s := v1alpha1.CommonStatus{ObservedGeneration: 1, Phase: v1alpha1.PhaseReady}
	for _, t := range types {
		s.Conditions = append(s.Conditions, metav1.Condition{
			Type: t, Status: metav1.ConditionTrue, ObservedGeneration: 1, Reason: v1alpha1.ReasonAsDesired,
			LastTransitionTime: metav1.NewTime(epoch.Add(time.Duration(i) * time.Second)),
		})
	}
	return s
}

// world is a platform with one Workspace in each Org. Each person is an admin of as many
// Orgs as rows says.
type world struct{ orgs, people, rows int }

func (w world) org(i int) *v1alpha1.Organization {
	return from(orgsCluster, i, tenancy.NewOrganization(orgUUID(i), fmt.Sprint("Org ", i), personName(i%w.people)))
}

// workspace returns the workspace of the i-th Org, or the child Workspace in it.
func (w world) workspace(i int, own bool) *kcptenancyv1alpha1.Workspace {
	ws := &kcptenancyv1alpha1.Workspace{}
	ws.Name, ws.Spec.Cluster = orgUUID(i), orgCluster(i)
	if own {
		return from(orgsCluster, i, ws)
	}
	ws.Name, ws.Spec.Cluster = workspaceUUID(i), fmt.Sprintf("ws%013d", i)
	ws.Annotations = map[string]string{v1alpha1.DisplayNameAnnotation: fmt.Sprint("Workspace ", i)}
	return from(orgCluster(i), i, ws)
}

func (w world) user(i int) *v1alpha1.User {
	u := &v1alpha1.User{Spec: tenancy.NewUserSpec("https://issuer.example.com", personName(i), personName(i), fmt.Sprint("Person ", i), personName(i)+"@example.com")}
	u.Name = personName(i)
	u.Labels = map[string]string{v1alpha1.IdentityLabel: tenancy.IdentityHash(u.Spec.Issuer, u.Spec.Subject)}
	u.Finalizers = []string{v1alpha1.CascadeFinalizer}
	u.Status.CommonStatus = ready(i, "Active", "ClaimsHandled", "PersonalOrg", "DefaultWorkspace", "Ready")
	return from(usersCluster, i, u)
}

// orgOf returns the k-th Org of a person.
func (w world) orgOf(person, k int) int { return (person + k) % w.orgs }

func (w world) index(i int) *v1alpha1.UserMembershipIndex {
	x := &v1alpha1.UserMembershipIndex{}
	x.Name = personName(i)
	var places []tenancy.IndexedMembership
	for k := range w.rows {
		o := w.org(w.orgOf(i, k))
		places = append(places, tenancy.IndexedMembership{Org: tenancy.Org{Organization: o}, FirstAdmin: o.Annotations[v1alpha1.CreatedByAnnotation], Role: v1alpha1.RoleAdmin})
	}
	x.Spec.Entries = tenancy.IndexEntries(places)
	return from(usersCluster, i, x)
}

func (w world) membership(person, k int) *v1alpha1.Membership {
	m := tenancy.NewMembership(personName(person), "", v1alpha1.RoleAdmin)
	m.Status.CommonStatus = ready(person*w.rows+k, "UserFound", "RolesApplied", "Ready")
	return from(orgCluster(w.orgOf(person, k)), person*w.rows+k, m)
}

// objects returns all objects of the world by resource.
func (w world) objects() map[string][]kcp.Object {
	all := map[string][]kcp.Object{}
	add := func(resource string, o kcp.Object) { all[resource] = append(all[resource], o) }
	for i := range w.orgs {
		add("organizations", w.org(i))
		add("workspaces", w.workspace(i, true))
		add("workspaces", w.workspace(i, false))
	}
	for i := range w.people {
		add("users", w.user(i))
		add("usermembershipindexes", w.index(i))
		for k := range w.rows {
			add("memberships", w.membership(i, k))
		}
	}
	return all
}

// watching returns views with informers that have listed these objects from a server:
// first the Organizations and Workspaces, then the objects of people. The func between
// runs between the two.
func watching(t testing.TB, objects map[string][]kcp.Object, between func()) *views.Views {
	t.Helper()
	registry := prometheus.NewRegistry()
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "true" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		encode := json.NewEncoder(w)
		_, _ = fmt.Fprint(w, `{"metadata":{"resourceVersion":"1"},"items":[`)
		for i, o := range objects[path.Base(r.URL.Path)] {
			if i > 0 {
				_, _ = fmt.Fprint(w, ",")
			}
			_ = encode.Encode(o)
		}
		_, _ = fmt.Fprint(w, `]}`)
	}))
	// Stopping the server interrupts handshakes, which it would log.
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	clients, err := kcp.NewClients(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}}, registry)
	require.NoError(t, err)
	v, err := views.New(views.Config{
		Clusters: views.Clusters{Users: usersCluster, Orgs: orgsCluster, Hub: []string{usersCluster, orgsCluster}},
		Clients:  clients, Admin: clients, Metrics: registry,
	})
	require.NoError(t, err)
	ended := make(chan struct{}, 2)
	t.Cleanup(func() {
		cancel()
		<-ended
		<-ended
		server.CloseClientConnections()
		server.Close()
	})
	hold := func(view, resource string) {
		n := 0
		for _, o := range objects[resource] {
			// The metric does not count the workspaces of Organizations.
			if resource != "workspaces" || kcp.ClusterOf(o) != orgsCluster {
				n++
			}
		}
		require.Eventually(t, func() bool { return size(t, registry, view) == n }, time.Minute, time.Millisecond, view)
	}
	go func() {
		informer.Watch(ctx, []string{server.URL}, v.Organizations, v.ChildWorkspaces)
		ended <- struct{}{}
	}()
	hold("organizations", "organizations")
	hold("workspaces", "workspaces")
	if between != nil {
		between()
	}
	go func() {
		informer.Watch(ctx, []string{server.URL}, v.Users, v.Indexes, v.Memberships)
		ended <- struct{}{}
	}()
	hold("users", "users")
	hold("indexes", "usermembershipindexes")
	hold("memberships", "memberships")
	return v
}

// size returns the number of objects in a view, from its metric.
func size(t testing.TB, registry *prometheus.Registry, view string) int {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "kedge_views_objects" && m.GetLabel()[0].GetValue() == view {
				return int(m.GetGauge().GetValue())
			}
		}
	}
	require.Fail(t, "there is no such view", view)
	return 0
}
