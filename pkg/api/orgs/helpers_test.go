package orgs_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/orgs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// made is the UUID of every Org that a test creates.
const made = "33333333-3333-4333-8333-333333333333"

// store counts writes and calls its fields for them.
type store struct {
	api.Store
	// claimed puts a User with a claim into the cache.
	claimed func(u *v1alpha1.User)
	create  func(ctx context.Context, o *v1alpha1.Organization) (*v1alpha1.Organization, error)
	patch   func(ctx context.Context, uuid string, patch any) (*v1alpha1.Organization, error)
	mark    func(held *v1alpha1.Organization, status map[string]any) (*v1alpha1.Organization, error)
	// held, if not nil, returns the state in kcp where the cache lags behind.
	held func(*v1alpha1.Organization) *v1alpha1.Organization
	// version is the object's resource version in kcp. The cache may have another one.
	version string
	writes  int
}

// ChangeUser stores a claim and creates the claimed Org without a controller.
func (s *store) ChangeUser(ctx context.Context, held *v1alpha1.User, match api.Match, edit func(context.Context, *v1alpha1.User) error) (*v1alpha1.User, error) {
	patch, err := apitest.Patch(ctx, held, "", match, edit)
	if err != nil || patch == nil {
		return held, err
	}
	s.writes++
	held = held.DeepCopy()
	if err := edit(ctx, held); err != nil {
		return nil, err
	}
	s.claimed(held)
	_, err = s.create(ctx, tenancy.ClaimedOrg(held.Spec.OrgClaims[len(held.Spec.OrgClaims)-1]))
	return held, err
}

func (s *store) ChangeOrganization(ctx context.Context, held *v1alpha1.Organization, match api.Match, edit func(context.Context, *v1alpha1.Organization) error) (*v1alpha1.Organization, error) {
	if s.held != nil {
		held = s.held(held)
	}
	patch, err := apitest.Patch(ctx, held, s.version, match, edit)
	if err != nil || patch == nil {
		return held, err
	}
	s.writes++
	if status, ok := patch["status"].(map[string]any); ok {
		return s.mark(held, status)
	}
	return s.patch(ctx, held.Name, patch)
}

type fixture struct {
	world   *apitest.World
	store   *store
	handler *orgs.Handler
	http    http.Handler
	// unbound means that bindings in kcp are outdated.
	unbound bool
	// behind, if not nil, is the world's last change after a patch.
	behind func(*apitest.World)
}

// newFixture returns a hub with a simulated controller: a new Org becomes Ready in steps.
// After a patch, the cache follows first, and then the index.
func newFixture(t testing.TB, options ...func(*orgs.Handler)) *fixture {
	f := &fixture{world: apitest.NewWorld(), store: &store{version: apitest.FirstVersion}}
	f.store.claimed = f.world.PutUser
	f.store.create = func(_ context.Context, o *v1alpha1.Organization) (*v1alpha1.Organization, error) {
		o = o.DeepCopy()
		o.CreationTimestamp, o.Generation = apitest.Epoch(), 1
		by := o.Annotations[v1alpha1.CreatedByAnnotation]
		f.world.Later(
			func(w *apitest.World) { w.PutOrg(o, "") },
			func(w *apitest.World) {
				ready := apitest.Organization(o.Name, o.Spec.DisplayName, by)
				ready.Spec.Description = o.Spec.Description
				w.PutOrg(ready, "madecluster")
			},
			func(w *apitest.World) { w.Join(by, o.Name, "", v1alpha1.RoleAdmin) },
		)
		return o, nil
	}
	f.store.patch = func(_ context.Context, uuid string, patch any) (*v1alpha1.Organization, error) {
		old, ok := f.world.Org(uuid)
		require.True(t, ok)
		o := apitest.MergePatched(t, old.Organization, patch)
		o.Generation++
		f.world.Later(
			func(w *apitest.World) { w.PutOrg(o, old.ClusterID) },
			func(w *apitest.World) { w.Join(apitest.Admin, uuid, "", v1alpha1.RoleAdmin) },
		)
		if f.behind != nil {
			f.world.Later(f.behind)
		}
		return o, nil
	}
	f.handler = &orgs.Handler{Deps: f.world.Deps(t, f.store, made), BoundForAll: func(string) bool { return !f.unbound }}
	for _, o := range options {
		o(f.handler)
	}
	f.http = apitest.Router(f.world, f.handler.Mount)
	return f
}

func hurried(h *orgs.Handler) { h.CreateTimeout = time.Millisecond }

func (f *fixture) get(as, path string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodGet, Path: path, Org: apitest.Acme}.Do(f.http)
}

func (f *fixture) post(as, body string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodPost, Path: "/api/orgs", Body: body}.Do(f.http)
}

func (f *fixture) patch(as, body string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodPatch, Path: "/api/orgs/" + apitest.Acme, Org: apitest.Acme, Body: body}.Do(f.http)
}
