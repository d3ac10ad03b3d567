package users_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/users"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

type store struct {
	api.Store
	patch func(ctx context.Context, name string, patch any) (*v1alpha1.User, error)
	mark  func(held *v1alpha1.User, status map[string]any) (*v1alpha1.User, error)
	// version is the object's resource version in kcp. The cache may have another one.
	version string
	// check, if not nil, inspects the context of a change of the status.
	check  func(context.Context)
	writes int
}

func (s *store) ChangeUser(ctx context.Context, held *v1alpha1.User, match api.Match, edit func(context.Context, *v1alpha1.User) error) (*v1alpha1.User, error) {
	patch, err := apitest.Patch(ctx, held, s.version, match, edit)
	if err != nil || patch == nil {
		return held, err
	}
	s.writes++
	if status, ok := patch["status"].(map[string]any); ok {
		u, err := s.mark(held, status)
		if s.check != nil {
			s.check(ctx)
		}
		return u, err
	}
	return s.patch(ctx, held.Name, patch)
}

type fixture struct {
	world   *apitest.World
	store   *store
	clock   *clocktesting.FakePassiveClock
	handler *users.Handler
	http    http.Handler
	// limited makes the rate limiter refuse a search.
	limited bool
	// wroteEnds has the people whose Sessions were ended, and endsFail is the error of that.
	wroteEnds []string
	endsFail  error
}

func newFixture(t testing.TB) *fixture {
	f := &fixture{world: apitest.NewWorld(), store: &store{version: apitest.FirstVersion}, clock: clocktesting.NewFakePassiveClock(apitest.Epoch().Time)}
	f.store.patch = func(_ context.Context, name string, patch any) (*v1alpha1.User, error) {
		old, ok := f.world.ByName(name)
		require.True(t, ok)
		u := apitest.MergePatched(t, old, patch)
		u.Generation++
		f.world.Later(func(w *apitest.World) { w.PutUser(u) })
		return u, nil
	}
	limit := func(next http.Handler) http.Handler {
		return httpapi.Handle(func(w http.ResponseWriter, r *http.Request) error {
			if f.limited {
				return errs.New(errs.TooManyRequests, "too often")
			}
			next.ServeHTTP(w, r)
			return nil
		})
	}
	f.handler = &users.Handler{
		Deps: f.world.Deps(t, f.store, ""), Search: f.world.SearchPeople, Bound: func(string) bool { return true }, LimitSearch: limit,
		WriteEnds: func(_ context.Context, user string) error {
			f.wroteEnds = append(f.wroteEnds, user)
			return f.endsFail
		},
	}
	f.handler.Clock = f.clock
	f.http = apitest.Router(f.world, f.handler.Mount)
	return f
}

func (f *fixture) get(as, path string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodGet, Path: "/api/users/me" + path}.Do(f.http)
}

func (f *fixture) patch(as, body string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodPatch, Path: "/api/users/me", Body: body}.Do(f.http)
}

// bob is the complete answer for apitest.Member.
const bob = `{
	"name": "bob", "displayName": "Display of bob", "email": "bob@example.com", "personalOrg": "", "defaultWorkspace": "",
	"issuer": "static", "subject": "bob", "phase": "Progressing", "orgQuota": {"limit": 10, "used": 0}, "platformAdmin": false, "auditor": false, "registration": "Approved"
}`

func TestMe_isAnsweredWithExactlyItsFields(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	answer := f.get(apitest.Member, "")
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, bob, answer.Body)

	at := apitest.Epoch()
	u := apitest.Person(apitest.Admin)
	u.Spec.OrgQuota = 3
	u.Status.PersonalOrg, u.Status.DefaultWorkspace, u.Status.DeletionRequestedAt = apitest.Acme, apitest.Dev, &at
	signedUp(u)
	f.world.PutUser(u)
	answer = f.get(apitest.Admin, "")
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, `{
		"name": "alice", "displayName": "Display of alice", "email": "alice@example.com",
		"issuer": "static", "subject": "alice", "personalOrg": "", "defaultWorkspace": "", "phase": "Progressing",
		"orgQuota": {"limit": 3, "used": 1}, "platformAdmin": false, "auditor": false, "registration": "Approved",
		"deletionRequestedAt": "2026-03-01T12:00:00Z", "purgeAt": "2026-03-31T12:00:00Z"
	}`, answer.Body)
	require.Zero(t, f.world.Waits(), "a read waits for nothing")
}

// signedUp sets the conditions of a completed sign-up.
func signedUp(u *v1alpha1.User) {
	for _, condition := range []string{v1alpha1.ConditionPersonalOrg, v1alpha1.ConditionDefaultWorkspace} {
		u.Status.Conditions = append(u.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue})
	}
}

