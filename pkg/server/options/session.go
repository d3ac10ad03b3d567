package options

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/faroshq/kedge-hub/pkg/auth/session"
)

// minSession is the shortest life of a session.
const minSession = 10 * time.Second

// SessionOptions are the flags of the sessions of people who log in.
type SessionOptions struct {
	// IdleTimeout (--session-idle-timeout) is the time without a use after which a session
	// ends. Default 168h.
	IdleTimeout time.Duration
	// MaxAge (--session-max-age) is the time after its login at which a session ends.
	// Default 2160h.
	MaxAge time.Duration
	// KeyFile (--session-key-file) is the file with the session keys: 32 bytes in base64 on
	// each line, the first of which encrypts. A new key is the last one until all replicas have read it. Empty
	// means a key that the hub makes once and keeps in a Secret of the root workspace.
	KeyFile string
}

func newSessionOptions() SessionOptions {
	return SessionOptions{IdleTimeout: 168 * time.Hour, MaxAge: 2160 * time.Hour}
}

func (o *SessionOptions) addFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.IdleTimeout, "session-idle-timeout", o.IdleTimeout, "Time without a use after which the session of a login ends, at least 10s.")
	fs.DurationVar(&o.MaxAge, "session-max-age", o.MaxAge, "Time after a login at which its session ends even if it is in use, at least 10s.")
	fs.StringVar(&o.KeyFile, "session-key-file", o.KeyFile,
		"File with the keys of sessions, 32 bytes in base64 on each line. The first one encrypts; all decrypt, so that keys can "+
			"be rotated: add a new key as the last line, and move it to the front when all replicas have read it. All replicas "+
			"need the same keys. Without it the hub makes a key and keeps it in a Secret of the root workspace.")
}

// complete validates the options and returns the keys of the file, or nil without a file.
func (o *SessionOptions) complete(fail func(flag, format string, args ...any)) [][]byte {
	for flag, d := range map[string]time.Duration{"session-idle-timeout": o.IdleTimeout, "session-max-age": o.MaxAge} {
		if d < minSession {
			fail(flag, "%s is less than %s", d, minSession)
		}
	}
	if o.KeyFile == "" {
		return nil
	}
	keys, err := o.ReadKeys()
	if err != nil {
		fail("session-key-file", "%v", err)
	}
	return keys
}

// ReadKeys reads the keys in KeyFile. Errors never contain a key.
func (o *SessionOptions) ReadKeys() ([][]byte, error) {
	content, err := os.ReadFile(o.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("%w; name a file that the hub can read", err)
	}
	keys, err := session.ParseKeys(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.KeyFile, err)
	}
	return keys, nil
}

// PortalTokens reports whether people sign in to the portal with static tokens. They do for
// development only: on a hub that other machines cannot reach.
func (c Config) PortalTokens() bool {
	listen, _, err := net.SplitHostPort(c.ListenAddress)
	external, bad := url.Parse(c.ExternalURL)
	return c.Portal && c.TokenFile != "" && err == nil && bad == nil && loopback(listen) && loopback(external.Hostname())
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
