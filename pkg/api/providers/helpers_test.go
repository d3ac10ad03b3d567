package providers_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/providers"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const at = "/api/orgs/" + apitest.Acme + "/workspaces/" + apitest.Dev + "/providers/"

// world is the catalog and the Workspace Dev. Writes of bindings are kcp's: what is accepted is
// Bound when a handler waits.
type world struct {
	t testing.TB
	// entries are those of an Org, or the Global ones under "".
	entries  map[string][]*v1alpha1.CatalogEntry
	bindings []*kcpapisv1alpha2.APIBinding
	export   *kcpapisv1alpha2.APIExport
	counts   []tenancy.Loss
	// refusals are the errors of the next writes.
	refusals []error
	// slow stops kcp from binding and from deleting, and unfollowed the roles from following.
	slow, unfollowed bool
	// becomesReady makes the Workspace Ready while a handler waits. kcp schedules it only then.
	becomesReady bool
	// author, if not nil, reports whether the caller has lost their right in kcp.
	author func() bool
	// clashing is another entry whose slug is taken.
	clashing string
	// mayNotBind is true if kcp does not let the caller bind the export.
	mayNotBind bool
	did        []string
	// reads, if not nil, is called with the context of each read of the Workspace.
	reads func(context.Context)
}

func newEntry(uuid, slug string) *v1alpha1.CatalogEntry {
	e := &v1alpha1.CatalogEntry{}
	e.Name, e.ResourceVersion, e.CreationTimestamp = uuid, apitest.FirstVersion, apitest.Epoch()
	e.Spec.Slug, e.Spec.DisplayName = slug, "Display of "+slug
	e.Spec.APIExport = v1alpha1.APIExportRef{Path: "root:kedge:providers:" + slug, Name: slug + ".example.org"}
	e.Status.Export = &v1alpha1.CatalogExport{
		ClusterID: slug, IdentityHash: "id", Resources: []v1alpha1.CatalogResource{{Group: "example.org", Resource: slug}},
		Claims: []v1alpha1.CatalogClaim{{Resource: "configmaps", Verbs: []string{"get"}}},
	}
	e.Status.Phase = v1alpha1.PhaseReady
	return e
}

// The entries of a new world. widgets is Global, gadgets is of Acme, tools of Globex, and the
// slug of clash is taken.
const (
	widgets = "cccccccc-1111-5111-8111-000000000001"
	gadgets = "cccccccc-1111-5111-8111-000000000002"
	tools   = "cccccccc-1111-5111-8111-000000000003"
	clash   = "cccccccc-1111-5111-8111-000000000004"
)

func newWorld(t testing.TB) *world {
	w := &world{t: t, entries: map[string][]*v1alpha1.CatalogEntry{
		"": {newEntry(widgets, "widgets")}, apitest.Acme: {newEntry(gadgets, "gadgets"), newEntry(clash, "widgets")}, apitest.Globex: {newEntry(tools, "tools")},
	}}
	w.export = &kcpapisv1alpha2.APIExport{}
	w.export.Status.IdentityHash = "id"
	w.export.Spec.Resources = []kcpapisv1alpha2.ResourceSchema{{Group: "example.org", Name: "widgets"}}
	w.export.Spec.PermissionClaims = []kcpapisv1alpha2.PermissionClaim{{GroupResource: kcpapisv1alpha2.GroupResource{Resource: "configmaps"}, Verbs: []string{"get"}}}
	return w
}

func (w *world) CatalogEntriesOf(org string) []*v1alpha1.CatalogEntry { return w.entries[org] }

func (w *world) CatalogEntryIn(org, name string) (*v1alpha1.CatalogEntry, bool) {
	for _, e := range w.entries[org] {
		if e.Name == name {
			return e, true
		}
	}
	return nil, false
}

