package catalog

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// posts publishes an entry through the API. kcp learns of the grant of a provider a moment late.
func (s grantScene) posts(t testing.TB, as, org, slug string, export v1alpha1.APIExportRef) (name string) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		a, err := s.hub.Try(publishing(as, org, slug, export))
		name = a.Text("uuid")
		return errors.Join(err, framework.Check(a.Code == http.StatusAccepted, "%d %s", a.Code, a.Raw))
	})
	return name
}

// judged has the hub look at an entry of an Org now until it says whether its publisher may bind.
func (s grantScene) judged(t testing.TB, org, name string, may bool, says string) {
	t.Helper()
	s.looking(t, org, name, func(e *v1alpha1.CatalogEntry) error {
		c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionPublisherMayBind)
		return framework.Check(c != nil && (c.Status == metav1.ConditionTrue) == may && strings.Contains(c.Message, says), "%+v", e.Status.Conditions)
	})
}

// enable enables an entry with a credential, or disables it.
func (s grantScene) enable(method, bearer, ws, entry, query string) call {
	c := framework.InWorkspace("", method, s.org, ws, "/providers/"+entry+"/enable"+query, nil)
	c.Token = bearer
	if method == http.MethodPost {
		c.Body = answered
	}
	return c
}

// listed waits until a person sees an entry in a Workspace, or does not.
func (s grantScene) listed(t testing.TB, as, ws, slug string, there bool) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		c := framework.InOrg(as, http.MethodGet, s.org, "", nil)
		c.Path = "/api/providers"
		c.Workspace = ws
		found := slugs(t, s.hub, c)
		return framework.Check(slices.Contains(found, slug) == there, "%v", found)
	})
}

// A provider lets alice bind its export, she publishes it, and the provider changes its mind. From
// then on nobody can bind through her entry: neither admins nor guests nor bots, and she herself
// least of all, although the hub's own grant named her.
func TestPublisher_aRightThatEndedEndsTheGrant(t *testing.T) {
	t.Parallel()
	s := newGrantScene(t, kcp.Shared(t, 1)[0])
	export := framework.Provider(t, kcp, s.Root+":providers:"+fresh())
	alice, bob, carol := framework.Token("alice"), framework.Token("bob"), framework.Token("carol")
	// bob is a member, who administers one Workspace; carol is a guest, who administers another one.
	s.hub.Do(t, s.call(http.MethodPatch, "/members/bob", framework.WithRole("admin")), http.StatusOK)
	s.hub.Do(t, framework.InWorkspace("alice", http.MethodPost, s.org, s.source, "/members", framework.Adding("carol", "admin")), http.StatusCreated)
	framework.AllowBind(t, kcp, export, "alice")
	name := s.posts(t, "alice", s.org, "widgets", export)
	s.judged(t, s.org, name, true, "")
	everybody := func(check func(testing.TB, string, string, v1alpha1.APIExportRef)) {
		t.Helper()
		check(t, bob, s.cluster, export)
		check(t, carol, s.carolsCluster, export)
		check(t, s.bot, s.cluster, export)
	}
	everybody(s.may)
	s.may(t, alice, s.cluster, export)
	s.hub.Do(t, s.enable(http.MethodPost, carol, s.source, name, ""), http.StatusCreated, http.StatusAccepted)
	s.listed(t, "bob", s.ws, "widgets", true)

	framework.AllowBind(t, kcp, export)
	s.judged(t, s.org, name, false, "does not let its publisher, alice")
	everybody(s.mayNot)
	s.mayNot(t, alice, s.cluster, export)
	s.grants(t, export.Path, 0)
	s.listed(t, "bob", s.ws, "widgets", false)
	s.hub.Do(t, s.enable(http.MethodPost, bob, s.ws, name, ""), http.StatusNotFound)
	s.hub.Do(t, s.enable(http.MethodPost, s.bot, s.ws, name, ""), http.StatusNotFound)
	// Where it is enabled it stays so, and can be disabled.
	s.listed(t, "carol", s.source, "widgets", true)
	s.hub.Do(t, s.enable(http.MethodPost, carol, s.source, name, ""), http.StatusConflict)
	s.hub.Do(t, s.enable(http.MethodDelete, carol, s.source, name, "?confirm=true"), http.StatusOK, http.StatusAccepted)
	s.listed(t, "carol", s.source, "widgets", false)

	// The right comes back, for everybody who is authenticated.
	kcp.Applies(t, export.Path, everybodyBinds)
	s.judged(t, s.org, name, true, "")
	everybody(s.may)
	s.hub.Do(t, s.enable(http.MethodPost, bob, s.ws, name, ""), http.StatusCreated, http.StatusAccepted)
}

