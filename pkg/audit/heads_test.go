package audit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

func TestRecordHeads_keepsTheEndOfEachChain(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	head := func(replica, log string, seq uint64, hash string) audit.Head {
		return audit.Head{Replica: replica, Log: log, Seq: seq, Hash: hash}
	}
	text, cut, err := audit.RecordHeads("", now, []audit.Head{head("A", audit.Rights, 3, "c"), head("A", audit.Writes, 0, "")})
	require.NoError(t, err)
	require.Empty(t, cut)
	text, cut, err = audit.RecordHeads(text, now.Add(time.Hour), []audit.Head{head("B", audit.Rights, 1, "x"), head("B", audit.Writes, 9, "y")})
	require.NoError(t, err)
	require.Empty(t, cut)
	text, cut, err = audit.RecordHeads(text, now.Add(2*time.Hour), []audit.Head{head("A", audit.Rights, 5, "e"), head("A", audit.Writes, 1, "w")})
	require.NoError(t, err)
	require.Empty(t, cut)
	want := []audit.Head{head("A", audit.Rights, 5, "e"), head("A", audit.Writes, 1, "w"), head("B", audit.Rights, 1, "x"), head("B", audit.Writes, 9, "y")}
	got, err := audit.RecordedHeads(text)
	require.NoError(t, err)
	require.Equal(t, want, got)

	// The end was cut off, or exchanged: what was recorded stays.
	again, cut, err := audit.RecordHeads(text, now.Add(3*time.Hour), []audit.Head{head("A", audit.Rights, 4, "d"), head("A", audit.Writes, 1, "v")})
	require.NoError(t, err)
	require.Equal(t, want[:2], cut)
	got, err = audit.RecordedHeads(again)
	require.NoError(t, err)
	require.Equal(t, want, got)

	// Replicas that were heard of longest ago make room.
	for i := range 60 {
		text, _, err = audit.RecordHeads(text, now.Add(time.Duration(i+4)*time.Hour), []audit.Head{head(fmt.Sprintf("R%02d", i), audit.Rights, 1, "x")})
		require.NoError(t, err)
	}
	got, err = audit.RecordedHeads(text)
	require.NoError(t, err)
	require.Len(t, got, 50)
	require.Equal(t, "R10", got[0].Replica)
	require.Less(t, len(text), 16<<10)

	for _, garbage := range []string{"x", `[{"heads":["A:rights:x:y"]}]`, `[{"heads":["A:other:1:y"]}]`} {
		_, _, err = audit.RecordHeads(garbage, now, nil)
		require.Error(t, err)
		_, err = audit.RecordedHeads(garbage)
		require.Error(t, err)
	}
}
