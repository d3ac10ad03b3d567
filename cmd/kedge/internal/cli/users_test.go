package cli_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUsersSearchFindsPeople(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	calls := b.record(t, "GET /api/users", http.StatusOK, `{"items":[{"name":"bob","displayName":"Bob B"}],"continue":""}`)
	code, out, errOut := b.run(t, "users", "search", "b&o=b")
	require.Zero(t, code, errOut)
	require.Equal(t, "NAME   DISPLAY NAME\nbob    Bob B\n", out)
	require.Equal(t, []call{{query: "limit=500&q=b%26o%3Db"}}, *calls)
	_, out, _ = b.run(t, "users", "search", "bo", "-o", "name")
	require.Equal(t, "bob\n", out)
	_, out, _ = b.run(t, "users", "search", "bo", "-o", "json")
	require.JSONEq(t, `{"items":[{"name":"bob","displayName":"Bob B"}]}`, out)
	_, out, _ = b.run(t, "users", "search", "bo", "-o", "yaml")
	require.Contains(t, out, "displayName: Bob B\n")
	code, _, errOut = b.run(t, "users", "search")
	require.Equal(t, 2, code, errOut)
	code, _, errOut = b.run(t, "users", "serach", "bo")
	require.Equal(t, 2, code, errOut)
	code, out, _ = b.run(t, "users")
	require.Zero(t, code)
	require.Contains(t, out, "search")
}

func TestUsersSearchPrintsWhatTheHubRefuses(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	b.mux.HandleFunc("GET /api/users", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusBadRequest, "query:q: must have at least 2 characters")
	})
	code, out, errOut := b.run(t, "users", "search", "b")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Equal(t, "kedge: query:q: must have at least 2 characters\n", errOut)
}

func TestADeletedPersonCanUndeleteThemselves(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.me = deletedMe
	b.login(t)
	undone := b.record(t, "POST /api/users/me/undelete", http.StatusOK, `{"name":"alice","displayName":"Alice"}`)
	code, out, errOut := b.runAt(t, "n\n", "me", "undelete")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, errOut, "Bring back your account alice at "+b.URL+"? [y/N]")
	require.Empty(t, *undone)
	code, out, errOut = b.runAt(t, "y\n", "me", "undelete", "-o", "name")
	require.Zero(t, code, errOut)
	require.Equal(t, "alice\n", out)
	require.Equal(t, []call{{}}, *undone)
	// Deleting once more is no error, and sends nothing.
	code, out, errOut = b.run(t, "me", "delete", "--yes", "-o", "name")
	require.Zero(t, code)
	require.Equal(t, "alice\n", out)
	require.Contains(t, errOut, "is deleted already")
	require.Zero(t, b.hits["DELETE /api/users/me"])
}

func TestMeIsWhoami(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	_, who, _ := b.run(t, "whoami")
	code, out, _ := b.run(t, "me")
	require.Zero(t, code)
	require.Equal(t, who, out)
}

func TestMe_rename(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	sent := b.record(t, "PATCH /api/users/me", http.StatusOK, `{"name":"alice","displayName":"Alice Adams","email":"a@example.com"}`)
	code, out, errOut := b.run(t, "me", "rename", "Alice Adams")
	require.Zero(t, code, errOut)
	require.Regexp(t, `alice +Alice Adams +a@example.com`, out)
	require.Len(t, *sent, 1)
	require.JSONEq(t, `{"displayName":"Alice Adams"}`, (*sent)[0].body)
	code, _, _ = b.run(t, "me", "rename")
	require.Equal(t, 2, code)
}
