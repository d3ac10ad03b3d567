package transport

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// rereadPause is the shortest time between two reads of a credential: while kcp refuses
// it, all requests of the hub fail at once.
const rereadPause = time.Second

// Follow returns a configuration whose requests authenticate with the bearer token that
// read returns. kcp gives its admin a new token at every start: after a 401 read is
// called again, and the request is sent once more if there is a new token. Nothing but
// the token is followed, and only for the same server. name is the credential's name in
// logs and errors, and ctx has the logger.
//
// A configuration without a token is returned as it is.
func Follow(ctx context.Context, name string, read func() (*rest.Config, error)) (*rest.Config, error) {
	config, err := read()
	if err != nil || config.BearerToken == "" && config.BearerTokenFile == "" {
		return config, err
	}
	token, err := tokenOf(config)
	if err != nil {
		return nil, err
	}
	c := &credential{name: name, host: config.Host, read: read, log: log.From(ctx)}
	c.token.Store(&token)
	followed := rest.CopyConfig(config)
	followed.BearerToken, followed.BearerTokenFile = "", ""
	followed.Wrap(func(next http.RoundTripper) http.RoundTripper { return authenticated{next: next, credential: c} })
	return followed, nil
}

func tokenOf(config *rest.Config) (string, error) {
	token := config.BearerToken
	if config.BearerTokenFile != "" {
		raw, err := os.ReadFile(config.BearerTokenFile)
		if err != nil {
			return "", err
		}
		token = strings.TrimSpace(string(raw))
	}
	if token == "" {
		return "", errors.New("it holds no token")
	}
	return token, nil
}

// credential is the last token that its source returned.
type credential struct {
	name, host string
	read       func() (*rest.Config, error)
	log        *zap.Logger
	token      atomic.Pointer[string]
	// refused is set while kcp refuses the token.
	refused atomic.Bool

	mu       sync.Mutex
	lastRead time.Time
	// warned is the last warning, which is not repeated.
	warned string
}

// authenticated sends requests with a credential.
type authenticated struct {
	next http.RoundTripper
	*credential
}

func (a authenticated) RoundTrip(r *http.Request) (*http.Response, error) {
	token := a.token.Load()
	for {
		signed := r.Clone(r.Context())
		signed.Header.Set("Authorization", "Bearer "+*token)
		response, err := a.next.RoundTrip(signed)
		if err != nil {
			return nil, err
		}
		if response.StatusCode != http.StatusUnauthorized {
			if a.refused.Load() {
				a.accepted()
			}
			return response, nil
		}
		_ = response.Body.Close()
		newest := a.renew(token)
		if r = rewound(r); newest == token || r == nil {
			return nil, unavailable(&Refusal{of: a.name})
		}
		token = newest
	}
}

// rewound returns the request with its body from the beginning, or nil where that is
// not possible.
func rewound(r *http.Request) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	if r.GetBody == nil {
		return nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil
	}
	r = r.WithContext(r.Context())
	r.Body = body
	return r
}

// renew returns the newest token after kcp has refused one. It returns the same pointer
// where there is no other.
func (c *credential) renew(failed *string) *string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.token.Load(); now != failed {
		return now
	}
	c.refused.Store(true)
	if time.Since(c.lastRead) < rereadPause {
		return failed
	}
	c.lastRead = time.Now()
	config, err := c.read()
	if err == nil && config.Host != c.host {
		// A token is not shown to another server than the one that it is for.
		c.warn("the kubeconfig of the hub's credential names another server; restart the hub to use it", nil)
		return failed
	}
	token := ""
	if err == nil {
		token, err = tokenOf(config)
	}
	if err != nil || token == *failed {
		// While kcp starts the file may be missing for a moment.
		c.warn("kcp refuses the hub's credential, and there is no new one yet", err)
		return failed
	}
	c.token.Store(&token)
	c.log.Info("read a new token for kcp", zap.String("credential", c.name))
	return &token
}

// warn logs a warning unless it was the last one.
func (c *credential) warn(message string, err error) {
	if c.warned != message {
		c.log.Warn(message, zap.String("credential", c.name), zap.Error(err))
	}
	c.warned = message
}

func (c *credential) accepted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused.Store(false)
	c.warned = ""
}

// Refusal says that kcp refuses a credential.
type Refusal struct{ of string }

// Error names the credential and never holds a token.
func (e *Refusal) Error() string { return "kcp refuses the credential of " + e.of }

// Refused is nil unless kcp refuses the credential, as the last probe found.
func (t *Transport) Refused() error {
	if refusal := t.refusal.Load(); refusal != nil {
		return refusal
	}
	return nil
}

// noteRefusals keeps whether kcp refused the last request.
func (t *Transport) noteRefusals(next http.RoundTripper) http.RoundTripper {
	return noting{next: next, last: t.refusal}
}

type noting struct {
	next http.RoundTripper
	last *atomic.Pointer[Refusal]
}

func (n noting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(r)
	var refusal *Refusal
	errors.As(err, &refusal)
	n.last.Store(refusal)
	return response, err
}
