package catalog_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/catalog"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const (
	inAcme = "/api/orgs/" + apitest.Acme + "/catalog"
	global = "/api/admin/catalog"
	// provider is the path of a provider.
	provider = "root:kedge:providers:acme"
	svgIcon  = "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4="

	globalCluster = "providerscluster"
	acmeCluster   = "acmecluster"
)

// world is kcp with the caches of the hub, and the controller of CatalogEntries.
type world struct {
	api.Store
	t       testing.TB
	tenants *apitest.World
	// held has the entries by logical cluster and name.
	held map[string]map[string]*v1alpha1.CatalogEntry
	// others are what OthersWithSlug finds beside what is held.
	others []string
	// unsettled stops the controller.
	unsettled bool
	// failing, if not nil, is called before a step.
	failing func(step string) error
	did     []string
	private bool
	// author, if not nil, reports whether the caller has lost their right in kcp.
	author func() bool
}

func newWorld(t testing.TB) *world {
	return &world{t: t, tenants: apitest.NewWorld(), held: map[string]map[string]*v1alpha1.CatalogEntry{globalCluster: {}, acmeCluster: {}, "globexcluster": {}}}
}

// put adds an entry as the API of the hub makes it.
func (w *world) put(org, slug, by string) *v1alpha1.CatalogEntry {
	spec := v1alpha1.CatalogEntrySpec{
		Slug: slug, DisplayName: "The " + slug, APIExport: v1alpha1.APIExportRef{Path: provider, Name: slug},
		Backend: &v1alpha1.CatalogBackend{URL: "https://" + slug + ".example.org"},
	}
	return w.add(cluster(org), tenancy.NewCatalogEntry(org, spec, &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: by, UID: types.UID("uid-" + by)}}, ""))
}

func cluster(org string) string {
	return map[string]string{"": globalCluster, apitest.Acme: acmeCluster, apitest.Globex: "globexcluster"}[org]
}

func (w *world) add(cluster string, e *v1alpha1.CatalogEntry) *v1alpha1.CatalogEntry {
	e = e.DeepCopy()
	e.UID, e.Generation, e.ResourceVersion, e.CreationTimestamp = types.UID("uid-"+e.Name), 1, apitest.FirstVersion, apitest.Epoch()
	e.Annotations["kcp.io/cluster"] = cluster
	if !w.unsettled {
		e.Status.ObservedGeneration, e.Status.Phase = 1, v1alpha1.PhaseReady
		e.Status.Export = &v1alpha1.CatalogExport{Claims: []v1alpha1.CatalogClaim{{Resource: "secrets", Verbs: []string{"get"}, Dangerous: true}}}
	}
	w.held[cluster][e.Name] = e
	return e
}

func (w *world) step(name string) error {
	w.did = append(w.did, name)
	if w.failing != nil {
		return w.failing(name)
	}
	return nil
}

func (w *world) CatalogEntryIn(org, name string) (*v1alpha1.CatalogEntry, bool) {
	e, ok := w.held[cluster(org)][name]
	return e, ok
}

func (w *world) CatalogEntriesOf(org string) (all []*v1alpha1.CatalogEntry) {
	for _, e := range w.held[cluster(org)] {
		all = append(all, e)
	}
	return all
}

func (w *world) Orgs() (all []tenancy.Org) {
	for _, uuid := range []string{apitest.Acme, apitest.Globex} {
		if org, ok := w.Org(uuid); ok {
			all = append(all, org)
		}
	}
	return all
}

func (w *world) Org(uuid string) (tenancy.Org, bool) { return w.tenants.Org(uuid) }

func (w *world) CatalogEntryNamed(name string) (*v1alpha1.CatalogEntry, string, bool) {
	for _, org := range []string{apitest.Acme, apitest.Globex} {
		if e, ok := w.held[cluster(org)][name]; ok {
			return e, org, true
		}
	}
	return nil, "", false
}

// WorkspacesEnabling says that two Workspaces of an Organization, and three in all, enabled everything.
func (w *world) WorkspacesEnabling(_ v1alpha1.APIExportRef, org string) int {
	if org == acmeCluster {
		return 2
	}
	return 3
}

func (w *world) CatalogClusters(slug string) (clusters []string) {
	for cluster, in := range w.held {
		for _, e := range in {
			if e.Spec.Slug == slug && e.DeletionTimestamp.IsZero() {
				clusters = append(clusters, cluster)
			}
		}
	}
	return clusters
}

func (w *world) OrgByCluster(id string) (tenancy.Org, bool) {
	for _, uuid := range []string{apitest.Acme, apitest.Globex} {
		if cluster(uuid) == id {
			return w.tenants.Org(uuid)
		}
	}
	return tenancy.Org{}, false
}

