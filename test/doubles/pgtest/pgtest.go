// Package pgtest starts a PostgreSQL of the machine for tests, in a temporary directory and without a network.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Server is a PostgreSQL that a group of tests shares.
type Server struct {
	dir, bin string
	as       *syscall.SysProcAttr
	process  *exec.Cmd
}

// Missing skips a test where PostgreSQL is not installed. With KEDGE_TEST_INSIST the test fails.
func Missing(t testing.TB) {
	t.Helper()
	if _, err := binaries(); err == nil {
		return
	}
	if os.Getenv("KEDGE_TEST_INSIST") != "" {
		t.Fatal("PostgreSQL is not installed")
	}
	t.Skip("PostgreSQL is not installed")
}

// Records returns the URL of a records database that the hubs of a test can share: a PostgreSQL of the test's own. Missing
// says what happens where none is installed.
func Records(t testing.TB) string {
	t.Helper()
	Missing(t)
	s, err := Start(t.Context())
	if err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s.URL("postgres")
}

// binaries is the directory of the newest PostgreSQL that is installed.
func binaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if initdb, err := exec.LookPath("initdb"); err == nil {
		found = append(found, initdb)
	}
	if err != nil || len(found) == 0 {
		return "", errors.Join(err, exec.ErrNotFound)
	}
	return filepath.Dir(slices.Max(found)), nil
}

// Start makes a database cluster and starts a server, which refuses to run as root.
func Start(ctx context.Context) (s *Server, err error) {
	s = &Server{}
	if s.bin, err = binaries(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "pg"); err != nil {
		return nil, err
	}
	if os.Getuid() == 0 {
		other, err := user.Lookup("postgres")
		if err != nil {
			return nil, err
		}
		uid, _ := strconv.Atoi(other.Uid)
		gid, _ := strconv.Atoi(other.Gid)
		if err := os.Chown(s.dir, uid, gid); err != nil {
			return nil, err
		}
		s.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	make := s.command(ctx, "initdb", "-D", filepath.Join(s.dir, "data"), "-U", "kedge", "-A", "trust", "-E", "UTF8", "--no-sync")
	if out, err := make.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w: %s", err, out), os.RemoveAll(s.dir))
	}
	return s, s.Resume(ctx)
}

func (s *Server) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, filepath.Join(s.bin, name), args...)
	c.Dir, c.SysProcAttr = s.dir, s.as
	return c
}

// URL is that of a database.
func (s *Server) URL(database string) string {
	return "postgres://kedge@/" + database + "?host=" + s.dir + "&sslmode=disable"
}

// Resume starts the server again and returns when it answers.
func (s *Server) Resume(ctx context.Context) error {
	out := &bytes.Buffer{}
	s.process = s.command(context.WithoutCancel(ctx), "postgres", "-D", filepath.Join(s.dir, "data"), "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=off")
	s.process.Stdout, s.process.Stderr = out, out
	if err := s.process.Start(); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return s.SQL(ctx, "postgres", "SELECT 1") == nil, nil
	})
	if err != nil {
		s.Kill()
		return fmt.Errorf("PostgreSQL does not answer: %w: %s", err, out)
	}
	return nil
}

// SQL runs statements.
func (s *Server) SQL(ctx context.Context, database, statements string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, s.URL(database))
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, statements, pgx.QueryExecModeSimpleProtocol)
	return errors.Join(err, c.Close(ctx))
}

// Kill ends the server as a failure of it does.
func (s *Server) Kill() {
	// SIGQUIT ends all its processes at once, and recovery follows, as after a crash.
	_ = s.process.Process.Signal(syscall.SIGQUIT)
	_ = s.process.Wait()
}

// Stop ends the server and removes its files.
func (s *Server) Stop() error {
	s.Kill()
	return os.RemoveAll(s.dir)
}
