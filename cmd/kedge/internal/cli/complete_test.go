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
	for line, want := range map[string]string{
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
	} {
		code, out, _ := b.run(t, append([]string{"__complete"}, strings.Split(line, " ")...)...)
		require.Zero(t, code, line)
		require.Equal(t, want, strings.Split(out, "\n")[0], line)
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
	complete("orgs", "use", "ACME", "")
}
