package catalog

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// entry is the body that publishes an export.
func entry(slug string, export v1alpha1.APIExportRef) map[string]any {
	return map[string]any{"slug": slug, "displayName": "The " + slug, "apiExport": map[string]string{"path": export.Path, "name": export.Name}}
}

// publishing is the call that publishes an entry in an Organization, or a Global one if org is
// empty. The answer does not wait until the export was found.
func publishing(as, org, slug string, export v1alpha1.APIExportRef) call {
	c := call{As: as, Method: http.MethodPost, Path: "/api/admin/catalog", Body: entry(slug, export), Header: http.Header{"Prefer": {"respond-async"}}}
	if org != "" {
		c.Path, c.Org = "/api/orgs/"+org+"/catalog", org
	}
	return c
}

// slugs lists what a person reads at the path of a catalog.
func slugs(t testing.TB, hub *framework.Hub, c call) (found []string) {
	t.Helper()
	items, _ := hub.Do(t, c, http.StatusOK).JSON["items"].([]any)
	for _, item := range items {
		found = append(found, fmt.Sprint(item.(map[string]any)["slug"]))
	}
	return found
}

func TestEntries_arePublishedByThoseWhoMayBind(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	providers := hub.Options.RootWorkspace + ":providers"
	framework.SignUp(t, hub, "alice", "bob", "carol", "heidi")
	org, rival := hub.CreateOrg(t, "alice", "ACME"), hub.CreateOrg(t, "carol", "Rival")
	ws := hub.CreateWorkspace(t, "alice", org, "dev")
	hub.CreateWorkspace(t, "carol", rival, "dev")
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	export := framework.Provider(t, kcp, providers+":"+fresh())

	refused := func(c call, says string) {
		t.Helper()
		require.Contains(t, hub.Do(t, c, http.StatusForbidden).Text("message"), says)
	}
	refused(publishing("alice", org, "widgets", export), "kcp does not let you bind")
	refused(publishing("alice", org, "widgets", v1alpha1.APIExportRef{Path: providers + ":nowhere", Name: "widgets.example.org"}), "kcp does not let you bind")
	framework.AllowBind(t, kcp, export, "alice", "bob")
	var made framework.Answer
	// kcp learns of the grant of the provider a moment later.
	framework.Eventually(t, framework.Long, func() (err error) {
		made, err = hub.Try(publishing("alice", org, "widgets", export))
		return errors.Join(err, framework.Check(made.Code == http.StatusAccepted, "%d %s", made.Code, made.Raw))
	})
	require.Equal(t, tenancy.CatalogEntryName(org, "widgets"), made.Text("uuid"))
	require.Equal(t, "alice", made.Text("createdBy"))
	refused(publishing("carol", rival, "widgets", export), "kcp does not let you bind")
	refused(publishing("bob", org, "other", export), "that you administer, and there is none")
	work := hub.CreateWorkspace(t, "bob", org, "of bob")
	hub.Do(t, publishing("bob", org, "other", export), http.StatusAccepted)
	require.NoError(t, kcp.Prints(t, ws.Text("clusterID"), "get", "apibindings", "-o", "jsonpath={.items[*].spec.reference.export.name}", "access.kedge.faros.sh"), "asking left nothing behind")

	// The export of a Workspace is published by those who administer it.
	own := v1alpha1.APIExportRef{Path: work.Text("workspacePath"), Name: "gadgets.example.org"}
	refused(publishing("alice", rival, "gadgets", own), "no membership")
	hub.Do(t, publishing("carol", rival, "gadgets", own), http.StatusUnprocessableEntity)
	hub.Do(t, publishing("bob", org, "gadgets", own), http.StatusAccepted)
	hub.Do(t, publishing("alice", org, "tools", own), http.StatusAccepted)
	refused(publishing("bob", org, "dev", v1alpha1.APIExportRef{Path: ws.Text("workspacePath"), Name: "x"}), "only an admin of the workspace")
	for _, path := range []string{providers, hub.Options.RootWorkspace + ":users", hub.Options.RootWorkspace + ":orgs:" + org, "root", work.Text("clusterID")} {
		hub.Do(t, publishing("alice", org, "tricks", v1alpha1.APIExportRef{Path: path, Name: "x"}), http.StatusUnprocessableEntity)
		hub.Do(t, publishing("heidi", "", "tricks", v1alpha1.APIExportRef{Path: path, Name: "x"}), http.StatusUnprocessableEntity)
	}
	hub.Do(t, publishing("alice", org, "tricks", v1alpha1.APIExportRef{Path: export.Path, Name: tenancy.ExportTenancy}), http.StatusUnprocessableEntity)

	require.Equal(t, []string{"gadgets", "other", "tools", "widgets"}, slugs(t, hub, framework.InOrg("bob", http.MethodGet, org, "/catalog", nil)))
	require.Empty(t, slugs(t, hub, framework.InOrg("carol", http.MethodGet, rival, "/catalog", nil)))

	// Members change and delete their own; admins all.
	at := "/catalog/" + tenancy.CatalogEntryName(org, "widgets")
	body := entry("widgets", export)
	body["displayName"] = "Renamed"
	refused(framework.InOrg("bob", http.MethodPut, org, at, body), "only the person who published")
	refused(framework.InOrg("bob", http.MethodDelete, org, at, nil), "only the person who published")
	require.Equal(t, "Renamed", hub.Do(t, framework.InOrg("alice", http.MethodPut, org, at, body), http.StatusOK).Text("displayName"))
	body["slug"] = "other"
	require.Equal(t, "slug", framework.StatusOf(t, hub.Do(t, framework.InOrg("alice", http.MethodPut, org, at, body), http.StatusUnprocessableEntity)).Details.Causes[0].Field)
	hub.Do(t, framework.InOrg("bob", http.MethodDelete, org, "/catalog/"+tenancy.CatalogEntryName(org, "other"), nil), http.StatusNoContent)
	hub.Do(t, framework.InOrg("alice", http.MethodDelete, org, "/catalog/"+tenancy.CatalogEntryName(org, "gadgets"), nil), http.StatusNoContent)
	hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "", `{"catalogEntryCreation":"admin"}`), http.StatusOK)
	refused(publishing("bob", org, "another", own), "only admins may publish")
}

