package transport

import (
	"bytes"
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

// rereadPause is how long a file is not read again that has just been read: all the
// hub's requests are refused at once, and probes go on.
const rereadPause = time.Second

// Follow returns a configuration whose clients authenticate with the token or the
// client certificate that read returns. kcp makes its admin a new token at every
// start: when it refuses what there is, or is gone, read is called again, and a
// request that was refused is sent once more with what is new. What read cannot
// return whole replaces nothing, and nothing else than a credential is taken over.
// name says in logs and errors whose credential it is. ctx has the logger: requests
// need not have one, and whichever fails first tells.
//
// A configuration that authenticates in another way is returned as it is.
func Follow(ctx context.Context, name string, read func() (*rest.Config, error)) (*rest.Config, error) {
	config, err := read()
	if err != nil || config.ExecProvider != nil || config.AuthProvider != nil || config.Username != "" ||
		config.BearerToken == "" && config.BearerTokenFile == "" && config.CertFile == "" && len(config.CertData) == 0 {
		return config, err
	}
	c := &credential{name: name, read: read, log: log.From(ctx)}
	first, err := newIdentity(c, config, 0)
	if err != nil {
		return nil, err
	}
	c.now.Store(first)
	followed := rest.CopyConfig(first.config)
	followed.BearerToken, followed.CertData, followed.KeyData = "", nil, nil
	followed.Wrap(func(next http.RoundTripper) http.RoundTripper { return authenticated{next: next, credential: c} })
	return followed, nil
}

// credential is what its reader says last that was whole.
type credential struct {
	name string
	read func() (*rest.Config, error)
	log  *zap.Logger
	now  atomic.Pointer[identity]
	// refused is set while kcp does not take what there is now.
	refused atomic.Bool

	mu     sync.Mutex
	looked time.Time
	// told is what was logged last, which is not repeated.
	told string
}

// identity is one state of a credential.
type identity struct {
	of *credential
	// version grows with every one.
	version int
	// config holds everything, and names no files.
	config *rest.Config
}

func newIdentity(of *credential, from *rest.Config, version int) (*identity, error) {
	config := rest.CopyConfig(from)
	if config.BearerTokenFile != "" {
		raw, err := os.ReadFile(config.BearerTokenFile)
		if err != nil {
			return nil, err
		}
		config.BearerToken, config.BearerTokenFile = strings.TrimSpace(string(raw)), ""
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, err
	}
	config.CAFile, config.CertFile, config.KeyFile = "", "", ""
	if config.BearerToken == "" && len(config.CertData) == 0 {
		return nil, errors.New("it holds neither a token nor a client certificate")
	}
	// What is half of a certificate is noticed here, and not with the next connection.
	if _, err := rest.TLSConfigFor(config); err != nil {
		return nil, err
	}
	return &identity{of: of, version: version, config: config}, nil
}

func (i *identity) same(other *identity) bool {
	return i.config.BearerToken == other.config.BearerToken &&
		bytes.Equal(i.config.CertData, other.config.CertData) && bytes.Equal(i.config.KeyData, other.config.KeyData)
}

type identityKey struct{}

// sign returns the request as this identity's; the wire finds in it whose
// certificate its connection is made with.
func (i *identity) sign(r *http.Request) *http.Request {
	r = r.Clone(context.WithValue(r.Context(), identityKey{}, i))
	if i.config.BearerToken != "" {
		r.Header.Set("Authorization", "Bearer "+i.config.BearerToken)
	}
	return r
}

// authenticated sends requests with a credential.
type authenticated struct {
	next http.RoundTripper
	*credential
}

func (a authenticated) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, as := r.Context(), a.now.Load()
	for {
		response, err := a.next.RoundTrip(as.sign(r))
		if err != nil {
			if ctx.Err() == nil {
				a.renew(as, false)
			}
			return nil, err
		}
		if response.StatusCode != http.StatusUnauthorized {
			if a.refused.Load() {
				a.accepted()
			}
			return response, nil
		}
		_ = response.Body.Close()
		newest := a.renew(as, true)
		if r = again(r); newest == as || r == nil {
			return nil, unavailable(&Refusal{of: a.name})
		}
		as = newest
	}
}

// again returns the request with its body from the beginning, or nil where that
// cannot be had.
func again(r *http.Request) *http.Request {
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

// renew returns the newest identity after a request failed with one, for which it
// looks whether there is another.
func (c *credential) renew(failed *identity, refused bool) *identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now.Load()
	if now != failed {
		return now
	}
	if refused {
		c.refused.Store(true)
	}
	if time.Since(c.looked) < rereadPause {
		return now
	}
	c.looked = time.Now()
	config, err := c.read()
	// What is for one server is not shown to another.
	if err == nil && config.Host != now.config.Host {
		c.tell("the kubeconfig of the hub's credential names another server by now; start the hub anew to use that", nil)
		return now
	}
	var next *identity
	if err == nil {
		next, err = newIdentity(c, config, now.version+1)
	}
	if err == nil && (!bytes.Equal(next.config.CAData, now.config.CAData) || next.config.ServerName != now.config.ServerName) {
		// People's requests are forwarded with what there was at the start.
		c.tell("the kubeconfig of the hub's credential names another CA by now; start the hub anew to use that", nil)
		next.config.CAData, next.config.ServerName = now.config.CAData, now.config.ServerName
	}
	if err != nil || next.same(now) {
		// While kcp starts there may be no file for a moment.
		if refused {
			c.tell("kcp refuses the hub's credential, and there is no other yet", err)
		}
		return now
	}
	c.now.Store(next)
	c.log.Info("the hub's credential for kcp was read anew", zap.String("credential", c.name))
	return next
}

// tell warns of something, once as long as it lasts.
func (c *credential) tell(what string, err error) {
	if c.told != what {
		c.log.Warn(what, zap.String("credential", c.name), zap.Error(err))
	}
	c.told = what
}

func (c *credential) accepted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused.Store(false)
	c.told = ""
}

// Refusal says that kcp does not take a credential.
type Refusal struct{ of string }

// Error says whose credential it is, and never what.
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
