package access_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/access"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const (
	path  = "/api/orgs/" + apitest.Acme + "/access"
	inDev = "/api/orgs/" + apitest.Acme + "/workspaces/" + apitest.Dev + "/access"
)

type question struct {
	org, workspace string
	at             time.Time
}

// bed is a hub with records that the test says.
type bed struct {
	http.Handler
	past    tenancy.PastAccess
	failing error
	asked   []question
	now     time.Time
}

func (b *bed) AccessAt(_ context.Context, org, workspace string, at time.Time) (tenancy.PastAccess, error) {
	b.asked = append(b.asked, question{org, workspace, at})
	return b.past, b.failing
}

func newBed(t testing.TB, records func(*bed) access.Records) *bed {
	t.Helper()
	limits, err := httpmw.NewLimits(clocktesting.NewFakePassiveClock(apitest.Now()), prometheus.NewRegistry())
	require.NoError(t, err)
	b, w := &bed{}, apitest.NewWorld()
	w.PutUser(apitest.Person(apitest.Auditor))
	h := &access.Handler{Records: records(b), LimitReads: limits.PerPerson("audit_reads_per_person", 2), Deps: w.Deps(t, nil, "")}
	b.now = h.Clock.Now()
	b.Handler = apitest.Router(w, func(r chi.Router) { h.Mount(r) })
	return b
}

func withRecords(b *bed) access.Records { return b }

func ask(h http.Handler, as, query string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodGet, Path: path + query, Org: apitest.Acme}.Do(h)
}

func askInDev(h http.Handler, as, query string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodGet, Path: inDev + query, Org: apitest.Acme, Workspace: apitest.Dev}.Do(h)
}

func TestAccess_showsWhoCouldDoWhatAndThroughWhat(t *testing.T) {
	t.Parallel()
	b := newBed(t, withRecords)
	since, end := time.Date(2020, 3, 1, 10, 0, 0, 0, time.UTC), time.Date(2030, 3, 1, 10, 0, 0, 0, time.UTC)
	b.past = tenancy.PastAccess{Since: since, AsOf: since.Add(time.Hour), Active: true, Holders: []tenancy.Holder{
		{User: "alice", Role: v1alpha1.RoleAdmin,
			Through:        []tenancy.HeldSource{{Source: tenancy.Source{Through: tenancy.ThroughMembership, Role: v1alpha1.RoleAdmin}, Sources: []string{"hand"}, Since: since}},
			EveryWorkspace: []tenancy.HeldSource{{Source: tenancy.Source{Through: tenancy.ThroughOrgAdmin, Role: v1alpha1.RoleAdmin}, Since: since}}},
		{Workspace: apitest.Dev, User: "mona", Manager: true},
		{Workspace: apitest.Dev, User: "bob", Role: v1alpha1.RoleMember, Sudo: true, Roles: []v1alpha1.RoleRef{{Name: "dev", Namespace: "web"}},
			Through: []tenancy.HeldSource{{Source: tenancy.Source{Through: tenancy.ThroughMembership, Role: v1alpha1.RoleMember}, Since: since, ExpiresAt: &end}}},
		{Workspace: apitest.Dev, Bot: apitest.Dev, Name: "CI", Role: v1alpha1.RoleViewer,
			Through: []tenancy.HeldSource{{Source: tenancy.Source{Through: tenancy.ThroughBot, Role: v1alpha1.RoleViewer}, Since: since}},
			Tokens:  []tenancy.HeldToken{{ID: apitest.Acme, Name: "laptop", Since: since, ExpiresAt: &end}}},
	}}
	answer := ask(b, apitest.Admin, "?at=2020-03-01T12:00:00%2B01:00").Object(t, http.StatusOK)
	const text, last = "2020-03-01T10:00:00Z", "2030-03-01T10:00:00Z"
	require.Equal(t, map[string]any{
		"at": "2020-03-01T11:00:00Z", "since": text, "asOf": "2020-03-01T11:00:00Z", "active": true, "items": []any{
			map[string]any{"user": "alice", "role": "admin",
				"through":        []any{map[string]any{"through": "Membership", "role": "admin", "sources": []any{"hand"}, "since": text}},
				"everyWorkspace": []any{map[string]any{"through": "OrgAdmin", "role": "admin", "since": text}}},
			map[string]any{"workspace": apitest.Dev, "user": "mona", "manager": true, "through": []any{}},
			map[string]any{"workspace": apitest.Dev, "user": "bob", "role": "member", "sudo": true, "roles": []any{map[string]any{"name": "dev", "namespace": "web"}},
				"through": []any{map[string]any{"through": "Membership", "role": "member", "since": text, "expiresAt": last}}},
			map[string]any{"workspace": apitest.Dev, "bot": apitest.Dev, "displayName": "CI", "role": "viewer",
				"through": []any{map[string]any{"through": "Bot", "role": "viewer", "since": text}},
				"tokens":  []any{map[string]any{"id": apitest.Acme, "name": "laptop", "since": text, "expiresAt": last}}},
		},
	}, answer)
}

