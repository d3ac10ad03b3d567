package admin_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/admin"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// store records patches. The world applies them while a handler waits.
type store struct {
	api.Store
	t       testing.TB
	world   *apitest.World
	patches []any
	failure error
	// version is the object's resource version in kcp. The cache may have another one.
	version string
	// raced, if not nil, changes a User in kcp between the read of a compare-and-swap and its
	// write.
	raced func(*v1alpha1.User)
	// behind, if not nil, is the world's last change after a patch of a User.
	behind func(*apitest.World)
	// held are the Memberships in kcp.
	held []v1alpha1.Membership
	// asked is true if the last write of an Organization had a precondition, with which the store reads from kcp.
	asked bool
	// active is the condition of an Organization in kcp after its deletion was requested or withdrawn.
	active bool
}

func (s *store) ChangeUser(ctx context.Context, held *v1alpha1.User, match api.Match, edit func(context.Context, *v1alpha1.User) error) (*v1alpha1.User, error) {
	if s.failure != nil {
		return nil, s.failure
	}
	if s.raced != nil {
		held = held.DeepCopy()
		s.raced(held)
	}
	patch, err := apitest.Patch(ctx, held, s.version, match, edit)
	if err != nil || patch == nil {
		return held, err
	}
	require.NoError(s.t, ctx.Err(), "the write does not end with the request")
	s.patches = append(s.patches, patch)
	u := apitest.MergePatched(s.t, held, patch)
	u.Generation++
	s.world.Later(func(w *apitest.World) { w.PutUser(u) })
	if s.behind != nil {
		s.world.Later(s.behind)
	}
	return u, nil
}

func (s *store) ChangeOrganization(ctx context.Context, held *v1alpha1.Organization, match api.Match, edit func(context.Context, *v1alpha1.Organization) error) (*v1alpha1.Organization, error) {
	s.asked = match != nil
	if s.failure != nil {
		return nil, s.failure
	}
	patch, err := apitest.Patch(ctx, held, s.version, match, edit)
	if err != nil || patch == nil {
		return held, err
	}
	require.NoError(s.t, ctx.Err(), "the write does not end with the request")
	s.patches = append(s.patches, patch)
	old, _ := s.world.Org(held.Name)
	o := apitest.MergePatched(s.t, held, patch)
	if patch["spec"] != nil {
		o.Generation++
	}
	s.world.Later(func(w *apitest.World) { w.PutOrg(o, old.ClusterID) })
	if patch["status"] != nil {
		frozen := o.DeepCopy()
		frozen.Status.Conditions = apitest.Active(s.active)
		s.world.Later(func(w *apitest.World) { w.PutOrg(frozen, old.ClusterID) })
	}
	return o, nil
}

func (s *store) ListMemberships(context.Context, string) ([]v1alpha1.Membership, error) {
	return s.held, s.failure
}

type fixture struct {
	world *apitest.World
	store *store
	http  http.Handler
	// unbound has the users with outdated bindings in kcp.
	unbound map[string]bool
	// wroteEnds has the people whose Sessions were ended, with the number of patches before.
	wroteEnds map[string]int
}

func newFixture(t testing.TB) *fixture {
	f := &fixture{world: apitest.NewWorld(), unbound: map[string]bool{}, wroteEnds: map[string]int{}}
	f.store = &store{t: t, world: f.world, version: apitest.FirstVersion}
	handler := &admin.Handler{
		Deps: f.world.Deps(t, f.store, ""), People: f.world.People, Memberships: f.store, Bound: func(user string) bool { return !f.unbound[user] },
		Storage: v1alpha1.StorageLimits{Bytes: 2 << 30, WorkspaceBytes: 256 << 20, WorkspaceObjects: 20_000, WorkspaceCRDs: 200},
		Orgs: func() []tenancy.Org {
			acme, _ := f.world.Org(apitest.Acme)
			globex, _ := f.world.Org(apitest.Globex)
			return []tenancy.Org{acme, globex}
		},
		WriteEnds: func(_ context.Context, user string) error {
			f.wroteEnds[user] = len(f.store.patches)
			return nil
		},
	}
	f.http = apitest.Router(f.world, handler.Mount)
	return f
}

