package catalogentry

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

const (
	orgUUID    = "231a151a-434e-4623-ad6e-69406abb9387"
	wsUUID     = "331a151a-434e-4623-ad6e-69406abb9387"
	providers  = "providers"
	provider   = "root:kedge:providers:acme"
	ownPath    = "root:kedge:orgs:" + orgUUID + ":" + wsUUID
	exportName = "widgets.example.org"
)

// world is a kcp with one entry of an Organization, for the export of a provider. Alice is the publisher and
// the only admin. Her Organization is in the logical cluster org1, and its Workspace in ws1.
type world struct {
	*kcptest.KCP
	t       *testing.T
	exports objects.Repository[*kcpapisv1alpha2.APIExport]
	key     controller.Key
	// entry is the entry in kcp, or nil.
	entry *v1alpha1.CatalogEntry
	// probes are those of the leader, and asked is the number of those that the reconciler asked for. silence is
	// why the server does not answer, or nil.
	probes  *probes
	asked   int
	silence error
}

func person(name string) *v1alpha1.User {
	u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
	u.Spec.RBACIdentity = "oidc:" + name
	return u
}

func apiExport() *kcpapisv1alpha2.APIExport {
	x := &kcpapisv1alpha2.APIExport{}
	x.Name, x.Annotations = exportName, map[string]string{"kcp.io/cluster": "provider1"}
	x.Status.IdentityHash = "hash"
	x.Spec.Resources = []kcpapisv1alpha2.ResourceSchema{{Group: "example.org", Name: "widgets"}}
	x.Spec.PermissionClaims = []kcpapisv1alpha2.PermissionClaim{
		{GroupResource: kcpapisv1alpha2.GroupResource{Resource: "configmaps"}, Verbs: []string{"get"}},
		{GroupResource: kcpapisv1alpha2.GroupResource{Resource: "secrets"}, Verbs: []string{"get"}},
	}
	return x
}

// providerBinds is the binding that the provider makes for Alice, to the role of bindRole.
func providerBinds() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "of-binders"}, Subjects: []rbacv1.Subject{subject(rbacv1.UserKind, "oidc:alice")},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "binders"},
	}
}

func bindRole(names ...string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "binders"}, Rules: []rbacv1.PolicyRule{{
		Verbs: []string{"bind"}, APIGroups: []string{"apis.kcp.io"}, Resources: []string{"apiexports"}, ResourceNames: names,
	}}}
}

func subject(kind, name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{KCP: kcptest.New(t), t: t}
	w.exports = objects.Of("apiexports", w.Clients().APIExports, nil)
	w.PutOrg(tenancy.NewOrganization(orgUUID, "Acme", "alice"), "org1")
	w.PutWorkspace("org1", wsUUID, "ws1")
	w.admin("alice")
	w.Put("ws1", apiExport())
	w.provide()
	w.publish("org1", tenancy.NewCatalogEntry(orgUUID, v1alpha1.CatalogEntrySpec{
		DisplayName: "Widgets", Slug: "widgets", APIExport: v1alpha1.APIExportRef{Path: provider, Name: exportName},
		Backend: &v1alpha1.CatalogBackend{URL: "https://widgets.example.org"},
	}, person("alice"), ""))
	w.elect()
	w.probe(nil)
	return w
}

// publish has kcp keep the entry in a logical cluster.
func (w *world) publish(cluster string, e *v1alpha1.CatalogEntry) {
	w.key = controller.Key{Cluster: cluster, Name: e.Name}
	w.Put(cluster, e)
	w.load()
}

// globally makes a Global entry of the entry.
func (w *world) globally() {
	w.Remove(w.key.Cluster, w.entry)
	e := w.entry.DeepCopy()
	e.Annotations["kcp.io/cluster"] = providers
	w.publish(providers, e)
}

func (w *world) load() { w.entry, _ = w.CatalogEntry(w.key.Cluster, w.key.Name) }

// provide has the provider make the export, and let Alice bind it.
func (w *world) provide() {
	w.FailBefore(nil)
	w.Put(provider, apiExport())
	w.Put(provider, bindRole(exportName))
	w.Put(provider, providerBinds())
}

// vanish has kcp remove the workspace of the provider with all that is in it.
func (w *world) vanish() {
	w.Remove(provider, apiExport())
	for _, role := range w.Caches.ClusterRoles.InCluster(provider) {
		w.Remove(provider, role)
	}
	for _, b := range w.Caches.ClusterRoleBindings.InCluster(provider) {
		w.Remove(provider, b)
	}
	w.FailBefore(func(r kcpfake.Request) error {
		if r.Cluster == provider {
			return apierrors.NewNotFound(kcptenancyv1alpha1.Resource("workspaces"), provider)
		}
		return nil
	})
}

// deactivate makes the logical cluster of the provider inactive, or active again.
func (w *world) deactivate(inactive bool) {
	lc := &kcpcorev1alpha1.LogicalCluster{ObjectMeta: metav1.ObjectMeta{Name: kcpcorev1alpha1.LogicalClusterName}}
	lc.Annotations = map[string]string{kcpcorev1alpha1.LogicalClusterInactiveAnnotationKey: strconv.FormatBool(inactive)}
	w.Put(provider, lc)
}

// elect makes another hub the leader, which has probed nothing yet.
func (w *world) elect() {
	w.probes = &probes{
		get: w.CatalogEntry, probe: func(context.Context, string) error { return w.silence }, clock: w.Clock,
		known: map[controller.Key]string{}, places: map[string]*load{},
	}
}

// probe probes the server.
func (w *world) probe(silence error) {
	w.t.Helper()
	w.silence = silence
	_, err := w.probes.reconcile(w.t.Context(), w.key)
	require.NoError(w.t, err)
}

