package restore_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/restore"
)

const removal = "DELETE /api/orgs/{org}/members/{user}"

// hub is a hub that writes its chain of rights.
type hub struct {
	t    *testing.T
	file string
	log  *audit.Log
}

func newHub(t *testing.T) *hub {
	h := &hub{t: t, file: filepath.Join(t.TempDir(), "rights.jsonl")}
	l, closing, err := audit.Open(t.Context(), audit.Options{File: h.file, MaxSize: 1}, prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(closing)
	h.log = l
	return h
}

// remove writes the removal of a person; code 0 is one without an outcome.
func (h *hub) remove(user string, code int) {
	e := audit.Event{ID: "of " + user, Stage: audit.StageIntent, Action: removal, Org: org, Object: user}
	require.NoError(h.t, h.log.Write(e))
	if code != 0 {
		h.answer(user, code)
	}
}

func (h *hub) answer(user string, code int) {
	require.NoError(h.t, h.log.Write(audit.Event{ID: "of " + user, Stage: audit.StageOutcome, Code: code, Action: removal, Org: org, Object: user}))
}

// order is that of a restore from a backup that is made now.
func (h *hub) order() restore.Order {
	return restore.Order{BackupAt: time.Now(), Heads: h.log.Heads(), Files: []string{h.file}}
}

// lines reads the chain, and rewrites it as edit says.
func (h *hub) lines(edit func(lines []string) []string) string {
	raw, err := os.ReadFile(h.file)
	require.NoError(h.t, err)
	lines := edit(strings.SplitAfter(strings.TrimSuffix(string(raw), "\n"), "\n"))
	to := filepath.Join(h.t.TempDir(), "rights.jsonl")
	require.NoError(h.t, os.WriteFile(to, []byte(strings.TrimSuffix(strings.Join(lines, ""), "\n")+"\n"), 0o600))
	return to
}

func objects(h restore.History) (names []string) {
	for _, e := range h.Events {
		names = append(names, e.Object)
	}
	return names
}

func TestReadHistory_hasWhatTheBackupMayNotHave(t *testing.T) {
	t.Parallel()
	h, second := newHub(t), newHub(t)
	h.remove("before", 204)
	h.remove("asked-before", 0)
	o := h.order()
	o.Heads, o.Files = append(o.Heads, second.log.Heads()...), append(o.Files, second.file)
	h.answer("asked-before", 204)
	h.remove("after", 204)
	h.remove("refused", 409)
	h.remove("failed", 503)
	h.remove("killed", 0)
	h.answer("never-asked", 503)
	second.remove("elsewhere", 202)
	got, err := restore.ReadHistory(o)
	require.NoError(t, err)
	require.Empty(t, got.Unknown)
	require.ElementsMatch(t, []string{"asked-before", "after", "failed", "killed", "elsewhere"}, objects(got))
	require.Len(t, got.Ends, 2)
	p, err := restore.Read(o)
	require.NoError(t, err)
	require.Len(t, p.Steps, 5)
	for _, s := range p.Steps {
		require.Equal(t, s.Object == "killed", s.Unanswered, s.Object)
	}
}

// What a hub left undone a long time ago is not done by a restore.
func TestReadHistory_takesOnlyYoungIntentsFromBeforeTheBackup(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.remove("killed", 0)
	o := h.order()
	got, err := restore.ReadHistory(o)
	require.NoError(t, err)
	require.Equal(t, []string{"killed"}, objects(got))
	o.BackupAt = o.BackupAt.Add(time.Hour)
	got, err = restore.ReadHistory(o)
	require.NoError(t, err)
	require.Empty(t, got.Events)
}

// An outcome can be in another file than its intent, and the files can be given in any order.
func TestReadHistory_readsFilesInAnyOrder(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	o := h.order()
	h.remove("refused", 409)
	h.remove("after", 204)
	first := h.lines(func(l []string) []string { return l[:1] })
	rest := h.lines(func(l []string) []string { return l[1:] })
	for _, files := range [][]string{{first, rest}, {rest, first}} {
		o.Files = files
		got, err := restore.ReadHistory(o)
		require.NoError(t, err)
		require.Empty(t, got.Unknown)
		require.Equal(t, []string{"after"}, objects(got))
	}
}

func TestRead_refusesWhatItCannotKnow(t *testing.T) {
	t.Parallel()
	change := func(line string) string { return strings.Replace(line, `"object":"`, `"object":"x`, 1) }
	for name, c := range map[string]struct {
		edit  func(h *hub, o *restore.Order)
		wants string
	}{
		"no file":                 {func(_ *hub, o *restore.Order) { o.Files = nil }, "with the whole chain"},
		"a backup without chains": {func(_ *hub, o *restore.Order) { o.Heads = nil }, "names no chain"},
		"a chain that is cut before the backup": {func(h *hub, o *restore.Order) {
			o.Files = []string{h.lines(func(l []string) []string { return l[:2] })}
		}, "cut off"},
		"a gap": {func(h *hub, o *restore.Order) {
			o.Files = []string{h.lines(func(l []string) []string { return slices.Delete(l, 5, 6) })}
		}, "events 6 to 6 are missing"},
		"a changed event": {func(h *hub, o *restore.Order) {
			o.Files = []string{h.lines(func(l []string) []string { l[5] = change(l[5]); return l })}
		}, "was changed"},
		"a fork before the backup": {func(h *hub, o *restore.Order) {
			o.Files = []string{h.lines(func(l []string) []string { return forked(h.t, l, change) })}
		}, "is another one from there on"},
		"a chain that begins after the backup": {func(h *hub, o *restore.Order) {
			o.Files = []string{h.lines(func(l []string) []string { return l[6:] })}
		}, "missing"},
		"another chain right after the backup": {func(_ *hub, o *restore.Order) { o.Heads[0].Hash = "other" }, "another one"},
		"a replica that is missing": {func(_ *hub, o *restore.Order) {
			o.Heads = append(o.Heads, audit.Head{Replica: "second", Log: audit.Rights})
		}, "replica second"},
		"what is no event any more": {func(h *hub, o *restore.Order) {
			o.Files = []string{h.lines(func(l []string) []string { l[5] = "{}\n"; return l })}
		}, "events 6 to 6 are missing"},
		"an event that was too long": {func(h *hub, o *restore.Order) {
			o.Files = []string{h.lines(func(l []string) []string { l[7] = strings.Replace(l[7], `"id":`, `"cut":true,"id":`, 1); return l })}
		}, "event 8 does not say what was changed"},
		"an event that is there twice": {func(h *hub, o *restore.Order) {
			o.Files = append(o.Files, h.lines(func(l []string) []string { return []string{change(l[5])} }))
		}, "event 6 is there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			h.remove("early", 204)
			h.remove("early-too", 204)
			o := h.order()
			h.remove("bob", 204)
			h.remove("carol", 204)
			_, err := restore.Read(o)
			require.NoError(t, err, "the chain as it is")
			c.edit(h, &o)
			_, err = restore.Read(o)
			var unknown *restore.UnknownError
			require.ErrorAs(t, err, &unknown)
			require.Contains(t, strings.Join(unknown.Unknown, "\n"), c.wants)
			require.ErrorContains(t, err, "--accept-lost-history")
			o.AcceptLostHistory = true
			p, err := restore.Read(o)
			require.NoError(t, err)
			require.Equal(t, unknown.Unknown, p.Unknown, "it is reported all the same")
		})
	}
}