func (f *fixture) get(as, path string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodGet, Path: "/api/admin/" + path}.Do(f.http)
}

func (f *fixture) remove(as, path string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodDelete, Path: "/api/admin/" + path}.Do(f.http)
}

func (f *fixture) undelete(as, path string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodPost, Path: "/api/admin/" + path + "/undelete"}.Do(f.http)
}

func (f *fixture) patch(as, path, body string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodPatch, Path: "/api/admin/" + path, Body: body}.Do(f.http)
}

const bobsPath, acmesPath = "users/bob", "orgs/" + apitest.Acme

func TestApprove_startsNoSessionAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.patch(apitest.Operator, bobsPath, `{"orgQuota": 7}`).Object(t, http.StatusOK)
	f.patch(apitest.Operator, bobsPath, `{"registration": "Rejected"}`).Object(t, http.StatusOK)
	require.Empty(t, f.wroteEnds)
	f.patch(apitest.Operator, bobsPath, `{"registration": "Approved"}`).Object(t, http.StatusOK)
	require.Equal(t, map[string]int{apitest.Member: 2}, f.wroteEnds, "before the approval")
}

// Two platform admins decide at the same time: the rejection is never overwritten by an approval
// that was asked for before it, and its Sessions stay ended.
func TestApprove_doesNotOverwriteAConcurrentRejection(t *testing.T) {
	t.Parallel()
	const pending = v1alpha1.RegistrationPending
	reject := func(u *v1alpha1.User) { u.Spec.Registration = v1alpha1.RegistrationRejected }
	approve := func(u *v1alpha1.User) { u.Spec.Registration = v1alpha1.RegistrationApproved }
	for name, test := range map[string]struct {
		cached v1alpha1.Registration
		raced  func(*v1alpha1.User)
		body   string
		header http.Header
		code   int
	}{
		"an approval":                {pending, reject, `{"registration": "Approved"}`, nil, http.StatusConflict},
		"an approval, repeated":      {v1alpha1.RegistrationApproved, reject, `{"registration": "Approved"}`, nil, http.StatusConflict},
		"a return to Pending":        {pending, reject, `{"registration": "Pending", "orgQuota": 7}`, nil, http.StatusConflict},
		"a rejection":                {pending, approve, `{"registration": "Rejected"}`, nil, http.StatusOK},
		"an approval of an approved": {pending, approve, `{"registration": "Approved"}`, nil, http.StatusOK},
		"an unrelated change":        {pending, func(u *v1alpha1.User) { u.Spec.OrgQuota = 3 }, `{"registration": "Approved"}`, nil, http.StatusOK},
		"an approval of the version": {pending, reject, `{"registration": "Approved"}`, apitest.IfMatch(apitest.Tag(apitest.FirstVersion)), http.StatusOK},
	} {
		f := newFixture(t)
		u := apitest.Person(apitest.Member)
		u.Spec.Registration = test.cached
		f.world.PutUser(u)
		f.store.raced = test.raced
		a := apitest.Call{As: apitest.Operator, Method: http.MethodPatch, Path: "/api/admin/" + bobsPath, Body: test.body, Header: test.header}.Do(f.http)
		if test.code == http.StatusOK {
			a.Object(t, http.StatusOK)
			continue
		}
		require.Contains(t, a.Refused(t, test.code).Message, "became Rejected", name)
		require.Empty(t, f.store.patches, name)
	}
}

