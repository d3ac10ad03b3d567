package cli_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const providerPath = wsPath + "/providers/" + entryUUID

// inState is the provider of the fake hub in a state, with the states of its two claims.
func inState(state, configmaps, secrets, more string) string {
	s := strings.TrimSuffix(anEntry, "}") + `,"state":"` + state + `"` + more + `}`
	if configmaps != "" {
		s = strings.Replace(s, `"dangerous":false`, `"dangerous":false,"state":"`+configmaps+`"`, 1)
	}
	if secrets != "" {
		s = strings.Replace(s, `"dangerous":true`, `"dangerous":true,"state":"`+secrets+`"`, 1)
	}
	return s
}

// withProvider is a workspace that can enable widgets.
func withProvider(t *testing.T, provider string) *bed {
	t.Helper()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("GET /api/providers", http.StatusOK, `{"items":[`+provider+`]}`)
	b.answer("GET "+providerPath, http.StatusOK, provider)
	return b
}

func TestProviders_areListedWithTheirStates(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	calls := b.record(t, "GET /api/providers", http.StatusOK, `{"items":[`+inState("Enabled", "", "", `,"message":"ready"`)+`]}`)
	b.answer("GET "+providerPath, http.StatusOK, inState("Enabled", "Accepted", "Rejected", `,"wouldLose":[{"group":"widgets.example.org","resource":"widgets","count":7}]`))
	code, out, errOut := b.run(t, "providers")
	require.Zero(t, code, errOut)
	require.Equal(t, "SLUG      DISPLAY NAME   SCOPE   VERSION   STATE     MESSAGE\nwidgets   Widgets        Org     v1        Enabled   ready\n", out)
	require.Equal(t, []call{{"limit=500", orgUUID, wsUUID, ""}}, *calls)
	for _, name := range []string{"widgets", entryUUID} {
		code, out, errOut = b.run(t, "providers", "get", name)
		require.Zero(t, code, errOut)
		require.Contains(t, strings.Join(strings.Fields(out), " "),
			"CLAIM VERBS DANGEROUS STATE configmaps get,list Accepted secrets * DANGEROUS Rejected RESOURCE OBJECTS widgets.example.org/widgets 7")
	}
	code, _, errOut = b.run(t, "providers", "get", "gadgets")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "run: kedge providers list")
}

const (
	acceptsBoth    = `{"acceptClaims":[{"group":"","resource":"configmaps"},{"group":"","resource":"secrets"}],"rejectClaims":[]}`
	rejectsSecrets = `{"acceptClaims":[{"group":"","resource":"configmaps"}],"rejectClaims":[{"group":"","resource":"secrets"}]}`
	rejectsBoth    = `{"acceptClaims":[],"rejectClaims":[{"group":"","resource":"configmaps"},{"group":"","resource":"secrets"}]}`
)

