package members_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/members"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const (
	inOrg = "/api/orgs/" + apitest.Acme
	inDev = inOrg + "/workspaces/" + apitest.Dev
)

// store is the fake of Acme in kcp. The world applies writes while a handler waits.
type store struct {
	api.Store
	t     testing.TB
	world *apitest.World
	held  map[string]*v1alpha1.Membership
	// failure, if not nil, is the error of every write.
	failure error
	// decided, if not nil, replaces carrying a change out. lost makes the answer to the
	// next decision get lost.
	decided func(v1alpha1.MembershipChange)
	lost    bool
	// unindexed hides writes from the index, unsettled from the controller.
	unindexed, unsettled bool
	writes               []string
	// lists counts the lists of all Memberships.
	lists int
}

func (s *store) wrote(what, cluster, name string) error {
	require.Equal(s.t, "acmecluster", cluster)
	if s.failure == nil {
		s.writes = append(s.writes, what+" "+name)
	}
	return s.failure
}

func (s *store) GetMembership(_ context.Context, cluster, name string) (*v1alpha1.Membership, error) {
	require.Equal(s.t, "acmecluster", cluster)
	return s.held[name], s.failure
}

// show puts a Membership into the cache, and then has the controller observe it.
func (s *store) show(m *v1alpha1.Membership) {
	s.held[m.Name] = m
	settled := m.DeepCopy()
	settled.Status.ObservedGeneration, settled.Status.Phase = m.Generation, v1alpha1.PhaseReady
	seen := func(m *v1alpha1.Membership) func(*apitest.World) {
		return func(w *apitest.World) {
			w.PutMembership(apitest.Acme, m)
			if s.unindexed {
				w.Unindex(m.Spec.UserRef.Name)
			}
		}
	}
	s.world.Later(seen(m))
	if !s.unsettled {
		s.world.Later(seen(settled))
	}
}

func (s *store) hide(m *v1alpha1.Membership) {
	delete(s.held, m.Name)
	workspace := ""
	if m.Spec.WorkspaceRef != nil {
		workspace = m.Spec.WorkspaceRef.Name
	}
	s.world.Later(func(w *apitest.World) { w.Leave(m.Spec.UserRef.Name, apitest.Acme, workspace) })
}

func (s *store) ListMemberships(_ context.Context, cluster string) ([]v1alpha1.Membership, error) {
	require.Equal(s.t, "acmecluster", cluster)
	s.lists++
	var list []v1alpha1.Membership
	for _, m := range s.held {
		list = append(list, *m)
	}
	return list, s.failure
}

func (s *store) ChangeOrganization(ctx context.Context, held *v1alpha1.Organization, match api.Match, edit func(context.Context, *v1alpha1.Organization) error) (*v1alpha1.Organization, error) {
	return s.change(ctx, held, match, edit, false)
}

// change skips the precondition if an answer got lost and nothing is left to do: the
// write of the first attempt has changed the version itself.
func (s *store) change(ctx context.Context, held *v1alpha1.Organization, match api.Match, edit func(context.Context, *v1alpha1.Organization) error, lost bool) (*v1alpha1.Organization, error) {
	patch, err := apitest.Patch(ctx, held, "", nil, edit)
	if err == nil && (patch != nil || !lost) {
		err = apitest.Judge(match, held.ResourceVersion)
	}
	if err != nil || patch == nil {
		return held, err
	}
	if err := s.wrote("decide", "acmecluster", held.Name); err != nil {
		return nil, err
	}
	decided := apitest.MergePatched(s.t, held, patch)
	decided.Generation++
	changes := decided.Spec.MembershipChanges
	s.world.Later(func(w *apitest.World) { w.PutOrg(decided, "acmecluster") })
	c := changes[len(changes)-1]
	if s.decided != nil {
		s.decided(c)
	} else {
		s.carryOut(c)
		s.caughtUp()
	}
	if s.lost {
		s.lost = false
		return s.change(ctx, apitest.MergePatched(s.t, decided, map[string]any{"spec": map[string]any{"membershipChanges": nil}}), match, edit, true)
	}
	return decided, nil
}