// A rejection has its reason until the person is approved, or rejected again without one.
func TestReject_keepsAReasonForThePerson(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	answer := f.patch(apitest.Operator, bobsPath, `{"registration": "Rejected", "rejectionReason": " use your account at work "}`).Object(t, http.StatusOK)
	require.Equal(t, "use your account at work", answer["rejectionReason"])
	events := f.world.Events()
	require.Equal(t, "use your account at work", events[len(events)-1].Facts.Reason)
	f.patch(apitest.Operator, bobsPath, `{"orgQuota": 7}`).Object(t, http.StatusOK)
	require.Equal(t, "use your account at work", f.get(apitest.Operator, bobsPath).Object(t, http.StatusOK)["rejectionReason"])
	for _, body := range []string{`{"registration": "Rejected"}`, `{"registration": "Approved"}`} {
		f.patch(apitest.Operator, bobsPath, `{"registration": "Rejected", "rejectionReason": "no guests"}`).Object(t, http.StatusOK)
		require.NotContains(t, f.patch(apitest.Operator, bobsPath, body).Object(t, http.StatusOK), "rejectionReason", body)
	}
	for _, body := range []string{
		`{"rejectionReason": "x"}`, `{"registration": "Approved", "rejectionReason": "x"}`, `{"registration": "Rejected", "rejectionReason": null}`,
		`{"registration": "Rejected", "rejectionReason": "a\nb"}`, `{"registration": "Rejected", "rejectionReason": "` + strings.Repeat("x", 513) + `"}`,
	} {
		f.patch(apitest.Operator, bobsPath, body).RefusedField(t, "rejectionReason")
	}
}

// The answer waits until kcp refuses the rejected user.
func TestReject_answersWhenTheBindingsAreGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.unbound[apitest.Member] = true
	f.patch(apitest.Operator, bobsPath, `{"orgQuota": 7}`).Object(t, http.StatusOK)
	require.True(t, f.unbound[apitest.Member], "a quota is no right in kcp")
	f.store.behind = func(*apitest.World) { delete(f.unbound, apitest.Member) }
	f.patch(apitest.Operator, bobsPath, `{"registration": "Rejected"}`).Object(t, http.StatusOK)
	require.False(t, f.unbound[apitest.Member])
}

// An auditor reads people and Organizations, and changes nothing.
func TestAdmin_letsAuditorsReadPeopleAndOrgsOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.world.PutUser(apitest.Person(apitest.Auditor))
	for _, path := range []string{"users", bobsPath, bobsPath + "/memberships", "orgs", acmesPath} {
		f.get(apitest.Auditor, path).Object(t, http.StatusOK)
	}
	f.get(apitest.Auditor, "deletions").Refused(t, http.StatusForbidden)
	f.patch(apitest.Auditor, bobsPath, `{"orgQuota": 7}`).Refused(t, http.StatusForbidden)
	f.patch(apitest.Auditor, "users/"+apitest.Auditor, `{"registration": "Approved"}`).Refused(t, http.StatusForbidden)
	f.patch(apitest.Auditor, acmesPath, `{"workspaceQuota": 7}`).Refused(t, http.StatusForbidden)
	f.remove(apitest.Auditor, acmesPath).Refused(t, http.StatusForbidden)
	f.undelete(apitest.Auditor, acmesPath).Refused(t, http.StatusForbidden)
	require.Empty(t, f.store.patches)
}

// An Org admin is not a platform admin.
func TestAdmin_admitsPlatformAdminsOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	requests := map[string]func(as string) apitest.Answer{
		"users":        func(as string) apitest.Answer { return f.get(as, "users") },
		"user":         func(as string) apitest.Answer { return f.get(as, bobsPath) },
		"memberships":  func(as string) apitest.Answer { return f.get(as, bobsPath+"/memberships") },
		"orgs":         func(as string) apitest.Answer { return f.get(as, "orgs") },
		"deletions":    func(as string) apitest.Answer { return f.get(as, "deletions") },
		"patch user":   func(as string) apitest.Answer { return f.patch(as, bobsPath, `{"orgQuota": 7}`) },
		"patch org":    func(as string) apitest.Answer { return f.patch(as, acmesPath, `{"workspaceQuota": 7}`) },
		"org":          func(as string) apitest.Answer { return f.get(as, acmesPath) },
		"delete org":   func(as string) apitest.Answer { return f.remove(as, acmesPath) },
		"undelete org": func(as string) apitest.Answer { return f.undelete(as, "orgs/"+apitest.Globex) },
	}
	f.world.ChangeOrg(apitest.Globex, func(o *v1alpha1.Organization) { o.Status.Conditions = apitest.Active(true) })
	for name, request := range requests {
		for _, as := range []string{apitest.Admin, apitest.Member, apitest.WSAdmin, apitest.WSMember, apitest.Mixed, apitest.Foreigner} {
			require.Contains(t, request(as).Refused(t, http.StatusForbidden).Message, "platform admin", name)
		}
		request("").Refused(t, http.StatusUnauthorized)
	}
	// Users cannot raise their own quota or approve themselves.
	f.patch(apitest.Member, "users/"+apitest.Member, `{"orgQuota": 100, "registration": "Approved"}`).Refused(t, http.StatusForbidden)
	require.Empty(t, f.store.patches)
	for _, request := range requests {
		request(apitest.Operator).Object(t, http.StatusOK)
	}
}

