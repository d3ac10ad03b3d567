package cli_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	globalPath = "/api/admin/catalog"
	// tenantUUID is an entry of an organization, and rivalUUID one of another with the same slug.
	tenantUUID = "2281b49f-55f1-5980-a3d4-e2c16492068b"
	rivalUUID  = "3381b49f-55f1-5980-a3d4-e2c16492068b"
)

// inOrgsPage answers the list of the global entries, and the one of those of organizations.
func (b *bed) inOrgsPage(tenants ...string) {
	rows := []string{}
	for _, uuid := range tenants {
		rows = append(rows, strings.Replace(strings.Replace(anEntry, entryUUID, uuid, 1), `"scope":"Org"`, `"scope":"Org","org":"`+orgUUID+`","orgDisplayName":"ACME"`, 1))
	}
	b.mux.HandleFunc("GET "+globalPath, func(w http.ResponseWriter, r *http.Request) {
		body := `{"items":[]}`
		if r.URL.Query().Get("scope") == "org" {
			body = `{"items":[` + strings.Join(rows, ",") + `]}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(body))
	})
}

func TestAdminCatalog_showsAndEndsEntriesOfOrganizations(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	b.inOrgsPage(tenantUUID)
	b.answer("GET "+globalPath+"/"+tenantUUID, http.StatusOK, anEntry)
	calls := b.record(t, "DELETE "+globalPath+"/"+tenantUUID, http.StatusNoContent, "")
	code, out, errOut := b.run(t, "admin", "catalog", "list", "--scope", "org")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "ACME")
	require.Contains(t, out, tenantUUID)
	_, out, _ = b.run(t, "admin", "catalog")
	require.NotContains(t, out, "ACME")
	code, out, errOut = b.run(t, "admin", "catalog", "get", tenantUUID)
	require.Zero(t, code, errOut)
	require.Contains(t, out, "widgets")
	for _, arg := range []string{"widgets", tenantUUID} {
		code, _, errOut = b.run(t, "admin", "catalog", "delete", arg, "--yes")
		require.Zero(t, code, errOut)
	}
	require.Equal(t, []call{{}, {}}, *calls)
	code, _, errOut = b.run(t, "admin", "catalog", "delete", "gadgets", "--yes")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "--scope org")

	// A slug that two organizations have is no name.
	b = newBed(t)
	b.login(t)
	b.inOrgsPage(tenantUUID, rivalUUID)
	code, _, errOut = b.run(t, "admin", "catalog", "delete", "widgets", "--yes")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "2 organizations have an entry with the slug")
}

func TestAdminCatalog_takesASlugByForceOnly(t *testing.T) {
	t.Parallel()
	const flags = "--slug widgets --name Widgets --export-path root:kedge:providers:widgets --export-name widgets.example.org"
	for args, query := range map[string]string{
		"admin catalog publish " + flags:              "",
		"admin catalog publish " + flags + " --force": "force=true",
		"catalog publish --global --force " + flags:   "force=true",
	} {
		b := newBed(t)
		b.login(t)
		calls := b.record(t, "POST "+globalPath, http.StatusCreated, anEntry)
		code, _, errOut := b.run(t, strings.Fields(args)...)
		require.Zero(t, code, errOut)
		require.Equal(t, []call{{query: query, body: "{" + spec + "}"}}, *calls, args)
	}
	b := newBed(t)
	b.inWorkspace(t)
	code, _, errOut := b.run(t, strings.Fields("catalog publish --force "+flags)...)
	require.Equal(t, 2, code)
	require.Contains(t, errOut, "--global")
}
