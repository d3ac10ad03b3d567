package config_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/config"
)

func write(t *testing.T, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestLoad_renamesAFileThatIsBroken(t *testing.T) {
	t.Parallel()
	for _, content := range []string{
		``, `{`, `[]`, `{"profiles":{"a":{"server":"https://x"`, `{"profiles":{"a":null}}`, `{"profiles":{"a":{"token":"t"}}}`,
		`{"profiles":{"../a":{"server":"https://x"}}}`, `{"profiles":7}`, `{} {}`, "\x00\x00\x00\x00",
	} {
		path := write(t, content)
		for _, suffix := range []string{".broken", ".broken-2"} {
			_, err := config.Load(t.Context(), path)
			var broken *config.BrokenError
			require.ErrorAs(t, err, &broken, content)
			require.Equal(t, path+suffix, broken.RenamedTo)
			raw, err := os.ReadFile(broken.RenamedTo)
			require.NoError(t, err)
			require.Equal(t, content, string(raw), "nothing is lost")
			c, err := config.Load(t.Context(), path)
			require.NoError(t, err)
			require.Empty(t, c.Profiles)
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		}
	}
}

func TestUpdate_isSeenByItsOwnerAloneAndLosesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "config.json")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			assert.NoError(t, config.Update(t.Context(), path, func(c *config.Config) error {
				c.Profiles["p"+strconv.Itoa(i)] = &config.Profile{Server: "https://x"}
				return nil
			}))
		})
	}
	all.Wait()
	c, err := config.Load(t.Context(), path)
	require.NoError(t, err)
	require.Len(t, c.Profiles, 20)
	for name, mode := range map[string]os.FileMode{filepath.Dir(path): 0o700, path: 0o600, path + ".lock": 0o600} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), name)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, files, 2, "no temporary file stays")
}

func TestUpdate_thatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	path := write(t, `{"profiles":{"a":{"server":"https://x"}}}`)
	require.ErrorIs(t, config.Update(t.Context(), path, func(c *config.Config) error {
		delete(c.Profiles, "a")
		return os.ErrInvalid
	}), os.ErrInvalid)
	c, err := config.Load(t.Context(), path)
	require.NoError(t, err)
	require.Contains(t, c.Profiles, "a")
}

func TestLock_isWaitedForUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	unlock, err := config.Lock(t.Context(), path)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = config.Lock(ctx, path)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	unlock()
	unlock, err = config.Lock(t.Context(), path)
	require.NoError(t, err)
	unlock()
}

func TestWriteFile_followsASymbolicLink(t *testing.T) {
	t.Parallel()
	path := write(t, "old")
	link := path + ".link"
	require.NoError(t, os.Symlink(path, link))
	require.NoError(t, config.WriteFile(link, []byte("new")))
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "new", string(raw))
	target, err := os.Readlink(link)
	require.NoError(t, err)
	require.Equal(t, path, target)
}

func TestNames_ofProfilesAreSafeInFileNames(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"work": true, "hub.example.com-9443": true, "A_b": true, "1": true, strings.Repeat("a", 63): true,
		"": false, ".": false, "..": false, "-a": false, ".a": false, "a/b": false, "a\\b": false, "a b": false, "ä": false, "a\n": false,
		strings.Repeat("a", 64): false,
	} {
		require.Equal(t, good, config.ValidName(name), name)
	}
	c := &config.Config{Profiles: map[string]*config.Profile{"hub": {}}}
	for server, want := range map[string]string{
		"https://hub.example.com": "hub.example.com", "https://hub": "hub-2", "https://127.0.0.1:9443": "127.0.0.1-9443",
		"https://[fe80::1]:9443": "fe80--1--9443", "https://ü": "hub-2", "https://" + strings.Repeat("a", 300): strings.Repeat("a", 59),
	} {
		require.Equal(t, want, c.NewName(server))
		require.True(t, config.ValidName(c.NewName(server)))
	}
}

// PowerShell and cmd set USERPROFILE and no HOME.
func TestPath_isInTheHomeFolder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		explicit string
		env      map[string]string
		want     string
	}{
		"HOME":              {env: map[string]string{"HOME": "h"}, want: "h/.config/kedge/config.json"},
		"Windows":           {env: map[string]string{"USERPROFILE": "u"}, want: "u/.config/kedge/config.json"},
		"HOME on Windows":   {env: map[string]string{"HOME": "h", "USERPROFILE": "u"}, want: "h/.config/kedge/config.json"},
		"XDG_CONFIG_HOME":   {env: map[string]string{"XDG_CONFIG_HOME": "x", "USERPROFILE": "u"}, want: "x/kedge/config.json"},
		"KEDGE_CONFIG":      {env: map[string]string{"KEDGE_CONFIG": "k", "XDG_CONFIG_HOME": "x", "HOME": "h"}, want: "k"},
		"the command line":  {explicit: "e", env: map[string]string{"KEDGE_CONFIG": "k"}, want: "e"},
		"no home folder":    {env: map[string]string{"HOMEPATH": "p"}},
		"empty home folder": {env: map[string]string{"HOME": "", "USERPROFILE": ""}},
	} {
		path, err := config.Path(c.explicit, func(name string) string { return c.env[name] })
		if c.want == "" {
			require.ErrorContains(t, err, "name the file with --config or $KEDGE_CONFIG", name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, filepath.FromSlash(c.want), path, name)
	}
}