func TestO8_refusesADeletedPlatformAdmin(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.get(apitest.Operator, "users").Object(t, http.StatusOK)
	f.world.DeleteUser(apitest.Operator)
	f.get(apitest.Operator, "users").Refused(t, http.StatusForbidden)
	f.patch(apitest.Operator, bobsPath, `{"orgQuota": 7}`).Refused(t, http.StatusForbidden)
	require.Empty(t, f.store.patches)
}

func TestUsers_haveExactlyTheirFields(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	at := apitest.Epoch()
	u := apitest.Person(apitest.Admin)
	u.Spec.OrgQuota, u.Spec.Registration = 3, ""
	u.Status.PersonalOrg, u.Status.Phase, u.Status.DeletionRequestedAt = apitest.Globex, v1alpha1.PhaseReady, &at
	f.world.PutUser(u)
	answer := f.get(apitest.Operator, "users?limit=2")
	next, ok := answer.Object(t, http.StatusOK)["continue"].(string)
	require.True(t, ok)
	require.NotEmpty(t, next)
	require.JSONEq(t, `{"continue": "`+next+`", "items": [{
		"name": "alice", "displayName": "Display of alice", "email": "alice@example.com", "registration": "Approved",
		"personalOrg": "22222222-2222-4222-8222-222222222222", "orgQuota": {"limit": 3, "used": 1},
		"createdAt": "2026-03-01T12:00:00Z", "phase": "Ready", "deletionRequestedAt": "2026-03-01T12:00:00Z"
	}, {
		"name": "bob", "displayName": "Display of bob", "email": "bob@example.com", "registration": "Approved",
		"personalOrg": "", "orgQuota": {"limit": 10, "used": 0}, "createdAt": "2026-03-01T12:00:00Z", "phase": "Progressing"
	}]}`, answer.Body)
	require.Equal(t, []string{"carol", "frank"}, f.get(apitest.Operator, "users?limit=2&continue="+next).Items(t, "name"))
}

func TestUsers_areFoundByRegistration(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, registration := range map[string]v1alpha1.Registration{
		apitest.Member: v1alpha1.RegistrationPending, apitest.WSAdmin: v1alpha1.RegistrationPending, apitest.WSMember: v1alpha1.RegistrationRejected, apitest.Mixed: "",
	} {
		u := apitest.Person(name)
		u.Spec.Registration = registration
		f.world.PutUser(u)
	}
	for query, want := range map[string][]string{
		"?registration=Pending":         {"bob", "carol"},
		"?registration=Rejected":        {"walter"},
		"?registration=Approved":        {"alice", "frank", "mallory", "olga"},
		"?registration=Pending&q=CAROL": {"carol"},
		"?registration=":                {"alice", "bob", "carol", "frank", "mallory", "olga", "walter"},
	} {
		require.Equal(t, want, f.get(apitest.Operator, "users"+query).Items(t, "name"), query)
	}
	for _, value := range []string{"pending", "x", "Approved,Pending"} {
		f.get(apitest.Operator, "users?registration="+value).RefusedField(t, "query:registration")
	}
}

// quotas gives Member and Acme quotas of their own.
func (f *fixture) quotas() {
	u := apitest.Person(apitest.Member)
	u.Spec.OrgQuota = 17
	f.world.PutUser(u)
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.WorkspaceQuota = 17 })
}

