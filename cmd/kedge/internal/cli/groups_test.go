package cli_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOrgsGroups_areListedAddedAndRemoved(t *testing.T) {
	t.Parallel()
	const mapping = `{"id":"` + requested + `","group":"kedge:developers","role":"member","createdAt":"2026-11-01T00:00:00Z","people":12}`
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("GET "+orgPath+"/groups", http.StatusOK, `{"items":[`+mapping+`],"continue":""}`)
	for _, words := range [][]string{{"orgs", "groups"}, {"orgs", "groups", "list"}} {
		code, out, errOut := b.run(t, words...)
		require.Zero(t, code, errOut)
		require.Contains(t, out, "kedge:developers")
		require.Contains(t, out, "12")
	}
	made := b.record(t, "POST "+orgPath+"/groups", http.StatusCreated, mapping)
	code, _, errOut := b.run(t, "orgs", "groups", "add", "kedge:developers")
	require.Zero(t, code, errOut)
	require.JSONEq(t, `{"group":"kedge:developers","role":"member"}`, (*made)[0].body)
	code, _, errOut = b.run(t, "orgs", "groups", "add", "kedge:on-call", "--role", "admin", "--workspace", wsUUID)
	require.Zero(t, code, errOut)
	require.JSONEq(t, `{"group":"kedge:on-call","role":"admin","workspace":"`+wsUUID+`"}`, (*made)[1].body)
	b.record(t, "DELETE "+orgPath+"/groups/"+requested, http.StatusNoContent, "")
	code, _, errOut = b.run(t, "orgs", "groups", "remove", requested)
	require.Zero(t, code, errOut)
	require.Contains(t, errOut, requested)
	code, _, _ = b.run(t, "orgs", "groups", "remove", "..")
	require.Equal(t, 2, code)
	code, _, _ = b.run(t, "orgs", "groups", "add", "kedge:developers", "--role", "root")
	require.Equal(t, 2, code)
}
