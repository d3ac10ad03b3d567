package audit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

func TestPosition_isReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	p := audit.Position{Time: time.Date(2026, 11, 21, 4, 5, 1, 200_000_000, time.UTC), Replica: "K3VJ5UQ2ZC7XWNB4LHT6RAYDPE", Log: audit.Writes, Seq: 7}
	require.Equal(t, "2026-11-21T04:05:01.200000Z/K3VJ5UQ2ZC7XWNB4LHT6RAYDPE/writes/7", p.String())
	got, ok := audit.ParsePosition(p.String())
	require.True(t, ok)
	require.Equal(t, p, got)
}

func TestParsePosition_refusesWhatNobodyWrote(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "7", "2026-11-21T04:05:01.200000Z/A/rights", "2026-11-21T04:05:01.200000Z/A/rights/-1", "2026-11-21T04:05:01.200000Z/A/rights/07",
		"2026-11-21T04:05:01.200000Z/A/rights/9223372036854775808", "2026-11-21T04:05:01Z/A/rights/1", "0000-11-21T04:05:01.200000Z/A/rights/1",
		"2026-11-21T04:05:01.200000Z/A/other/1", "2026-11-21T04:05:01.200000Z/A'/rights/1", "2026-11-21T04:05:01.200000Z/A\x00/rights/1", "infinity/A/rights/1",
		"2026-11-21T04:05:01.200000Z/A/rights/1/1",
	} {
		_, ok := audit.ParsePosition(text)
		require.False(t, ok, text)
	}
}

func TestQuery_hasATenant(t *testing.T) {
	t.Parallel()
	_, _, ok := audit.Query{Filter: audit.Filter{Workspace: "w"}}.Tenant()
	require.False(t, ok)
	in := audit.OfWorkspace("o", "w", audit.Filter{})
	require.True(t, in.Selects(audit.Event{Org: "o", Workspace: "w"}))
	for _, e := range []audit.Event{{Org: "o"}, {Org: "p", Workspace: "w"}, {Org: "o\x00", Workspace: "w"}, {Org: "o", Workspace: "w", Outsider: true}} {
		require.False(t, in.Selects(e), "%v", e)
	}
	require.True(t, audit.OfOrg("o", audit.Filter{}).Selects(audit.Event{Org: "o", Workspace: "w"}))
}
