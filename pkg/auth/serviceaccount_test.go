package auth_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

const accountIssuer = "https://kcp.default.svc"

// accounts is a kcp that signs tokens of ServiceAccounts.
type accounts struct {
	t       testing.TB
	key     *ecdsa.PrivateKey
	kid     string
	clock   *clocktesting.FakePassiveClock
	down    atomic.Bool
	fetches atomic.Int32
}

func newAccounts(t testing.TB) (*accounts, *auth.ServiceAccounts) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	k := &accounts{t: t, key: key, kid: "kcp", clock: clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))}
	a, err := auth.NewServiceAccounts(auth.ServiceAccountsConfig{
		Issuer: func() string { return accountIssuer }, Audience: "kedge", Clock: k.clock, KeyClock: k.clock,
		Metrics: prometheus.NewRegistry(), Keys: k.jwks,
	})
	require.NoError(t, err)
	return k, a
}

func (k *accounts) jwks(context.Context) ([]byte, error) {
	k.fetches.Add(1)
	if k.down.Load() {
		return nil, errors.New("kcp is down")
	}
	return json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: k.key.Public(), KeyID: k.kid, Algorithm: "ES256", Use: "sig"}}})
}

type object = map[string]any

// claims returns those of a good token, changed by edit.
func (k *accounts) claims(edit func(claims, kubernetes object)) object {
	now := k.clock.Now().Unix()
	kubernetes := object{
		"clusterName": "abc", "namespace": "default", "serviceaccount": object{"name": "ci", "uid": "account"},
		"secret": object{"name": "kedge-bot-token-1", "uid": "secret"},
	}
	claims := object{
		"iss": accountIssuer, "sub": "system:serviceaccount:default:ci", "aud": []string{"kedge", accountIssuer},
		"iat": now, "nbf": now, "exp": now + 3600, "kubernetes.io": kubernetes,
	}
	if edit != nil {
		edit(claims, kubernetes)
	}
	return claims
}

func (k *accounts) sign(key *ecdsa.PrivateKey, kid string, claims object) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, nil)
	require.NoError(k.t, err)
	raw, err := json.Marshal(claims)
	require.NoError(k.t, err)
	signed, err := signer.Sign(raw)
	require.NoError(k.t, err)
	token, err := signed.CompactSerialize()
	require.NoError(k.t, err)
	return token
}

func TestServiceAccounts_sayWhatATokenProves(t *testing.T) {
	t.Parallel()
	k, a := newAccounts(t)
	token := k.sign(k.key, "kcp", k.claims(nil))
	for range 3 {
		id, ok, err := a.Authenticate(t.Context(), token)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, auth.Bot, id.Kind)
		require.Equal(t, &auth.ServiceAccount{Cluster: "abc", Namespace: "default", Name: "ci", UID: "account", SecretUID: "secret"}, id.Account)
		require.Equal(t, "system:serviceaccount:default:ci", id.Username)
		require.Equal(t, k.clock.Now().Add(time.Hour).Unix(), id.ExpiresAt.Unix())
		require.NotContains(t, id.Credential, token)
	}
	require.EqualValues(t, 1, k.fetches.Load(), "keys are fetched once")
	k.clock.SetTime(k.clock.Now().Add(time.Hour))
	_, ok, err := a.Authenticate(t.Context(), token)
	require.False(t, ok)
	require.True(t, errs.Is(err, errs.Unauthenticated))
}

func TestServiceAccounts_refuseTokensOfNoBot(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(claims, kubernetes object){
		"without an expiry":        func(c, _ object) { delete(c, "exp") },
		"expired":                  func(c, _ object) { c["exp"] = 999_999 },
		"of the future":            func(c, _ object) { c["iat"], c["nbf"] = 2_000_000, 2_000_000 },
		"not valid yet":            func(c, _ object) { c["nbf"] = 2_000_000 },
		"bound to nothing":         func(_, k object) { delete(k, "secret") },
		"bound to a pod":           func(_, k object) { k["pod"] = k["secret"]; delete(k, "secret") },
		"of no account":            func(_, k object) { delete(k, "serviceaccount") },
		"of no cluster":            func(_, k object) { delete(k, "clusterName") },
		"for kcp alone":            func(c, _ object) { c["aud"] = []string{accountIssuer} },
		"of another subject":       func(c, _ object) { c["sub"] = "system:admin" },
		"with claims of odd types": func(c, _ object) { c["kubernetes.io"] = []string{"clusterName"} },
		"a legacy token": func(c, _ object) {
			clear(c)
			c["iss"], c["sub"] = "kubernetes/serviceaccount", "system:serviceaccount:default:ci"
		},
	} {
		k, a := newAccounts(t)
		_, ok, err := a.Authenticate(t.Context(), k.sign(k.key, "kcp", k.claims(edit)))
		require.False(t, ok, name)
		require.True(t, errs.Is(err, errs.Unauthenticated), "%s: %v", name, err)
		require.Zero(t, k.fetches.Load(), "%s: it costs kcp nothing", name)
	}
}

func TestServiceAccounts_refuseForgedTokens(t *testing.T) {
	t.Parallel()
	k, a := newAccounts(t)
	forger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	_, ok, err := a.Authenticate(t.Context(), k.sign(forger, "kcp", k.claims(nil)))
	require.False(t, ok)
	require.True(t, errs.Is(err, errs.Unauthenticated))
	for range 100 {
		_, ok, err := a.Authenticate(t.Context(), k.sign(forger, "mine", k.claims(nil)))
		require.False(t, ok)
		require.Error(t, err)
	}
	require.LessOrEqual(t, k.fetches.Load(), int32(2), "unknown keys are not asked for again and again")
	_, ok, err = a.Authenticate(t.Context(), k.sign(k.key, "kcp", k.claims(nil)))
	require.NoError(t, err)
	require.True(t, ok, "the control")
}

