package auth

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

const (
	// maxToken is the maximum length of an ID token, in bytes. It is checked before the token
	// is parsed.
	maxToken = 16 << 10
	// leeway is how far the issuer's clock may be ahead.
	leeway = time.Minute
	// refreshEvery is how often the discovery document and the keys are fetched, so that a
	// key that the issuer withdraws is refused soon.
	refreshEvery = 10 * time.Minute
	// firstRetry and lastRetry bound the back-off after a fetch that failed.
	firstRetry, lastRetry = time.Second, 30 * time.Second
)

// OIDCConfig configures an OIDC issuer.
type OIDCConfig struct {
	// IssuerURL is the https URL of the issuer. ID tokens have it as iss.
	IssuerURL string
	// ClientID and ClientSecret are the hub's client at the issuer. Without a secret it is a
	// public client.
	ClientID     string
	ClientSecret string
	// CA are the PEM certificates that the issuer's certificate is verified with. Empty means
	// those of the system.
	CA []byte
	// Scopes are requested in a login.
	Scopes []string
	// ExtraAudiences are accepted in aud beside ClientID.
	ExtraAudiences []string
	// UsernameClaim is the claim that, after UsernamePrefix, is the username in kcp.
	// GroupsClaim is the claim with groups, which get the same prefix; empty for none.
	UsernameClaim  string
	UsernamePrefix string
	GroupsClaim    string
	// RequiredClaims are claims that a token must have, with their value.
	RequiredClaims map[string]string
	// ReservedUsernames are the usernames of the hub itself in kcp. Tokens with one of them
	// are refused.
	ReservedUsernames []string
	// Clock is the clock of expiry and retries.
	Clock clock.WithTicker
	// Metrics is where kedge_oidc_* are registered.
	Metrics prometheus.Registerer
}

// OIDC authenticates ID tokens of one issuer, and is the hub's client at that issuer. Until
// the issuer was reached for the first time, tokens cannot be verified; from then on, its
// keys are known while it is down.
type OIDC struct {
	issuer
	config OIDCConfig
	// secret is the secret of the client.
	secret atomic.Pointer[string]
}

// NewOIDC returns an authenticator for an issuer. It makes no request; Run does.
func NewOIDC(config OIDCConfig) (*OIDC, error) {
	o := &OIDC{config: config}
	o.url, o.clock, o.logins = config.IssuerURL, config.Clock, true
	o.SetClientSecret(config.ClientSecret)
	o.config.ReservedUsernames = slices.Clone(config.ReservedUsernames)
	fetches := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kedge_oidc_key_fetches_total", Help: "Requests for the keys of the OIDC issuer, by result: ok or error.",
	}, []string{"result"})
	if err := o.init(config.CA, fetches); err != nil {
		return nil, err
	}
	up := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kedge_oidc_issuer_up", Help: "1 if the last request for the discovery document and the keys of the OIDC issuer succeeded, else 0.",
	}, o.up)
	return o, errors.Join(config.Metrics.Register(fetches), config.Metrics.Register(up))
}

// SetClientSecret replaces the secret of the client.
func (o *OIDC) SetClientSecret(secret string) { o.secret.Store(&secret) }

// Authenticate implements Authenticator for ID tokens. Tokens that do not name the issuer
// are not known to it.
func (o *OIDC) Authenticate(ctx context.Context, token string) (*Identity, bool, error) {
	if !mayBeJWT(token) {
		return nil, false, nil
	}
	if id, ok := o.keys.verified(token); ok {
		if !o.config.Clock.Now().Before(id.ExpiresAt) {
			return nil, false, errExpired()
		}
		return id, true, nil
	}
	id, generation, err := o.verify(ctx, token, "", false)
	switch {
	case errors.Is(err, errOtherIssuer):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	o.keys.verdicts.Put(hashOf(token), verdict{id, generation})
	return id, true, nil
}

var errOtherIssuer = errors.New("the token is of another issuer")

// mayBeJWT reports whether a token has the form of a signed JWT of acceptable length.
func mayBeJWT(token string) bool {
	return len(token) <= maxToken && strings.Count(token, ".") == 2
}

// verify verifies a token and returns its Identity and the generation of the keys. nonce is
// compared if it is not empty. fromIssuer means that the issuer itself has sent the token:
// an unknown key is then fetched in spite of the cool-down.
func (o *OIDC) verify(ctx context.Context, token, nonce string, fromIssuer bool) (*Identity, uint64, error) {
	if !mayBeJWT(token) {
		return nil, 0, errOtherIssuer
	}
	// The claims are checked before the signature, so that a token with invalid claims causes
	// no request. No claim is used before the signature is verified.
	c, err := parseClaims(token)
	if err != nil || c.text("iss") != o.config.IssuerURL {
		return nil, 0, errOtherIssuer
	}
	now := o.config.Clock.Now()
	if err := o.checkClaims(c, now); err != nil {
		return nil, 0, err
	}
	if nonce != "" && !equal(c.text("nonce"), nonce) {
		return nil, 0, invalid("the nonce is not that of this login")
	}
	generation, err := o.verifySignature(ctx, token, fromIssuer)
	if err != nil {
		return nil, 0, err
	}
	id, err := o.identity(c)
	if err != nil {
		return nil, 0, err
	}
	id.Credential = JWTCredential(token)
	return id, generation, nil
}

// parseSigned parses a token that is signed with a private key. The signature is not verified.
func parseSigned(token string) (signedToken, error) {
	parsed, err := jose.ParseSignedCompact(token, asymmetric())
	if err != nil {
		return signedToken{}, errs.Wrap(errs.Unauthenticated, err, "the token is not valid")
	}
	return signedToken{token, parsed, parsed.Signatures[0].Header}, nil
}
