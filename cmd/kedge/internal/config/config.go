package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config is the content of the file.
type Config struct {
	// Current is the name of the profile that commands use by default.
	Current  string              `json:"current,omitempty"`
	Profiles map[string]*Profile `json:"profiles,omitempty"`
}

// Profile is a login of one person or bot to one hub, with the chosen organization and workspace.
type Profile struct {
	// Server is the URL of the hub, without a trailing slash.
	Server string `json:"server"`
	// CA is the PEM bundle that signs the hub's certificate. If it is empty, the system's
	// roots are trusted.
	CA []byte `json:"ca,omitempty"`
	// Person is the name of the User.
	Person string `json:"person,omitempty"`
	// Bot is the UUID of the bot, if the login is that of a bot. Org and Workspace are then its own.
	Bot string `json:"bot,omitempty"`
	// Token is the bearer token: a static token, or the newest ID token of the session.
	Token string `json:"token"`
	// ExpiresAt is the time, on this computer's clock, at which Token expires. It is zero
	// if the hub did not say.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	// RefreshAt is the time from which Token is refreshed before it is used.
	RefreshAt time.Time `json:"refreshAt,omitzero"`
	// Secret is the newest secret of the session at the hub, which gets the next Token. It
	// is empty for a static token.
	Secret string `json:"secret,omitempty"`
	// Refusal is the last answer to Secret, if the hub refused it.
	Refusal   *Refusal `json:"refusal,omitempty"`
	Org       string   `json:"org,omitempty"`
	Workspace string   `json:"workspace,omitempty"`
}

// Refusal is a refused refresh.
type Refusal struct {
	At      time.Time `json:"at"`
	Message string    `json:"message"`
}

// BrokenError means that the file could not be understood and was renamed.
type BrokenError struct{ Path, RenamedTo string }

// Error names both files.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("%s cannot be understood and was renamed to %s; log in again", e.Path, e.RenamedTo)
}

// Home is the user's home folder: $HOME, or else %USERPROFILE%, because PowerShell and cmd set no
// HOME. It is empty if the environment has neither.
func Home(getenv func(string) string) string {
	if home := getenv("HOME"); home != "" {
		return home
	}
	return getenv("USERPROFILE")
}

// Path is the path of the file: explicit, or $KEDGE_CONFIG, or kedge/config.json in
// $XDG_CONFIG_HOME or else in .config in Home. It fails without any of them.
func Path(explicit string, getenv func(string) string) (string, error) {
	if explicit != "" {
		return explicit, nil
	}
	if path := getenv("KEDGE_CONFIG"); path != "" {
		return path, nil
	}
	dir := getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home := Home(getenv)
		if home == "" {
			return "", errors.New("no home folder; name the file with --config or $KEDGE_CONFIG")
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "kedge", "config.json"), nil
}

// Load reads the file. A missing file is an empty Config. A file that cannot be understood is
// renamed, and the error is a BrokenError.
func Load(ctx context.Context, path string) (*Config, error) {
	c, err := read(path)
	if !errors.Is(err, errBroken) {
		return c, err
	}
	unlock, err := Lock(ctx, path)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return readOrRename(path)
}

// Update changes the file under its lock.
func Update(ctx context.Context, path string, change func(*Config) error) error {
	unlock, err := Lock(ctx, path)
	if err != nil {
		return err
	}
	defer unlock()
	c, err := readOrRename(path)
	if err != nil {
		return err
	}
	if err := change(c); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(path, append(raw, '\n'))
}

var errBroken = errors.New("not a file of kedge")

func read(path string) (*Config, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Config{Profiles: map[string]*Profile{}}, nil
	}
	if err != nil {
		return nil, err
	}
	var c Config
	if json.Unmarshal(raw, &c) != nil {
		return nil, errBroken
	}
	if c.Profiles == nil {
		c.Profiles = map[string]*Profile{}
	}
	for name, p := range c.Profiles {
		if p == nil || p.Server == "" || !ValidName(name) {
			return nil, errBroken
		}
	}
	return &c, nil
}

// readOrRename is called with the lock.
func readOrRename(path string) (*Config, error) {
	c, err := read(path)
	if !errors.Is(err, errBroken) {
		return c, err
	}
	aside := path + ".broken"
	for i := 2; ; i++ {
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			break
		}
		aside = path + ".broken-" + strconv.Itoa(i)
	}
	if err := os.Rename(path, aside); err != nil {
		return nil, err
	}
	return nil, &BrokenError{Path: path, RenamedTo: aside}
}

// maxName is the maximum length of a profile's name.
const maxName = 63

// ValidName reports whether a profile can have this name: letters, digits and, after the first
// character, dots, hyphens and underscores. A name is part of the name of a file.
func ValidName(name string) bool {
	ok := name != "" && len(name) <= maxName && !strings.ContainsAny(name[:1], "._-")
	for i := range len(name) {
		ok = ok && safe(rune(name[i]))
	}
	return ok
}

func safe(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-", r)
}

// NewName is the name of a new profile for a hub: its host and port.
func (c *Config) NewName(server string) string {
	host := server
	if u, err := url.Parse(server); err == nil && u.Host != "" {
		host = u.Host
	}
	base := strings.Trim(strings.Map(func(r rune) rune {
		if safe(r) {
			return r
		}
		return '-'
	}, host), "._-")
	base = base[:min(len(base), maxName-4)]
	if base == "" {
		base = "hub"
	}
	name := base
	for i := 2; c.Profiles[name] != nil; i++ {
		name = base + "-" + strconv.Itoa(i)
	}
	return name
}

// At lists the names of the profiles for a hub, sorted.
func (c *Config) At(server string) []string {
	var names []string
	for name, p := range c.Profiles {
		if p.Server == server {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
