package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// tenantsBindings are the bindings of a logical cluster, by resource and name, served
// as kcp does.
type tenantsBindings struct {
	mu   sync.Mutex
	held map[string]map[string]*rbacv1.ClusterRoleBinding
	// after is done after each write.
	after func()
}

func (b *tenantsBindings) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	resource, kind, name := "clusterrolebindings", "ClusterRoleBinding", path.Base(r.URL.Path)
	if strings.Contains(r.URL.Path, "/rolebindings") {
		resource, kind = "rolebindings", "RoleBinding"
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		list := rbacv1.ClusterRoleBindingList{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: kind + "List"}}
		for _, o := range b.held[resource] {
			list.Items = append(list.Items, *o)
		}
		_ = json.NewEncoder(w).Encode(list)
		return
	}
	o := b.held[resource][name]
	if r.Method == http.MethodDelete {
		delete(b.held[resource], name)
	} else {
		var patch struct {
			Metadata map[string]any   `json:"metadata"`
			Subjects []rbacv1.Subject `json:"subjects"`
		}
		_ = json.NewDecoder(r.Body).Decode(&patch)
		o.Subjects = patch.Subjects
		if _, ok := patch.Metadata["finalizers"]; ok {
			o.Finalizers = nil
		}
		if o.DeletionTimestamp != nil && len(o.Finalizers) == 0 {
			delete(b.held[resource], name)
		}
	}
	answer := *o
	answer.APIVersion, answer.Kind = "rbac.authorization.k8s.io/v1", kind
	_ = json.NewEncoder(w).Encode(answer)
	b.after()
}

// served returns what reconcilers write with, and the bindings that they find.
func served(t *testing.T) (*writes, *tenantsBindings) {
	b := &tenantsBindings{held: map[string]map[string]*rbacv1.ClusterRoleBinding{"clusterrolebindings": {}, "rolebindings": {}}, after: func() {}}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	clients, err := kcp.NewClients(&rest.Config{Host: server.URL}, prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(clients.Close)
	return &writes{clients: clients}, b
}

func (b *tenantsBindings) add(resource, name string, people ...string) *rbacv1.ClusterRoleBinding {
	o := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u"}}
	for _, p := range people {
		o.Subjects = append(o.Subjects, rbacv1.Subject{Kind: rbacv1.UserKind, Name: p})
	}
	if resource == "rolebindings" {
		o.Namespace = "default"
	}
	b.held[resource][name] = o
	return o
}

// A binding that is being deleted may be copied with whom it named before.
func TestWhatBecomesOfTenantsBindingsOfWhoIsUnbound(t *testing.T) {
	t.Parallel()
	w, b := served(t)
	const cluster, namespaced, gone = "clusterrolebindings", "rolebindings", "gone"
	held := []string{"example.com/held"}
	wanted := b.add(cluster, "wanted", "bob").DeepCopy()
	wanted.Labels = map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByHub}
	for _, tc := range []struct {
		resource, name string
		people         []string
		finalizers     []string
		deleting       bool
		hubs           bool
		left           string
	}{
		{cluster, "alone", []string{"bob"}, nil, false, false, gone},
		{cluster, "with-another", []string{"bob", "dave"}, nil, false, false, "dave"},
		{cluster, "held", []string{"bob"}, held, false, false, "held by "},
		{cluster, "held-with-another", []string{"bob", "dave"}, held, false, false, "held by dave"},
		{cluster, "held-anothers", []string{"dave"}, held, false, false, "held by dave"},
		{cluster, "deleting", []string{"bob"}, held, true, false, gone},
		{cluster, "deleting-with-another", []string{"bob", "dave"}, held, true, false, gone},
		{cluster, "deleting-and-named-no-more", []string{"dave"}, held, true, false, gone},
		{cluster, "deleting-with-the-hubs-label", []string{"bob"}, held, true, true, gone},
		{cluster, "wanted", []string{"bob"}, nil, false, true, "bob"},
		{cluster, "wanted", []string{"bob"}, nil, false, false, gone},
		{cluster, "wanted", []string{"dave", "bob"}, nil, false, true, "dave"},
		{cluster, "wanted-no-more", []string{"bob"}, nil, false, true, gone},
		{cluster, "wanted-no-more-of-another", []string{"dave"}, nil, false, true, "dave"},
		{namespaced, "alone", []string{"bob"}, nil, false, false, gone},
		{namespaced, "deleting", []string{"bob", "dave"}, held, true, true, "held by dave"},
		{namespaced, "deleting-anothers", []string{"dave"}, held, true, false, "held by dave"},
	} {
		o := b.add(tc.resource, tc.name, tc.people...)
		o.Finalizers = tc.finalizers
		if tc.deleting {
			o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		if tc.hubs {
			o.Labels = map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByHub}
		}
		require.NoError(t, w.unbind(t.Context(), "c", "bob", []*rbacv1.ClusterRoleBinding{wanted}), tc.name)
		left := gone
		if o := b.held[tc.resource][tc.name]; o != nil {
			left = ""
			if len(o.Finalizers) > 0 {
				left = "held by "
			}
			for _, s := range o.Subjects {
				left += s.Name
			}
		}
		require.Equal(t, tc.left, left, "%s %s", tc.resource, tc.name)
		clear(b.held[tc.resource])
	}
}

func TestWhoBindsSomebodyAnewAllTheTimeDoesNotKeepTheHub(t *testing.T) {
	t.Parallel()
	w, b := served(t)
	more := 0
	b.after = func() {
		more++
		o := b.add("clusterrolebindings", strings.Repeat("x", more), "bob")
		o.Finalizers, o.DeletionTimestamp = []string{"example.com/held"}, &metav1.Time{Time: time.Unix(1, 0)}
	}
	b.add("clusterrolebindings", "first", "bob")
	require.ErrorIs(t, w.unbind(t.Context(), "c", "bob", nil), controller.ErrRetry)
	b.after = func() {}
	require.NoError(t, w.unbind(t.Context(), "c", "bob", nil))
	require.Empty(t, b.held["clusterrolebindings"])
}
