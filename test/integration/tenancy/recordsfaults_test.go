package tenancy

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/doubles/pgtest"
	"github.com/faroshq/kedge-hub/test/framework"
)

// databaseFault is what happens to the records database while people work.
type databaseFault struct {
	name       string
	begin, end func(t testing.TB, db *pgtest.Server)
}

// statements returns a step that runs each statement by itself: some must not be in a transaction.
func statements(all ...string) func(t testing.TB, db *pgtest.Server) {
	return func(t testing.TB, db *pgtest.Server) {
		t.Helper()
		for _, statement := range all {
			require.NoError(t, db.SQL(t.Context(), "postgres", statement), statement)
		}
	}
}

func databaseFaults() []databaseFault {
	const reload = "SELECT pg_reload_conf()"
	return []databaseFault{
		{"killed", func(_ testing.TB, db *pgtest.Server) { db.Kill() }, func(t testing.TB, db *pgtest.Server) {
			require.NoError(t, db.Resume(t.Context()))
		}},
		{
			"read-only", statements("ALTER SYSTEM SET default_transaction_read_only = on", reload),
			statements("ALTER SYSTEM RESET default_transaction_read_only", reload),
		},
		{
			"slow", statements(
				"CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(2); RETURN NULL; END'",
				"CREATE TRIGGER slow AFTER INSERT ON audit_events FOR EACH STATEMENT EXECUTE FUNCTION slowly()",
			), statements("DROP TRIGGER slow ON audit_events"),
		},
		{
			"full", statements(
				"CREATE FUNCTION refuses() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION USING ERRCODE = ''disk_full''; END'",
				"CREATE TRIGGER refuse BEFORE INSERT ON audit_events FOR EACH STATEMENT EXECUTE FUNCTION refuses()",
			), statements("DROP TRIGGER refuse ON audit_events"),
		},
		{"without its table", statements("DROP TABLE audit_events CASCADE"), func(testing.TB, *pgtest.Server) {}},
	}
}

// People do not notice what happens to the records database, and afterwards it has each of their requests once,
// whichever of two hubs is asked.
func TestRecords_faultsOfTheDatabaseLoseNothing(t *testing.T) {
	t.Parallel()
	pgtest.Missing(t)
	db, err := pgtest.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Stop()) })
	hubs := framework.StartHubs(t, kcp, framework.NewRoot(), 2, func(o *server.Options) {
		// The test reads the log again and again.
		o.Records.Database, o.Limits.AuditReadsPerPerson = db.URL("postgres"), 0
	})
	org := hubs[0].CreateOrg(t, "alice", "ACME")
	people := []string{"bob", "carol"}
	framework.SignUp(t, hubs[0], people...)
	framework.Eventually(t, framework.Long, func() error {
		a, err := hubs[1].Try(framework.InOrg("alice", http.MethodGet, org, "", nil))
		return framework.Check(err == nil && a.Code == http.StatusOK, "%v %s", err, a.Raw)
	})
	audited, took := map[string]int{}, map[string][]time.Duration{}
	work := func(during string) {
		for i, hub := range hubs {
			for _, c := range []call{
				framework.InOrg("alice", http.MethodPatch, org, "", map[string]string{"displayName": fmt.Sprintf("%s at %d", during, i)}),
				framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding(people[i], "member")),
				framework.InOrg("alice", http.MethodDelete, org, "/members/"+people[i], nil),
			} {
				began := time.Now()
				a := hub.Do(t, c, http.StatusOK, http.StatusCreated, http.StatusNoContent)
				took[during] = append(took[during], time.Since(began))
				audited[a.Header.Get("X-Request-Id")] = a.Code
			}
		}
	}
	for range 3 {
		work("before")
	}
	requireAudited(t, hubs, org, audited)
	for _, fault := range databaseFaults() {
		fault.begin(t, db)
		for range 3 {
			work(fault.name)
		}
		fault.end(t, db)
		work("after " + fault.name)
		requireAudited(t, hubs, org, audited)
	}
	for during, all := range took {
		slices.Sort(all)
		t.Logf("%s: %d changes, half of them within %s", during, len(all), all[len(all)/2])
	}
}
