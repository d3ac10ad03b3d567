package cli_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// forged returns a JSON text in which a person clears the screen, renames the window and adds a line.
func forged(line string) string {
	return "\"stuck\\u001b[2J\\u001b]0;owned\\u0007\\u009b\\u202e\\n" + line + "\""
}

// onTerminal requires that a text has nothing that a terminal acts on.
func onTerminal(t *testing.T, text string) {
	t.Helper()
	require.NotContains(t, text, "\x1b")
	require.NotContains(t, text, "\a")
	require.NotContains(t, text, "\u009b")
	require.NotContains(t, text, "\u202e")
}

// The reason of a request is a text of the person who asks, and an admin reads it before a decision.
func TestPrint_aReasonForgesNoRowOfAnotherRequest(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	row := requested + "   Open   carol   " + wsUUID
	b.answer("GET "+orgPath+"/requests", http.StatusOK,
		`{"items":[`+strings.Replace(asked, `"stuck"`, forged(row), 1)+`],"continue":""}`)
	code, out, errOut := b.run(t, "requests")
	require.Zero(t, code, errOut)
	onTerminal(t, out)
	require.Contains(t, out, "stuck")
	require.Contains(t, out, "carol", "the text is there, in its cell")
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 2, "a header and one row")
}

// A provider writes the verbs of its claims, and its backend what it says of itself.
func TestPrint_aTextOfAProviderMovesNoCursor(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("GET /api/providers", http.StatusOK,
		`{"items":[{"uuid":"`+requested+`","slug":"widgets","displayName":"Widgets","state":"Failed",`+
			`"message":`+forged("widgets   Enabled")+`}],"continue":""}`)
	code, out, errOut := b.run(t, "providers")
	require.Zero(t, code, errOut)
	onTerminal(t, out)
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 2)
}

// The message of an error can have texts of others, such as the verbs of a claim.
func TestPrint_anErrorMovesNoCursor(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("GET "+orgPath+"/requests", http.StatusConflict, `{"kind":"Status","message":`+forged("Read on.")+`,"code":409}`)
	code, _, errOut := b.run(t, "requests")
	require.Equal(t, 1, code)
	onTerminal(t, errOut)
	require.Contains(t, errOut, "stuck")
	require.Contains(t, errOut, "\nRead on.", "errors have lines")
}

// What would be lost is shown before a person types the name that confirms it.
func TestPrint_aQuestionMovesNoCursor(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("GET "+providerPath, http.StatusOK, inState("Enabled", "Accepted", "Rejected", ""))
	b.answer("DELETE "+providerPath+"/enable", http.StatusConflict,
		`{"kind":"Status","message":"confirm","code":409,"details":{"causes":[`+
			`{"reason":"WouldLose","field":"widgets","message":`+forged("Nothing.")+`}]}}`)
	code, _, errOut := b.runAt(t, "no\n", "providers", "disable", entryUUID)
	require.Equal(t, 1, code, errOut)
	onTerminal(t, errOut)
	require.Contains(t, errOut, "stuck")
	require.Contains(t, errOut, "Type widgets to go on: ")
}