func TestSlugs_areUniqueAcrossPlaces(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), framework.WithAdmin)
	providers := hub.Options.RootWorkspace + ":providers"
	framework.SignUp(t, hub, "alice", "bob", "heidi")
	acme, rival := hub.CreateOrg(t, "alice", "ACME"), hub.CreateOrg(t, "bob", "Rival")
	export := v1alpha1.APIExportRef{Path: providers + ":acme", Name: "widgets.example.org"}
	own := func(as, org string) v1alpha1.APIExportRef {
		return v1alpha1.APIExportRef{Path: hub.CreateWorkspace(t, as, org, "dev").Text("workspacePath"), Name: "widgets.example.org"}
	}
	hub.Do(t, publishing("heidi", "", "global", export), http.StatusAccepted)
	mine := own("alice", acme)
	require.Contains(t, hub.Do(t, publishing("alice", acme, "global", mine), http.StatusConflict).Text("message"), "global catalog entry")
	hub.Do(t, publishing("alice", acme, "widgets", mine), http.StatusAccepted)
	hub.Do(t, publishing("bob", rival, "widgets", own("bob", rival)), http.StatusAccepted)
	require.Contains(t, hub.Do(t, publishing("alice", acme, "widgets", mine), http.StatusConflict).Text("message"), "already")
	refusal := hub.Do(t, publishing("heidi", "", "widgets", export), http.StatusConflict)
	require.Contains(t, refusal.Text("message"), "2 organizations")
	require.Contains(t, string(refusal.Raw), "ACME ("+acme+")")
	require.Contains(t, string(refusal.Raw), "Rival ("+rival+")")
	require.NotContains(t, string(refusal.Raw), "alice")
	require.Equal(t, []string{"global"}, slugs(t, hub, call{As: "heidi", Method: http.MethodGet, Path: "/api/admin/catalog"}))

	keyed := publishing("heidi", "", "keyed", export)
	keyed.Header.Set("Idempotency-Key", "one")
	first := hub.Do(t, keyed, http.StatusAccepted).Text("uuid")
	require.Equal(t, first, hub.Do(t, keyed, http.StatusAccepted, http.StatusCreated).Text("uuid"))
	hub.Do(t, call{As: "heidi", Method: http.MethodDelete, Path: "/api/admin/catalog/" + first}, http.StatusNoContent)
	hub.Do(t, call{As: "alice", Method: http.MethodGet, Path: "/api/admin/catalog"}, http.StatusForbidden)

	// The deletion of an entry makes room for another one.
	hub.Do(t, framework.InOrg("alice", http.MethodDelete, acme, "/catalog/"+tenancy.CatalogEntryName(acme, "widgets"), nil), http.StatusNoContent)
	hub.Do(t, publishing("alice", acme, "widgets", mine), http.StatusAccepted)
}