// Each case removes one precondition for the caller's access.
func TestMe_namesOnlyWhatTheCallerCanRead(t *testing.T) {
	t.Parallel()
	person := func(change func(*v1alpha1.User)) func(*apitest.World) {
		return func(w *apitest.World) {
			old, _ := w.ByName(apitest.Admin)
			u := old.DeepCopy()
			change(u)
			w.PutUser(u)
		}
	}
	const both, org = "both", "org"
	for name, c := range map[string]struct {
		change func(*apitest.World)
		phase  string
		named  string
	}{
		"all is there": {func(*apitest.World) {}, "Ready", both},
		"the default Workspace is being made": {person(func(u *v1alpha1.User) {
			u.Status.DefaultWorkspace, u.Status.Conditions[1].Status = "", metav1.ConditionFalse
		}), "Progressing", org},
		"the index has yet to follow":            {func(w *apitest.World) { w.Unindex(apitest.Admin) }, "Progressing", ""},
		"the Org was purged":                     {func(w *apitest.World) { w.DropOrg(apitest.Acme) }, "Ready", ""},
		"they left the Org":                      {func(w *apitest.World) { w.Leave(apitest.Admin, apitest.Acme, "") }, "Ready", ""},
		"the Org is soft-deleted":                {func(w *apitest.World) { w.DeleteOrg(apitest.Acme) }, "Ready", ""},
		"the Workspace is removed":               {func(w *apitest.World) { w.DropWorkspace(apitest.Dev) }, "Ready", org},
		"the Workspace is soft-deleted":          {person(func(u *v1alpha1.User) { u.Status.DefaultWorkspace = apitest.Gone }), "Ready", org},
		"somebody altered the status":            {person(func(u *v1alpha1.User) { u.Status.PersonalOrg = apitest.Globex }), "Ready", ""},
		"the registration waits for an approval": {person(func(u *v1alpha1.User) { u.Spec.Registration = v1alpha1.RegistrationPending }), "Progressing", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			u := apitest.Person(apitest.Admin)
			u.Status.PersonalOrg, u.Status.DefaultWorkspace = apitest.Acme, apitest.Dev
			signedUp(u)
			f.world.PutUser(u)
			c.change(f.world)
			want := map[string][]any{both: {apitest.Acme, apitest.Dev}, org: {apitest.Acme, ""}, "": {"", ""}}[c.named]
			me := f.get(apitest.Admin, "").Object(t, http.StatusOK)
			require.Equal(t, c.phase, me["phase"])
			require.Equal(t, want, []any{me["personalOrg"], me["defaultWorkspace"]})
			require.NotContains(t, me, "expiresAt")
		})
	}
}

func TestMe_tellsWhenTheCredentialExpires(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	require.Equal(t, "2026-03-01T12:00:00Z", f.get(apitest.Admin+apitest.Expiring, "").Object(t, http.StatusOK)["expiresAt"])
}

func TestMe_tellsPlatformAdminsAndAuditors(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.world.PutUser(apitest.Person(apitest.Auditor))
	auditor := f.get(apitest.Auditor, "").Object(t, http.StatusOK)
	require.Equal(t, []any{false, true}, []any{auditor["platformAdmin"], auditor["auditor"]})
	require.Equal(t, false, f.get(apitest.Operator, "").Object(t, http.StatusOK)["auditor"])
	require.Equal(t, true, f.get(apitest.Operator, "").Object(t, http.StatusOK)["platformAdmin"])
	require.Equal(t, false, f.get(apitest.Admin, "").Object(t, http.StatusOK)["platformAdmin"])
}

func TestO5_meShowsTheUsedOrgQuota(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	personal := apitest.Organization(apitest.Nowhere, "Alice's own", apitest.Admin)
	personal.Spec.Personal = true
	f.world.PutOrg(personal, "personalcluster")
	f.world.DeleteOrg(apitest.Acme)
	require.Equal(t, map[string]any{"limit": 10.0, "used": 1.0}, f.get(apitest.Admin, "").Object(t, http.StatusOK)["orgQuota"],
		"the soft-deleted count, the personal one does not")
}

func TestMe_needsAToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, answer := range []apitest.Answer{f.get("", ""), f.get("", "/memberships"), f.patch("", `{"displayName": "New"}`)} {
		answer.Refused(t, http.StatusUnauthorized)
		require.Equal(t, "Bearer", answer.Header.Get("WWW-Authenticate"))
	}
	require.Zero(t, f.store.writes)
	f.get(apitest.Member, "").Object(t, http.StatusOK)
}

func TestO8_aDeletedPersonReadsThemselvesAndNoMore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.patch(apitest.Member, `{"displayName": "New"}`).Object(t, http.StatusOK)
	f.get(apitest.Member, "/memberships").Object(t, http.StatusOK)
	f.world.DeleteUser(apitest.Member)
	f.get(apitest.Member, "").Object(t, http.StatusOK)
	f.patch(apitest.Member, `{"displayName": "Again"}`).Refused(t, http.StatusForbidden)
	f.get(apitest.Member, "/memberships").Refused(t, http.StatusForbidden)
	require.Equal(t, 1, f.store.writes)
}

