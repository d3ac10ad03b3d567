package records_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

// refuses waits until the shipper of a replica says that its files are not those of the database.
func (r *replica) refuses(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		err := r.shipper.Err()
		return err != nil && strings.Contains(err.Error(), "restart the hub while the database answers")
	}, time.Minute, 10*time.Millisecond)
	require.Positive(t, metric(t, r.registry, "kedge_records_lag_seconds"))
}

// Files from before what the database has, as a loss of power or a copy leaves them, are refused, also once they have as
// many events: none of them is skipped, and none is mixed with those of the database.
func TestShipper_refusesFilesThatAreOlderThanTheDatabase(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		db, dir, older := open(t, url), t.TempDir(), t.TempDir()
		r := start(t, db, dir)
		r.write(t, 3)
		r.settle(t)
		r.stop()
		require.NoError(t, os.CopyFS(older, os.DirFS(dir)))
		r = start(t, db, dir)
		r.write(t, 5)
		r.settle(t)
		r.stop()
		for _, written := range []int{0, 5, 1} {
			forked := start(t, db, older)
			forked.write(t, written)
			forked.refuses(t)
			forked.stop()
			requireWhole(t, url, r)
		}
		// The files that the database knows go on, and files elsewhere are no obstacle.
		r = start(t, db, dir)
		anew := start(t, db, t.TempDir())
		for _, each := range []*replica{r, anew} {
			each.write(t, 2)
			each.settle(t)
			each.stop()
		}
		requireWhole(t, url, r, anew)
	})
}

// Two hubs with copies of the same files write to one database: the events of one of them are stored, and the other says
// that its are not.
func TestShipper_refusesToShareAChain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		db, dir, other := open(t, url), t.TempDir(), t.TempDir()
		r := start(t, db, dir)
		r.write(t, 3)
		r.settle(t)
		r.stop()
		require.NoError(t, os.CopyFS(other, os.DirFS(dir)))
		one, two := start(t, db, dir), start(t, db, other)
		ready := func() bool { return one.shipper.Err() == nil && two.shipper.Err() == nil }
		require.Eventually(t, ready, time.Minute, time.Millisecond)
		one.write(t, 2)
		one.settle(t)
		two.write(t, 4)
		two.refuses(t)
		one.write(t, 2)
		one.settle(t)
		requireWhole(t, url, one)
	})
}

// A database that has events, and has forgotten how many, takes no others under their numbers.
func TestShipper_storesNoOtherEventUnderANumber(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		db, dir, older := open(t, url), t.TempDir(), t.TempDir()
		r := start(t, db, dir)
		r.write(t, 1)
		r.settle(t)
		r.stop()
		require.NoError(t, os.CopyFS(older, os.DirFS(dir)))
		r = start(t, db, dir)
		r.write(t, 1)
		r.settle(t)
		r.stop()
		_, err := raw(t, url).Exec("DELETE FROM audit_heads")
		require.NoError(t, err)
		forked := start(t, db, older)
		forked.write(t, 3)
		forked.refuses(t)
		forked.stop()
		requireWhole(t, url, r)
	})
}

// Files of which the database has everything are put aside before the hub appends to them, and it begins new chains.
func TestOutlived_isOfFilesThatTheDatabaseHasAllOf(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		db, dir := open(t, url), t.TempDir()
		r := start(t, db, dir)
		r.write(t, 3)
		r.settle(t)
		r.stop()
		older, half := t.TempDir(), t.TempDir()
		require.NoError(t, os.CopyFS(older, os.DirFS(dir)))
		require.NoError(t, os.CopyFS(half, os.DirFS(dir)))
		of := func(dir string) (audit.Options, bool) {
			o := audit.Options{File: audit.DefaultFile(dir), MaxSize: 1}
			ends, err := audit.Ends(o)
			require.NoError(t, err)
			outlived, err := db.Outlived(t.Context(), ends)
			require.NoError(t, err)
			return o, outlived
		}
		requireOutlived := func(want bool, dir string) audit.Options {
			t.Helper()
			o, outlived := of(dir)
			require.Equal(t, want, outlived)
			return o
		}
		requireOutlived(false, t.TempDir())
		requireOutlived(false, dir)
		r = start(t, db, dir)
		r.write(t, 5)
		r.settle(t)
		r.stop()
		requireOutlived(false, dir)
		o := requireOutlived(true, half)
		require.NoError(t, os.Remove(o.File))
		requireOutlived(true, half)

		o = requireOutlived(true, older)
		folder, err := audit.SetAside(o, time.Now())
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(folder, "rights.jsonl"))
		require.FileExists(t, filepath.Join(folder, "writes.jsonl"))
		anew := start(t, db, older)
		require.NotEqual(t, r.Heads()[0].Replica, anew.Heads()[0].Replica)
		anew.write(t, 2)
		anew.settle(t)
		anew.stop()
		requireWhole(t, url, r, anew)

		// What the database does not have stays where it is.
		l, closing, err := audit.Open(t.Context(), audit.Options{File: audit.DefaultFile(half), MaxSize: 1}, prometheus.NewRegistry())
		require.NoError(t, err)
		require.NoError(t, l.Write(audit.Event{Action: "POST /api/orgs"}))
		closing()
		requireOutlived(false, half)
	})
}
