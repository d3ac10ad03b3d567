package cli_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/cli"
)

const (
	botUUID   = "0b6d2f5e-7a3c-4c6b-9a3a-0d7c1f1f2a3b"
	tokenID   = "3d0c4a2e-4a49-4d5e-8c7a-6a7d0f7c1b2a"
	botsPath  = wsPath + "/serviceaccounts"
	botPath   = botsPath + "/" + botUUID
	aBot      = `{"uuid":"` + botUUID + `","displayName":"CI","role":"member","phase":"Ready","createdAt":"2026-11-02T00:00:00Z"}`
	anIssued  = `{"id":"` + tokenID + `","name":"runner","token":"hush","createdAt":"2026-11-02T00:00:00Z","expirationTimestamp":"2027-11-02T00:00:00Z"}`
	workspace = `{"apiVersion":"v1","kind":"Config","current-context":"kedge-x","clusters":[{"name":"kedge-x","cluster":{"server":"https://hub/clusters/x"}}],` +
		`"users":[{"name":"kedge-x","user":{"exec":{"command":"kedge"}}}]}`
)

func TestBots_sendWhatWasSaidAndNothingElse(t *testing.T) {
	t.Parallel()
	for args, c := range map[string]struct{ route, body string }{
		"bots":                                          {"GET " + botsPath, ""},
		"bots list":                                     {"GET " + botsPath, ""},
		"bots get " + botUUID:                           {"GET " + botPath, ""},
		"bots create CI":                                {"POST " + botsPath, `{"displayName":"CI","role":"member"}`},
		"bots create CI --role admin":                   {"POST " + botsPath, `{"displayName":"CI","role":"admin"}`},
		"bots set-role " + botUUID + " admin":           {"PATCH " + botPath, `{"role":"admin"}`},
		"bots rename " + botUUID + " Deploy":            {"PATCH " + botPath, `{"displayName":"Deploy"}`},
		"bots delete --yes " + botUUID:                  {"DELETE " + botPath, ""},
		"bots tokens list " + botUUID:                   {"GET " + botPath + "/tokens", ""},
		"bots tokens revoke --all -y " + botUUID:        {"DELETE " + botPath + "/tokens", ""},
		"bots tokens revoke " + botUUID + " " + tokenID: {"DELETE " + botPath + "/tokens/" + tokenID, ""},
		"bots tokens rotate " + botUUID + " " + tokenID + " -o json": {"POST " + botPath + "/tokens/" + tokenID + "/rotate", `{"gracePeriodSeconds":600}`},
		"bots trust list " + botUUID:                                 {"GET " + botPath + "/trust", ""},
		"bots trust remove " + botUUID + " " + tokenID:               {"DELETE " + botPath + "/trust/" + tokenID, ""},
		"bots trust add " + botUUID + " --issuer https://ci.example.com --claim project_id=4 --claim ref=a=b --audience x": {
			"POST " + botPath + "/trust", `{"issuer":"https://ci.example.com","audience":"x","claims":{"project_id":"4","ref":"a=b"}}`,
		},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.inWorkspace(t)
			calls := b.record(t, c.route, http.StatusOK, strings.Replace(aBot, "{", `{"token":"hush",`, 1))
			code, _, errOut := b.run(t, strings.Fields(args)...)
			require.Zero(t, code, errOut)
			require.Len(t, *calls, 1)
			got := (*calls)[0]
			require.Equal(t, []string{orgUUID, wsUUID, c.body}, []string{got.org, got.workspace, got.body})
		})
	}
}