// What is before the backup is in the backup, and what else is in the files says nothing about rights.
func TestRead_asksForNothingThatTheBackupHas(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(h *hub, o *restore.Order, l []string) []string{
		"files that do not reach further back": func(_ *hub, _ *restore.Order, l []string) []string { return l[3:] },
		"a gap before the backup":              func(_ *hub, _ *restore.Order, l []string) []string { return slices.Delete(l, 2, 3) },
		"the head alone is missing":            func(_ *hub, _ *restore.Order, l []string) []string { return l[4:] },
		"lines of another program": func(_ *hub, _ *restore.Order, l []string) []string {
			return slices.Insert(append(l, `{"level":"info","msg":"no event"}`+"\n"), 5, "Log in with: kedge login\n", "\n")
		},
		"proxied writes with a gap": func(_ *hub, _ *restore.Order, l []string) []string {
			write := `{"apiVersion":"` + audit.APIVersion + `","log":"writes","replica":"r","seq":%d,"prev":"x"}` + "\n"
			return append(l, fmt.Sprintf(write, 7), fmt.Sprintf(write, 12), fmt.Sprintf(write, 3))
		},
		"the same twice": func(h *hub, o *restore.Order, l []string) []string {
			o.Files = append(o.Files, h.file)
			return append(l, l[2:]...)
		},
		"a hub that was lost before": func(_ *hub, o *restore.Order, l []string) []string {
			second := newHub(t)
			second.remove("long-ago", 204)
			second.remove("long-ago-too", 204)
			o.Files, o.Ended = append(o.Files, second.lines(func(l []string) []string { return l[2:] })), second.log.Heads()
			return l
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			h.remove("early", 204)
			h.remove("early-too", 204)
			o := h.order()
			h.remove("bob", 204)
			h.remove("carol", 204)
			o.Files = nil
			lines := h.lines(func(l []string) []string { return edit(h, &o, l) })
			o.Files = append([]string{lines}, o.Files...)
			p, err := restore.Read(o)
			require.NoError(t, err)
			require.Empty(t, p.Unknown)
			require.Len(t, p.Steps, 2)
			require.Len(t, p.Ends, 1)
		})
	}
}

// forked returns a chain with the same numbers that is whole in itself.
func forked(t *testing.T, lines []string, change func(string) string) []string {
	t.Helper()
	prev := ""
	for i, line := range lines {
		var e audit.Event
		require.NoError(t, json.Unmarshal([]byte(change(line)), &e))
		e.Prev = prev
		raw, err := json.Marshal(e)
		require.NoError(t, err)
		prev = audit.Hash(raw)
		lines[i] = string(append(bytes.TrimSpace(raw), '\n'))
	}
	return lines
}

func TestRead_refusesAnUnknownEndOfALogThatWasFull(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	o := h.order()
	h.remove("bob", 204)
	o.Files = []string{h.lines(func(l []string) []string {
		return forked(t, l, func(line string) string { return strings.Replace(line, `"id":`, `"lost":3,"id":`, 1) })
	})}
	_, err := restore.Read(o)
	require.ErrorContains(t, err, "3 events before it could not be written")
}

// The hub lost the removal on a full disk, as the mark beside its file says, and was killed before it could write that.
func TestReadHistory_knowsThatAKilledHubLostARemoval(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.remove("before", 204)
	o := h.order()
	require.NoError(t, os.Truncate(h.file+".whole", 0))
	again, closing, err := audit.Open(t.Context(), audit.Options{File: h.file, MaxSize: 1}, prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(closing)
	h.log = again
	h.remove("after", 204)
	got, err := restore.ReadHistory(o)
	require.NoError(t, err)
	require.Len(t, got.Unknown, 1)
	require.Contains(t, got.Unknown[0], "event 3: 1 events before it could not be written")
	_, err = restore.Read(o)
	require.ErrorContains(t, err, "could not be written")
}