func TestQuotas_areNumbersThatTheSchemasHold(t *testing.T) {
	t.Parallel()
	for path, field := range map[string]string{bobsPath: "orgQuota", acmesPath: "workspaceQuota"} {
		fallback := map[string]int{"orgQuota": 10, "workspaceQuota": 50}[field]
		for raw, limit := range map[string]int{"1": 1, "4999": 4999, "5000": 5000, "0": fallback, "null": fallback} {
			f := newFixture(t)
			f.quotas()
			answer := f.patch(apitest.Operator, path, `{"`+field+`": `+raw+`}`).Object(t, http.StatusOK)
			quota, ok := answer[field].(map[string]any)
			require.True(t, ok)
			require.InDelta(t, limit, quota["limit"], 0, raw)
			require.Len(t, f.store.patches, 1)
			require.Zero(t, f.world.StillToCome(), "it waited for the view")
		}
		f := newFixture(t)
		for _, raw := range []string{"-1", "5001", "2147483648", "1e3", "1.5", `"7"`, "true", "[]", "{}", `{"limit": 7}`} {
			status := f.patch(apitest.Operator, path, `{"`+field+`": `+raw+`}`).RefusedField(t, field)
			require.Contains(t, status.Message, "5000")
		}
		f.patch(apitest.Operator, path, `{"`+field+`": 1, "`+field+`": 2}`).RefusedField(t, field)
		f.patch(apitest.Operator, path, `{"displayName": "New"}`).RefusedField(t, "displayName")
		require.Empty(t, f.store.patches)
	}
}

func TestPatch_sendsWhatWasGivenAndNoMore(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	for _, c := range []struct {
		path, body string
		want       m
	}{
		{bobsPath, `{}`, nil},
		{bobsPath, `{"orgQuota": 7}`, m{"orgQuota": 7.}},
		{bobsPath, `{"orgQuota": null}`, m{"orgQuota": nil}},
		{bobsPath, `{"registration": "Rejected"}`, m{"registration": "Rejected"}},
		{bobsPath, `{"registration": "Pending", "orgQuota": 0}`, m{"registration": "Pending", "orgQuota": nil}},
		{bobsPath, `{"registration": "Approved", "orgQuota": 9}`, m{"orgQuota": 9.}},
		{acmesPath, `{}`, nil},
		{acmesPath, `{"workspaceQuota": 7}`, m{"workspaceQuota": 7.}},
		{acmesPath, `{"workspaceQuota": null}`, m{"workspaceQuota": nil}},
		{acmesPath, `{"storage": null}`, nil},
		{acmesPath, `{"storage": {"bytes": "1Gi"}}`, m{"storage": m{"bytes": float64(1 << 30)}}},
	} {
		f := newFixture(t)
		f.quotas()
		f.patch(apitest.Operator, c.path, c.body).Object(t, http.StatusOK)
		if c.want == nil {
			require.Empty(t, f.store.patches, c.body)
			continue
		}
		require.Equal(t, []any{m{"spec": c.want}}, f.store.patches, c.body)
	}
}

func TestApprove_admitsAPendingUser(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	u := apitest.Person(apitest.Member)
	u.Spec.Registration = v1alpha1.RegistrationPending
	f.world.PutUser(u)
	for _, raw := range []string{`null`, `""`, `"approved"`, `"Admin"`, `1`, `true`} {
		f.patch(apitest.Operator, bobsPath, `{"registration": `+raw+`}`).RefusedField(t, "registration")
	}
	require.Empty(t, f.store.patches)
	for _, want := range []string{"Approved", "Rejected", "Pending"} {
		answer := f.patch(apitest.Operator, bobsPath, `{"registration": "`+want+`"}`)
		require.Equal(t, want, answer.Object(t, http.StatusOK)["registration"])
		require.Equal(t, []string{"bob"}, f.get(apitest.Operator, "users?q=bob&registration="+want).Items(t, "name"), "it is read at once")
	}
}