// everybodyBinds lets all who are authenticated bind, by the ClusterRole of framework.AllowBind.
const everybodyBinds = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: everybody-binds}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: bind}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:authenticated"}
`

// Two entries do not vouch for each other: alice is in the audience of bob's, and bob in that of
// hers. When one of them may bind again, the other one can use that entry.
func TestPublisher_entriesDoNotVouchForEachOther(t *testing.T) {
	t.Parallel()
	s := newGrantScene(t, kcp.Shared(t, 1)[0])
	export := framework.Provider(t, kcp, s.Root+":providers:"+fresh())
	s.hub.Do(t, framework.InOrg("alice", http.MethodPatch, s.org, "/members/bob", framework.WithRole("admin")), http.StatusOK)
	framework.AllowBind(t, kcp, export, "alice", "bob")
	hers, his := s.posts(t, "alice", s.org, "hers", export), s.posts(t, "bob", s.org, "his", export)
	s.judged(t, s.org, hers, true, "")
	s.judged(t, s.org, his, true, "")
	s.grants(t, export.Path, 2)

	framework.AllowBind(t, kcp, export)
	s.judged(t, s.org, hers, false, "alice")
	s.judged(t, s.org, his, false, "bob")
	s.grants(t, export.Path, 0)
	s.mayNot(t, s.bot, s.cluster, export)

	framework.AllowBind(t, kcp, export, "bob")
	s.judged(t, s.org, his, true, "")
	s.judged(t, s.org, hers, false, "alice")
	s.grants(t, export.Path, 1)
	s.may(t, framework.Token("alice"), s.cluster, export)
}

// A Global entry lets everybody bind, so that members may publish its export. When it goes, their
// entries give nothing any more.
func TestPublisher_aGlobalEntryEndsWithWhatWasPublishedByIt(t *testing.T) {
	t.Parallel()
	s := newGrantScene(t, kcp.Shared(t, 1)[0])
	export := framework.Provider(t, kcp, s.Root+":providers:"+fresh())
	global := s.publish(t, "", fresh(), export)
	s.may(t, framework.Token("alice"), s.cluster, export)
	name := s.posts(t, "alice", s.org, "widgets", export)
	s.judged(t, s.org, name, true, "global entry")
	require.NoError(t, s.CatalogEntries(s.place("")).Delete(t.Context(), global.Name, metav1.DeleteOptions{}))
	s.judged(t, s.org, name, false, "alice")
	s.grants(t, export.Path, 0)
	s.mayNot(t, s.bot, s.cluster, export)
}

// What is published belongs to a person: who is removed from the Organization, and who no longer
// administers the Workspace of the export, stands for nothing any more.
func TestPublisher_whoIsRemovedStandsForNothing(t *testing.T) {
	t.Parallel()
	s := newGrantScene(t, kcp.Shared(t, 1)[0])
	export := framework.Provider(t, kcp, s.Root+":providers:"+fresh())
	own := v1alpha1.APIExportRef{Path: s.Root + ":orgs:" + s.org + ":" + s.source, Name: "widgets.example.org"}
	kcp.Applies(t, s.sourceCluster, framework.ExampleCatalog(t, "provider.yaml", own.Path))
	inSource := func(method, below string, body any) call {
		return framework.InWorkspace("alice", method, s.org, s.source, below, body)
	}
	s.hub.Do(t, inSource(http.MethodPost, "/members", framework.Adding("bob", "admin")), http.StatusCreated)
	framework.AllowBind(t, kcp, export, "bob")
	theirs, ours := s.posts(t, "bob", s.org, "theirs", export), s.posts(t, "bob", s.org, "ours", own)
	s.judged(t, s.org, theirs, true, "")
	s.judged(t, s.org, ours, true, "")
	s.may(t, s.bot, s.cluster, export)
	s.may(t, s.bot, s.cluster, own)

	s.hub.Do(t, inSource(http.MethodPatch, "/members/bob", framework.WithRole("member")), http.StatusOK)
	s.judged(t, s.org, ours, false, "is not an admin of the workspace")
	s.mayNot(t, s.bot, s.cluster, own)
	s.judged(t, s.org, theirs, true, "")
	s.hub.Do(t, inSource(http.MethodPatch, "/members/bob", framework.WithRole("admin")), http.StatusOK)
	s.judged(t, s.org, ours, true, "")
	s.may(t, s.bot, s.cluster, own)

	// The provider still lets bob bind.
	s.hub.Do(t, framework.InOrg("alice", http.MethodDelete, s.org, "/members/bob?cascade=true", nil), http.StatusOK, http.StatusNoContent)
	s.judged(t, s.org, theirs, false, "is not a member")
	s.judged(t, s.org, ours, false, "is not a member")
	s.mayNot(t, s.bot, s.cluster, export)
	s.mayNot(t, s.bot, s.cluster, own)

	// Another person takes an entry over: they publish it again, under its name.
	s.hub.Do(t, framework.InOrg("alice", http.MethodDelete, s.org, "/catalog/"+ours, nil), http.StatusNoContent)
	require.Equal(t, ours, s.posts(t, "alice", s.org, "ours", own))
	s.judged(t, s.org, ours, true, "")
	s.may(t, s.bot, s.cluster, own)
}

// The publisher of an entry is written once, and by the hub alone.
func TestPublisher_cannotBeSet(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	p := kcp.Platform(t, hub.Options.RootWorkspace)
	s := grantScene{Platform: p, hub: hub}
	framework.SignUp(t, hub, "alice", "heidi")
	s.org = hub.CreateOrg(t, "alice", "Acme")
	export := v1alpha1.APIExportRef{Path: hub.CreateWorkspace(t, "alice", s.org, "dev").Text("workspacePath"), Name: "widgets.example.org"}
	for _, as := range []string{"alice", "heidi"} {
		org := map[string]string{"alice": s.org}[as]
		c := publishing(as, org, "forged", export)
		body := entry("forged", export)
		body["publishedBy"] = map[string]any{"platform": true}
		c.Body = body
		hub.Do(t, c, http.StatusBadRequest)
	}
	name := s.posts(t, "alice", s.org, "widgets", export)
	e, err := s.CatalogEntries(s.place(s.org)).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	alice, err := s.Users(s.Root+":users").Get(t.Context(), "alice", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, &v1alpha1.CatalogPublisher{User: &v1alpha1.CatalogPublisherUser{Name: "alice", UID: alice.UID}}, e.Spec.PublishedBy)
	for _, by := range []string{`null`, `{"user":null,"platform":true}`} {
		_, err = s.CatalogEntries(s.place(s.org)).Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"publishedBy":`+by+`}}`), metav1.PatchOptions{})
		require.ErrorContains(t, err, "publishedBy is immutable")
	}
	// An entry of an Organization that names nobody gives nothing.
	bare := tenancy.NewCatalogEntry(s.org, v1alpha1.CatalogEntrySpec{DisplayName: "Bare", Slug: "bare", APIExport: export}, alice, "")
	bare.Spec.PublishedBy = nil
	_, err = s.CatalogEntries(s.place(s.org)).Create(t.Context(), bare, metav1.CreateOptions{})
	require.NoError(t, err)
	s.judged(t, s.org, bare.Name, false, "does not say who published it")
}

