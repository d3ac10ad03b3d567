package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Config is the content of the file.
type Config struct {
	// Current is the URL of the hub that commands use by default.
	Current string             `json:"current,omitempty"`
	Servers map[string]*Server `json:"servers,omitempty"`
}

// Server is the login to one hub, with the chosen organization and workspace.
type Server struct {
	CA        []byte `json:"ca,omitempty"`
	Token     string `json:"token"`
	Org       string `json:"org,omitempty"`
	Workspace string `json:"workspace,omitempty"`
}

// Path is the path of the file: explicit, or $KEDGE_CONFIG, or in the user's configuration
// directory.
func Path(explicit string, getenv func(string) string) (string, error) {
	if explicit != "" {
		return explicit, nil
	}
	if path := getenv("KEDGE_CONFIG"); path != "" {
		return path, nil
	}
	dir := getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home := getenv("HOME")
		if home == "" {
			return "", errors.New("no home folder; name the file with --config or $KEDGE_CONFIG")
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "kedge", "config.json"), nil
}

// Load reads the file. A missing file is an empty Config.
func Load(path string) (*Config, error) {
	c := &Config{Servers: map[string]*Server{}}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; remove it and log in again", path, err)
	}
	if c.Servers == nil {
		c.Servers = map[string]*Server{}
	}
	return c, nil
}

// Save replaces the file atomically.
func (c *Config) Save(path string) error {
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(path, append(raw, '\n'))
}

// WriteFile replaces a file atomically, with mode 0600.
func WriteFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".kedge-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}