func (w *world) Await(_ context.Context, refs []tenancy.Ref, cond func() bool) error {
	require.Len(w.t, refs, 1)
	if cond() {
		return nil
	}
	return context.DeadlineExceeded
}

func (w *world) CreateCatalogEntry(_ context.Context, cluster string, e *v1alpha1.CatalogEntry) (*v1alpha1.CatalogEntry, bool, error) {
	if err := w.step("create"); err != nil {
		return nil, false, err
	}
	if held, ok := w.held[cluster][e.Name]; ok {
		return held, false, nil
	}
	return w.add(cluster, e), true, nil
}

func (w *world) ChangeCatalogEntry(ctx context.Context, held *v1alpha1.CatalogEntry, match api.Match, edit func(context.Context, *v1alpha1.CatalogEntry) error) (*v1alpha1.CatalogEntry, error) {
	if err := w.step("amend"); err != nil {
		return nil, err
	}
	patch, err := apitest.Patch(ctx, held, held.ResourceVersion, match, edit)
	if err != nil || patch == nil {
		return held, err
	}
	e := apitest.MergePatched(w.t, held, patch)
	require.NoError(w.t, tenancy.CheckCatalogLocked(held.Spec, e.Spec), "it is immutable")
	e.Generation++
	e.ResourceVersion = "changed"
	w.held[e.Annotations["kcp.io/cluster"]][e.Name] = e
	return e, nil
}

func (w *world) DeleteCatalogEntry(_ context.Context, held *v1alpha1.CatalogEntry, match func(string) error) error {
	if err := w.step("delete"); err != nil {
		return err
	}
	if match != nil {
		if err := match(held.ResourceVersion); err != nil {
			return err
		}
	}
	in := w.held[held.Annotations["kcp.io/cluster"]]
	if _, ok := in[held.Name]; !ok {
		return errs.New(errs.NotFound, "gone")
	}
	delete(in, held.Name)
	return nil
}

func (w *world) OthersWithSlug(_ context.Context, _ *v1alpha1.CatalogEntry, everywhere bool) ([]string, error) {
	if err := w.step(map[bool]string{false: "read providers", true: "read all"}[everywhere]); err != nil {
		return nil, err
	}
	return w.others, nil
}

func (w *world) CountCatalogEntries(_ context.Context, cluster string) (int64, error) {
	if err := w.step("count"); err != nil {
		return 0, err
	}
	return int64(len(w.held[cluster])), nil
}

// rights judge the author by the world; w.author reports whether they have lost their right in kcp.
func (w *world) rights() httpmw.Rights {
	if w.author != nil {
		return w.tenants.RightsUntil(w.author)
	}
	return w.tenants.Rights()
}

// views are the caches of the tenants, with the waits of the world.
type views struct {
	*apitest.World
	w *world
}

func (v views) Await(ctx context.Context, refs []tenancy.Ref, cond func() bool) error {
	return v.w.Await(ctx, refs, cond)
}

// handler returns the routes of the catalog.
func (w *world) handler() http.Handler {
	deps := w.tenants.Deps(w.t, w, "")
	deps.Views, deps.Rights, deps.CreateTimeout, deps.FollowTimeout = views{w.tenants, w}, w.rights(), time.Second, time.Second
	h := &catalog.Handler{
		Deps: deps, Catalog: w, Orgs: w, Entries: w, GlobalCluster: globalCluster, PrivateBackends: w.private,
		MayBind: func(_ context.Context, _ *http.Request, cluster string, ref v1alpha1.APIExportRef) error {
			require.Equal(w.t, provider, ref.Path)
			return w.step("may bind in " + cluster)
		},
	}
	return apitest.Router(w.tenants, h.Mount)
}

// do sends a call. Without a person it is the admin's of Acme, or the platform admin's.
func (w *world) do(c apitest.Call) apitest.Answer {
	isGlobal := len(c.Path) >= len(global) && c.Path[:len(global)] == global
	if c.Org == "" && !isGlobal {
		c.Org = apitest.Acme
	}
	if c.As == "" {
		c.As = map[bool]string{false: apitest.Admin, true: apitest.Operator}[isGlobal]
	}
	return c.Do(w.handler())
}

// grace puts Acme into its grace period.
func (w *world) grace() {
	org, _ := w.tenants.Org(apitest.Acme)
	o := org.DeepCopy()
	now := metav1.Now()
	o.Status.DeletionRequestedAt = &now
	w.tenants.PutOrg(o, acmeCluster)
}
