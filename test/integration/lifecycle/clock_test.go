package lifecycle

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// shifted is a clock with a constant offset.
type shifted struct {
	clock.RealClock
	by time.Duration
}

func (c shifted) Now() time.Time { return c.RealClock.Now().Add(c.by) }

func (c shifted) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// The clocks of the two hubs differ by twenty minutes, and both are wrong. The purge
// still starts when the grace period ends by kcp's time.
func TestClock_cascadesNothingEarlyWhenTenMinutesOff(t *testing.T) {
	t.Parallel()
	const off, left = 10 * time.Minute, 20 * time.Second
	for name, c := range map[string]struct{ leads, asked time.Duration }{
		"who cascades is ahead, who was asked is behind": {off, -off},
		"who cascades is behind, who was asked is ahead": {-off, off},
	} {
		t.Run(name, func(t *testing.T) {
			framework.Sample(t, 2)
			t.Parallel()
			root := framework.NewRoot()
			with := func(by time.Duration) func(*server.Options) {
				return func(o *server.Options) { o.Clock, o.DeletionGrace = shifted{by: by}, left }
			}
			leads := framework.StartHub(t, kcp, root, with(c.leads))
			asked := framework.StartHub(t, kcp, root, with(c.asked))
			org := leads.CreateOrg(t, "alice", "ACME")
			ws := leads.CreateWorkspace(t, "alice", org, "dev").Text("uuid")
			p := newPlatform(t, root)
			for _, hub := range []*framework.Hub{leads, asked} {
				framework.Eventually(t, framework.Long, func() error {
					a, err := hub.Try(framework.InWorkspace("alice", http.MethodGet, org, ws, "", nil))
					if err == nil {
						err = framework.Equal(http.StatusOK, a.Code)
					}
					return err
				})
			}

			began := time.Now()
			deleted := asked.Do(t, framework.InWorkspace("alice", http.MethodDelete, org, ws, "", nil), http.StatusOK)
			purgeAt, err := time.Parse(time.RFC3339, deleted.Text("purgeAt"))
			require.NoError(t, err)
			require.WithinDuration(t, began.Add(left), purgeAt, off/2, "people are told kcp's time")
			gone(t, p.Workspaces(p.OrgPath(org)), ws)
			took := time.Since(began)
			t.Logf("gone after %s, with a grace of %s", took.Round(time.Millisecond), left)
			// deletionRequestedAt has a resolution of one second.
			require.Greater(t, took, left-time.Second)
		})
	}
}
