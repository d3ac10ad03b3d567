package cli_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompletion_namesWhatThereIs(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("GET "+orgPath+"/members", http.StatusOK, `{"items":[`+bob+`]}`)
	b.answer("GET "+wsPath+"/members", http.StatusOK, `{"items":[`+bobInWeb+`]}`)
	b.answer("GET "+botsPath, http.StatusOK, `{"items":[`+aBot+`]}`)
	b.answer("GET /api/admin/users", http.StatusOK, `{"items":[{"name":"bob","displayName":"Bob B"}]}`)
	b.answer("GET /api/providers", http.StatusOK, `{"items":[`+anEntry+`]}`)
	b.answer("GET "+orgPath+"/catalog", http.StatusOK, `{"items":[`+anEntry+`]}`)
	b.answer("GET "+botPath+"/tokens", http.StatusOK, `{"items":[`+anIssued+`]}`)
	b.answer("GET "+botPath+"/trust", http.StatusOK, `{"items":[{"id":"`+tokenID+`","issuer":"https://ci.example.com"}]}`)
	aSession := `{"items":[{"id":"` + tokenID + `","client":"cli","description":"laptop","lastUsedAt":"2026-11-02T00:00:00Z"}]}`
	b.answer("GET /api/users/me/sessions", http.StatusOK, aSession)
	b.answer("GET /api/admin/users/bob/sessions", http.StatusOK, strings.NewReplacer(`"cli"`, `"portal"`, "laptop", "Firefox").Replace(aSession))
	b.answer("GET /api/users/me/invitations", http.StatusOK, `{"items":[{"id":"`+tokenID+`","orgDisplayName":"ACME","workspaceDisplayName":"Web"}]}`)
	b.answer("GET "+orgPath+"/invitations", http.StatusOK, `{"items":[{"id":"`+tokenID+`","state":"Open","email":"jane@example.com"}]}`)
	b.answer("GET "+orgPath+"/groups", http.StatusOK, `{"items":[{"id":"`+tokenID+`","group":"kedge:developers"}]}`)
	for line, want := range map[string]string{
		"orgs groups remove ":                 tokenID + "\tkedge:developers",
		"orgs use ":                           "ACME\t" + orgUUID,
		"orgs rename ":                        "ACME\t" + orgUUID,
		"workspaces delete ":                  "Web\t" + wsUUID,
		"workspaces use --org ACME ":          "Web\t" + wsUUID,
		"members --org ":                      "ACME\t" + orgUUID,
		"kubeconfig --workspace ":             "Web\t" + wsUUID,
		"members remove ":                     "bob\tBob B",
		"workspaces members set-role ":        "bob\tBob B",
		"bots get ":                           "CI\t" + botUUID,
		"bots tokens create --workspace Web ": "CI\t" + botUUID,
		"providers enable ":                   "widgets\tWidgets",
		"catalog get ":                        "widgets\tWidgets",
		"admin approve ":                      "bob\tBob B",
		"bots set-role CI ":                   "admin",
		"members set-role bob ":               "admin",
		"workspaces members set-role bob ":    "admin\nmember\nviewer\nmanager",
		"bots create CI --role ":              "admin",
		"members list -o ":                    "table",
		"bots tokens revoke CI ":              tokenID + "\trunner until 2027-11-02T00:00:00Z",
		"bots tokens rotate CI ":              tokenID + "\trunner until 2027-11-02T00:00:00Z",
		"bots trust remove CI ":               tokenID + "\thttps://ci.example.com",
		"sessions end ":                       tokenID + "\tcli laptop, last used 2026-11-02T00:00:00Z",
		"admin sessions end bob ":             tokenID + "\tportal Firefox, last used 2026-11-02T00:00:00Z",
		"invitations accept ":                 tokenID + "\tACME, Web",
		"invitations decline ":                tokenID + "\tACME, Web",
		"invitations revoke ":                 tokenID + "\tOpen jane@example.com",
		"why get pods --as ":                  "bob\tBob B",
		"why get pods --bot ":                 botUUID + "\tCI",
		"profiles use ":                       "127.0.0.1",
		"orgs --profile ":                     "127.0.0.1",
	} {
		code, out, _ := b.run(t, append([]string{"__complete"}, strings.Split(line, " ")...)...)
		require.Zero(t, code, line)
		require.True(t, strings.HasPrefix(out, want), "%s: %s", line, out)
	}
}

func TestCompletion_isSilentOnErrors(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	complete := func(args ...string) {
		code, out, errOut := b.run(t, append([]string{"__complete"}, args...)...)
		require.Zero(t, code)
		require.Equal(t, ":4\n", out, "no candidates, and no files")
		require.NotContains(t, errOut, "kedge:")
	}
	complete("orgs", "use", "")
	b.login(t)
	complete("orgs", "use", "")
	complete("workspaces", "use", "")
	complete("members", "remove", "")
	complete("bots", "get", "")
	complete("bots", "tokens", "revoke", botUUID, "")
	complete("sessions", "end", "")
	complete("bots", "set-role", "CI", "admin", "")
	complete("orgs", "use", "ACME", "")
}
