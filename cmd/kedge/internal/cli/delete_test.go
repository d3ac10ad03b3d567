package cli_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/cli"
)

const (
	purgeAt    = "2026-12-21T00:00:00Z"
	deletedOrg = `{"uuid":"` + orgUUID + `","displayName":"ACME","role":"admin","phase":"Ready","deletionRequestedAt":"2026-11-21T00:00:00Z","purgeAt":"` + purgeAt + `"}`
	deletedWS  = `{"uuid":"` + wsUUID + `","displayName":"Web","role":"admin","phase":"Ready","deletionRequestedAt":"2026-11-21T00:00:00Z","purgeAt":"` + purgeAt + `"}`
	deletedMe  = `{"name":"alice","displayName":"Alice","deletionRequestedAt":"2026-11-21T00:00:00Z","purgeAt":"` + purgeAt + `"}`
)

// removals are the three things that can be deleted: the command, what is typed
// to go on, the path, and the headers.
var removals = map[string]struct {
	args         []string
	name, path   string
	headers      call
	answer, back string
	printed      string
}{
	"organization": {[]string{"orgs", "delete", "ACME"}, "ACME", orgPath, call{org: orgUUID}, deletedOrg, "kedge orgs undelete " + orgUUID, orgUUID},
	"workspace": {[]string{"workspaces", "delete", "Web"}, "Web", wsPath, call{org: orgUUID, workspace: wsUUID}, deletedWS,
		"kedge workspaces undelete " + wsUUID + " --org " + orgUUID, wsUUID},
	"person": {[]string{"me", "delete"}, "alice", "/api/users/me", call{}, deletedMe, "kedge me undelete", "alice"},
}

func TestDeletionAsksAndPrintsUntilWhenItCanBeUndone(t *testing.T) {
	t.Parallel()
	for what, c := range removals {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.inWorkspace(t)
			calls := b.record(t, "DELETE "+c.path, http.StatusOK, c.answer)
			for _, typed := range []string{"", "\n", "y\n", "yes\n", strings.ToLower(c.name) + "x\n", strings.Repeat("x", 1<<16)} {
				code, out, errOut := b.runAt(t, typed, c.args...)
				require.Equal(t, 1, code, typed)
				require.Empty(t, out)
				require.Contains(t, errOut, "Type ")
				require.Contains(t, errOut, "not confirmed; nothing was done")
			}
			require.Empty(t, *calls)
			code, out, errOut := b.runAt(t, c.name+"\n", c.args...)
			require.Zero(t, code, errOut)
			require.Contains(t, errOut, "Until "+purgeAt+" it can be brought back with: "+c.back+"\n")
			require.Contains(t, out, "PURGE AT")
			require.Contains(t, out, purgeAt)
			require.Equal(t, []call{c.headers}, *calls)
		})
	}
}

func TestDeletionWhereNobodyCanBeAskedNeedsYes(t *testing.T) {
	t.Parallel()
	for what, c := range removals {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.inWorkspace(t)
			calls := b.record(t, "DELETE "+c.path, http.StatusAccepted, c.answer)
			undeleted := b.record(t, "POST "+c.path+"/undelete", http.StatusOK, c.answer)
			b.answer("GET /api/users/me/memberships", http.StatusOK, `{"items":[]}`)
			undelete := slices.Concat([]string{c.args[0], "undelete"}, c.args[2:])
			hits := len(b.hits)
			for _, args := range [][]string{c.args, undelete} {
				// The answer is there to be read, but nobody typed it.
				code, out, errOut := b.runWith(t, cli.Streams{In: strings.NewReader(c.name + "\n")}, args...)
				require.Equal(t, 2, code)
				require.Empty(t, out)
				require.Contains(t, errOut, "standard input is not a terminal; give --yes")
			}
			require.Len(t, b.hits, hits, "nothing is asked of the hub before")
			require.Empty(t, *calls)
			require.Empty(t, *undeleted)
			for output, check := range map[string]func(out string){
				"name": func(out string) { require.Equal(t, c.printed+"\n", out) },
				"json": func(out string) { require.JSONEq(t, c.answer, out) },
				"yaml": func(out string) { require.Contains(t, out, "purgeAt: \""+purgeAt+"\"\n") },
			} {
				// What is deleted is not chosen any more.
				b.inWorkspaceAgain(t, "Web")
				code, out, errOut := b.run(t, slices.Concat(c.args, []string{"-o", output, "--yes"})...)
				require.Zero(t, code, errOut)
				require.NotContains(t, errOut, "Type ")
				check(out)
			}
			require.Len(t, *calls, 3)
		})
	}
}

