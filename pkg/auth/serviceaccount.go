package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// ServiceAccountsConfig configures the authentication of ServiceAccount tokens.
type ServiceAccountsConfig struct {
	// Issuer is the issuer of kcp's ServiceAccount tokens. It is empty until it is known: no
	// token of a ServiceAccount can be verified then.
	Issuer func() string
	// Keys gets kcp's public keys, as a JSON Web Key Set. With an error they are those of the shards
	// that answer, or nil.
	Keys func(ctx context.Context) ([]byte, error)
	// Audience must be in aud.
	Audience string
	// Clock is the clock of expiry. KeyClock measures the time between requests for keys: it is not set back.
	Clock, KeyClock clock.PassiveClock
	// Metrics is where kedge_serviceaccount_key_fetches_total is registered.
	Metrics prometheus.Registerer
}

// ServiceAccounts authenticates tokens of ServiceAccounts that kcp issued with an expiry and
// bound to a Secret. What it returns proves an account, not a Bot: the caller compares it with
// the Bots.
type ServiceAccounts struct {
	config ServiceAccountsConfig
	keys   *keySet
}

// NewServiceAccounts returns an authenticator. It makes no request until a token needs a key.
func NewServiceAccounts(config ServiceAccountsConfig) (*ServiceAccounts, error) {
	fetches := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kedge_serviceaccount_key_fetches_total", Help: "Requests for the keys of kcp's ServiceAccount tokens, by result: ok or error.",
	}, []string{"result"})
	if err := config.Metrics.Register(fetches); err != nil {
		return nil, err
	}
	a := &ServiceAccounts{config: config}
	a.keys = newKeySet(config.KeyClock, func(ctx context.Context) ([]jose.JSONWebKey, error) {
		raw, failed := config.Keys(ctx)
		if raw == nil {
			return nil, failed
		}
		var set jose.JSONWebKeySet
		if err := json.Unmarshal(raw, &set); err != nil {
			return nil, errors.Join(failed, fmt.Errorf("decode the keys of kcp's ServiceAccount tokens: %w", err))
		}
		return set.Keys, failed
	}, fetches)
	return a, nil
}

// Names reports whether a token names kcp as its issuer, or is of the form of tokens without
// an expiry. Until the issuer is known, it reports whether the token is of a ServiceAccount of
// any issuer. Nothing of it is verified.
func (a *ServiceAccounts) Names(token string) bool {
	if !mayBeJWT(token) {
		return false
	}
	c, err := parseClaims(token)
	if err != nil {
		return false
	}
	issuer := a.config.Issuer()
	return issuer == "" && anyAccount(c) || issuer != "" && c.text("iss") == issuer || legacyAccount(c)
}

// Claimed returns the ServiceAccount that a token names, if it has the form of a token of a bot that has not
// expired. Nothing of it is verified.
func (a *ServiceAccounts) Claimed(token string) (account *ServiceAccount, ok bool) {
	if !mayBeJWT(token) {
		return nil, false
	}
	c, err := parseClaims(token)
	if err != nil || c.text("iss") == "" || c.text("iss") != a.config.Issuer() {
		return nil, false
	}
	id, err := a.identity(c)
	if err != nil {
		return nil, false
	}
	return id.Account, true
}

