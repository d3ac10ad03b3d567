package catalog

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/freeze"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// grantScene is an Org of alice with two Workspaces, of which bob is a member, and one Org each
// of bob and carol.
type grantScene struct {
	framework.Platform
	hub                        *framework.Hub
	org, ws, cluster           string
	source, sourceCluster      string
	bobsCluster, carolsCluster string
	// bot is the token of an admin bot of the first Workspace.
	bot string
}

func newGrantScene(t *testing.T, hub *framework.Hub) grantScene {
	t.Helper()
	s := grantScene{Platform: kcp.Platform(t, hub.Options.RootWorkspace), hub: hub}
	framework.SignUp(t, hub, "alice", "bob", "carol")
	s.org = hub.CreateOrg(t, "alice", "Acme")
	ws, source := hub.CreateWorkspace(t, "alice", s.org, "Build"), hub.CreateWorkspace(t, "alice", s.org, "Source")
	s.ws, s.cluster = ws.Text("uuid"), ws.Text("clusterID")
	s.source, s.sourceCluster = source.Text("uuid"), source.Text("clusterID")
	s.bobsCluster = hub.CreateWorkspace(t, "bob", hub.CreateOrg(t, "bob", "Bobs"), "dev").Text("clusterID")
	s.carolsCluster = hub.CreateWorkspace(t, "carol", hub.CreateOrg(t, "carol", "Carols"), "dev").Text("clusterID")
	hub.Do(t, framework.InOrg("alice", http.MethodPost, s.org, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	hub.Do(t, s.call(http.MethodPost, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	bot := hub.Do(t, s.call(http.MethodPost, "/serviceaccounts", `{"displayName":"CI","role":"admin"}`), http.StatusCreated).Text("uuid")
	s.bot = hub.Do(t, s.call(http.MethodPost, "/serviceaccounts/"+bot+"/tokens", `{"expirationSeconds":3600}`), http.StatusCreated).Text("token")
	return s
}

// call is a call of alice to a path below the first Workspace.
func (s grantScene) call(method, below string, body any) call {
	return framework.InWorkspace("alice", method, s.org, s.ws, below, body)
}

// bind tries to bind an export with kubectl's request, without effect.
func (s grantScene) bind(t testing.TB, token, cluster string, export v1alpha1.APIExportRef) framework.Answer {
	t.Helper()
	a, err := s.hub.Try(call{
		Method: http.MethodPost, Path: "/clusters/" + cluster + "/apis/apis.kcp.io/v1alpha2/apibindings?dryRun=All",
		Header: http.Header{"Authorization": {"Bearer " + token}},
		Body:   `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIBinding","metadata":{"name":"attempt"},"spec":{"reference":{"export":{"path":"` + export.Path + `","name":"` + export.Name + `"}}}}`,
	})
	require.NoError(t, err)
	return a
}

// may waits until somebody may bind an export.
func (s grantScene) may(t testing.TB, token, cluster string, export v1alpha1.APIExportRef) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		a := s.bind(t, token, cluster, export)
		return framework.Check(a.Code == http.StatusCreated, "%d %s", a.Code, a.Raw)
	})
}

// mayNot waits until kcp refuses somebody to bind an export in a Workspace that they administer.
func (s grantScene) mayNot(t testing.TB, token, cluster string, export v1alpha1.APIExportRef) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		a := s.bind(t, token, cluster, export)
		return framework.Check(a.Code == http.StatusForbidden && strings.Contains(string(a.Raw), "no permission to bind"), "%d %s", a.Code, a.Raw)
	})
}

// publish writes an entry as GitOps would, and waits until it is Ready.
func (s grantScene) publish(t testing.TB, org, slug string, export v1alpha1.APIExportRef) *v1alpha1.CatalogEntry {
	t.Helper()
	spec := v1alpha1.CatalogEntrySpec{DisplayName: slug, Slug: slug, APIExport: export, Backend: &v1alpha1.CatalogBackend{URL: "https://localhost:1/"}}
	e := tenancy.NewCatalogEntry(org, spec, &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "alice"}}, "")
	e.Spec.PublishedBy = &v1alpha1.CatalogPublisher{Platform: true}
	made, err := s.CatalogEntries(s.place(org)).Create(t.Context(), e, metav1.CreateOptions{})
	require.NoError(t, err)
	return s.becomes(t, org, made.Name, v1alpha1.PhaseReady)
}