func TestBots_refuseWhatNamesNoBot(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("GET "+botsPath, http.StatusOK, `{"items":[`+aBot+`]}`)
	for _, args := range []string{"bots get Deploy", "bots get ../members", "bots delete --yes ..", "bots tokens create Deploy"} {
		code, _, errOut := b.run(t, strings.Fields(args)...)
		require.Equal(t, 1, code, args)
		require.Contains(t, errOut, "to see what there is, run: kedge bots list", args)
	}
	for _, args := range []string{
		"bots set-role " + botUUID + " owner", "bots create",
		"bots tokens revoke " + botUUID, "bots tokens revoke " + botUUID + " ../x", "bots tokens revoke --all " + botUUID + " " + tokenID,
		"bots tokens create " + botUUID + " --expires-in 0d", "bots tokens create " + botUUID + " -o yaml", "bots tokens create " + botUUID + " --file x --stdout",
		"bots delete " + botUUID,
	} {
		code, _, errOut := b.run(t, strings.Fields(args)...)
		require.Equal(t, 2, code, "%s: %s", args, errOut)
	}
}

func TestBotTokens_arePrintedInEveryForm(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.record(t, "GET "+wsPath+"/kubeconfig", http.StatusOK, workspace)
	calls := b.record(t, "POST "+botPath+"/tokens", http.StatusCreated, anIssued)
	create := func(args ...string) string {
		code, out, errOut := b.run(t, append([]string{"bots", "tokens", "create", botUUID}, args...)...)
		require.Zero(t, code, errOut)
		require.Contains(t, errOut, "Issued token "+tokenID)
		require.NotContains(t, errOut, "hush")
		return out
	}
	require.Equal(t, "hush\n", create("-o", "token", "--expires-in", "90d", "--name", "runner"))
	require.JSONEq(t, anIssued, create("-o", "json", "--expires-in", "12h"))
	var config struct {
		Clusters []struct{ Cluster map[string]string }
		Users    []struct{ User map[string]string }
	}
	require.NoError(t, yaml.Unmarshal([]byte(create()), &config))
	require.Equal(t, map[string]string{"token": "hush"}, config.Users[0].User)
	require.Equal(t, "https://hub/clusters/x", config.Clusters[0].Cluster["server"])
	require.Empty(t, create("--file", b.file("bot.kubeconfig")))
	info, err := os.Stat(b.file("bot.kubeconfig"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	var bodies []string
	for _, c := range *calls {
		bodies = append(bodies, c.body)
	}
	require.Equal(t, []string{`{"expirationSeconds":7776000,"name":"runner"}`, `{"expirationSeconds":43200}`, `{}`, `{}`}, bodies)
}

// A token on a screen is seen by others, and stays in the terminal's history.
func TestBotTokens_areNotShownOnATerminal(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	issued := b.record(t, "POST "+botPath+"/tokens", http.StatusCreated, anIssued)
	for _, c := range []struct {
		name  string
		shown bool
		more  []string
		code  int
	}{
		{"a terminal", true, nil, 2},
		{"a terminal, to a file", true, []string{"--file", b.file("issued")}, 0},
		{"a terminal, as they want it", true, []string{"--stdout"}, 0},
		{"no terminal", false, nil, 0},
	} {
		before := len(*issued)
		var said bytes.Buffer
		args := append([]string{"bots", "tokens", "create", botUUID, "-o", "token"}, c.more...)
		code := cli.Main(t.Context(), args, cli.Streams{Out: io.Discard, Err: &said, Shown: c.shown}, b.environment())
		require.Equal(t, c.code, code, "%s: %s", c.name, said.String())
		refused := strings.Contains(said.String(), "the token would be shown on the terminal; give --file FILE, or --stdout")
		require.Equal(t, code != 0, refused, c.name)
		require.Equal(t, code == 0, len(*issued) > before, c.name)
	}
}

// A token that nobody has is not left behind.
func TestBotTokens_areRevokedIfTheyCannotBeKept(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.record(t, "POST "+botPath+"/tokens", http.StatusCreated, anIssued)
	revoked := b.record(t, "DELETE "+botPath+"/tokens/"+tokenID, http.StatusNoContent, "")
	code, out, errOut := b.run(t, "bots", "tokens", "create", botUUID, "-o", "token", "--file", b.file("token")+"/below")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, errOut, "is revoked again")
	require.NotContains(t, errOut, "hush")
	require.Len(t, *revoked, 1)
}

// The login of a bot goes on with the new token, which no log shows.
func TestBotTokens_ofALoginAreReplacedInTheLogin(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	h := newJobHub(t, b)
	code, _, errOut := b.jobLogin(t, h, "job")
	require.Zero(t, code, errOut)
	code, out, errOut := b.run(t, "bots", "tokens", "rotate", "--grace", "1m")
	require.Zero(t, code, errOut)
	require.Empty(t, out)
	require.NotContains(t, errOut, "hush")
	require.Equal(t, []string{`{"gracePeriodSeconds":60}`}, h.rotations)
	stored, err := os.ReadFile(b.file(".config/kedge/config.json"))
	require.NoError(t, err)
	require.Contains(t, string(stored), `"hush"`)
	require.NotContains(t, string(stored), secret)
	for _, args := range []string{"bots tokens rotate " + botUUID + " " + tokenID, "bots tokens rotate " + botUUID, "bots tokens rotate --grace 1ms"} {
		code, _, _ = b.run(t, strings.Fields(args)...)
		require.Equal(t, 2, code, args)
	}
}

func TestBotTokens_thatEndSoonAreWarnedOf(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	token := func(id string, in time.Duration, more string) string {
		return `{"id":"` + id + `","name":"n","createdAt":"2026-01-01T00:00:00Z","expirationTimestamp":"` + time.Now().Add(in).UTC().Format(time.RFC3339) + `"` + more + `}`
	}
	day := 24 * time.Hour
	b.answer("GET "+botPath+"/tokens", http.StatusOK, `{"items":[`+strings.Join([]string{
		token("soon", 13*day+time.Hour, ""), token("later", 15*day+time.Hour, `,"lastUsedAt":"2026-02-03T04:05:06Z"`),
		token("job", time.Hour, `,"trust":"rule"`), token("rotated", time.Hour, `,"rotatedTo":"later"`),
	}, ",")+`]}`)
	code, out, errOut := b.run(t, "bots", "tokens", "list", botUUID)
	require.Zero(t, code, errOut)
	require.Equal(t, "Warning: the token soon ends in 13 days; to replace it, run: kedge bots tokens rotate "+botUUID+" soon\n", errOut)
	for _, shown := range []string{"LEFT", "13 days", "15 days", "LAST USED", "2026-02-03T04:05:06Z"} {
		require.Contains(t, out, shown)
	}
}

func TestBots_withATokenThatEndsSoonAreWarnedOf(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	bot := func(name string, in time.Duration) string {
		ends := time.Now().Add(in).UTC().Format(time.RFC3339)
		return strings.Replace(strings.Replace(aBot, "{", `{"nextTokenExpiresAt":"`+ends+`",`, 1), `"CI"`, `"`+name+`"`, 1)
	}
	day := 24 * time.Hour
	b.answer("GET "+botsPath, http.StatusOK, `{"items":[`+strings.Join([]string{bot("Soon", 13*day+time.Hour), bot("Later", 15*day), aBot}, ",")+`]}`)
	code, _, errOut := b.run(t, "bots", "list")
	require.Zero(t, code, errOut)
	require.Equal(t, "Warning: a token of the bot Soon ends in 13 days; to see which one, run: kedge bots tokens list "+botUUID+"\n", errOut)
}

func TestBots_thatAreBeingMadeAreWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("POST "+botsPath, http.StatusAccepted, strings.Replace(aBot, "Ready", "Progressing", 1))
	b.answer("GET "+botPath, http.StatusOK, aBot)
	code, out, errOut := b.run(t, "bots", "create", "CI", "-o", "name")
	require.Zero(t, code, errOut)
	require.Equal(t, botUUID+"\n", out)
	require.Contains(t, errOut, "bot "+botUUID+" is still being made")
}