// admin adds an admin of the Organization.
func (w *world) admin(name string) {
	w.Put(kcptest.Users, person(name))
	w.Put("org1", tenancy.NewMembership(name, "", v1alpha1.RoleAdmin))
}

// alice gives Alice these Memberships and no other ones.
func (w *world) alice(memberships ...*v1alpha1.Membership) {
	for _, m := range w.MembershipsOf("alice") {
		w.Remove("org1", m)
	}
	for _, m := range memberships {
		w.Put("org1", m)
	}
}

// user, organization, workspace, export, binding and change edit what kcp has.
func (w *world) user(edit func(*v1alpha1.User)) {
	kcptest.Change(w.t, w.KCP, kcptest.Users, person("alice"), edit)
}

func (w *world) organization(edit func(*v1alpha1.Organization)) {
	kcptest.Change(w.t, w.KCP, kcptest.Orgs, tenancy.NewOrganization(orgUUID, "", ""), edit)
}

func (w *world) workspace(edit func(*kcptenancyv1alpha1.Workspace)) {
	kcptest.Change(w.t, w.KCP, "org1", &kcptenancyv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: wsUUID}}, edit)
}

func (w *world) export(edit func(*kcpapisv1alpha2.APIExport)) {
	kcptest.Change(w.t, w.KCP, provider, apiExport(), edit)
}

func (w *world) binding(edit func(*rbacv1.ClusterRoleBinding)) {
	kcptest.Change(w.t, w.KCP, provider, providerBinds(), edit)
}

func (w *world) change(edit func(*v1alpha1.CatalogEntry)) {
	kcptest.Change(w.t, w.KCP, w.key.Cluster, w.entry.DeepCopy(), edit)
	w.load()
}

// at lets the entry name the export in the workspace of a path.
func (w *world) at(path string) {
	w.change(func(e *v1alpha1.CatalogEntry) { e.Spec.APIExport.Path = path })
}

func (w *world) deleted() {
	w.Delete(w.t, w.key.Cluster, w.entry.DeepCopy())
	w.load()
}

// CatalogEntry and the methods that follow are those of the views.
func (w *world) CatalogEntry(cluster, name string) (*v1alpha1.CatalogEntry, bool) {
	return w.Caches.CatalogEntries.Get(cluster, name)
}

// CatalogEntriesOf returns the Global entries.
func (w *world) CatalogEntriesOf(string) []*v1alpha1.CatalogEntry {
	return w.Caches.CatalogEntries.InCluster(providers)
}

// CatalogClash is that of the one Organization and the Global entries.
func (w *world) CatalogClash(org string, e *v1alpha1.CatalogEntry) (other *v1alpha1.CatalogEntry, in string, ok bool) {
	var all []tenancy.ScopedEntry
	for _, o := range w.Caches.CatalogEntries.InCluster("*") {
		all = append(all, tenancy.ScopedEntry{Entry: o, Global: kcp.ClusterOf(o) == providers})
	}
	first, ok := tenancy.CatalogClash(tenancy.ScopedEntry{Entry: e, Global: org == ""}, all)
	if ok && !first.Global {
		in = orgUUID
	}
	return first.Entry, in, ok
}

func (w *world) reconciler() controller.Func {
	return New(Config{
		Objects: w.Stored, Exports: w.exports, Tree: w.Tree, Clock: w.Clock, ProvidersCluster: providers, Views: w,
		Probes: w.probes, Probe: func(controller.Key) { w.asked++ },
	})
}

// pass is one pass, and converge runs as many as change something.
func (w *world) pass() error {
	_, err := w.reconciler()(w.t.Context(), w.key)
	w.load()
	return err
}

func (w *world) converge() (time.Duration, error) {
	w.t.Helper()
	work := w.reconciler()
	after, err := w.Converge(w.t, func() (controller.Result, error) { return work(w.t.Context(), w.key) })
	w.load()
	return after, err
}

func (w *world) converged() time.Duration {
	w.t.Helper()
	after, err := w.converge()
	require.NoError(w.t, err)
	return after
}

func (w *world) condition(of string) metav1.Condition {
	if c := meta.FindStatusCondition(w.entry.Status.Conditions, of); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// grantsIn are the objects of grants in all workspaces.
func grantsIn[T kcp.Object](cache objects.Cache[T]) []T {
	return slices.DeleteFunc(cache.InCluster("*"), func(o T) bool {
		_, _, ok := tenancy.ParseCatalogGrantName(o.GetName())
		return !ok
	})
}

func (w *world) roles() []*rbacv1.ClusterRole { return grantsIn(w.Caches.ClusterRoles) }

func (w *world) bindings() []*rbacv1.ClusterRoleBinding {
	return grantsIn(w.Caches.ClusterRoleBindings)
}

// bound are the subjects of all grants.
func (w *world) bound() []string {
	names := []string{}
	for _, b := range w.bindings() {
		for _, s := range b.Subjects {
			names = append(names, s.Name)
		}
	}
	return names
}

// lookup is the request for the export of the provider.
const lookup = "get apiexports/" + exportName + " in " + provider

// requests are those that the reconciler has made.
func (w *world) requests() (made []string) {
	for _, r := range w.Requests() {
		made = append(made, r.String())
	}
	return made
}

// reads are the requests of a pass with the export of the provider that has nothing to write.
func (w *world) reads() []string {
	grant := grantName(w.entry) + " in " + provider
	return []string{
		lookup, "list clusterrolebindings in " + provider, "get clusterroles/binders in " + provider,
		"get clusterroles/" + grant, "get clusterrolebindings/" + grant,
	}
}