// place is the path of the workspace that entries of an Org live in, or the Global ones.
func (s grantScene) place(org string) string {
	if org == "" {
		return s.Root + ":providers"
	}
	return s.OrgPath(org)
}

func (s grantScene) becomes(t testing.TB, org, name string, phase v1alpha1.Phase) (e *v1alpha1.CatalogEntry) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() (err error) {
		if e, err = s.CatalogEntries(s.place(org)).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		return framework.Check(e.Status.Phase == phase, "%s: %+v", e.Status.Phase, e.Status.Conditions)
	})
	return e
}

// look asks the hub to look at an entry now and not within a minute.
func (s grantScene) look(t testing.TB, org, name string) {
	t.Helper()
	patch := `{"metadata":{"annotations":{"` + v1alpha1.OperationAnnotation + `":"` + v1alpha1.OperationReconcile + `"}}}`
	_, err := s.CatalogEntries(s.place(org)).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
}

// looking has the hub look at an entry until it is as expected. Each look changes the entry, and a pass
// that a change outruns writes nothing: the looks become rarer, so that the slowest pass ends.
func (s grantScene) looking(t testing.TB, org, name string, expected func(*v1alpha1.CatalogEntry) error) {
	t.Helper()
	next, pause := time.Now(), 250*time.Millisecond
	framework.Eventually(t, framework.Long, func() error {
		if !time.Now().Before(next) {
			s.look(t, org, name)
			pause *= 2
			next = time.Now().Add(pause)
		}
		e, err := s.CatalogEntries(s.place(org)).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return expected(e)
	})
}

// grant reads the binding of an entry, which the test expects to exist.
func (s grantScene) grant(t testing.TB, at string, e *v1alpha1.CatalogEntry) *rbacv1.ClusterRoleBinding {
	t.Helper()
	b, err := s.ClusterRoleBindings(at).Get(t.Context(), tenancy.CatalogGrantName(string(logicalcluster.From(e)), e.Name), metav1.GetOptions{})
	require.NoError(t, err)
	return b
}

// grants waits until a workspace has so many bindings for entries.
func (s grantScene) grants(t testing.TB, at string, n int) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		held, err := s.BindingsIn(t, at)
		if err != nil {
			return err
		}
		found := 0
		for name := range held {
			if _, _, ok := tenancy.ParseCatalogGrantName(name); ok {
				found++
			}
		}
		return framework.Equal(n, found)
	})
}

// says has the hub look at an entry of the Org until it tells why there is no export, or nothing
// if there is one.
func (s grantScene) says(t testing.TB, entry, want string) {
	t.Helper()
	s.looking(t, s.org, entry, func(e *v1alpha1.CatalogEntry) error {
		c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionExportFound)
		return framework.Check(c != nil && (c.Status == metav1.ConditionTrue) == (want == "") && strings.Contains(c.Message, want), "%+v", c)
	})
}

// leaves waits until an entry of the Org is gone.
func (s grantScene) leaves(t testing.TB, entry string) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		_, err := s.CatalogEntries(s.place(s.org)).Get(t.Context(), entry, metav1.GetOptions{})
		return framework.Check(apierrors.IsNotFound(err), "the entry is still there: %v", err)
	})
}

