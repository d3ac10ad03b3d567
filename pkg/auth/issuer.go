package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/log"
)

// issuer is an OpenID Connect issuer: its discovery document and its keys, which are known while it
// is down.
type issuer struct {
	url   string
	clock clock.WithTicker
	// logins is true if people log in at the issuer: it then has endpoints for that.
	logins bool
	// client has the issuer's CA.
	client   atomic.Pointer[http.Client]
	keys     *keySet
	provider atomic.Pointer[provider]

	mu  sync.Mutex
	err error
}

// init sets what is known before a request. fetches counts the requests for keys by their result.
func (i *issuer) init(ca []byte, fetches *prometheus.CounterVec) error {
	i.err, i.keys = errNotReached, newKeySet(i.clock, i.fetchKeys, fetches)
	return i.SetCA(ca)
}

// SetCA replaces the PEM certificates that the issuer's certificate is verified with.
func (i *issuer) SetCA(ca []byte) error {
	client, err := newIssuerClient(ca)
	if err != nil {
		return err
	}
	if old := i.client.Swap(client); old != nil {
		old.CloseIdleConnections()
	}
	return nil
}

var errNotReached = errors.New("the issuer was not reached yet")

// Run fetches the discovery document and the keys of the issuer until ctx ends: at once, with
// a back-off while that fails, and periodically afterwards.
func (i *issuer) Run(ctx context.Context) {
	defer func() { i.client.Load().CloseIdleConnections() }()
	retry := firstRetry
	for {
		err := i.refresh(ctx)
		if ctx.Err() != nil {
			return
		}
		after := refreshEvery
		if i.setErr(err) {
			if err == nil {
				log.From(ctx).Info("the OIDC issuer is reachable", zap.String("issuer", i.url))
			} else {
				log.From(ctx).Warn("the OIDC issuer is not usable; logins fail until it is", zap.String("issuer", i.url), zap.Error(err))
			}
		}
		if err == nil {
			retry = firstRetry
		} else {
			after, retry = retry, min(2*retry, lastRetry)
		}
		select {
		case <-ctx.Done():
			return
		case <-i.clock.After(after):
		}
	}
}

// setErr sets the result of the last refresh and reports whether it differs from the one
// before.
func (i *issuer) setErr(err error) (changed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	changed = (i.err == nil) != (err == nil) || errors.Is(i.err, errNotReached)
	i.err = err
	return changed
}

// Err returns why logins do not work, or nil. It is for operators.
func (i *issuer) Err() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.err == nil {
		return nil
	}
	return fmt.Errorf("the OIDC issuer %s: %w", i.url, i.err)
}

// up is 1 if the last request to the issuer succeeded, else 0.
func (i *issuer) up() float64 {
	if i.Err() != nil {
		return 0
	}
	return 1
}

// Reach fetches the discovery document and the keys once, for a hub that does not run.
func (i *issuer) Reach(ctx context.Context) error {
	defer func() { i.client.Load().CloseIdleConnections() }()
	return i.refresh(ctx)
}

// refresh fetches the discovery document and the keys. What was known before stays known if
// it fails.
func (i *issuer) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client.Load()), i.url)
	if err != nil {
		// The library quotes the whole answer.
		return fmt.Errorf("read its discovery document: %.200s", err.Error())
	}
	p, err := providerOf(found, i.logins)
	if err != nil {
		return fmt.Errorf("read its discovery document: %w", err)
	}
	i.provider.Store(p)
	if err := i.keys.refresh(ctx); err != nil {
		return fmt.Errorf("read its keys: %w", err)
	}
	return nil
}

// fetchKeys fetches the public keys of the issuer. Keys of unknown types are left out.
func (i *issuer) fetchKeys(ctx context.Context) ([]jose.JSONWebKey, error) {
	p := i.provider.Load()
	if p == nil {
		return nil, errNotReached
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.keysURL, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	response, err := i.client.Load().Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is %s", response.Status)
	}
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.NewDecoder(response.Body).Decode(&document); err != nil {
		return nil, fmt.Errorf("the answer is not a JSON Web Key Set: %w", err)
	}
	var keys []jose.JSONWebKey
	for _, raw := range document.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(raw, &key) == nil && key.Valid() && key.IsPublic() && (key.Use == "" || key.Use == "sig") {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the answer has no public key for signatures")
	}
	return keys, nil
}

// signable parses a token whose claims name the issuer, and refuses one that the issuer cannot have
// signed.
func (i *issuer) signable(token string) (signedToken, error) {
	signed, err := parseSigned(token)
	if err != nil {
		return signed, err
	}
	provider := i.provider.Load()
	if provider == nil {
		return signed, unavailable(errNotReached, firstRetry)
	}
	if !slices.Contains(provider.algorithms, signed.header.Algorithm) {
		return signed, invalid("the issuer does not sign with this algorithm")
	}
	return signed, nil
}

// verifySignature verifies that the issuer has signed a token, which has not expired, and returns the
// generation of the keys. atOnce ignores the cool-down for an unknown key.
func (i *issuer) verifySignature(ctx context.Context, token string, atOnce bool) (uint64, error) {
	signed, err := i.signable(token)
	if err != nil {
		return 0, err
	}
	keys, generation, err := i.keys.find(ctx, signed, atOnce)
	if err != nil {
		return 0, err
	}
	return generation, i.verifyWith(ctx, signed, keys)
}

func (i *issuer) verifyWith(ctx context.Context, signed signedToken, keys staticKeys) error {
	now := i.clock.Now()
	verifier := oidc.NewVerifier(i.url, keys, &oidc.Config{
		SkipClientIDCheck:    true, // the caller has checked several audiences
		SupportedSigningAlgs: []string{signed.header.Algorithm},
		Now:                  func() time.Time { return now },
	})
	if _, err := verifier.Verify(ctx, signed.full); err != nil {
		return errs.Wrap(errs.Unauthenticated, err, "the token is not valid")
	}
	return nil
}
