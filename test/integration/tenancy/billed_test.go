package tenancy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/doubles/pgtest"
	"github.com/faroshq/kedge-hub/test/framework"
)

// billed are the rows of a Workspace in the pushed table, the oldest first.
type billed struct {
	starts, ends []time.Time
	costCenter   []string
	writes       int
}

func readBilled(ctx context.Context, url, workspace string) (b billed, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	rows, err := c.Query(ctx, `SELECT starts, ends, cost_center, writes FROM "finance"."usage" WHERE workspace_uuid = $1 ORDER BY starts`, workspace)
	if err != nil {
		return b, err
	}
	defer rows.Close()
	for rows.Next() {
		var starts, ends time.Time
		var center string
		var writes int
		if err := rows.Scan(&starts, &ends, &center, &writes); err != nil {
			return b, err
		}
		b.starts, b.ends, b.costCenter, b.writes = append(b.starts, starts), append(b.ends, ends), append(b.costCenter, center), b.writes+writes
	}
	return b, rows.Err()
}

// whole checks that the rows follow upon each other: no interval is missing or there twice.
func (b billed) whole() error {
	for i := 1; i < len(b.starts); i++ {
		if !b.starts[i].Equal(b.ends[i-1]) {
			return fmt.Errorf("a row from %s follows one to %s", b.starts[i], b.ends[i-1])
		}
	}
	return nil
}

// What two hubs counted is pushed once to the table of others, over a restart of the database and the end of a hub.
func TestBilling_twoHubsPushEachIntervalOnce(t *testing.T) {
	t.Parallel()
	pgtest.Missing(t)
	postgres, err := pgtest.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, postgres.Stop()) })
	table, err := records.ParseBillingTable("finance.usage")
	require.NoError(t, err)
	require.NoError(t, postgres.SQL(t.Context(), "postgres", "CREATE SCHEMA finance; "+table.Create()))
	hubs := framework.StartHubs(t, kcp, framework.NewRoot(), 2, func(o *server.Options) {
		o.Records.Database, o.Records.UsageInterval, o.Billing.TableName = postgres.URL("postgres"), 10*time.Second, "finance.usage"
	})
	org := hubs[0].CreateOrg(t, "alice", "ACME")
	hubs[0].Do(t, framework.InOrg("alice", http.MethodPatch, org, "", map[string]any{"billing": map[string]string{"costCenter": "4711"}}), http.StatusOK)
	ws := hubs[0].CreateWorkspace(t, "alice", org, "billed")
	writes := 0
	write := func(hub *framework.Hub) {
		hub.Enters(t, "alice", ws.Text("clusterID"))
		for range 3 {
			writes++
			body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"made-%d"}}`, writes)
			hub.Do(t, call{
				As: "alice", Method: http.MethodPost, Path: "/clusters/" + ws.Text("clusterID") + "/api/v1/namespaces/default/configmaps", Body: body,
			}, http.StatusCreated)
		}
	}
	var was billed
	pushed := func() {
		framework.Eventually(t, framework.Long, func() error {
			b, err := readBilled(t.Context(), postgres.URL("postgres"), ws.Text("uuid"))
			if err != nil {
				return err
			}
			was = b
			return errors.Join(b.whole(), framework.Equal(writes, b.writes))
		})
	}
	for _, hub := range hubs {
		write(hub)
	}
	pushed()
	first := len(was.starts)
	require.Positive(t, first)

	// The database fails while the hubs count, and comes back.
	postgres.Kill()
	for _, hub := range hubs {
		write(hub)
	}
	require.NoError(t, postgres.Resume(t.Context()))
	pushed()

	// Either hub was the leader: the other goes on where it ended.
	hubs[0].Stop(t)
	write(hubs[1])
	pushed()
	require.Greater(t, len(was.starts), first)
	for _, center := range was.costCenter {
		require.Equal(t, "4711", center)
	}
}