func TestPatch_changesTheDisplayNameAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	patch := f.store.patch
	f.store.patch = func(ctx context.Context, name string, p any) (*v1alpha1.User, error) {
		require.Equal(t, apitest.Member, name)
		require.Equal(t, map[string]any{"spec": map[string]any{"displayName": "Bøb ☂"}}, p)
		return patch(ctx, name, p)
	}
	answer := f.patch(apitest.Member, `{"displayName": "Bøb ☂"}`)
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, strings.Replace(bob, "Display of bob", "Bøb ☂", 1), answer.Body)
	require.Zero(t, f.world.StillToCome(), "it waited for the view")
	require.Equal(t, answer.Body, f.get(apitest.Member, "").Body)
	require.Equal(t, 1, f.store.writes)
}

func TestPatch_writesNothingWhenNothingIsGiven(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	answer := f.patch(apitest.Member, `{}`)
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, bob, answer.Body)
	require.Zero(t, f.store.writes)
}

func TestPatch_refusesOtherFieldsThanDisplayName(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for body, field := range map[string]string{
		`{"displayName": null}`:                               "displayName",
		`{"displayName": ""}`:                                 "displayName",
		`{"displayName": 7}`:                                  "displayName",
		`{"displayName": "a\u0007"}`:                          "displayName",
		`{"displayName": "\u0041\u030a"}`:                     "displayName",
		`{"displayName": "a", "displayName": "b"}`:            "displayName",
		`{"displayName": "a", "email": "b@example.com"}`:      "email",
		`{"orgQuota": {"limit": 99}}`:                         "orgQuota",
		`{"platformAdmin": true}`:                             "platformAdmin",
		`{"registration": "Approved"}`:                        "registration",
		`{"name": "alice"}`:                                   "name",
		`{"displayName": "` + strings.Repeat("a", 129) + `"}`: "displayName",
	} {
		f.patch(apitest.Member, body).RefusedField(t, field)
	}
	require.Zero(t, f.store.writes)
	f.patch(apitest.Member, `{"displayName": "`+strings.Repeat("ä", 128)+`"}`).Object(t, http.StatusOK)
}

func TestPatch_goesThroughWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, leave := context.WithCancel(t.Context())
	f.store.patch = func(write context.Context, name string, _ any) (*v1alpha1.User, error) {
		leave()
		require.NoError(t, write.Err(), "the write does not end with the request")
		_, bounded := write.Deadline()
		require.True(t, bounded)
		u := apitest.Person(name)
		u.Spec.DisplayName, u.Generation = "New", 2
		return u, nil
	}
	call := apitest.Call{As: apitest.Member, Method: http.MethodPatch, Path: "/api/users/me", Body: `{"displayName": "New"}`, Context: ctx}
	require.Equal(t, "New", call.Do(f.http).Object(t, http.StatusOK)["displayName"])
}

func TestPatch_answersAFailureWithoutWaiting(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store.patch = func(context.Context, string, any) (*v1alpha1.User, error) {
		return nil, errs.Wrap(errs.Unavailable, context.DeadlineExceeded, "kcp cannot be reached")
	}
	answer := f.patch(apitest.Member, `{"displayName": "New"}`)
	answer.Refused(t, http.StatusServiceUnavailable)
	require.NotContains(t, answer.Body, context.DeadlineExceeded.Error())
	require.Zero(t, f.world.Waits())
}

func TestO3_membershipsRenderASwitcher(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	answer := f.get(apitest.Mixed, "/memberships")
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, `{"continue": "", "items": [
		{
			"orgUUID": "11111111-1111-4111-8111-111111111111", "orgDisplayName": "Acme",
			"orgCreatedAt": "2026-03-01T12:00:00Z", "orgFirstAdmin": "alice", "role": "member"
		},
		{
			"orgUUID": "11111111-1111-4111-8111-111111111111", "orgDisplayName": "Acme",
			"orgCreatedAt": "2026-03-01T12:00:00Z", "orgFirstAdmin": "alice", "role": "admin",
			"workspaceUUID": "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa", "workspaceDisplayName": "Development", "clusterID": "devcluster"
		}
	]}`, answer.Body)
	answer = f.get(apitest.Operator, "/memberships")
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, `{"continue": "", "items": []}`, answer.Body, "an empty list is not null")
	f.get(apitest.Mixed, "/memberships?continue=x").RefusedField(t, "query:continue")
}

func TestO13_membershipsLeaveOutTheDeletedUnlessAsked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.world.Join(apitest.WSMember, apitest.Acme, apitest.Gone, v1alpha1.RoleMember)
	for query, want := range map[string][]string{
		"":               {apitest.Dev},
		"?deleted=":      {apitest.Dev},
		"?deleted=false": {apitest.Dev},
		"?deleted=true":  {apitest.Dev, apitest.Gone},
	} {
		require.Equal(t, want, f.get(apitest.WSMember, "/memberships"+query).Items(t, "workspaceUUID"), query)
	}
	body := f.get(apitest.WSMember, "/memberships?deleted=true").Body
	require.Contains(t, body, `"softDeletedAt":"2026-03-01T12:00:00Z","purgeAt":"2026-03-31T12:00:00Z"`)
	require.Equal(t, 1, strings.Count(body, "purgeAt"), "what lives is never purged")
	f.get(apitest.WSMember, "/memberships?deleted=yes").RefusedField(t, "query:deleted")
	require.Len(t, f.world.Index(apitest.WSMember), 2, "the view's own rows are left as they were")
}
