package cli_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const usageList = `{"replicas":[],"continue":"","items":[{"from":"2026-11-21T04:00:00Z","to":"2026-11-21T05:00:00Z","objects":7,"bytes":1234567,
	"requests":{"read":11,"write":12,"watch":13},"bytesOut":99,"people":3,"bots":1,"streamSeconds":3600,"size":{"members":4,"workspaces":2,"entries":1}}]}`

func TestUsage_listsHoursAndDays(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	asked := b.record(t, "GET "+orgPath+"/usage", http.StatusOK, usageList)
	b.answer("GET "+orgPath, http.StatusOK,
		`{"uuid":"`+orgUUID+`","workspaceQuota":{"used":2,"limit":100},"bytes":{"used":1234567,"limit":2147483648}}`)
	code, out, errOut := b.run(t, "usage")
	require.Zero(t, code, errOut)
	require.Regexp(t, `^ALL WORKSPACES +BYTES STORED\n2/100 +1234567/2147483648\n\n`+
		`FROM +OBJECTS +BYTES +READS +WRITES +WATCHES +BYTES OUT +PEOPLE +BOTS +STREAM SECONDS\n`+
		`2026-11-21T04:00:00Z +7 +1234567 +11 +12 +13 +99 +3 +1 +3600`, out)
	query, err := url.ParseQuery((*asked)[0].query)
	require.NoError(t, err)
	require.Equal(t, []string{"hour"}, query["step"])
	require.False(t, query.Has("from") || query.Has("to"), "the hub knows how far an answer goes back")

	code, out, errOut = b.run(t, "usage", "--since", "30d", "--until", "2026-11-21T00:00:00Z", "--step", "day", "-o", "wide")
	require.Zero(t, code, errOut)
	require.Regexp(t, `3600 +4 +2 +1`, out)
	query, err = url.ParseQuery((*asked)[1].query)
	require.NoError(t, err)
	require.Equal(t, []string{"day", "2026-11-21T00:00:00Z"}, []string{query.Get("step"), query.Get("to")})
	from, err := time.Parse(time.RFC3339, query.Get("from"))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(-30*24*time.Hour), from, time.Minute)

	code, out, errOut = b.run(t, "usage", "-o", "json")
	require.Zero(t, code, errOut)
	require.Contains(t, out, `"write": 12`)
	require.NotContains(t, out, "2147483648", "JSON is the answer of the hub alone")
	code, _, errOut = b.run(t, "usage", "--step", "week")
	require.NotZero(t, code)
	require.Contains(t, errOut, "hour or day")
}

func TestUsage_ofAWorkspace(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.mux.HandleFunc("GET "+wsPath+"/usage", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Header.Get("Accept") + " " + r.URL.Query().Get("from")))
	})
	code, out, errOut := b.run(t, "usage", "--workspace", wsUUID, "--since", "2026-03-01T00:00:00Z", "-o", "csv")
	require.Zero(t, code, errOut)
	require.Equal(t, "text/csv 2026-03-01T00:00:00Z", out)
}

// A workspace at its limit is refused growth. Its admin sees here what is used, and of how much.
func TestUsage_showsTheLimitsOfAWorkspace(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("GET "+wsPath+"/usage", http.StatusOK, usageList)
	b.answer("GET "+wsPath, http.StatusOK, `{"uuid":"`+wsUUID+`",`+
		`"objects":{"used":19999,"limit":20000},"bytes":{"used":5,"limit":268435456},`+
		`"customResourceDefinitions":{"used":3,"limit":200},"apiBindings":{"used":4,"limit":100},`+
		`"roles":{"used":6,"limit":1000},"orgBytes":{"used":7,"limit":2147483648}}`)
	code, out, errOut := b.run(t, "usage", "--workspace", "Web")
	require.Zero(t, code, errOut)
	require.Regexp(t, `^OBJECTS +BYTES STORED +CRDS +APIBINDINGS +ROLES +BYTES OF THE ORGANIZATION\n`+
		`19999/20000 +5/268435456 +3/200 +4/100 +6/1000 +7/2147483648\n\nFROM`, out)
}