func TestEnable_answersEveryClaim(t *testing.T) {
	t.Parallel()
	disabled := inState("Disabled", "", "", "")
	for name, c := range map[string]struct {
		before, typed, args, body string
		says                      []string
	}{
		"asked, all accepted":       {disabled, "y\nsecrets\n", "", acceptsBoth, []string{"CLAIM", "secrets      *          DANGEROUS", "Accept configmaps? [y/N]"}},
		"asked, the harmless":       {disabled, "yes\nno\n", "", rejectsSecrets, []string{"to accept it, give --accept-claim secrets"}},
		"a y is no dangerous name":  {disabled, "y\ny\n", "", rejectsSecrets, []string{"is rejected"}},
		"yes":                       {disabled, "", "--yes", rejectsSecrets, []string{"The dangerous claim secrets is rejected; to accept it, give --accept-claim secrets."}},
		"yes, and by name":          {disabled, "", "--yes --accept-claim secrets", acceptsBoth, nil},
		"by name":                   {disabled, "", "--accept-claim configmaps,secrets", acceptsBoth, nil},
		"by name with a slash":      {disabled, "", "--accept-claim /configmaps --reject-claim /secrets", rejectsSecrets, nil},
		"all rejected":              {disabled, "", "--reject-claim configmaps --reject-claim secrets", rejectsBoth, nil},
		"the rest is asked":         {disabled, "y\n", "--accept-claim secrets", acceptsBoth, nil},
		"what was accepted stays":   {inState("ClaimsPending", "Pending", "Accepted", ""), "y\n", "", acceptsBoth, nil},
		"what was rejected stays":   {inState("ClaimsPending", "Pending", "Rejected", ""), "", "-y", rejectsSecrets, nil},
		"a flag changes the answer": {inState("Enabled", "Accepted", "Accepted", ""), "", "--reject-claim secrets", rejectsSecrets, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := withProvider(t, c.before)
			calls := b.record(t, "POST "+providerPath+"/enable", http.StatusCreated, inState("Enabled", "Accepted", "Accepted", ""))
			run := b.run
			if c.typed != "" {
				run = func(t *testing.T, args ...string) (int, string, string) { return b.runAt(t, c.typed, args...) }
			}
			code, out, errOut := run(t, append([]string{"providers", "enable", "widgets"}, strings.Fields(c.args)...)...)
			require.Zero(t, code, errOut)
			require.Len(t, *calls, 1)
			require.Equal(t, call{"", orgUUID, wsUUID, c.body}, (*calls)[0])
			require.Contains(t, out, "Enabled")
			for _, text := range c.says {
				require.Contains(t, errOut, text)
			}
		})
	}
}

func TestEnable_printsNoControlCharacters(t *testing.T) {
	t.Parallel()
	b := withProvider(t, strings.Replace(inState("Disabled", "", "", ""), `"get"`, `"get\u001b[8m\u202e\n\tnothing"`, 1))
	b.record(t, "POST "+providerPath+"/enable", http.StatusCreated, inState("Enabled", "Accepted", "Accepted", ""))
	_, out, errOut := b.runAt(t, "y\nsecrets\n", "providers", "enable", "widgets")
	require.Contains(t, errOut, "get\ufffd[8m\ufffd\ufffd\ufffdnothing", "the person reads what the provider wrote")
	require.NotContains(t, out+errOut, "\u001b")
	_, out, _ = b.run(t, "providers", "get", "widgets")
	require.Contains(t, out, "get\ufffd[8m")
	require.NotContains(t, out, "\u001b")
}

func TestEnable_doesNothingUnasked(t *testing.T) {
	t.Parallel()
	b := withProvider(t, inState("Disabled", "", "", ""))
	calls := b.record(t, "POST "+providerPath+"/enable", http.StatusCreated, "")
	for args, says := range map[string]string{
		"":                                  "widgets asks for configmaps, secrets; standard input is not a terminal",
		"--accept-claim secrets":            "widgets asks for configmaps; standard input",
		"--accept-claim pods":               "--accept-claim: widgets does not ask for pods, but for: configmaps, secrets",
		"--reject-claim apps/deployments":   "--reject-claim: widgets does not ask for apps/deployments",
		"--accept-claim a --reject-claim a": "does not ask for a",
		"--accept-claim secrets --reject-claim secrets --yes": "is accepted and rejected",
	} {
		code, out, errOut := b.run(t, append([]string{"providers", "enable", "widgets"}, strings.Fields(args)...)...)
		require.Equal(t, 2, code, "%s: %s", args, errOut)
		require.Empty(t, out)
		require.Contains(t, errOut, says, args)
	}
	code, _, errOut := b.runAt(t, "n\n", "providers", "enable", "widgets")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "not confirmed; nothing was done")
	require.Empty(t, *calls)
}

func TestEnable_dryRunAsksNothing(t *testing.T) {
	t.Parallel()
	b := withProvider(t, inState("Disabled", "", "", ""))
	calls := b.record(t, "POST "+providerPath+"/enable", http.StatusOK, inState("Disabled", "Accepted", "Rejected", `,"dryRun":true`))
	code, out, errOut := b.run(t, "providers", "enable", "widgets", "--dry-run")
	require.Zero(t, code, errOut)
	require.Equal(t, []call{{"dryRun=true", orgUUID, wsUUID, rejectsSecrets}}, *calls)
	require.Contains(t, errOut, "nothing was changed")
	require.Contains(t, out, "Accepted")
}