// An Organization squats a slug. The platform takes it, and can end the entry altogether.
func TestSlugs_holdNoNameAgainstThePlatform(t *testing.T) {
	t.Parallel()
	s := newGrantScene(t, framework.StartHub(t, kcp, framework.NewRoot(), framework.WithAdmin))
	framework.SignUp(t, s.hub, "heidi")
	export := framework.Provider(t, kcp, s.Root+":providers:widgets")
	own := v1alpha1.APIExportRef{Path: s.Root + ":orgs:" + s.org + ":" + s.source, Name: "widgets.example.org"}
	kcp.Applies(t, s.sourceCluster, framework.ExampleCatalog(t, "provider.yaml", own.Path))
	squatted := s.posts(t, "alice", s.org, "widgets", own)
	s.judged(t, s.org, squatted, true, "")
	s.may(t, s.bot, s.cluster, own)
	s.hub.Do(t, s.enable(http.MethodPost, framework.Token("alice"), s.ws, squatted, ""), http.StatusCreated, http.StatusAccepted)

	refusal := s.hub.Do(t, publishing("heidi", "", "widgets", export), http.StatusConflict)
	require.Contains(t, string(refusal.Raw), s.org)
	force := publishing("heidi", "", "widgets", export)
	force.Path += "?force=true"
	global := s.hub.Do(t, force, http.StatusAccepted).Text("uuid")
	s.becomes(t, "", global, v1alpha1.PhaseReady)
	e := s.becomes(t, s.org, squatted, v1alpha1.PhaseProgressing)
	require.Contains(t, meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionSlugUnique).Message, "publish this API again under another slug")
	require.Equal(t, "widgets", e.Spec.Slug)
	s.mayNot(t, s.bot, s.cluster, own)
	s.hub.Do(t, s.enable(http.MethodPost, framework.Token("alice"), s.source, squatted, ""), http.StatusNotFound)
	at := framework.InWorkspace("alice", http.MethodGet, s.org, s.ws, "/providers/"+squatted, nil)
	framework.Eventually(t, framework.Long, func() error {
		state := s.hub.Do(t, at, http.StatusOK).Text("state")
		return framework.Check(state == "Enabled", "%s", state)
	})

	// It is published again under another slug.
	again := s.posts(t, "alice", s.org, "our-widgets", own)
	s.judged(t, s.org, again, true, "")
	s.may(t, s.bot, s.cluster, own)

	// A platform admin sees both entries and ends one, which the Organization can read in its audit log.
	list := call{As: "heidi", Method: http.MethodGet, Path: "/api/admin/catalog?scope=org"}
	require.ElementsMatch(t, []string{"our-widgets", "widgets"}, slugs(t, s.hub, list))
	require.Equal(t, []string{"widgets"}, slugs(t, s.hub, call{As: "heidi", Method: http.MethodGet, Path: "/api/admin/catalog"}))
	remove := call{As: "alice", Method: http.MethodDelete, Path: "/api/admin/catalog/" + again}
	s.hub.Do(t, remove, http.StatusForbidden)
	remove.As = "heidi"
	s.hub.Do(t, remove, http.StatusNoContent)
	s.leaves(t, again)
	s.mayNot(t, s.bot, s.cluster, own)
	require.Equal(t, []string{"widgets"}, slugs(t, s.hub, list))
	s.hub.Do(t, s.enable(http.MethodDelete, framework.Token("alice"), s.ws, squatted, "?confirm=true"), http.StatusOK, http.StatusAccepted)
}
