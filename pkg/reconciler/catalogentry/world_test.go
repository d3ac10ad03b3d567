package catalogentry_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/catalogentry"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	orgUUID    = "231a151a-434e-4623-ad6e-69406abb9387"
	wsUUID     = "331a151a-434e-4623-ad6e-69406abb9387"
	provider   = "root:kedge:providers:acme"
	ownPath    = "root:kedge:orgs:" + orgUUID + ":" + wsUUID
	exportName = "widgets.example.org"
)

// world is a fake kcp with one entry.
type world struct {
	kcptest.Calls
	clock   *clocktesting.FakePassiveClock
	key     controller.Key
	entry   *v1alpha1.CatalogEntry
	org     *tenancy.Org
	inGrace bool
	unknown bool
	// workspace is the child Workspace of ownPath; known says whether the cache has it.
	workspace tenancy.Workspace
	known     bool
	other     *v1alpha1.CatalogEntry
	otherIn   string
	audience  []rbacv1.Subject

	export  *kcpapisv1alpha2.APIExport
	absence catalogentry.Absence
	// roles and bindings are found by "at|name".
	roles    map[string]*rbacv1.ClusterRole
	bindings map[string]*rbacv1.ClusterRoleBinding
	granted  []string
	refused  error

	// user is alice, and rows are those of her index. own are the bindings in the workspace of the
	// export that are not the hub's, with ownRoles. everybody is true if a Global entry has the export.
	user      *v1alpha1.User
	rows      []v1alpha1.MembershipIndexEntry
	own       []*rbacv1.ClusterRoleBinding
	ownRoles  map[string]*rbacv1.ClusterRole
	everybody bool

	problem string
	probed  bool
}

func alice() *v1alpha1.User {
	u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "alice", UID: "uid-alice"}}
	u.Spec.RBACIdentity = "oidc:alice"
	return u
}

// providerBinds is a binding that a provider makes.
func providerBinds(role string, subject rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "of-" + role}, Subjects: []rbacv1.Subject{subject}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
}

func subject(kind, name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

func bindRole(names ...string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{{Verbs: []string{"bind"}, APIGroups: []string{"apis.kcp.io"}, Resources: []string{"apiexports"}, ResourceNames: names}}}
}

// newWorld has an entry of an Organization, for an export of a provider.
func newWorld() *world {
	spec := v1alpha1.CatalogEntrySpec{
		DisplayName: "Widgets", Slug: "widgets", APIExport: v1alpha1.APIExportRef{Path: provider, Name: exportName},
		Backend: &v1alpha1.CatalogBackend{URL: "https://widgets.example.org"},
	}
	w := &world{
		clock: clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0)),
		entry: tenancy.NewCatalogEntry(orgUUID, spec, alice(), ""),
		org:   &tenancy.Org{Organization: tenancy.NewOrganization(orgUUID, "Acme", "alice"), ClusterID: "org1"},
		known: true, workspace: tenancy.Workspace{UUID: wsUUID, OrgUUID: orgUUID, ClusterID: "ws1", KCPReady: true},
		audience: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"}},
		roles:    map[string]*rbacv1.ClusterRole{}, bindings: map[string]*rbacv1.ClusterRoleBinding{},
		probed: true,
		user:   alice(), rows: []v1alpha1.MembershipIndexEntry{{OrgUUID: orgUUID, Role: v1alpha1.RoleAdmin}},
		own:      []*rbacv1.ClusterRoleBinding{providerBinds("binders", subject(rbacv1.UserKind, "oidc:alice"))},
		ownRoles: map[string]*rbacv1.ClusterRole{"binders": bindRole(exportName)},
	}
	w.entry.UID, w.entry.ResourceVersion, w.entry.Generation = "uid", "1", 1
	w.entry.Annotations["kcp.io/cluster"] = "org1"
	w.key = controller.Key{Cluster: "org1", Name: w.entry.Name}
	w.export = &kcpapisv1alpha2.APIExport{}
	w.export.Annotations = map[string]string{"kcp.io/cluster": "provider1"}
	w.export.Status.IdentityHash = "hash"
	w.export.Spec.Resources = []kcpapisv1alpha2.ResourceSchema{{Group: "example.org", Name: "widgets"}}
	w.export.Spec.PermissionClaims = []kcpapisv1alpha2.PermissionClaim{
		{GroupResource: kcpapisv1alpha2.GroupResource{Resource: "configmaps"}, Verbs: []string{"get"}},
		{GroupResource: kcpapisv1alpha2.GroupResource{Resource: "secrets"}, Verbs: []string{"get"}},
	}
	return w
}