func (s *store) carryOut(c v1alpha1.MembershipChange) {
	m := s.held[tenancy.MembershipName(c.User, c.Workspace)]
	switch {
	case !tenancy.ChangeApplies(c, m):
	case m == nil:
		made := tenancy.ChangedMembership(nil, c)
		made.UID, made.Generation, made.CreationTimestamp = types.UID(fmt.Sprintf("uid %d of %s", len(s.writes), made.Name)), 1, apitest.Epoch()
		made.ResourceVersion = apitest.FirstVersion
		s.show(made)
	case !tenancy.Removes(c):
		m = tenancy.ChangedMembership(m, c)
		m.Generation++
		m.ResourceVersion = apitest.Next(m.ResourceVersion)
		s.show(m)
	default:
		for name, along := range s.held {
			if c.Cascade && strings.HasSuffix(name, "."+c.User) {
				s.hide(along)
			}
		}
		s.hide(m)
	}
}

// caughtUp removes the pending changes from the Org in the cache.
func (s *store) caughtUp() {
	s.world.Later(func(w *apitest.World) {
		w.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) {
			o.Spec.MembershipChanges = nil
			o.Generation++
		})
	})
}

type fixture struct {
	world   *apitest.World
	store   *store
	handler *members.Handler
	http    http.Handler
}

func newFixture(t testing.TB) *fixture {
	f := &fixture{world: apitest.NewWorld()}
	f.store = &store{t: t, world: f.world, held: map[string]*v1alpha1.Membership{}}
	f.handler = &members.Handler{
		Deps: f.world.Deps(t, f.store, ""), Memberships: f.store, Followed: func(string, string, string) bool { return true },
		LimitAdditions: func(*http.Request, string) error { return nil },
	}
	f.reread()
	f.http = apitest.Router(f.world, f.handler.Mount)
	return f
}

// reread copies the Memberships of the world to the store.
func (f *fixture) reread() {
	for _, m := range f.world.MembershipsIn("acmecluster") {
		f.store.held[m.Name] = m
	}
}

// join makes a user a member, in the cache and in kcp.
func (f *fixture) join(user, workspace string, role v1alpha1.Role) {
	f.world.Join(user, apitest.Acme, workspace, role)
	f.reread()
}

// register sets the registration of Member.
func (f *fixture) register(as v1alpha1.Registration) {
	u := apitest.Person(apitest.Member)
	u.Spec.Registration = as
	f.world.PutUser(u)
}

// do sends a request with the tenant headers for its path.
func (f *fixture) do(as, method, path, body string) apitest.Answer {
	return f.call(as, method, path, body).Do(f.http)
}

// call is a call with the headers of its place.
func (f *fixture) call(as, method, path, body string) apitest.Call {
	call := apitest.Call{As: as, Method: method, Path: path, Body: body}
	if rest, ok := strings.CutPrefix(path, "/api/orgs/"); ok {
		call.Org, rest, _ = strings.Cut(rest, "/")
		if rest, ok = strings.CutPrefix(rest, "workspaces/"); ok {
			call.Workspace, _, _ = strings.Cut(rest, "/")
		}
	}
	return call
}

func (f *fixture) add(as, place, body string) apitest.Answer {
	return f.do(as, http.MethodPost, place+"/members", body)
}

func (f *fixture) patch(as, place, user, body string) apitest.Answer {
	return f.do(as, http.MethodPatch, place+"/members/"+user, body)
}

func (f *fixture) remove(as, place, user string) apitest.Answer {
	return f.do(as, http.MethodDelete, place+"/members/"+user, "")
}

func (f *fixture) leave(as, place string) apitest.Answer {
	return f.do(as, http.MethodDelete, place+"/memberships/me", "")
}

// requireBody requires a member, who has one source.
func requireBody(t testing.TB, a apitest.Answer, code int, want string) {
	t.Helper()
	got := a.Object(t, code)
	require.Len(t, got["sources"], 1)
	delete(got, "sources")
	raw, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, want, string(raw))
}

// refusedCauses requires a 409 and returns its causes.
func refusedCauses(t testing.TB, a apitest.Answer) []metav1.StatusCause {
	t.Helper()
	status := a.Refused(t, http.StatusConflict)
	require.NotNil(t, status.Details, a.Body)
	return status.Details.Causes
}

// impatient makes requests time out as soon as the world has no more changes.
func (f *fixture) impatient() { f.handler.FollowTimeout = time.Millisecond }