// Authenticate implements Authenticator. Tokens of another issuer are not known to it.
func (a *ServiceAccounts) Authenticate(ctx context.Context, token string) (*Identity, bool, error) {
	if !mayBeJWT(token) {
		return nil, false, nil
	}
	if id, ok := a.keys.verified(token); ok {
		if !a.config.Clock.Now().Before(id.ExpiresAt) {
			return nil, false, errBotExpired()
		}
		return id, true, nil
	}
	c, err := parseClaims(token)
	if err != nil {
		return nil, false, nil
	}
	if issuer := a.config.Issuer(); issuer == "" || c.text("iss") != issuer {
		switch {
		case legacyAccount(c):
			return nil, false, notBound()
		case issuer == "" && anyAccount(c):
			return nil, false, unavailable(errors.New("the issuer of kcp's ServiceAccount tokens is not known yet"), time.Second)
		}
		return nil, false, nil
	}
	// The claims are checked before the signature, so that a token with invalid claims causes
	// no request for keys. No claim is used before the signature is verified.
	id, err := a.identity(c)
	if err != nil {
		return nil, false, err
	}
	signed, err := parseSigned(token)
	if err != nil {
		return nil, false, err
	}
	keys, generation, err := a.keys.find(ctx, signed, false)
	if err != nil {
		return nil, false, err
	}
	if _, err := keys.VerifySignature(ctx, token); err != nil {
		return nil, false, errs.Wrap(errs.Unauthenticated, err, "the token is not valid")
	}
	id.Credential = JWTCredential(token)
	a.keys.verdicts.Put(hashOf(token), verdict{id, generation})
	return id, true, nil
}

// identity checks everything that the signature does not prove, and returns what the claims
// say.
func (a *ServiceAccounts) identity(c claims) (*Identity, error) {
	now, expiry, issued, notBefore := a.config.Clock.Now(), c.time("exp"), c.time("iat"), c.time("nbf")
	_, hasNotBefore := c["nbf"]
	switch {
	case expiry.IsZero():
		return nil, notBound()
	case !now.Before(expiry):
		return nil, errBotExpired()
	case issued.IsZero() || issued.After(now.Add(leeway)):
		return nil, invalid("it was issued in the future; compare the clocks of the hub and kcp")
	case hasNotBefore && (notBefore.IsZero() || notBefore.After(now.Add(leeway))):
		return nil, invalid("its nbf is in the future; compare the clocks of the hub and kcp")
	}
	var of, account, secret claims
	if json.Unmarshal(c["kubernetes.io"], &of) != nil || json.Unmarshal(of["serviceaccount"], &account) != nil || json.Unmarshal(of["secret"], &secret) != nil {
		return nil, notBound()
	}
	sa := &ServiceAccount{
		Cluster: of.text("clusterName"), Namespace: of.text("namespace"), Name: account.text("name"), UID: account.text("uid"),
		SecretUID: secret.text("uid"),
	}
	audience, ok := c.texts("aud")
	if !ok || !slices.Contains(audience, a.config.Audience) || slices.Contains([]string{sa.Cluster, sa.Namespace, sa.Name, sa.UID, sa.SecretUID}, "") {
		return nil, notBound()
	}
	subject := "system:serviceaccount:" + sa.Namespace + ":" + sa.Name
	if c.text("sub") != subject {
		return nil, invalid("its sub does not name its ServiceAccount")
	}
	return &Identity{
		Kind: Bot, Issuer: c.text("iss"), Subject: sa.UID, Username: subject, PreferredUsername: sa.Name,
		IssuedAt: issued, ExpiresAt: expiry, Account: sa,
	}, nil
}

// legacyAccount reports whether a token is of the form that Secrets of type
// kubernetes.io/service-account-token hold, which has no expiry.
func legacyAccount(c claims) bool { return c.text("iss") == "kubernetes/serviceaccount" }

// anyAccount reports whether a token says that it is of a ServiceAccount in a logical cluster.
func anyAccount(c claims) bool {
	_, there := c["kubernetes.io"]
	return there && strings.HasPrefix(c.text("sub"), "system:serviceaccount:")
}

// notBound is the answer to a token of a ServiceAccount that was not issued for a bot.
func notBound() error {
	return errs.New(errs.Unauthenticated, "tokens of service accounts are not accepted here; make a bot and issue a token for it: kedge bots create, kedge bots tokens create")
}

func errBotExpired() error {
	return errs.New(errs.Unauthenticated, "the token of the bot has expired; issue a new one: kedge bots tokens create")
}