func (w *world) config(t *testing.T) catalogentry.Config {
	t.Helper()
	tree, err := tenancy.NewTree("root:kedge")
	require.NoError(t, err)
	return catalogentry.Config{
		Tree: tree, Clock: w.clock,
		Entries: catalogentry.Entries{
			Get: func(key controller.Key) (*v1alpha1.CatalogEntry, bool) {
				return w.entry, w.entry != nil && key == w.key
			},
			Patch: func(_ context.Context, _ controller.Key, patch []byte, subresource string) error {
				return w.Call("patch "+subresource, func() {
					changed := kcptest.Patched(t, w.entry, patch)
					if subresource == "" {
						require.True(t, equality.Semantic.DeepEqual(w.entry.Status, changed.Status), "metadata or spec, and status, never change in one")
					}
					if w.entry = changed; kcptest.Gone(changed) {
						w.entry = nil
					}
				})
			},
		},
		Cache: catalogentry.Cache{
			Organization: func(string) (*tenancy.Org, bool, bool) { return w.org, w.inGrace, !w.unknown },
			Workspace:    func(_, ws string) (tenancy.Workspace, bool) { return w.workspace, w.known && ws == wsUUID },
			Clash: func(string, *v1alpha1.CatalogEntry) (*v1alpha1.CatalogEntry, string, bool) {
				return w.other, w.otherIn, w.other != nil
			},
			Audience: func(tenancy.Org) []rbacv1.Subject { return slices.Clone(w.audience) },
			Granted:  func(controller.Key) []string { return w.granted },
		},
		FindExport: func(_ context.Context, _, name string) (x *kcpapisv1alpha2.APIExport, a catalogentry.Absence, err error) {
			require.Equal(t, exportName, name)
			err = w.Call("find export", func() {
				if a = w.absence; a == "" {
					x = w.export
				}
			})
			return x, a, err
		},
		Rights: w.rights(), Grants: w.grants(),
		Probes: catalogentry.Probes{
			Last:  func(controller.Key) (string, bool) { return w.problem, w.probed },
			Begin: func(controller.Key) { w.Did = append(w.Did, "probe") },
		},
	}
}

func (w *world) rights() catalogentry.Rights {
	return catalogentry.Rights{
		User: func(name, cluster string) (*v1alpha1.User, []v1alpha1.MembershipIndexEntry) {
			if name != "alice" || cluster != "org1" {
				return nil, nil
			}
			return w.user, w.rows
		},
		Global: func(v1alpha1.APIExportRef) bool { return w.everybody },
		Bindings: func(_ context.Context, at string, f func(*rbacv1.ClusterRoleBinding)) error {
			for _, b := range w.own {
				f(b)
			}
			// A grant of the hub without its label is still one of the hub.
			for key, b := range w.bindings {
				if strings.HasPrefix(key, at+"|") {
					f(b)
				}
			}
			return w.refused
		},
		Role: func(_ context.Context, at, name string) (*rbacv1.ClusterRole, error) {
			if role := w.roles[at+"|"+name]; role != nil {
				return role, nil
			}
			return w.ownRoles[name], nil
		},
	}
}

func (w *world) grants() catalogentry.Grants {
	return catalogentry.Grants{
		Find: w.grant, Read: w.grant,
		Keep: func(ctx context.Context, at string, held, wanted []tenancy.RBAC) error {
			changes := tenancy.CompareRBAC(held, wanted, controller.Forced(ctx))
			if len(changes.Remove) > 0 {
				return w.Call("remove at "+at, func() {
					for _, o := range changes.Remove {
						delete(w.roles, at+"|"+o.GetName())
						delete(w.bindings, at+"|"+o.GetName())
					}
				})
			}
			for _, o := range changes.Write {
				var err error
				switch o := o.(type) {
				case *rbacv1.ClusterRole:
					err = w.Call("role at "+at, func() { w.roles[at+"|"+o.Name] = o })
				case *rbacv1.ClusterRoleBinding:
					err = w.Call("bind at "+at, func() { w.bindings[at+"|"+o.Name] = o })
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
		List: func(_ context.Context, at string) (names []string, err error) {
			for key := range w.bindings {
				if in, name, _ := strings.Cut(key, "|"); in == at {
					names = append(names, name)
				}
			}
			return names, w.refused
		},
	}
}

func (w *world) grant(_ context.Context, at, name string) (held []tenancy.RBAC, err error) {
	if role := w.roles[at+"|"+name]; role != nil {
		held = append(held, role)
	}
	if binding := w.bindings[at+"|"+name]; binding != nil {
		held = append(held, binding)
	}
	return held, w.refused
}

func (w *world) converge(t *testing.T) (time.Duration, error) {
	t.Helper()
	reconcile := catalogentry.New(w.config(t))
	return w.Converge(t, func() (controller.Result, error) { return reconcile(t.Context(), w.key) }, func() any { return w.entry })
}

func (w *world) converged(t *testing.T) time.Duration {
	t.Helper()
	after, err := w.converge(t)
	require.NoError(t, err)
	return after
}

func (w *world) condition(of string) metav1.Condition {
	if c := meta.FindStatusCondition(w.entry.Status.Conditions, of); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// bound are the subjects of all grants in a workspace.
func (w *world) bound() []string {
	names := []string{}
	for _, at := range slices.Sorted(maps.Keys(w.bindings)) {
		for _, s := range w.bindings[at].Subjects {
			names = append(names, s.Name)
		}
	}
	return names
}

// change lets the entry be as f makes it, as an event would.
func (w *world) change(f func(*v1alpha1.CatalogEntry)) {
	w.entry = w.entry.DeepCopy()
	w.entry.ResourceVersion += "+"
	f(w.entry)
}

func (w *world) deleted() {
	now := metav1.NewTime(w.clock.Now())
	w.change(func(e *v1alpha1.CatalogEntry) { e.DeletionTimestamp = &now })
}