func TestPatchOrg_answersNothingOfItsContents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) {
		o.Spec.WorkspaceClaims = []v1alpha1.Claim{{UUID: apitest.Dev}, {UUID: apitest.Nowhere}}
		o.Spec.Billing = &v1alpha1.Billing{CostCenter: "4711"}
	})
	answer := f.patch(apitest.Operator, acmesPath, `{"workspaceQuota": 7}`)
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, `{"uuid": "`+apitest.Acme+`", "displayName": "Acme", "personal": false,
		"billing": {"costCenter": "4711"}, "workspaceQuota": {"limit": 7, "used": 4}, "storage": `+hubsLimits+`,
		"createdAt": "2026-03-01T12:00:00Z", "createdBy": "alice", "phase": "Ready"}`, answer.Body, "what is soft-deleted, and what was only asked for, counts")
}

func TestPatch_writesNothingThatDoesNotExist(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, path := range []string{
		"users/nobody", "users/me", "users/Display%20of%20bob", "users/bob@example.com", "users/..%2Fbob", "users/%2e%2e",
		"orgs/" + apitest.Nowhere, "orgs/Acme", "orgs/" + strings.ToUpper(apitest.Dev), "orgs/%2e%2e",
	} {
		f.patch(apitest.Operator, path, `{}`).Refused(t, http.StatusNotFound)
	}
	require.Empty(t, f.store.patches)
}

func TestPatch_answersAFailureWithoutWaiting(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store.failure = apitest.ErrDown
	for _, path := range []string{bobsPath, acmesPath} {
		f.patch(apitest.Operator, path, `{}`).Down(t)
	}
	require.Zero(t, f.world.Waits())
}

func TestDeletions_tellWhenTheyAreCarriedOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	day := func(n int) *metav1.Time {
		at := metav1.NewTime(apitest.Epoch().AddDate(0, 0, n))
		return &at
	}
	bob, carol := apitest.Person(apitest.Member), apitest.Person(apitest.WSAdmin)
	bob.Status.DeletionRequestedAt = day(1)
	carol.Status.DeletionRequestedAt, carol.DeletionTimestamp = day(-40), day(-10)
	f.world.PutUser(bob)
	f.world.PutUser(carol)
	f.world.ChangeOrg(apitest.Globex, func(o *v1alpha1.Organization) { o.Status.DeletionRequestedAt = day(2) })
	lab := apitest.Workspace(apitest.Globex, apitest.Lab, "Lab", "labcluster")
	lab.Terminating = true
	f.world.PutWorkspace(lab)
	answer := f.get(apitest.Operator, "deletions")
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, `{"continue": "", "items": [
		{"kind": "User", "name": "bob", "displayName": "Display of bob", "deletionRequestedAt": "2026-03-02T12:00:00Z", "purgeAt": "2026-04-01T12:00:00Z", "purging": false},
		{"kind": "User", "name": "carol", "displayName": "Display of carol", "deletionRequestedAt": "2026-01-20T12:00:00Z", "purgeAt": "2026-02-19T12:00:00Z", "purging": true},
		{"kind": "Organization", "name": "`+apitest.Globex+`", "displayName": "Globex", "deletionRequestedAt": "2026-03-03T12:00:00Z", "purgeAt": "2026-04-02T12:00:00Z", "purging": false},
		{"kind": "Workspace", "name": "`+apitest.Gone+`", "orgUUID": "`+apitest.Acme+`", "displayName": "Gone", "deletionRequestedAt": "2026-03-01T12:00:00Z", "purgeAt": "2026-03-31T12:00:00Z", "purging": false},
		{"kind": "Workspace", "name": "`+apitest.Lab+`", "orgUUID": "`+apitest.Globex+`", "displayName": "Lab", "deletionRequestedAt": null, "purgeAt": null, "purging": true}
	]}`, answer.Body)
	require.Equal(t, []string{"Gone"}, f.get(apitest.Operator, "deletions?q=gone").Items(t, "displayName"))
	f.get(apitest.Operator, "deletions?limit=501").RefusedField(t, "query:limit")
}

func TestReject_hasAReceiptInItsAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	reject := apitest.Call{As: apitest.Operator, Method: http.MethodPatch, Path: "/api/admin/" + bobsPath, Body: `{"registration": "Rejected"}`}
	require.NotContains(t, reject.Do(f.http).Object(t, http.StatusOK), "receipt", "nobody asked for it")
	f = newFixture(t)
	reject.Header = apitest.Prefer()
	f.world.Receipted(t, reject.Do(f.http), 1)
}