func TestGrants_letOnlyWhoMayEnableBind(t *testing.T) {
	t.Parallel()
	s := newGrantScene(t, kcp.Shared(t, 1)[0])
	provider := fresh()
	export := framework.Provider(t, kcp, s.Root+":providers:"+provider)
	alice, bob, carol := framework.Token("alice"), framework.Token("bob"), framework.Token("carol")
	s.mayNot(t, alice, s.cluster, export)
	s.mayNot(t, s.bot, s.cluster, export)

	entry := s.publish(t, s.org, "widgets", export)
	require.Len(t, entry.Status.Export.Resources, 2)
	require.True(t, meta.IsStatusConditionFalse(entry.Status.Conditions, v1alpha1.ConditionBackendReachable), "Ready does not wait for it")
	s.may(t, alice, s.cluster, export)
	s.may(t, s.bot, s.cluster, export)
	s.mayNot(t, bob, s.bobsCluster, export)
	s.mayNot(t, carol, s.carolsCluster, export)

	// The right follows the role.
	role := func(of string) {
		s.hub.Do(t, s.call(http.MethodPatch, "/members/bob", framework.WithRole(of)), http.StatusOK)
	}
	role("admin")
	s.may(t, bob, s.cluster, export)
	role("member")
	s.mayNot(t, bob, s.bobsCluster, export)

	// A Global entry is for everybody, and each entry has a grant of its own.
	global := s.publish(t, "", fresh(), export)
	s.may(t, carol, s.carolsCluster, export)
	s.grants(t, export.Path, 2)
	require.NoError(t, s.CatalogEntries(s.place("")).Delete(t.Context(), global.Name, metav1.DeleteOptions{}))
	s.mayNot(t, carol, s.carolsCluster, export)
	s.may(t, alice, s.cluster, export)

	// What somebody alters in the workspace of the provider is restored.
	altered := s.grant(t, export.Path, entry)
	altered.Subjects = tenancy.GlobalAudience()
	_, err := s.ClusterRoleBindings(export.Path).Update(t.Context(), altered, metav1.UpdateOptions{})
	require.NoError(t, err)
	s.may(t, carol, s.carolsCluster, export)
	s.look(t, s.org, entry.Name)
	s.mayNot(t, carol, s.carolsCluster, export)
	s.may(t, alice, s.cluster, export)

	// The export goes, and comes back with its identity.
	require.NoError(t, s.APIExports(export.Path).Delete(t.Context(), export.Name, metav1.DeleteOptions{}))
	s.says(t, entry.Name, "no APIExport of that name")
	s.grants(t, export.Path, 0)
	kcp.Applies(t, export.Path, framework.ExampleCatalog(t, "provider.yaml", export.Path))
	s.says(t, entry.Name, "")
	s.may(t, alice, s.cluster, export)

	// A deleted entry leaves nothing, also one that comes with its Organization's grace.
	s.hub.Do(t, framework.InOrg("alice", http.MethodDelete, s.org, "", nil), http.StatusOK)
	s.grants(t, export.Path, 0)
	s.hub.Do(t, framework.InOrg("alice", http.MethodPost, s.org, "/undelete", nil), http.StatusOK)
	s.grants(t, export.Path, 1)
	require.NoError(t, s.CatalogEntries(s.place(s.org)).Delete(t.Context(), entry.Name, metav1.DeleteOptions{}))
	s.grants(t, export.Path, 0)
	s.mayNot(t, alice, s.cluster, export)

	// An entry can be deleted after the workspace of its export.
	s.leaves(t, entry.Name)
	entry = s.publish(t, s.org, "widgets", export)
	require.NoError(t, s.Workspaces(s.place("")).Delete(t.Context(), provider, metav1.DeleteOptions{}))
	framework.Eventually(t, framework.Long, func() error {
		_, err := s.Workspaces(s.place("")).Get(t.Context(), provider, metav1.GetOptions{})
		return framework.Check(apierrors.IsNotFound(err), "the workspace is still there: %v", err)
	})
	s.says(t, entry.Name, "its workspace does not exist any more")
	require.NoError(t, s.CatalogEntries(s.place(s.org)).Delete(t.Context(), entry.Name, metav1.DeleteOptions{}))
	s.leaves(t, entry.Name)
}

func TestGrants_inAWorkspaceAreTheHubs(t *testing.T) {
	t.Parallel()
	s := newGrantScene(t, kcp.Shared(t, 1)[0])
	export := v1alpha1.APIExportRef{Path: s.Root + ":orgs:" + s.org + ":" + s.source, Name: "widgets.example.org"}
	kcp.Applies(t, s.sourceCluster, framework.ExampleCatalog(t, "provider.yaml", export.Path))
	entry := s.publish(t, s.org, "widgets", export)
	s.may(t, s.bot, s.cluster, export)
	s.mayNot(t, framework.Token("bob"), s.bobsCluster, export)

	// Its admins can neither alter nor imitate it.
	held := s.grant(t, s.sourceCluster, entry)
	for _, args := range [][]string{
		{"delete", "clusterrolebinding", held.Name},
		{"delete", "clusterrole", held.Name},
		{"label", "clusterrolebinding", held.Name, "a=b"},
		{"create", "clusterrolebinding", "everybody", "--clusterrole=" + held.Name, "--group=system:authenticated"},
		{"create", "clusterrolebinding", "kedge:catalog:a:b", "--clusterrole=" + held.Name, "--serviceaccount=default:a"},
	} {
		_, errOut, err := s.hub.Kubectl(t, "alice", s.sourceCluster, args...)
		require.Error(t, err, "%v", args)
		require.Contains(t, strings.ToLower(errOut), "forbidden", "%v", args)
	}
	require.NoError(t, s.ClusterRoleBindings(s.sourceCluster).Delete(t.Context(), held.Name, metav1.DeleteOptions{}))
	s.grants(t, s.sourceCluster, 1)
	require.NoError(t, s.ClusterRoles(s.sourceCluster).Delete(t.Context(), held.Name, metav1.DeleteOptions{}))
	s.may(t, s.bot, s.cluster, export)

	// The entry goes while the Workspace takes no writes. The grant goes with the undelete.
	inSource := func(method, below string) call {
		return framework.InWorkspace("alice", method, s.org, s.source, below, nil)
	}
	s.hub.Do(t, inSource(http.MethodDelete, ""), http.StatusOK)
	s.becomes(t, s.org, entry.Name, v1alpha1.PhaseProgressing)
	require.NoError(t, s.CatalogEntries(s.place(s.org)).Delete(t.Context(), entry.Name, metav1.DeleteOptions{}))
	s.leaves(t, entry.Name)
	s.hub.Do(t, inSource(http.MethodPost, "/undelete"), http.StatusOK)
	s.grants(t, s.sourceCluster, 0)
	s.mayNot(t, s.bot, s.cluster, export)
}

