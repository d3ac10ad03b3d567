package cli_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBilling_isSentWithWhatIsMadeAndChanged(t *testing.T) {
	t.Parallel()
	sends(t, map[string]sentRequest{
		"workspaces create --cost-center 4711 New":                                  {"POST " + orgPath + "/workspaces", "", `{"displayName":"New","billing":{"costCenter":"4711"}}`},
		"workspaces create --billing-label team=web New":                            {"POST " + orgPath + "/workspaces", "", `{"displayName":"New","billing":{"labels":{"team":"web"}}}`},
		"workspaces create New":                                                     {"POST " + orgPath + "/workspaces", "", `{"displayName":"New"}`},
		"orgs create --cost-center 4711 New":                                        {"POST /api/orgs", "", `{"displayName":"New","billing":{"costCenter":"4711"}}`},
		"workspaces set-billing " + wsUUID + " --cost-center 12":                    {"PATCH " + wsPath, "", `{"billing":{"costCenter":"12"}}`},
		"workspaces set-billing " + wsUUID + " --cost-center= --billing-label old=": {"PATCH " + wsPath, "", `{"billing":{"costCenter":null,"labels":{"old":null}}}`},
		"orgs settings --apply-to-workspaces":                                       {"PATCH " + orgPath, "applyToWorkspaces=true", `{}`},
		"orgs settings --cost-center 1 --apply-to-workspaces":                       {"PATCH " + orgPath, "applyToWorkspaces=true", `{"billing":{"costCenter":"1"}}`},
	})
}

func TestDescription_isSentWithWhatIsMadeAndChanged(t *testing.T) {
	t.Parallel()
	sends(t, map[string]sentRequest{
		"workspaces create --description Shop New":       {"POST " + orgPath + "/workspaces", "", `{"displayName":"New","description":"Shop"}`},
		"orgs create --description Shop New":             {"POST /api/orgs", "", `{"displayName":"New","description":"Shop"}`},
		"workspaces set-description " + wsUUID + " Shop": {"PATCH " + wsPath, "", `{"description":"Shop"}`},
		"orgs set-description " + orgUUID + " Shop":      {"PATCH " + orgPath, "", `{"description":"Shop"}`},
	})
}

// sentRequest is the request of a command.
type sentRequest struct{ route, query, body string }

// sends runs commands that make or change a tenant.
func sends(t *testing.T, commands map[string]sentRequest) {
	t.Helper()
	const made = `{"uuid":"` + otherWS + `","displayName":"New","phase":"Ready"}`
	for args, want := range commands {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.inWorkspace(t)
			code := http.StatusOK
			if strings.HasPrefix(want.route, "POST") {
				code = http.StatusCreated
			}
			calls := b.record(t, want.route, code, made)
			exit, _, errOut := b.run(t, strings.Fields(args)...)
			require.Zero(t, exit, errOut)
			require.JSONEq(t, want.body, (*calls)[0].body)
			require.Equal(t, want.query, (*calls)[0].query)
		})
	}
}