func TestServiceAccounts_leaveOtherTokensAlone(t *testing.T) {
	t.Parallel()
	k, a := newAccounts(t)
	for _, token := range []string{"", "static", "a.b.c", k.sign(k.key, "kcp", k.claims(func(c, _ object) { c["iss"] = "https://login.example.com" }))} {
		_, ok, err := a.Authenticate(t.Context(), token)
		require.NoError(t, err)
		require.False(t, ok)
	}
}

func TestServiceAccounts_cannotTellWithoutKeys(t *testing.T) {
	t.Parallel()
	k, a := newAccounts(t)
	k.down.Store(true)
	_, ok, err := a.Authenticate(t.Context(), k.sign(k.key, "kcp", k.claims(nil)))
	require.False(t, ok)
	require.True(t, errs.Is(err, errs.Unavailable), "%v", err)
}

// kcp was not reached since the hub started: good tokens of bots are not bad ones.
func TestServiceAccounts_cannotTellWithoutAnIssuer(t *testing.T) {
	t.Parallel()
	k, _ := newAccounts(t)
	issuer := ""
	a, err := auth.NewServiceAccounts(auth.ServiceAccountsConfig{
		Issuer: func() string { return issuer }, Audience: "kedge", Clock: k.clock, KeyClock: k.clock,
		Metrics: prometheus.NewRegistry(), Keys: k.jwks,
	})
	require.NoError(t, err)
	bot := k.sign(k.key, "kcp", k.claims(nil))
	person := k.sign(k.key, "kcp", object{"iss": "https://login.example.com", "sub": "alice"})
	require.True(t, a.Names(bot))
	require.False(t, a.Names(person))
	_, ok, err := a.Authenticate(t.Context(), bot)
	require.False(t, ok)
	require.True(t, errs.Is(err, errs.Unavailable), "%v", err)
	_, ok, err = a.Authenticate(t.Context(), person)
	require.False(t, ok)
	require.NoError(t, err)

	issuer = accountIssuer
	_, ok, err = a.Authenticate(t.Context(), bot)
	require.NoError(t, err)
	require.True(t, ok, "the control")
}

// A shard of kcp that is down may have signed with a key that the others do not have.
func TestServiceAccounts_knowTheKeysOfTheShardsThatAnswer(t *testing.T) {
	t.Parallel()
	k, _ := newAccounts(t)
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	down := true
	a, err := auth.NewServiceAccounts(auth.ServiceAccountsConfig{
		Issuer: func() string { return accountIssuer }, Audience: "kedge", Clock: k.clock, KeyClock: k.clock, Metrics: prometheus.NewRegistry(),
		Keys: func(context.Context) ([]byte, error) {
			set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: k.key.Public(), KeyID: "kcp", Algorithm: "ES256", Use: "sig"}}}
			if !down {
				set.Keys = append(set.Keys, jose.JSONWebKey{Key: other.Public(), KeyID: "two", Algorithm: "ES256", Use: "sig"})
			}
			raw, err := json.Marshal(set)
			if down {
				err = errors.New("the shard two is down")
			}
			return raw, err
		},
	})
	require.NoError(t, err)
	_, ok, err := a.Authenticate(t.Context(), k.sign(k.key, "kcp", k.claims(nil)))
	require.NoError(t, err)
	require.True(t, ok)
	token := k.sign(other, "two", k.claims(nil))
	_, _, err = a.Authenticate(t.Context(), token)
	require.True(t, errs.Is(err, errs.Unavailable), "%v", err)
	down = false
	k.clock.SetTime(k.clock.Now().Add(time.Minute))
	_, ok, err = a.Authenticate(t.Context(), token)
	require.NoError(t, err)
	require.True(t, ok)

	// A forged token makes the hub ask for keys while the shard is down again.
	down = true
	k.clock.SetTime(k.clock.Now().Add(time.Minute))
	_, _, err = a.Authenticate(t.Context(), k.sign(other, "forged", k.claims(nil)))
	require.True(t, errs.Is(err, errs.Unavailable), "%v", err)
	_, ok, err = a.Authenticate(t.Context(), token)
	require.NoError(t, err, "the key was known")
	require.True(t, ok)
}

// kcp's clock was set forward for a while, and then right again. The keys that it has since are known all the same.
func TestServiceAccounts_knowNewKeysAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	k, _ := newAccounts(t)
	rights := clocktesting.NewFakePassiveClock(k.clock.Now().Add(time.Hour))
	a, err := auth.NewServiceAccounts(auth.ServiceAccountsConfig{
		Issuer: func() string { return accountIssuer }, Audience: "kedge", Clock: rights, KeyClock: k.clock,
		Metrics: prometheus.NewRegistry(), Keys: k.jwks,
	})
	require.NoError(t, err)
	ahead := k.claims(func(c, _ object) { c["exp"] = rights.Now().Unix() + 3600 })
	_, ok, err := a.Authenticate(t.Context(), k.sign(k.key, "kcp", ahead))
	require.NoError(t, err)
	require.True(t, ok)
	rights.SetTime(k.clock.Now())
	k.clock.SetTime(k.clock.Now().Add(time.Minute))
	k.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	k.kid = "new"
	_, ok, err = a.Authenticate(t.Context(), k.sign(k.key, k.kid, k.claims(nil)))
	require.NoError(t, err)
	require.True(t, ok)
}