// grantsGo deletes an Organization. Its removal waits for its entries, which have grants with providers.
func grantsGo(t *testing.T, hub *framework.Hub) {
	t.Helper()
	s := grantScene{Platform: kcp.Platform(t, hub.Options.RootWorkspace), hub: hub}
	s.org = hub.CreateOrg(t, "alice", "Acme")
	export := framework.Provider(t, kcp, s.Root+":providers:widgets")
	s.publish(t, s.org, "widgets", export)
	s.grants(t, export.Path, 1)
	hub.Do(t, framework.InOrg("alice", http.MethodDelete, s.org, "", nil), http.StatusOK)
	framework.Eventually(t, framework.Long, func() error {
		_, err := s.Organizations(s.OrgsPath()).Get(t.Context(), s.org, metav1.GetOptions{})
		return framework.Check(apierrors.IsNotFound(err), "the organization is still there: %v", err)
	})
	s.grants(t, export.Path, 0)
}

// An entry that is deleted while the workspace of its provider is deactivated is gone after a
// minute. Its grant goes when an export is found in the workspace again.
func TestGrants_doNotWaitForADeactivatedProvider(t *testing.T) {
	t.Parallel()
	framework.Sample(t, 5)
	hub := kcp.Shared(t, 1)[0]
	s := grantScene{Platform: kcp.Platform(t, hub.Options.RootWorkspace), hub: hub}
	s.org = hub.CreateOrg(t, "alice", "Acme")
	provider := fresh()
	export := framework.Provider(t, kcp, s.Root+":providers:"+provider)
	entry := s.publish(t, s.org, "widgets", export)
	s.grants(t, export.Path, 1)
	ws, err := s.Workspaces(s.Root+":providers").Get(t.Context(), provider, metav1.GetOptions{})
	require.NoError(t, err)
	freezer := freeze.New(kcp.ShardAdmin(t), nil, nil, "")
	framework.Eventually(t, framework.Long, func() error {
		// A logical cluster that kcp is still creating is left alone.
		if err := freezer.Deactivate(t.Context(), ws.Spec.Cluster); err != nil {
			return err
		}
		_, err := s.BindingsIn(t, export.Path)
		return framework.Check(apierrors.IsForbidden(err), "the provider is not deactivated: %v", err)
	})

	require.NoError(t, s.CatalogEntries(s.place(s.org)).Delete(t.Context(), entry.Name, metav1.DeleteOptions{}))
	framework.NowAndThen(t, func() error {
		_, err := s.CatalogEntries(s.place(s.org)).Get(t.Context(), entry.Name, metav1.GetOptions{})
		return framework.Check(apierrors.IsNotFound(err), "the entry is still there: %v", err)
	})
	framework.Eventually(t, framework.Long, func() error { return freezer.Activate(t.Context(), ws.Spec.Cluster) })
	framework.Eventually(t, framework.Long, func() error {
		held, err := s.BindingsIn(t, export.Path)
		return framework.Check(err == nil && held[tenancy.CatalogGrantName(string(logicalcluster.From(entry)), entry.Name)].Name != "", "the control: the grant is left; %v", err)
	})
	other := s.publish(t, s.org, "gadgets", export)
	s.grants(t, export.Path, 1)
	s.grant(t, export.Path, other)
}