func (w *world) CatalogClash(_ string, e *v1alpha1.CatalogEntry) (*v1alpha1.CatalogEntry, string, bool) {
	return nil, "", e.Name == clash || e.Name == w.clashing
}

func (w *world) BindingsIn(cluster string) []*kcpapisv1alpha2.APIBinding {
	if w.becomesReady && cluster == "" {
		return nil
	}
	require.Equal(w.t, "devcluster", cluster)
	return w.bindings
}

func (w *world) Workspace(_, _ string) (tenancy.Workspace, bool) {
	return apitest.Workspace(apitest.Acme, apitest.Dev, "Development", "devcluster"), w.becomesReady
}

func (w *world) Await(ctx context.Context, refs []tenancy.Ref, cond func() bool) error {
	require.Equal(w.t, []tenancy.Ref{tenancy.WorkspaceRef(apitest.Dev)}, refs)
	if !w.slow {
		var left []*kcpapisv1alpha2.APIBinding
		for _, b := range w.bindings {
			if b = b.DeepCopy(); b.DeletionTimestamp == nil {
				w.bound(b)
				left = append(left, b)
			}
		}
		w.bindings = left
	}
	if cond() {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// bound is what kcp does with a new binding.
func (w *world) bound(b *kcpapisv1alpha2.APIBinding) {
	b.Status.Phase = kcpapisv1alpha2.APIBindingPhaseBound
	b.Status.ExportPermissionClaims = w.export.Spec.PermissionClaims
	b.Status.BoundResources = []kcpapisv1alpha2.BoundAPIResource{{Group: "example.org", Resource: "widgets", Schema: kcpapisv1alpha2.BoundAPIResourceSchema{IdentityHash: "id"}}}
}

func (w *world) GetExport(_ context.Context, ref v1alpha1.APIExportRef) (*kcpapisv1alpha2.APIExport, error) {
	require.Equal(w.t, w.entries[""][0].Spec.APIExport, ref)
	return w.export, nil
}

func (w *world) WorkspaceAPIs(ctx context.Context, cluster string) ([]*kcpapisv1alpha2.APIBinding, []string, error) {
	if w.reads != nil {
		w.reads(ctx)
	}
	require.Equal(w.t, "devcluster", cluster)
	return w.BindingsIn(cluster), nil, nil
}

func (w *world) CountObjects(ctx context.Context, cluster string, resources []v1alpha1.CatalogResource) ([]tenancy.Loss, error) {
	require.Equal(w.t, "devcluster", cluster)
	require.Equal(w.t, []v1alpha1.CatalogResource{{Group: "example.org", Resource: "widgets"}}, resources)
	_, limited := ctx.Deadline()
	require.True(w.t, limited)
	return w.counts, nil
}

// caller writes as somebody.
type caller struct {
	*world
	name string
}

func (c caller) step(what string, b *kcpapisv1alpha2.APIBinding, dryRun bool) error {
	if len(c.refusals) > 0 {
		err := c.refusals[0]
		c.refusals = c.refusals[1:]
		return err
	}
	c.did = append(c.did, fmt.Sprintf("%s %s %s as %s", what, b.Name, map[bool]string{true: "dry", false: "wet"}[dryRun], c.name))
	return nil
}

func (c caller) CreateBinding(_ context.Context, cluster string, b *kcpapisv1alpha2.APIBinding, dryRun bool) (*kcpapisv1alpha2.APIBinding, error) {
	require.Equal(c.t, "devcluster", cluster)
	if err := c.step("create", b, dryRun); err != nil {
		return nil, err
	}
	b = b.DeepCopy()
	b.UID, b.Generation, b.ResourceVersion, b.CreationTimestamp = types.UID("uid-"+b.Name), 1, apitest.FirstVersion, apitest.Epoch()
	if !dryRun {
		c.bindings = append(c.bindings, b)
	}
	return b, nil
}

func (c caller) UpdateBinding(_ context.Context, cluster string, b *kcpapisv1alpha2.APIBinding, dryRun bool) (*kcpapisv1alpha2.APIBinding, error) {
	require.Equal(c.t, "devcluster", cluster)
	if err := c.step("update", b, dryRun); err != nil || dryRun {
		return b, err
	}
	b = b.DeepCopy()
	b.Generation++
	for i := range c.bindings {
		if c.bindings[i].UID == b.UID {
			c.bindings[i] = b
		}
	}
	return b, nil
}

func (c caller) MayBind(_ context.Context, cluster string, ref v1alpha1.APIExportRef) error {
	require.Equal(c.t, "devcluster", cluster)
	c.did = append(c.did, "may bind "+ref.Name)
	if c.mayNotBind {
		return forbidden()
	}
	return nil
}

func (c caller) DeleteBinding(_ context.Context, cluster string, b *kcpapisv1alpha2.APIBinding) error {
	require.Equal(c.t, "devcluster", cluster)
	if err := c.step("delete", b, false); err != nil {
		return err
	}
	now := metav1.Now()
	for i := range c.bindings {
		if c.bindings[i].UID == b.UID {
			c.bindings[i] = b.DeepCopy()
			c.bindings[i].DeletionTimestamp = &now
		}
	}
	return nil
}

// RestoreBinding takes back what a caller did whose right had ended.
func (w *world) RestoreBinding(_ context.Context, cluster string, b, before *kcpapisv1alpha2.APIBinding) error {
	require.Equal(w.t, "devcluster", cluster)
	w.bindings = slices.DeleteFunc(w.bindings, func(o *kcpapisv1alpha2.APIBinding) bool { return o.UID == b.UID })
	if before != nil {
		w.bindings = append(w.bindings, before)
	}
	return nil
}

// views are the caches of the tenants, with the Workspace and the waits of the world.
type views struct {
	*apitest.World
	w *world
}

func (v views) Workspace(org, workspace string) (tenancy.Workspace, bool) {
	return v.w.Workspace(org, workspace)
}

func (v views) Await(ctx context.Context, refs []tenancy.Ref, cond func() bool) error {
	return v.w.Await(ctx, refs, cond)
}

func (w *world) handler() http.Handler {
	h, _ := w.audited()
	return h
}

// audited returns the handler with the tenants, who have the audit log.
func (w *world) audited() (http.Handler, *apitest.World) {
	tenants := apitest.NewWorld()
	deps := tenants.Deps(w.t, nil, "")
	deps.Views, deps.CreateTimeout, deps.FollowTimeout = views{tenants, w}, 50*time.Millisecond, 50*time.Millisecond
	if w.author != nil {
		deps.Rights = tenants.RightsUntil(w.author)
	}
	h := &providers.Handler{
		Deps: deps, Catalog: w, KCP: w,
		As: func(r *http.Request) (providers.Bindings, error) {
			return caller{w, httpmw.CallerOf(r).User.Name}, nil
		},
		Kept: func(b *kcpapisv1alpha2.APIBinding) bool { return b.Name == "kept" },
		Followed: func(org, workspace string) bool {
			return org == apitest.Acme && workspace == apitest.Dev && !w.unfollowed
		},
	}
	return apitest.Router(tenants, h.Mount), tenants
}

func (w *world) do(as, method, path, body string) apitest.Answer {
	return do(w.handler(), as, method, path, body)
}

func do(h http.Handler, as, method, path, body string) apitest.Answer {
	return apitest.Call{As: as, Method: method, Path: path, Body: body, Org: apitest.Acme, Workspace: apitest.Dev}.Do(h)
}

// enable enables widgets.
func (w *world) enable(as string) apitest.Answer {
	return w.do(as, http.MethodPost, at+widgets+"/enable", accepting)
}

const accepting = `{"acceptClaims":[{"group":"","resource":"configmaps"}]}`

func forbidden() error { return errs.New(errs.Forbidden, "no right to bind") }