func TestEnable_waitsAndTellsHowItEnds(t *testing.T) {
	t.Parallel()
	for end, code := range map[string]int{"Enabled": 0, "ClaimsPending": 0, "Failing": 1} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.inWorkspace(t)
			reads := 0
			b.mux.HandleFunc("GET "+providerPath, func(w http.ResponseWriter, _ *http.Request) {
				if reads++; reads < 3 {
					_, _ = io.WriteString(w, inState("Enabling", "", "", ""))
					return
				}
				_, _ = io.WriteString(w, inState(end, "Accepted", "Accepted", `,"message":"the export is gone"`))
			})
			b.answer("POST "+providerPath+"/enable", http.StatusAccepted, inState("Enabling", "", "", ""))
			got, out, errOut := b.run(t, "providers", "enable", entryUUID, "--yes")
			require.Equal(t, code, got, errOut)
			require.Contains(t, errOut, "still being enabled")
			require.Contains(t, out, end)
			if code != 0 {
				require.Contains(t, errOut, "kedge: widgets does not work in this workspace: the export is gone\n")
			}
		})
	}
}

func TestDisable_showsWhatIsLostAndAsks(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	state, message, deleted := "Enabled", "", false
	b.answer("GET /api/providers", http.StatusOK, `{"items":[`+anEntry+`]}`)
	b.mux.HandleFunc("GET "+providerPath, func(w http.ResponseWriter, _ *http.Request) {
		if deleted && state == "Disabled" && message == "" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"kind":"Status","message":"there is no catalog entry of that ID here"}`)
			return
		}
		_, _ = io.WriteString(w, inState(state, "", "", message))
		message = ""
	})
	confirmed := 0
	b.mux.HandleFunc("DELETE "+providerPath+"/enable", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("confirm") == "true" {
			confirmed++
			state, message = "Disabled", `,"message":"it waits for 1 widgets"`
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, inState(state, "", "", message))
			return
		}
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"kind":"Status","message":"disabling deletes objects; confirm","details":{"causes":[{"reason":"WouldLose","field":"widgets.widgets.example.org","message":"7 widgets.widgets.example.org would be deleted"}]}}`)
	})
	for _, typed := range []string{"y\n", "\n", "gadgets\n"} {
		state = "Enabled"
		code, _, errOut := b.runAt(t, typed, "providers", "disable", "widgets")
		require.Equal(t, 1, code)
		require.Contains(t, errOut, "  7 widgets.widgets.example.org would be deleted")
		require.Contains(t, errOut, "nothing was done")
	}
	state = "Enabled"
	code, _, errOut := b.run(t, "providers", "disable", "widgets")
	require.Equal(t, 2, code)
	require.Contains(t, errOut, "7 widgets", "a script is told, too")
	require.Zero(t, confirmed)
	for i, args := range []string{"--yes", "--confirm", "-y"} {
		state = "Enabled"
		code, out, errOut := b.run(t, "providers", "disable", "widgets", args)
		require.Zero(t, code, errOut)
		require.Contains(t, errOut, "it waits for 1 widgets")
		require.Contains(t, errOut, "Disabled widgets.")
		require.Contains(t, out, "Disabled")
		require.Equal(t, i+1, confirmed)
	}
	state = "Enabled"
	code, _, errOut = b.runAt(t, "widgets\n", "providers", "disable", "widgets")
	require.Zero(t, code, errOut)
	state, deleted = "Enabled", true
	code, _, errOut = b.run(t, "providers", "disable", "widgets", "--yes")
	require.Zero(t, code, "the entry goes with the binding, if it was deleted before: %s", errOut)
	require.Contains(t, errOut, "Disabled widgets.")
	state, deleted = "Disabled", false
	code, _, errOut = b.run(t, "providers", "disable", "widgets")
	require.Zero(t, code, errOut)
	require.Contains(t, errOut, "is not enabled")
	require.Equal(t, 5, confirmed)
}