func TestAccess_asksForTheTenantOfThePathAndTheMoment(t *testing.T) {
	t.Parallel()
	b := newBed(t, withRecords)
	then := time.Date(2020, 3, 1, 11, 34, 56, 0, time.UTC)
	for query, at := range map[string]time.Time{"": b.now.UTC(), "?at=2020-03-01T12:34:56%2B01:00": then, "?at=" + b.now.UTC().Format(time.RFC3339): b.now.UTC().Truncate(time.Second)} {
		b.asked = nil
		ask(b, apitest.Admin, query).Object(t, http.StatusOK)
		askInDev(b, apitest.WSAdmin, query).Object(t, http.StatusOK)
		require.Equal(t, []question{{apitest.Acme, "", at}, {apitest.Acme, apitest.Dev, at}}, b.asked, query)
	}
}

func TestAccessOfThePlatform_isForAuditors(t *testing.T) {
	t.Parallel()
	b := newBed(t, withRecords)
	askAll := func(as, query string) apitest.Answer {
		return apitest.Call{As: as, Method: http.MethodGet, Path: "/api/admin/access" + query}.Do(b)
	}
	then := time.Date(2020, 3, 1, 12, 0, 0, 0, time.UTC)
	// An Organization that is purged is not in the caches.
	askAll(apitest.Auditor, "?org="+apitest.Nowhere+"&at=2020-03-01T12:00:00Z").Object(t, http.StatusOK)
	askAll(apitest.Operator, "?org="+apitest.Acme+"&workspace="+apitest.Dev+"&at=2020-03-01T12:00:00Z").Object(t, http.StatusOK)
	require.Equal(t, []question{{apitest.Nowhere, "", then}, {apitest.Acme, apitest.Dev, then}}, b.asked)
	for query, field := range map[string]string{
		"": "org", "?org=acme": "org", "?workspace=" + apitest.Dev: "org", "?org=" + apitest.Acme + "&workspace=dev": "workspace", "?org=" + apitest.Acme + "&at=x": "at",
	} {
		askAll(apitest.Auditor, query).RefusedField(t, "query:"+field)
	}
	for _, as := range []string{apitest.Admin, apitest.Member, apitest.Foreigner} {
		askAll(as, "?org="+apitest.Acme).Refused(t, http.StatusForbidden)
	}
	ask(b, apitest.Auditor, "").Refused(t, http.StatusForbidden)
}

func TestAccess_saysWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	b := newBed(t, withRecords)
	answer := ask(b, apitest.Admin, "").Object(t, http.StatusOK)
	require.Contains(t, answer["message"], "not recorded yet")
	require.Equal(t, []any{}, answer["items"])
	b.past.Since = time.Date(2020, 3, 1, 0, 0, 0, 0, time.UTC)
	answer = ask(b, apitest.Admin, "?at=2020-02-29T00:00:00Z").Object(t, http.StatusOK)
	require.Equal(t, "2020-03-01T00:00:00Z", answer["since"])
	require.Contains(t, answer["message"], "begin at 2020-03-01T00:00:00Z, and nothing earlier is known")
	require.NotContains(t, answer, "asOf")
	require.Equal(t, false, answer["active"])
}

func TestAccess_isForAdmins(t *testing.T) {
	t.Parallel()
	b := newBed(t, withRecords)
	for _, as := range []string{apitest.Member, apitest.WSAdmin, apitest.Foreigner} {
		ask(b, as, "").Refused(t, http.StatusForbidden)
	}
	askInDev(b, apitest.Member, "").Refused(t, http.StatusForbidden)
	askInDev(b, apitest.Foreigner, "").Refused(t, http.StatusForbidden)
	require.Empty(t, b.asked)
}

func TestAccess_namesTheParameterAtFault(t *testing.T) {
	t.Parallel()
	b := newBed(t, withRecords)
	for _, query := range []string{"?at=yesterday", "?at=2020-03-01", "?at=%00", "?at=2020-03-01T00:00:00Z&at=2020-03-01T00:00:00Z"} {
		ask(b, apitest.Admin, query).RefusedField(t, "query:at")
	}
	for _, ahead := range []string{b.now.Add(time.Second).UTC().Format(time.RFC3339), "9999-12-31T00:00:00Z"} {
		refused := askInDev(b, apitest.Admin, "?at="+ahead).Refused(t, http.StatusUnprocessableEntity)
		require.Equal(t, "query:at", refused.Details.Causes[0].Field)
	}
	require.Empty(t, b.asked)
}

func TestAccess_isLimited(t *testing.T) {
	t.Parallel()
	b := newBed(t, withRecords)
	for range 20 {
		ask(b, apitest.Admin, "").Object(t, http.StatusOK)
	}
	ask(b, apitest.Admin, "").Refused(t, http.StatusTooManyRequests)
}

func TestAccess_withoutADatabaseNamesTheFlag(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(*bed) access.Records { return nil })
	require.Contains(t, ask(b, apitest.Admin, "").Refused(t, http.StatusNotImplemented).Message, "--database")
	ask(b, apitest.Member, "").Refused(t, http.StatusForbidden)
	b = newBed(t, withRecords)
	b.failing = errs.Wrap(errs.Unavailable, errors.New("dial tcp 192.0.2.1:5432: connection refused"), "the records database does not answer")
	require.NotContains(t, ask(b, apitest.Admin, "").Refused(t, http.StatusServiceUnavailable).Message, "192.0.2.1")
}