// Two hubs publish the same slugs at the same time, in one Organization and for everybody.
func TestSlugs_areUniqueOnTwoHubs(t *testing.T) {
	t.Parallel()
	hubs := kcp.Shared(t, 2)
	p := kcp.Platform(t, hubs[0].Options.RootWorkspace)
	providers := p.Root + ":providers"
	framework.SignUp(t, hubs[0], "alice", "heidi")
	org := hubs[0].CreateOrg(t, "alice", "ACME")
	path := hubs[0].CreateWorkspace(t, "alice", org, "dev").Text("workspacePath")
	framework.SignUp(t, hubs[1], "alice", "heidi")
	framework.Eventually(t, framework.Long, func() error {
		a, err := hubs[1].Try(framework.InOrg("alice", http.MethodGet, org, "/catalog", nil))
		return errors.Join(err, framework.Equal(http.StatusOK, a.Code))
	})
	export := v1alpha1.APIExportRef{Path: providers + ":acme", Name: "widgets.example.org"}
	own := v1alpha1.APIExportRef{Path: path, Name: "widgets.example.org"}

	const rounds = 6
	race := fresh()
	var calls []call
	for i := range rounds {
		slug := fmt.Sprintf("%s-%d", race, i)
		// Each hub gets every other call, so each slug is published on both.
		calls = append(calls, publishing("alice", org, slug, own), publishing("heidi", "", slug, export), publishing("heidi", "", slug, export), publishing("alice", org, slug, own))
	}
	answers, err := framework.AtOnce(hubs, calls)
	require.NoError(t, err)
	for i := range rounds {
		slug := fmt.Sprintf("%s-%d", race, i)
		made := 0
		for _, a := range answers[4*i : 4*i+4] {
			require.Contains(t, []int{http.StatusAccepted, http.StatusConflict}, a.Code, "%s", a.Raw)
			if a.Code == http.StatusAccepted {
				made++
			}
		}
		require.LessOrEqual(t, made, 1, "%s was published twice", slug)
		there := 0
		for cluster, name := range map[string]string{providers: tenancy.CatalogEntryName("", slug), p.OrgPath(org): tenancy.CatalogEntryName(org, slug)} {
			if e, err := p.CatalogEntries(cluster).Get(t.Context(), name, metav1.GetOptions{}); err == nil && e.DeletionTimestamp.IsZero() {
				there++
			} else if err != nil {
				require.True(t, apierrors.IsNotFound(err), "%v", err)
			}
		}
		require.Equal(t, made, there, "what was answered is there, and nothing else: %s", slug)
	}
}

func TestEntries_endWithTheirOrganization(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), func(o *server.Options) { o.DeletionGrace = time.Second })
	t.Run("hidden in its grace", func(t *testing.T) { entriesGo(t, hub) })
	t.Run("with their grants", func(t *testing.T) { grantsGo(t, hub) })
}

// entriesGo deletes an Organization. In its grace it hides its entries; the purge takes them along.
func entriesGo(t *testing.T, hub *framework.Hub) {
	t.Helper()
	p := kcp.Platform(t, hub.Options.RootWorkspace)
	framework.SignUp(t, hub, "alice")
	org := hub.CreateOrg(t, "alice", "ACME")
	ws := hub.CreateWorkspace(t, "alice", org, "dev")
	hub.Do(t, publishing("alice", org, "widgets", v1alpha1.APIExportRef{Path: ws.Text("workspacePath"), Name: "x"}), http.StatusAccepted)
	hub.Do(t, framework.InOrg("alice", http.MethodDelete, org, "", nil), http.StatusOK)
	hub.Do(t, framework.InOrg("alice", http.MethodGet, org, "/catalog", nil), http.StatusNotFound, http.StatusForbidden)
	framework.NowAndThen(t, func() error {
		_, err := p.Organizations(p.OrgsPath()).Get(t.Context(), org, metav1.GetOptions{})
		return framework.Check(apierrors.IsNotFound(err), "the organization is still there: %v", err)
	})
}
