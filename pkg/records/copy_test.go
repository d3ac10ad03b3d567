package records_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

// A restore reads what the files would have: the verbatim lines, from the head of the backup on.
func TestRights_hasTheLinesOfTheFiles(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		db := open(t, url)
		r, other := start(t, db, t.TempDir()), start(t, db, t.TempDir())
		r.write(t, 3)
		r.settle(t)
		heads := r.Heads()
		r.write(t, 4)
		other.write(t, 2)
		r.settle(t)
		other.settle(t)
		later := time.Now().Add(time.Hour)
		read := func(heads, ended []audit.Head, since time.Time) (n int) {
			out := &bytes.Buffer{}
			require.NoError(t, db.Rights(t.Context(), heads, ended, since, out))
			file := filepath.Join(t.TempDir(), "file")
			require.NoError(t, os.WriteFile(file, out.Bytes(), 0o600))
			require.NoError(t, audit.Lines(file, 0, func(l audit.Line) bool {
				require.True(t, l.OK)
				require.Equal(t, audit.Rights, l.Event.Log)
				n++
				return true
			}))
			v := audit.NewVerifier()
			require.NoError(t, v.File(file))
			for _, f := range v.Done() {
				require.Contains(t, f.Problem, "no rotation removed them")
			}
			return n
		}
		all := read(nil, nil, later)
		require.Positive(t, all)
		require.Less(t, read(heads, nil, later), all)
		require.Equal(t, all, read(heads, nil, time.Unix(0, 0)), "what is as new as that, too")
		require.Less(t, read(nil, other.Heads(), later), all)
	})
}

// A connection that was open and answers no more delays a backup as long as any reader, and no longer.
func TestHeads_endsWhereTheDatabaseIsSilent(t *testing.T) {
	t.Parallel()
	direct := newPostgres(t)
	own := open(t, direct)
	require.NoError(t, own.Migrate(t.Context()))
	through, silence := silenced(t, direct)
	db := open(t, through)
	_, err := db.Heads(t.Context())
	require.NoError(t, err)
	silence()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = db.Heads(ctx)
	require.Error(t, err)
	require.NoError(t, ctx.Err(), "it waits as long as its caller")
}

// silenced returns the URL of a proxy before a PostgreSQL of the tests, and a func after which it swallows everything and
// keeps all connections open.
func silenced(t *testing.T, direct string) (through string, silence func()) {
	t.Helper()
	u, err := url.Parse(direct)
	require.NoError(t, err)
	socket := filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	var silent atomic.Bool
	forward := func(to, from net.Conn) {
		defer func() { _ = to.Close() }()
		raw := make([]byte, 4096)
		for {
			n, err := from.Read(raw)
			if err != nil {
				return
			}
			if silent.Load() {
				continue
			}
			if _, err := to.Write(raw[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			backend, err := new(net.Dialer).DialContext(t.Context(), "unix", socket)
			if err != nil {
				_ = client.Close()
				continue
			}
			go forward(backend, client)
			go forward(client, backend)
		}
	}()
	through, _, _ = strings.Cut(strings.Replace(direct, "@", "@"+listener.Addr().String(), 1), "?")
	return through + "?sslmode=disable", func() { silent.Store(true) }
}

// A restore does not wait for ever for a PostgreSQL that does not answer, and takes all the time for one that does.
func TestRights_outlastsNoSilence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		on    string
		pause time.Duration
		want  time.Duration
	}{
		"from the start":  {"BEGIN", 0, time.Minute},
		"no ends":         {"FROM audit_heads", 0, time.Minute},
		"no events":       {"SELECT event", 0, time.Minute},
		"slow":            {"-- no statement", 25 * time.Second, 150 * time.Second},
		"all is answered": {"-- no statement", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				pool := sql.OpenDB(&silent{on: c.on, pause: c.pause, asked: func() {}})
				defer func() { require.NoError(t, pool.Close()) }()
				began, out := time.Now(), &strings.Builder{}
				err := records.NewPostgres(pool).Rights(t.Context(), nil, nil, began, out)
				require.Equal(t, c.want, time.Since(began))
				if c.want == time.Minute {
					require.ErrorContains(t, err, "the database has given no answer for 1m0s")
					return
				}
				require.NoError(t, err)
				require.Equal(t, "1\n2\n3\n", out.String())
			})
		})
	}
}
