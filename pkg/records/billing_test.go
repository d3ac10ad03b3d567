package records_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/records"
)

// workspaces are those that there are, by UUID.
type workspaces struct {
	mu   sync.Mutex
	held map[string]records.BilledWorkspace
	full error
}

func (w *workspaces) Billed(p records.Place) (records.BilledWorkspace, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	held, ok := w.held[p.Workspace]
	return held, ok && held.Org == p.Org
}

func (w *workspaces) Places() (places []records.Place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, held := range w.held {
		places = append(places, records.Place{Org: held.Org, Workspace: held.Workspace})
	}
	return places
}

func (w *workspaces) room() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.full
}

func (w *workspaces) fill(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.full = err
}

// put changes a Workspace, or removes it if it has no phase, and tells those who record it.
func (w *workspaces) put(uuid, costCenter, phase string, told ...*records.Billing) {
	w.change(records.BilledWorkspace{
		Workspace: uuid, Name: "Web", Org: "acme", OrgName: "ACME", Path: "root:" + uuid, CostCenter: costCenter, Labels: `{"team":"web"}`, Phase: phase,
	}, told...)
}

// change is put with all that a Workspace has.
func (w *workspaces) change(to records.BilledWorkspace, told ...*records.Billing) {
	w.mu.Lock()
	w.held[to.Workspace] = to
	if to.Phase == "" {
		delete(w.held, to.Workspace)
	}
	w.mu.Unlock()
	for _, b := range told {
		b.Changed(records.Place{Org: to.Org, Workspace: to.Workspace})
	}
}

// recording runs a Billing until the test or the returned func ends it. It has compared the present before.
func recording(t *testing.T, db *records.DB, w *workspaces) (*records.Billing, func()) {
	t.Helper()
	return recordingAt(t, db, w, clock.RealClock{})
}

// recordingAt is recording with a clock.
func recordingAt(t *testing.T, db *records.DB, w *workspaces, k clock.PassiveClock) (*records.Billing, func()) {
	t.Helper()
	b, err := records.NewBilling(db, w, k, w.room, prometheus.NewRegistry())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.Run(ctx)
	}()
	stop := func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return b, stop
}

// rows returns the cost centers and phases of a Workspace in their order. One that has ended has a bracket behind it.
func rows(own *sql.DB, uuid string) (found []string, err error) {
	all, err := own.Query(`SELECT cost_center, phase, labels, CAST(valid_from AS text), COALESCE(CAST(valid_to AS text), '')
		FROM billing_workspaces WHERE workspace = '` + uuid + "' ORDER BY valid_from")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, all.Close()) }()
	ended := ""
	for all.Next() {
		var costCenter, phase, labels, from, to string
		if err := all.Scan(&costCenter, &phase, &labels, &from, &to); err != nil {
			return nil, err
		}
		if labels != `{"team":"web"}` || from < ended || to != "" && to <= from {
			return nil, fmt.Errorf("%s from %s to %s, after one to %s", labels, from, to, ended)
		}
		text := strings.TrimSpace(costCenter + " " + phase)
		if ended = to; to != "" {
			text += "]"
		}
		found = append(found, text)
	}
	return found, all.Err()
}

// requireRows waits until a Workspace has these rows.
func requireRows(t *testing.T, own *sql.DB, uuid string, want ...string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		found, err := rows(own, uuid)
		assert.NoError(c, err)
		assert.Equal(c, want, found)
	}, 20*time.Second, 10*time.Millisecond)
}

func TestBilling_keepsWhatAWorkspaceWasAndWhen(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		w := &workspaces{held: map[string]records.BilledWorkspace{}}
		w.put("w1", "1", "Active")
		db := open(t, url)
		own := raw(t, url)
		b, stop := recording(t, db, w)
		requireRows(t, own, "w1", "1 Active")
		w.put("w1", "2", "Active", b)
		w.put("w1", "2", "Active", b)
		w.put("w1", "2", "Deleted", b)
		w.put("w2", "", "Active", b)
		requireRows(t, own, "w1", "1 Active]", "2 Active]", "2 Deleted")
		requireRows(t, own, "w2", "Active")

		// While nobody looks, one is purged, one changes and one comes; the next leader puts it right.
		stop()
		w.put("w1", "", "")
		w.put("w2", "7", "Active")
		w.put("w3", "3", "Active")
		b, _ = recording(t, db, w)
		requireRows(t, own, "w1", "1 Active]", "2 Active]", "2 Deleted]")
		requireRows(t, own, "w2", "Active]", "7 Active")
		requireRows(t, own, "w3", "3 Active")

		// What changes while the database takes nothing is there afterwards, with every step.
		w.fill(fmt.Errorf("no room"))
		for _, center := range []string{"4", "5", "4"} {
			w.put("w3", center, "Active", b)
		}
		w.fill(nil)
		requireRows(t, own, "w3", "3 Active]", "4 Active]", "5 Active]", "4 Active")
	})
}

// Two leaders, of which one does not know yet that its term is over, record one history.
func TestBilling_ofTwoLeadersIsOneHistory(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		w := &workspaces{held: map[string]records.BilledWorkspace{}}
		w.put("w1", "0", "Active")
		db := open(t, url)
		one, _ := recording(t, db, w)
		own := raw(t, url)
		requireRows(t, own, "w1", "0 Active")
		other, _ := recording(t, db, w)
		for i := range 20 {
			w.put("w1", fmt.Sprint(i+1), "Active", one, other)
		}
		require.Eventually(t, func() bool {
			found, err := rows(own, "w1")
			open := slices.IndexFunc(found, func(row string) bool { return !strings.HasSuffix(row, "]") })
			return err == nil && open == len(found)-1 && found[open] == "20 Active"
		}, 20*time.Second, 20*time.Millisecond)
	})
}
