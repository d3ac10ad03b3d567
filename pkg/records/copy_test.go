package records_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/records"
)

func roomForAll(int64) error { return nil }

func TestCopy_isConsistentWhileEventsArrive(t *testing.T) {
	t.Parallel()
	url, dir := records.DefaultURL(t.TempDir()), t.TempDir()
	db := open(t, url)
	r := start(t, db, dir)
	r.write(t, 200)
	r.settle(t)
	before, err := db.Heads(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, r.Heads(), before)

	file := records.DefaultURL(dir)[len("sqlite:"):]
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	path := url[len("sqlite:"):]
	// A hub that was killed left this.
	require.NoError(t, os.WriteFile(path+".copy", []byte("half"), 0o600))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = r.Write(audit.Event{Org: "o", Object: "o", Action: "POST /api/orgs", Stage: audit.StageIntent})
			}
		}
	}()
	require.NoError(t, db.Copy(t.Context(), roomForAll, func(size int64, from io.Reader) error {
		raw, err := io.ReadAll(from)
		require.NoError(t, err)
		require.Len(t, raw, int(size))
		info, err := os.Stat(path + ".copy")
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
		return os.WriteFile(file, raw, 0o600)
	}))
	close(stop)
	<-stopped
	require.NoFileExists(t, path+".copy")

	copied := open(t, records.DefaultURL(dir))
	v := audit.NewVerifier()
	heads, err := copied.Verify(t.Context(), v)
	require.NoError(t, err)
	require.Empty(t, v.Done(heads...))
	require.Empty(t, v.Done(before...), "it has what was there before")
}

func TestCopy_leavesNoFile(t *testing.T) {
	t.Parallel()
	url := records.DefaultURL(t.TempDir())
	db := open(t, url)
	require.NoError(t, db.Migrate(t.Context()))
	failed := errors.New("nobody reads any more")
	require.ErrorIs(t, db.Copy(t.Context(), roomForAll, func(int64, io.Reader) error { return failed }), failed)
	require.ErrorIs(t, db.Copy(t.Context(), func(size int64) error { require.Positive(t, size); return failed }, nil), failed)
	require.NoFileExists(t, url[len("sqlite:"):]+".copy")
	require.ErrorContains(t, open(t, "postgres://u@127.0.0.1:1/n").Copy(t.Context(), roomForAll, nil), "is no file")
}
