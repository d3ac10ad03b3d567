package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/recent"
)

const (
	// coolDown is the shortest time between two fetches of the keys that unknown key IDs
	// cause, however many tokens have one.
	coolDown = 10 * time.Second
	// waitForKeys is how long a request waits for a fetch.
	waitForKeys = 5 * time.Second
	// maxTokens is the maximum number of tokens that are remembered as verified, and of those with an
	// unknown key ID.
	maxTokens = 4096
)

// keySet are the public keys of the issuer, in memory.
type keySet struct {
	clock clock.PassiveClock
	// fetch gets the keys. With an error it returns the keys that it could get: known keys that
	// are not among them stay valid.
	fetch   func(context.Context) ([]jose.JSONWebKey, error)
	fetches *prometheus.CounterVec

	mu   sync.Mutex
	keys []jose.JSONWebKey
	// fetched is when the fetch that brought keys began. number counts the changes of keys.
	fetched time.Time
	number  uint64
	// last is the fetch that began last. It is nil before the first one.
	last *keyFetch
	// verdicts are the tokens that were verified.
	verdicts *recent.Cache[tokenHash, verdict]
	// seen is when a token with an unknown key ID was seen first, by its hash. It is keyed by
	// token: by key ID, somebody could name a key before the issuer has it.
	seen *recent.Cache[tokenHash, time.Time]
}

// tokenHash is the SHA-256 hash of a whole token.
type tokenHash [sha256.Size]byte

func hashOf(token string) tokenHash { return sha256.Sum256([]byte(token)) }

// verdict is a verified token. It holds for the keys of one generation: a withdrawn key ends it.
type verdict struct {
	id         *Identity
	generation uint64
}

// signedToken is a token, and what parsing it gave.
type signedToken struct {
	full   string
	parsed *jose.JSONWebSignature
	header jose.Header
}

// keyFetch is one request for the keys. err and done are set when it has ended.
type keyFetch struct {
	began time.Time
	done  chan struct{}
	err   error
}

func newKeySet(k clock.PassiveClock, fetch func(context.Context) ([]jose.JSONWebKey, error), fetches *prometheus.CounterVec) *keySet {
	verdicts, seen := recent.New[tokenHash, verdict](maxTokens), recent.New[tokenHash, time.Time](maxTokens)
	return &keySet{clock: k, fetch: fetch, fetches: fetches, verdicts: verdicts, seen: seen}
}

// generation changes when the keys change.
func (s *keySet) generation() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.number
}

// refresh fetches the keys.
func (s *keySet) refresh(ctx context.Context) error {
	s.mu.Lock()
	f := s.begin(ctx)
	s.mu.Unlock()
	<-f.done
	return f.err
}

// begin starts a fetch. The caller holds the lock.
func (s *keySet) begin(ctx context.Context) *keyFetch {
	f := &keyFetch{began: s.clock.Now(), done: make(chan struct{})}
	s.last = f
	// Others wait for the fetch, so it outlives its caller.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	go func() {
		defer cancel()
		keys, err := s.fetch(ctx)
		result := "ok"
		if err != nil {
			result = "error"
		}
		s.fetches.WithLabelValues(result).Inc()
		s.mu.Lock()
		defer s.mu.Unlock()
		if (err == nil || len(keys) > 0) && !f.began.Before(s.fetched) {
			s.fetched = f.began
			if err != nil {
				keys = withOthers(keys, s.keys)
			}
			if !sameKeys(s.keys, keys) {
				s.keys = keys
				s.number++
			}
		}
		f.err = err
		close(f.done)
	}()
	return f
}

func sameKeys(a, b []jose.JSONWebKey) bool { return slices.EqualFunc(a, b, sameKey) }

func sameKey(a, b jose.JSONWebKey) bool { return reflect.DeepEqual(a, b) }

// withOthers returns the known keys, and after them the keys that are not among them.
func withOthers(keys, known []jose.JSONWebKey) []jose.JSONWebKey {
	all := slices.Clip(known)
	for _, key := range keys {
		if !slices.ContainsFunc(known, func(k jose.JSONWebKey) bool { return sameKey(k, key) }) {
			all = append(all, key)
		}
	}
	return all
}

// find returns the keys that may have signed a token, and their generation. For an unknown
// key ID it waits for a fetch, unless another one began within the cool-down. atOnce ignores
// the cool-down. The error has the code errs.Unavailable until a fetch that began after the
// token was seen first has not brought the key.
func (s *keySet) find(ctx context.Context, token signedToken, atOnce bool) (staticKeys, uint64, error) {
	keys, number := s.known()
	if found := matching(keys, token); len(found) > 0 {
		return found, number, nil
	}
	s.mu.Lock()
	now := s.clock.Now()
	first, f := s.seen.Change(hashOf(token.full), func(first time.Time) time.Time { return cmp.Or(first, now) }), s.last
	later := f != nil && f.began.After(first)
	if f == nil || ended(f) && (atOnce || now.Sub(f.began) >= coolDown) {
		f, later = s.begin(ctx), true
	}
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, waitForKeys)
	defer cancel()
	select {
	case <-f.done:
	case <-ctx.Done():
		return nil, 0, unavailable(fmt.Errorf("wait for the keys of the issuer: %w", ctx.Err()), time.Second)
	}
	keys, number = s.known()
	if found := matching(keys, token); len(found) > 0 {
		return found, number, nil
	}
	if f.err == nil && later {
		return nil, 0, invalid("the issuer does not have the key that signed it")
	}
	return nil, 0, unavailable(errors.Join(errors.New("the key of the token is not known"), f.err), coolDown-s.clock.Since(f.began))
}

// known returns the keys, which are not changed, and their generation.
func (s *keySet) known() ([]jose.JSONWebKey, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys, s.number
}

// verified returns the identity of a token that was verified with these keys. The token may have
// expired since.
func (s *keySet) verified(token string) (*Identity, bool) {
	v, ok := s.verdicts.Get(hashOf(token))
	return v.id, ok && v.generation == s.generation()
}

func ended(f *keyFetch) bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// matching returns the keys with the key ID of a token. If it has none, they are the keys that
// verify it.
func matching(keys []jose.JSONWebKey, token signedToken) (found staticKeys) {
	for _, key := range keys {
		if token.header.KeyID == "" && verifies(key, token.parsed) || token.header.KeyID != "" && token.header.KeyID == key.KeyID {
			found = append(found, key)
		}
	}
	return found
}

// verifies reports whether a key has signed a token. A key that names its algorithm signs with
// no other.
func verifies(key jose.JSONWebKey, signed *jose.JSONWebSignature) bool {
	if key.Algorithm != "" && key.Algorithm != signed.Signatures[0].Header.Algorithm {
		return false
	}
	_, err := signed.Verify(key.Key)
	return err == nil
}

// staticKeys verify signatures, for go-oidc.
type staticKeys []jose.JSONWebKey

// VerifySignature implements oidc.KeySet.
func (k staticKeys) VerifySignature(_ context.Context, token string) ([]byte, error) {
	signed, err := jose.ParseSignedCompact(token, asymmetric())
	if err != nil {
		return nil, err
	}
	for _, key := range k {
		if verifies(key, signed) {
			return signed.UnsafePayloadWithoutVerification(), nil
		}
	}
	return nil, errors.New("no key of the issuer has signed it")
}
