package httpmw_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// limitedRoute is a route behind the limit of one failure in ten seconds. Tokens that begin with "good"
// are valid, and those that begin with "later" cannot be verified.
type limitedRoute struct {
	handler http.Handler
	// verified counts the verifications.
	verified int
}

func newLimitedRoute(t *testing.T, limits *httpmw.Limits) *limitedRoute {
	t.Helper()
	m, err := httpmw.NewMetrics(prometheus.NewRegistry())
	require.NoError(t, err)
	d := &limitedRoute{}
	tokens := limits.Authenticator(authenticator(func(token string) (*auth.Identity, bool, error) {
		d.verified++
		switch {
		case strings.HasPrefix(token, "good"):
			return &auth.Identity{Kind: auth.Person, Issuer: "test", Subject: token}, true, nil
		case strings.HasPrefix(token, "later"):
			return nil, false, errs.New(errs.Unavailable, "no keys yet")
		case strings.HasPrefix(token, "unknown"):
			return nil, false, nil
		}
		return nil, false, errors.New("a bad signature")
	}), 0.1, func(token string) bool {
		credential := auth.JWTCredential(token)
		// A Session knows an ID token by the hash of its signed part.
		return credential == fmt.Sprintf("%x", sha256.Sum256([]byte("good.session"))) || credential == fmt.Sprintf("%x", sha256.Sum256([]byte("ended.session")))
	})
	d.handler = httpmw.Observe(zap.NewNop(), m, trusted)(httpapi.Handler(func(_ http.ResponseWriter, r *http.Request) error {
		token, err := httpmw.BearerToken(r)
		if err != nil {
			return err
		}
		_, known, err := tokens.Authenticate(r.Context(), token)
		var e *errs.Error
		if errors.As(err, &e) || known {
			return err
		}
		return errs.Wrap(errs.Unauthenticated, err, "the token is not valid")
	}))
	return d
}

// ask sends a request with a token from an address.
func (d *limitedRoute) ask(from, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/plain", http.NoBody)
	r.RemoteAddr = from
	r.Header = as(token)
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w
}

const (
	nat     = "192.0.2.1:1000"
	another = "192.0.2.2:1000"
)

func TestAuthenticator_stopsAFloodOfBadTokens(t *testing.T) {
	t.Parallel()
	limits, clock, registry := newLimits(t)
	d := newLimitedRoute(t, limits)
	require.Equal(t, http.StatusOK, d.ask(nat, "good-neighbour").Code)
	require.Equal(t, http.StatusUnauthorized, d.ask(nat, "forged-0").Code)
	verified := d.verified
	for i := range 100 {
		w := d.ask(nat, fmt.Sprintf("forged-%d", i))
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Equal(t, "10", w.Header().Get("Retry-After"))
		require.Equal(t, http.StatusTooManyRequests, d.ask(nat, "unknown").Code)
	}
	require.Equal(t, verified, d.verified, "no token of the flood was verified")
	requireRefused(t, registry, "failed_authentications_per_peer", 200)

	require.Equal(t, http.StatusOK, d.ask(nat, "good-neighbour").Code, "a known token behind the same address passes")
	require.Equal(t, http.StatusOK, d.ask(nat, "good.session.signature").Code, "so does a new token of a session")
	require.Equal(t, http.StatusUnauthorized, d.ask(nat, "ended.session.signature").Code, "it is verified like any other")
	require.Equal(t, http.StatusTooManyRequests, d.ask(nat, "good-new").Code, "a new one waits")
	require.Equal(t, http.StatusOK, d.ask(another, "good-new").Code, "another address is not concerned")
	require.Equal(t, http.StatusOK, d.ask(nat, "good-new").Code, "it is known from then on")
	clock.SetTime(clock.Now().Add(10 * time.Second))
	require.Equal(t, http.StatusOK, d.ask(nat, "good-later").Code)
	require.Equal(t, http.StatusUnauthorized, d.ask(nat, "forged").Code)
	require.Equal(t, http.StatusTooManyRequests, d.ask(nat, "forged").Code)
}

func TestAuthenticator_countsNoSuccessAndNoOutage(t *testing.T) {
	t.Parallel()
	limits, _, registry := newLimits(t)
	d := newLimitedRoute(t, limits)
	for i := range 50 {
		require.Equal(t, http.StatusOK, d.ask(nat, fmt.Sprintf("good-%d", i)).Code)
		require.Equal(t, http.StatusServiceUnavailable, d.ask(nat, fmt.Sprintf("later-%d", i)).Code)
	}
	requireRefused(t, registry, "failed_authentications_per_peer", 0)
	require.Equal(t, http.StatusUnauthorized, d.ask(nat, "forged").Code)
	require.Equal(t, http.StatusTooManyRequests, d.ask(nat, "forged").Code)
}

// A client has all addresses of its /64, and it can write what it wants into X-Forwarded-For.
func TestAuthenticator_isNotEscapedByOtherAddresses(t *testing.T) {
	t.Parallel()
	limits, _, _ := newLimits(t)
	d := newLimitedRoute(t, limits)
	require.Equal(t, http.StatusUnauthorized, d.ask("[2001:db8::1]:1", "forged").Code)
	for i := range 20 {
		require.Equal(t, http.StatusTooManyRequests, d.ask(fmt.Sprintf("[2001:db8::%x:1]:1", i), "forged").Code)
	}
	require.Equal(t, http.StatusUnauthorized, d.ask("[2001:db8:0:1::1]:1", "forged").Code, "the next /64")

	forged := func(from, forwarded string) int {
		r := httptest.NewRequest(http.MethodGet, "/plain", http.NoBody)
		r.RemoteAddr = from
		r.Header = as("forged")
		r.Header.Set("X-Forwarded-For", forwarded)
		w := httptest.NewRecorder()
		d.handler.ServeHTTP(w, r)
		return w.Code
	}
	require.Equal(t, http.StatusUnauthorized, forged(nat, "198.51.100.1"))
	require.Equal(t, http.StatusTooManyRequests, forged(nat, "198.51.100.2"), "a client's own header says nothing")
	require.Equal(t, http.StatusUnauthorized, forged("10.0.0.1:1", "198.51.100.1"), "a proxy's counts")
	require.Equal(t, http.StatusTooManyRequests, forged("10.0.0.1:1", "203.0.113.1, 198.51.100.1"))
	require.Equal(t, http.StatusUnauthorized, forged("10.0.0.1:1", "198.51.100.3"))
}

func TestAuthenticator_hasBoundedMemory(t *testing.T) {
	t.Parallel()
	limits, _, _ := newLimits(t)
	d := newLimitedRoute(t, limits)
	require.Equal(t, http.StatusOK, d.ask(nat, "good-first").Code)
	for i := range 20_000 {
		require.Equal(t, http.StatusOK, d.ask(nat, fmt.Sprintf("good-%d", i)).Code)
	}
	require.Equal(t, http.StatusUnauthorized, d.ask(nat, "forged").Code)
	require.Equal(t, http.StatusTooManyRequests, d.ask(nat, "good-first").Code, "forgotten: the least recently used token")
	require.Equal(t, http.StatusOK, d.ask(nat, "good-19999").Code)
	for i := range 10_000 {
		require.Equal(t, http.StatusUnauthorized, d.ask(fmt.Sprintf("192.0.%d.%d:1", 3+i/250, i%250), "forged").Code)
	}
	require.Equal(t, http.StatusUnauthorized, d.ask(nat, "forged").Code, "forgotten: the least recently seen peer")
}
