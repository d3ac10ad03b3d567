package workspaces_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/workspaces"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// made is the UUID of every Workspace that a test creates.
const made = "eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee"

type store struct {
	api.Store
	t testing.TB
	// claimed puts the claims of an Org into the cache.
	claimed func(org string, claims []v1alpha1.Claim)
	create  func(ctx context.Context, org string, w tenancy.Workspace) (tenancy.Workspace, error)
	patch   func(ctx context.Context, orgCluster, org, workspace string, patch any) (tenancy.Workspace, error)
	mark    func(held tenancy.Workspace, annotations map[string]any) (tenancy.Workspace, error)
	// held, if not nil, returns the state in kcp where the cache lags behind.
	held func(tenancy.Workspace) tenancy.Workspace
	// version is the object's resource version in kcp. The cache may have another one.
	version string
	writes  int
}

// ChangeOrganization stores a claim and creates the claimed Workspace without a controller.
func (s *store) ChangeOrganization(ctx context.Context, held *v1alpha1.Organization, match api.Match, edit func(context.Context, *v1alpha1.Organization) error) (*v1alpha1.Organization, error) {
	patch, err := apitest.Patch(ctx, held, "", match, edit)
	if err != nil || patch == nil {
		return held, err
	}
	s.writes++
	changed := apitest.MergePatched(s.t, held, patch)
	claims := changed.Spec.WorkspaceClaims
	s.claimed(held.Name, claims)
	_, err = s.create(ctx, held.Name, tenancy.ClaimedWorkspace(held.Name, claims[len(claims)-1]))
	return held, err
}

func (s *store) ChangeWorkspace(ctx context.Context, orgCluster string, w tenancy.Workspace, match api.Match, edit func(tenancy.Workspace, map[string]string) error) (tenancy.Workspace, error) {
	if s.held != nil {
		w = s.held(w)
	}
	held := map[string]string{v1alpha1.DisplayNameAnnotation: w.DisplayName}
	if w.DeletionRequestedAt != nil {
		held[v1alpha1.DeletionRequestedAtAnnotation] = w.DeletionRequestedAt.UTC().Format(time.RFC3339)
	}
	tenancy.SetWorkspaceEnd(held, w.ExpiresAt)
	tenancy.SetWorkspaceRequests(held, w.Requests)
	annotations, err := apitest.Annotate(w, held, s.version, match, edit)
	if err != nil || annotations == nil {
		return w, err
	}
	s.writes++
	if _, ok := annotations[v1alpha1.DeletionRequestedAtAnnotation]; ok {
		return s.mark(w, annotations)
	}
	return s.patch(ctx, orgCluster, w.OrgUUID, w.UUID, annotations)
}

type fixture struct {
	world *apitest.World
	store *store
	http  http.Handler
}

// newFixture returns a hub with a simulated controller: a new Workspace becomes Ready in
// steps. After a patch, the cache follows first, and then the index.
func newFixture(t testing.TB, options ...func(*workspaces.Handler)) *fixture {
	f := &fixture{world: apitest.NewWorld(), store: &store{t: t, version: apitest.FirstVersion}}
	f.store.claimed = func(org string, claims []v1alpha1.Claim) {
		f.world.ChangeOrg(org, func(o *v1alpha1.Organization) { o.Spec.WorkspaceClaims = claims })
	}
	f.store.create = func(_ context.Context, _ string, w tenancy.Workspace) (tenancy.Workspace, error) {
		stages := []tenancy.Workspace{
			apitest.Workspace(w.OrgUUID, w.UUID, w.DisplayName, ""),
			apitest.Workspace(w.OrgUUID, w.UUID, w.DisplayName, "madecluster"),
			apitest.Workspace(w.OrgUUID, w.UUID, w.DisplayName, "madecluster"),
		}
		stages[1].Status.Phase = v1alpha1.PhaseProgressing
		for i := range stages {
			stages[i].CreatedBy, stages[i].Description = w.CreatedBy, w.Description
			f.world.Later(func(world *apitest.World) { world.PutWorkspace(stages[i]) })
		}
		f.world.Later(func(world *apitest.World) { world.Join(w.CreatedBy, w.OrgUUID, w.UUID, v1alpha1.RoleAdmin) })
		return stages[0], nil
	}
	f.store.patch = func(_ context.Context, _, org, workspace string, patch any) (tenancy.Workspace, error) {
		ws, ok := f.world.Workspace(org, workspace)
		require.True(t, ok)
		ws.DisplayName, ws.ResourceVersion = renamed(t, patch), apitest.Next(ws.ResourceVersion)
		f.world.Later(
			func(w *apitest.World) { w.PutWorkspace(ws) },
			func(w *apitest.World) { w.Join(apitest.WSAdmin, org, workspace, v1alpha1.RoleAdmin) },
		)
		return ws, nil
	}
	handler := &workspaces.Handler{Deps: f.world.Deps(t, f.store, made)}
	for _, o := range options {
		o(handler)
	}
	f.http = apitest.Router(f.world, handler.Mount)
	return f
}

// renamed returns the display name of a patch. No other field may reach the store.
func renamed(t testing.TB, patch any) string {
	t.Helper()
	name, ok := patch.(map[string]any)[v1alpha1.DisplayNameAnnotation].(string)
	require.True(t, ok)
	require.Equal(t, map[string]any{v1alpha1.DisplayNameAnnotation: name}, patch)
	return name
}

func path(parts ...string) string {
	p := "/api/orgs/" + apitest.Acme + "/workspaces"
	for _, part := range parts {
		p += "/" + part
	}
	return p
}

func (f *fixture) list(as, query string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodGet, Path: path() + query, Org: apitest.Acme}.Do(f.http)
}

func (f *fixture) get(as, workspace string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodGet, Path: path(workspace), Org: apitest.Acme, Workspace: workspace}.Do(f.http)
}

func (f *fixture) post(as, body string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodPost, Path: path(), Org: apitest.Acme, Body: body}.Do(f.http)
}

func (f *fixture) patch(as, body string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodPatch, Path: path(apitest.Dev), Org: apitest.Acme, Workspace: apitest.Dev, Body: body}.Do(f.http)
}

// show gives the members of Acme read access to its Workspaces.
func show(f *fixture) {
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.DefaultAccess = v1alpha1.DefaultAccessView })
}