func TestWhatWasDeletedIsNotWorkedInAnyMore(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("DELETE "+wsPath, http.StatusOK, deletedWS)
	b.answer("DELETE "+orgPath, http.StatusOK, deletedOrg)
	code, _, errOut := b.run(t, "workspaces", "delete", "Web", "--yes")
	require.Zero(t, code, errOut)
	require.NotContains(t, b.chosen(t), wsUUID)
	require.Contains(t, b.chosen(t), orgUUID)
	code, _, errOut = b.run(t, "orgs", "delete", orgUUID, "-y")
	require.Zero(t, code, errOut)
	require.NotContains(t, b.chosen(t), orgUUID)
}

func TestTheUUIDConfirmsToo(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	// An answer without a body and a purge time is printed as far as it goes.
	b.answer("DELETE "+orgPath, http.StatusAccepted, "")
	code, out, errOut := b.runAt(t, orgUUID, "orgs", "delete", "ACME")
	require.Zero(t, code, errOut)
	require.Empty(t, out)
	require.Contains(t, errOut, `Deleted organization "ACME" (`+orgUUID+`). It can be brought back with: kedge orgs undelete `+orgUUID)
}

func TestARefusedDeletionKeepsTheChoice(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	before := b.chosen(t)
	b.mux.HandleFunc("DELETE "+orgPath, func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, "only an admin may delete it")
	})
	code, out, errOut := b.run(t, "orgs", "delete", "ACME", "--yes")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Equal(t, "kedge: only an admin may delete it\n", errOut)
	require.Equal(t, before, b.chosen(t))
	for _, args := range []string{"orgs delete", "orgs undelete", "workspaces delete a b", "me delete alice", "me undelete x"} {
		code, _, errOut := b.run(t, strings.Fields(args)...)
		require.Equal(t, 2, code, "%s: %s", args, errOut)
	}
}

func TestAnInterruptEndsTheQuestion(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	calls := b.record(t, "DELETE "+orgPath, http.StatusOK, deletedOrg)
	in, typing := io.Pipe()
	t.Cleanup(func() { _ = typing.Close() })
	ctx, interrupt := context.WithCancel(t.Context())
	var out bytes.Buffer
	code := cli.Main(ctx, []string{"orgs", "delete", "ACME"},
		cli.Streams{In: in, Out: &out, Err: &interrupted{at: "go on: ", interrupt: interrupt}, Terminal: true},
		b.environment())
	require.Equal(t, 1, code)
	require.Empty(t, out.String())
	require.Empty(t, *calls)
}

// interrupted interrupts once a text has been printed.
type interrupted struct {
	bytes.Buffer
	at        string
	interrupt func()
}

func (w *interrupted) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if strings.HasSuffix(w.String(), w.at) {
		w.interrupt()
	}
	return n, err
}

func TestFilesPipesAndTheNullDeviceAreNoTerminals(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	// Like the null device on Windows, it is a character device, and not os.DevNull.
	zero, err := os.Open("/dev/zero")
	require.NoError(t, err)
	for _, f := range []*os.File{file, read, null, zero} {
		require.False(t, cli.IsTerminal(f), f.Name())
		require.NoError(t, f.Close())
	}
	require.False(t, cli.IsTerminal(file), "a closed file")
	require.NoError(t, write.Close())
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here")
	}
	require.True(t, cli.IsTerminal(terminal))
	require.NoError(t, terminal.Close())
}
