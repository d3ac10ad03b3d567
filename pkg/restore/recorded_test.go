package restore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/restore"
)

func TestOrderFor_trustsNothingThatIsNewerThanTheBackup(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC)
	head := func(replica string) []audit.Head {
		return []audit.Head{{Replica: replica, Log: audit.Rights, Seq: 7, Hash: "h"}}
	}
	recorded := func(replica string, before time.Duration) map[string]audit.Recorded {
		return map[string]audit.Recorded{replica: {At: at.Add(-before), Heads: head(replica)}}
	}
	both := recorded("A", time.Hour)
	both["B"] = audit.Recorded{At: at.Add(-4 * time.Hour), Heads: head("B")}
	for name, tt := range map[string]struct {
		recorded     map[string]audit.Recorded
		renewed      time.Time
		heads, quiet []audit.Head
		backupAt     time.Time
		doubts       string
	}{
		"a replica that ran":           {recorded: recorded("A", time.Hour), heads: head("A"), backupAt: at},
		"and one that had ended":       {recorded: both, heads: head("A"), quiet: head("B"), backupAt: at},
		"only replicas that had ended": {recorded: recorded("B", 4*time.Hour), heads: head("B"), backupAt: at},
		"clocks that differ":           {recorded: recorded("A", -30*time.Second), heads: head("A"), renewed: at.Add(30 * time.Second), backupAt: at},
		"a time that is too late":      {recorded: recorded("A", time.Hour), heads: head("A"), renewed: at.Add(-time.Minute), backupAt: at.Add(-time.Minute)},
		"a hub that led after the backup": {
			recorded: recorded("A", time.Hour), heads: head("A"), renewed: at.Add(2 * time.Minute), backupAt: at,
			doubts: "its Lease was renewed at 2030-01-02T03:02:00Z",
		},
		"a hub that recorded its end": {
			recorded: recorded("A", -2*time.Minute), backupAt: at,
			doubts: "replica A recorded the end of its audit log at 2030-01-02T03:02:00Z",
		},
		"a kcp without any end": {backupAt: at},
	} {
		o := restore.OrderFor(restore.Restored{BackupAt: at, Recorded: tt.recorded, Renewed: tt.renewed})
		require.Equal(t, tt.heads, o.Heads, name)
		require.Equal(t, tt.quiet, o.Quiet, name)
		require.Equal(t, tt.backupAt, o.BackupAt, name)
		if tt.doubts == "" {
			require.Empty(t, o.Doubts, name)
			continue
		}
		require.Len(t, o.Doubts, 1, name)
		require.Contains(t, o.Doubts[0], tt.doubts, name)
		_, err := restore.Read(o)
		require.ErrorContains(t, err, "--accept-lost-history", name)
	}
}

// The ends that hubs record are older than a backup, so its time says what it has.
func TestReadHistory_ofEarlyHeads(t *testing.T) {
	t.Parallel()
	h, quiet, newer := newHub(t), newHub(t), newHub(t)
	h.remove("before", 204)
	quiet.remove("by-one-that-ended", 204)
	order := func(at time.Time, files ...string) restore.Order {
		return restore.Order{BackupAt: at, EarlyHeads: true, Heads: h.log.Heads(), Quiet: quiet.log.Heads(), Files: files}
	}
	before := order(time.Now())
	h.remove("after", 204)
	newer.remove("by-a-new-one", 204)

	before.Files = []string{h.file, newer.file}
	found, err := restore.ReadHistory(before)
	require.NoError(t, err)
	require.Empty(t, found.Unknown, "nobody has the files of the one that ended")
	require.ElementsMatch(t, []string{"after", "by-a-new-one"}, objects(found))
	before.Files = append(before.Files, quiet.file)
	quiet.remove("by-one-that-came-back", 204)
	found, err = restore.ReadHistory(before)
	require.NoError(t, err)
	require.Empty(t, found.Unknown)
	require.ElementsMatch(t, []string{"after", "by-a-new-one", "by-one-that-came-back"}, objects(found))
	before.Files = []string{newer.file}
	found, err = restore.ReadHistory(before)
	require.NoError(t, err)
	require.Len(t, found.Unknown, 1)
	require.Contains(t, found.Unknown[0], "is missing, with the whole chain")

	// All is in a backup that is made long after it.
	later := order(time.Now().Add(time.Hour), h.file, newer.lines(func(lines []string) []string { return lines[1:] }))
	found, err = restore.ReadHistory(later)
	require.NoError(t, err)
	require.Empty(t, found.Unknown, "a chain that nobody named, and that had ended")
	require.Empty(t, found.Events)
	require.Len(t, found.Ends, 1)
	// Without its beginning, a new chain is not whole.
	cut := order(time.Now(), h.file, newer.lines(func(lines []string) []string { return lines[1:] }))
	found, err = restore.ReadHistory(cut)
	require.NoError(t, err)
	require.Len(t, found.Unknown, 1)
	require.Contains(t, found.Unknown[0], "events 1 to 1 are missing; the backup does not name the chain")
}
