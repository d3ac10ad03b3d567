package cli_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The hub's words are about its API; people are told which command does what they say.
func TestWhatTheHubSaysToDoIsSaidInCommands(t *testing.T) {
	t.Parallel()
	refusal := func(message, field, cause string) string {
		return `{"kind":"Status","message":"` + message + `","details":{"causes":[{"field":"` + field + `","message":"` + cause + `"}]}}`
	}
	nobody := refusal("userRef.name: there is no person of this name; find people with GET /api/users?q=", "userRef.name", "there is no person of this name; find people with GET /api/users?q=")
	notYou := refusal("only an admin may remove members; leave with DELETE …/memberships/me", "", "")
	notYours := refusal("only an admin may remove members", "", "")
	deleted := refusal("this account was deleted; it can be undeleted with POST /api/users/me/undelete", "", "")
	name := refusal("displayName: must have a character that can be seen", "displayName", "must have a character that can be seen")
	query := refusal("query:q: must have 2 to 128 characters of a name", "query:q", "must have 2 to 128 characters of a name")
	const unknown = `there is no person of the name "bo"; to find people, run: kedge users search bo; to invite somebody who has not signed in yet, run: `
	for what, c := range map[string]struct {
		args, route string
		code        int
		body, want  string
	}{
		"nobody is added":       {"members add bo", "POST " + orgPath + "/members", 400, nobody, unknown + "kedge members invite"},
		"nobody, in workspaces": {"workspaces members add bo", "POST " + wsPath + "/members", 400, nobody, unknown + "kedge workspaces members invite"},
		"removed by no admin":   {"members remove bob", "DELETE " + orgPath + "/members/bob", 403, notYou, "only an admin may remove members; leave with DELETE …/memberships/me; to leave, run: kedge orgs leave " + orgUUID},
		"in a workspace":        {"workspaces members remove bob", "DELETE " + wsPath + "/members/bob", 403, notYou, "only an admin may remove members; leave with DELETE …/memberships/me; to leave, run: kedge workspaces leave " + wsUUID + " --org " + orgUUID},
		"of something else":     {"members remove bob", "DELETE " + orgPath + "/members/bob", 403, notYours, "only an admin may remove members"},
		"a deleted person":      {"members", "GET " + orgPath + "/members", 403, deleted, "this account was deleted; it can be undeleted with POST /api/users/me/undelete; to do that, run: kedge me undelete"},
		"a hidden name":         {"workspaces create x", "POST " + orgPath + "/workspaces", 400, name, "NAME: must have a character that can be seen"},
		"a short query":         {"users search b", "GET /api/users", 400, query, "QUERY: must have 2 to 128 characters of a name"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.inWorkspace(t)
			b.answer(c.route, c.code, c.body)
			code, out, errOut := b.run(t, strings.Fields(c.args)...)
			require.Equal(t, 1, code)
			require.Empty(t, out)
			require.Contains(t, errOut, "kedge: "+c.want+"\n")
		})
	}
}

func TestALoginThatHasEndedSaysHowToLogInAgain(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	b.mux.HandleFunc("GET /api/orgs", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusUnauthorized, "the token has expired; log in again: kedge login")
	})
	code, _, errOut := b.run(t, "orgs")
	require.Equal(t, 1, code)
	require.Equal(t, "kedge: the token has expired; to log in again, run: kedge login --server "+b.URL+"\n", errOut)
}

func TestAHubThatCannotBeReachedIsNamedWithWhatToCheck(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	url, path := b.URL, b.file(".config/kedge/config.json")
	b.Close()
	for args, check := range map[string]string{
		"orgs":                       "it is the hub logged in to last, as " + path + " says, and --server or kedge login chooses another",
		"me":                         "--server or kedge login chooses another",
		"members add bob":            "--server or kedge login chooses another",
		"workspaces leave":           "--server or kedge login chooses another",
		"me delete --yes":            "--server or kedge login chooses another",
		"kubeconfig --server " + url: "what --server says",
		"login --server " + url + " --token-file " + b.file("token") + " --ca-file " + b.file("ca.crt"): "what --server says",
	} {
		code, out, errOut := b.run(t, strings.Fields(args)...)
		require.Equal(t, 1, code, args)
		require.Empty(t, out, args)
		require.True(t, strings.HasPrefix(errOut, "kedge: the hub at "+url+" cannot be reached: dial tcp "), errOut)
		require.Contains(t, errOut, "check that it is running", args)
		require.Contains(t, errOut, check, args)
		require.Equal(t, 1, strings.Count(errOut, "\n"), "one line, for kubectl to show")
	}
}
