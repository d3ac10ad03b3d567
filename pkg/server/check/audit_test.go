package check_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/server/check"
	"github.com/faroshq/kedge-hub/pkg/server/options"
)

// The command finds what somebody did to the files of a hub, beside the hub.
func TestAudit_saysWhatIsMissing(t *testing.T) {
	t.Parallel()
	o := options.New()
	o.DataDir = t.TempDir()
	c, err := o.Complete()
	require.NoError(t, err)
	// ends are those that kcp has, or why they cannot be read.
	var ends []audit.Head
	var unread error
	inKCP := func(context.Context, options.Config) ([]audit.Head, bool, error) { return ends, ends != nil, unread }
	run := func(files []string, heads ...string) (string, error) {
		out := &strings.Builder{}
		err := check.Audit(t.Context(), c, files, heads, inKCP, out)
		return out.String(), err
	}
	_, err = run(nil)
	require.ErrorIs(t, err, check.ErrNotLooked)
	l, closing, err := audit.Open(t.Context(), c.Audit(), prometheus.NewRegistry())
	require.NoError(t, err)
	defer closing()
	for range 3 {
		require.NoError(t, l.Write(audit.Event{Action: "x"}))
	}
	head := l.Heads()[0].String()
	out, err := run(nil, head)
	require.NoError(t, err)
	require.Equal(t, "2 files: the chains are whole\n", out)
	_, err = run(nil, "x")
	require.ErrorIs(t, err, check.ErrNotLooked)

	// kcp has the ends of all replicas.
	ends = append(l.Heads(), audit.Head{Replica: "another", Log: audit.Rights, Seq: 7, Hash: "x"})
	out, err = run(nil)
	require.NoError(t, err)
	require.Equal(t, "2 files, beside the ends that kcp has: the chains are whole\n", out)
	ends[0].Seq = 4
	out, err = run(nil)
	require.Error(t, err)
	require.Contains(t, out, "the end of the chain was cut off")
	ends, unread = nil, errors.New("kcp does not answer")
	_, err = run(nil)
	require.ErrorIs(t, err, check.ErrNotLooked)
	require.ErrorIs(t, err, unread)
	unread = nil
	_, err = run([]string{filepath.Join(o.DataDir, "none")})
	require.ErrorIs(t, err, check.ErrNotLooked)

	// The events in the database are part of what is checked.
	db, err := records.Open(c.Records.Records())
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	shipper, err := records.NewShipper(db, l, 0, func() error { return nil }, prometheus.NewRegistry())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		shipper.Run(ctx)
	}()
	shipper.Await(t.Context())
	cancel()
	<-done
	out, err = run(nil)
	require.NoError(t, err)
	require.Equal(t, "2 files and the table: the chains are whole\n", out)

	file := filepath.Join(o.DataDir, "audit", "rights.jsonl")
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	all := bytes.SplitAfter(raw, []byte("\n"))
	require.NoError(t, os.WriteFile(file, bytes.Join([][]byte{all[0], all[2]}, nil), 0o600))
	out, err = run([]string{file})
	require.Error(t, err)
	require.NotErrorIs(t, err, check.ErrNotLooked)
	require.Contains(t, out, file+": replica "+l.Heads()[0].Replica+", rights, event 2: is missing")
	require.NoError(t, os.WriteFile(file, all[0], 0o600))
	_, err = run([]string{file})
	require.NoError(t, err, "nothing says that there was more")
	out, err = run(nil)
	require.Error(t, err)
	require.Contains(t, out, "the end of the chain was cut off", "the database says it")
	out, err = run([]string{file}, head)
	require.Error(t, err)
	require.Contains(t, out, "the end of the chain was cut off")
}
