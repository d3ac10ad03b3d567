package cli_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const pastAccess = `{"at":"2026-03-03T12:00:00Z","since":"2026-01-01T00:00:00Z","asOf":"2026-03-03T12:00:00Z","active":true,"items":[
	{"user":"alice","role":"admin","through":[{"through":"Membership","role":"admin","since":"2026-02-01T08:00:00Z"}],
	 "everyWorkspace":[{"through":"OrgAdmin","role":"admin","since":"2026-02-01T08:00:00Z"}]},
	{"workspace":"` + wsUUID + `","user":"bob","role":"member","sudo":true,"roles":[{"name":"dev","namespace":"web"}],
	 "through":[{"through":"Membership","role":"member","since":"2026-02-02T08:00:00Z","expiresAt":"2026-04-01T00:00:00Z"},{"through":"DefaultAccess","role":"viewer","since":"2026-02-01T08:00:00Z"}]},
	{"workspace":"` + wsUUID + `","bot":"` + wsUUID + `","displayName":"CI\u001b[2J","role":"viewer","through":[{"through":"Bot","role":"viewer","since":"2026-02-01T08:00:00Z"}],
	 "tokens":[{"id":"t","name":"laptop","since":"2026-02-01T08:00:00Z"}]}]}`

func TestAccess_listsWhoHadAccessAndThroughWhat(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	asked := b.record(t, "GET "+orgPath+"/access", http.StatusOK, pastAccess)
	code, out, errOut := b.run(t, "access", "--at", "2026-03-03T12:00:00Z")
	require.Zero(t, code, errOut)
	require.Empty(t, errOut)
	require.Regexp(t, `NAME +WORKSPACE +ROLE +ALSO +THROUGH +SINCE +EXPIRES\n`+
		`alice +admin +Membership \(admin\) +2026-02-01T08:00:00Z *\n`+
		`bob +`+wsUUID+` +member +sudo,web/dev +Membership \(member\), DefaultAccess \(viewer\) +2026-02-02T08:00:00Z +2026-04-01T00:00:00Z\n`+
		`bot CI\x{fffd}\[2J +`+wsUUID+` +viewer +Bot \(viewer\)`, out)
	require.Equal(t, "at=2026-03-03T12%3A00%3A00Z", (*asked)[0].query)

	code, out, errOut = b.run(t, "access", "-o", "wide")
	require.Zero(t, code, errOut)
	require.Regexp(t, `OrgAdmin \(admin\)`, out)
	require.Regexp(t, `laptop`, out)
	require.Empty(t, (*asked)[1].query, "the hub knows what is now")

	code, out, errOut = b.run(t, "access", "--at", "30d", "-o", "json")
	require.Zero(t, code, errOut)
	require.Contains(t, out, `"everyWorkspace"`)
	query, err := url.ParseQuery((*asked)[2].query)
	require.NoError(t, err)
	at, err := time.Parse(time.RFC3339, query.Get("at"))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(-30*24*time.Hour), at, time.Minute)
	code, _, errOut = b.run(t, "access", "--at", "noon")
	require.NotZero(t, code)
	require.Contains(t, errOut, "such as")
}

func TestAccess_warnsOfWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"at":"2026-03-03T12:00:00Z","active":false,"since":"2026-04-01T00:00:00Z","message":"the records of access begin later","items":[]}`: "begin later",
		`{"at":"2026-03-03T12:00:00Z","active":false,"since":"2026-01-01T00:00:00Z","asOf":"2026-03-03T12:00:00Z","items":[]}`:                 "nobody had access",
		`{"at":"2026-03-03T12:00:00Z","active":true,"since":"2026-01-01T00:00:00Z","asOf":"2026-03-03T11:00:00Z","items":[]}`:                  "nothing from 2026-03-03T11:00:00Z",
	} {
		b := newBed(t)
		b.inWorkspace(t)
		b.record(t, "GET "+wsPath+"/access", http.StatusOK, body)
		code, _, errOut := b.run(t, "access", "--workspace", wsUUID)
		require.Zero(t, code, errOut)
		require.Contains(t, errOut, want)
	}
}
