package auth_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/test/doubles/oidctest"
)

// issuer is a provider, the hub's authenticator for it, and the clock of both.
type issuer struct {
	*oidctest.Provider
	*auth.OIDC
	clock *clocktesting.FakeClock
}

// newIssuer returns an authenticator that has not reached its issuer yet.
func newIssuer(t *testing.T, change func(*auth.OIDCConfig)) *issuer {
	t.Helper()
	k := clocktesting.NewFakeClock(time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC))
	p := oidctest.New(t, oidctest.Options{Clock: k})
	config := auth.OIDCConfig{
		IssuerURL: p.URL(), ClientID: oidctest.ClientID, CA: p.CA(), Scopes: []string{"openid"},
		UsernameClaim: "sub", UsernamePrefix: "kedge:", Clock: k, Metrics: prometheus.NewRegistry(),
	}
	if change != nil {
		change(&config)
	}
	o, err := auth.NewOIDC(config)
	require.NoError(t, err)
	return &issuer{p, o, k}
}

// run runs the authenticator until the end of the test and waits for the issuer.
func (i *issuer) run(t *testing.T) *issuer {
	t.Helper()
	i.start(t)
	eventually(t, func() bool { return i.Err() == nil })
	return i
}

func (i *issuer) start(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); i.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

func eventually(t *testing.T, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, 10*time.Second, time.Millisecond)
}

// code is the code of the error for a token; 0 means accepted, and -1 not known.
func (i *issuer) code(t *testing.T, token string) errs.Code {
	t.Helper()
	id, ok, err := i.Authenticate(t.Context(), token)
	switch {
	case err != nil:
		require.False(t, ok)
		require.NotContains(t, err.Error(), token)
		var e *errs.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, e.Code == errs.Unavailable, e.RetryAfter > 0, err)
		return e.Code
	case !ok:
		return -1
	}
	require.NotNil(t, id)
	return 0
}

func TestOIDC_derivesTheIdentity(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, func(c *auth.OIDCConfig) { c.GroupsClaim = "groups" }).run(t)
	token := i.Token(oidctest.Claims{"groups": []string{"dev", "ops"}})
	id, ok, err := i.Authenticate(t.Context(), token)
	require.NoError(t, err)
	require.True(t, ok)
	require.Len(t, id.Credential, 64)
	now := i.clock.Now()
	require.Equal(t, &auth.Identity{
		Kind: auth.Person, Issuer: i.URL(), Subject: "alice", Username: "kedge:alice", PreferredUsername: "alice",
		Email: "alice@example.com", VerifiedEmail: "alice@example.com", DisplayName: "Alice", Groups: []string{"kedge:dev", "kedge:ops"}, GroupsKnown: true,
		IssuedAt: now.Local(), ExpiresAt: now.Add(time.Hour).Local(), Credential: id.Credential,
	}, id)
	one, ok, err := i.Authenticate(t.Context(), i.Token(oidctest.Claims{"groups": "dev", "email_verified": false}))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []string{"kedge:dev"}, one.Groups, "a string is one group")
	require.Empty(t, one.Email, "nobody has verified it")
	require.Empty(t, one.VerifiedEmail)
}

func TestOIDC_checksTheClaims(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, func(c *auth.OIDCConfig) {
		c.ExtraAudiences, c.RequiredClaims, c.GroupsClaim = []string{"kubelogin"}, map[string]string{"hd": "example.com"}, "groups"
		c.ReservedUsernames = []string{"kedge:hub"}
	}).run(t)
	at := func(d time.Duration) int64 { return i.clock.Now().Add(d).Unix() }
	for name, c := range map[string]struct {
		claims oidctest.Claims
		want   errs.Code
	}{
		"rightful":                     {nil, 0},
		"no issuer":                    {oidctest.Claims{"iss": nil}, -1},
		"another issuer":               {oidctest.Claims{"iss": i.URL() + "/"}, -1},
		"no audience":                  {oidctest.Claims{"aud": nil}, errs.Unauthenticated},
		"another audience":             {oidctest.Claims{"aud": "other"}, errs.Unauthenticated},
		"an audience that is a number": {oidctest.Claims{"aud": 1}, errs.Unauthenticated},
		"the extra audience":           {oidctest.Claims{"aud": "kubelogin"}, 0},
		"two audiences":                {oidctest.Claims{"aud": []string{"other", "kedge"}}, errs.Unauthenticated},
		"two audiences, ours is azp":   {oidctest.Claims{"aud": []string{"other", "kedge"}, "azp": "kedge"}, 0},
		"another client's":             {oidctest.Claims{"azp": "other"}, errs.Unauthenticated},
		"an azp that is a list":        {oidctest.Claims{"azp": []string{"kedge"}}, errs.Unauthenticated},
		"no expiry":                    {oidctest.Claims{"exp": nil}, errs.Unauthenticated},
		"an expiry that is a string":   {oidctest.Claims{"exp": "9999999999"}, errs.Unauthenticated},
		"an expiry beyond all years":   {oidctest.Claims{"exp": 1e300}, errs.Unauthenticated},
		"expired now":                  {oidctest.Claims{"exp": at(0)}, errs.Unauthenticated},
		"expires next":                 {oidctest.Claims{"exp": at(time.Second)}, 0},
		"no iat":                       {oidctest.Claims{"iat": nil}, errs.Unauthenticated},
		"issued a little ahead":        {oidctest.Claims{"iat": at(time.Minute)}, 0},
		"issued in the future":         {oidctest.Claims{"iat": at(time.Minute + time.Second)}, errs.Unauthenticated},
		"not yet":                      {oidctest.Claims{"nbf": at(time.Minute + time.Second)}, errs.Unauthenticated},
		"nbf is no date":               {oidctest.Claims{"nbf": "now"}, errs.Unauthenticated},
		"nbf is past":                  {oidctest.Claims{"nbf": at(-time.Hour)}, 0},
		"no subject":                   {oidctest.Claims{"sub": nil}, errs.Unauthenticated},
		"a subject that is a number":   {oidctest.Claims{"sub": 1}, errs.Unauthenticated},
		"a subject that is too long":   {oidctest.Claims{"sub": strings.Repeat("s", 256)}, errs.Unauthenticated},
		"another domain":               {oidctest.Claims{"hd": "example.org"}, errs.Forbidden},
		"no domain":                    {oidctest.Claims{"hd": nil}, errs.Forbidden},
		"a sudo group":                 {oidctest.Claims{"groups": []string{"workspace:x:sudo"}}, errs.Forbidden},
		"groups that are numbers":      {oidctest.Claims{"groups": []int{1}}, errs.Forbidden},
		"the hub's own name":           {oidctest.Claims{"sub": "hub"}, errs.Forbidden},
		"a sudo username":              {oidctest.Claims{"sub": "workspace:x"}, errs.Forbidden},
	} {
		claims := oidctest.Claims{"hd": "example.com"}
		for k, v := range c.claims {
			claims[k] = v
		}
		require.Equal(t, c.want, i.code(t, i.Token(claims)), name)
	}
}

func TestOIDC_refusesUnverifiedEmailAsUsername(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, func(c *auth.OIDCConfig) { c.UsernameClaim = "email" }).run(t)
	for _, verified := range []any{nil, false, "true", 1} {
		require.Equal(t, errs.Forbidden, i.code(t, i.Token(oidctest.Claims{"email_verified": verified})), "%v", verified)
	}
	require.Equal(t, errs.Forbidden, i.code(t, i.Token(oidctest.Claims{"email": nil})))
	id, ok, err := i.Authenticate(t.Context(), i.Token(nil))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "kedge:alice@example.com", id.Username)
	require.Equal(t, "alice", id.Subject)
}

func TestOIDC_refusesNamesOfKCPWithoutPrefix(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, func(c *auth.OIDCConfig) { c.UsernamePrefix, c.GroupsClaim = "s", "groups" }).run(t)
	require.Equal(t, errs.Forbidden, i.code(t, i.Token(oidctest.Claims{"sub": "ystem:admin"})))
	require.Equal(t, errs.Forbidden, i.code(t, i.Token(oidctest.Claims{"sub": "hard-admin"})))
	require.Equal(t, errs.Forbidden, i.code(t, i.Token(oidctest.Claims{"groups": []string{"dev", "ystem:masters"}})))
	require.Equal(t, errs.Code(0), i.code(t, i.Token(oidctest.Claims{"groups": []string{"dev"}})))
}

// forge returns a token with the payload of a rightful one.
func forge(t *testing.T, header map[string]any, payload, signature string) string {
	t.Helper()
	raw, err := json.Marshal(header)
	require.NoError(t, err)
	return base64.RawURLEncoding.EncodeToString(raw) + "." + payload + "." + signature
}

func TestOIDC_refusesForgedSignatures(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, nil).run(t)
	rightful := i.Token(nil)
	parts := strings.Split(rightful, ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	public, err := x509.MarshalPKIXPublicKey(i.Key().Key)
	require.NoError(t, err)
	other := oidctest.New(t, oidctest.Options{Clock: i.clock})
	hmac := oidctest.Sign(t, jose.JSONWebKey{Key: public, KeyID: i.Key().KeyID, Algorithm: "HS256"}, payload)
	for name, token := range map[string]string{
		"alg none":                   forge(t, map[string]any{"alg": "none"}, parts[1], ""),
		"alg none with the kid":      forge(t, map[string]any{"alg": "none", "kid": i.Key().KeyID}, parts[1], parts[2]),
		"no alg":                     forge(t, map[string]any{"kid": i.Key().KeyID}, parts[1], parts[2]),
		"HMAC with the public key":   hmac,
		"another algorithm":          forge(t, map[string]any{"alg": "RS256", "kid": i.Key().KeyID}, parts[1], parts[2]),
		"no signature":               parts[0] + "." + parts[1] + ".",
		"another payload":            parts[0] + "." + strings.Split(i.Token(oidctest.Claims{"sub": "bob"}), ".")[1] + "." + parts[2],
		"another issuer's key":       other.Token(oidctest.Claims{"iss": i.URL()}),
		"a critical header":          forge(t, map[string]any{"alg": "ES256", "kid": i.Key().KeyID, "crit": []string{"b64"}, "b64": false}, parts[1], parts[2]),
		"the key within the token":   forge(t, map[string]any{"alg": "ES256", "kid": i.Key().KeyID, "jwk": other.Key()}, parts[1], parts[2]),
		"a header that is no object": base64.RawURLEncoding.EncodeToString([]byte(`"x"`)) + "." + parts[1] + "." + parts[2],
	} {
		require.Equal(t, errs.Unauthenticated, i.code(t, token), name)
	}
	require.Equal(t, errs.Code(0), i.code(t, rightful))
	for name, token := range map[string]string{
		"empty": "", "opaque": "static-token", "dots": strings.Repeat(".", 1<<20), "a padded part": parts[0] + "." + parts[1] + "=." + parts[2],
		"10 MB": strings.Repeat("A", 5<<20) + "." + strings.Repeat("A", 5<<20) + ".A", "five parts": rightful + ".x.y",
	} {
		_, ok, err := i.Authenticate(t.Context(), token)
		require.NoError(t, err, name)
		require.False(t, ok, name)
	}
	require.Equal(t, 1, i.Requests(oidctest.KeysPath), "none of them is worth a fetch but the other issuer's, which has a known key ID")
}

// A Session knows its tokens by their hash, so no other encoding of one may be accepted.
func TestOIDC_knowsATokenInEveryEncoding(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, nil).run(t)
	token := i.Token(nil)
	id, _, err := i.Authenticate(t.Context(), token)
	require.NoError(t, err)
	last := token[len(token)-1]
	accepted := 0
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
		if byte(c) == last {
			continue
		}
		for _, other := range []string{token[:len(token)-1] + string(c), token + string(c)} {
			if same, ok, err := i.Authenticate(t.Context(), other); err == nil && ok {
				require.Equal(t, id.Credential, same.Credential)
				accepted++
			}
		}
	}
	require.Zero(t, accepted, "every part has one canonical encoding")
}

func TestOIDC_cachesVerdictsUntilExpiry(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, nil).run(t)
	token := i.Token(nil)
	first, _, err := i.Authenticate(t.Context(), token)
	require.NoError(t, err)
	again, _, err := i.Authenticate(t.Context(), token)
	require.NoError(t, err)
	require.Same(t, first, again)
	i.clock.Step(time.Hour - time.Second)
	require.Equal(t, errs.Code(0), i.code(t, token))
	i.clock.Step(time.Second)
	require.Equal(t, errs.Unauthenticated, i.code(t, token))
}

func TestOIDC_refusesAWithdrawnKey(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, nil).run(t)
	token := i.Token(nil)
	require.Equal(t, errs.Code(0), i.code(t, token))
	i.Rotate()
	require.Equal(t, errs.Code(0), i.code(t, token), "nobody has asked the issuer yet")
	eventually(t, i.clock.HasWaiters)
	i.clock.Step(11 * time.Minute)
	eventually(t, func() bool { return i.Requests(oidctest.KeysPath) == 2 })
	eventually(t, func() bool { return i.code(t, token) == errs.Unavailable })
	i.clock.Step(10 * time.Second)
	require.Equal(t, errs.Unauthenticated, i.code(t, token), "the issuer was asked again and does not have it")
}

func TestOIDC_followsARotation(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, nil).run(t)
	old := i.Token(nil)
	require.Equal(t, errs.Code(0), i.code(t, old))
	i.Rotate()
	token := i.Token(nil)
	require.Equal(t, errs.Unavailable, i.code(t, token), "the keys were fetched just now")
	i.clock.Step(10 * time.Second)
	require.Equal(t, errs.Code(0), i.code(t, token))
	require.Equal(t, 2, i.Requests(oidctest.KeysPath))
}

func TestOIDC_fetchesKeysOncePerCoolDown(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, nil).run(t)
	stranger := oidctest.New(t, oidctest.Options{Clock: i.clock})
	stranger.Rotate()
	tokens := make([]string, 1000)
	for n := range tokens {
		tokens[n] = stranger.Token(oidctest.Claims{"iss": i.URL(), "jti": n})
		require.Equal(t, errs.Unavailable, i.code(t, tokens[n]))
	}
	require.Equal(t, 1, i.Requests(oidctest.KeysPath))
	i.clock.Step(10 * time.Second)
	codes := make(chan errs.Code, len(tokens))
	for _, token := range tokens {
		go func() {
			_, _, err := i.Authenticate(context.Background(), token)
			codes <- errs.CodeOf(err)
		}()
	}
	for range tokens {
		require.Equal(t, errs.Unauthenticated, <-codes, "a fetch that began later has not brought the key")
	}
	require.Equal(t, 2, i.Requests(oidctest.KeysPath))
	require.Equal(t, errs.Unauthenticated, i.code(t, tokens[0]))
	require.Equal(t, errs.Code(0), i.code(t, i.Token(nil)))
}

func TestOIDC_isUnavailableUntilTheIssuerIsUp(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, nil)
	i.SetDown(true)
	token := i.Token(nil)
	require.Equal(t, errs.Unavailable, i.code(t, token))
	require.Equal(t, errs.Code(-1), i.code(t, "static-token"))
	require.Error(t, i.Err())
	i.start(t)
	eventually(t, func() bool { return i.Requests(oidctest.DiscoveryPath) > 0 })
	eventually(t, i.clock.HasWaiters)
	require.ErrorContains(t, i.Err(), i.URL())
	require.Equal(t, errs.Unavailable, i.code(t, token))
	require.Equal(t, errs.Unauthenticated, i.code(t, i.Token(oidctest.Claims{"exp": 1})), "it is bad in any case")
	_, err := i.AuthCodeURL(t.Context(), auth.LoginRequest{})
	require.True(t, errs.Is(err, errs.Unavailable))
	i.SetDown(false)
	i.clock.Step(time.Minute)
	eventually(t, func() bool { return i.Err() == nil })
	require.Equal(t, errs.Code(0), i.code(t, token))
}

func TestOIDC_knownKeysGoOnWhileTheIssuerIsDown(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, nil).run(t)
	eventually(t, i.clock.HasWaiters)
	i.SetDown(true)
	i.clock.Step(11 * time.Minute)
	eventually(t, func() bool { return i.Err() != nil })
	require.Equal(t, errs.Code(0), i.code(t, i.Token(nil)))
	i.Rotate()
	require.Equal(t, errs.Unavailable, i.code(t, i.Token(nil)), "the issuer cannot be asked for its new key")
}

func TestOIDC_aSlowIssuerHangsNobody(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, nil).run(t)
	held := make(chan struct{})
	i.Intercept(func(http.ResponseWriter, *http.Request) bool { <-held; return false })
	t.Cleanup(func() { close(held) })
	i.Rotate()
	i.clock.Step(10 * time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, ok, err := i.Authenticate(ctx, i.Token(nil))
	require.False(t, ok)
	require.True(t, errs.Is(err, errs.Unavailable))
}

func TestOIDC_followsARotationWithoutKeyIDs(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, nil)
	i.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		key := i.Key()
		key.KeyID = ""
		return r.URL.Path == oidctest.KeysPath && json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{key}}) == nil
	})
	i.run(t)
	token := func() string {
		parts := strings.Split(i.Token(nil), ".")
		payload, err := base64.RawURLEncoding.DecodeString(parts[1])
		require.NoError(t, err)
		return i.Sign(payload, "")
	}
	require.Equal(t, errs.Code(0), i.code(t, token()))
	i.Rotate()
	rotated := token()
	require.Equal(t, errs.Unavailable, i.code(t, rotated))
	i.clock.Step(10 * time.Second)
	require.Equal(t, errs.Code(0), i.code(t, rotated))
}

func TestOIDC_refusesABadDiscoveryDocument(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(map[string]any){
		"did not match":                 func(d map[string]any) { d["issuer"] = "https://other.example" },
		"jwks_uri is not":               func(d map[string]any) { d["jwks_uri"] = "http://insecure.example/keys" },
		"token_endpoint is not":         func(d map[string]any) { delete(d, "token_endpoint") },
		"authorization_endpoint is not": func(d map[string]any) { d["authorization_endpoint"] = "javascript:alert(1)" },
		"with no algorithm":             func(d map[string]any) { d["id_token_signing_alg_values_supported"] = []string{"none", "HS256"} },
	} {
		i := newIssuer(t, nil)
		document := map[string]any{
			"issuer": i.URL(), "jwks_uri": i.URL() + oidctest.KeysPath, "authorization_endpoint": i.URL() + "/auth", "token_endpoint": i.URL() + "/token",
			"id_token_signing_alg_values_supported": []string{"ES256"},
		}
		change(document)
		i.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			return r.URL.Path == oidctest.DiscoveryPath && json.NewEncoder(w).Encode(document) == nil
		})
		i.start(t)
		eventually(t, func() bool { return i.Err() != nil && strings.Contains(i.Err().Error(), name) })
		require.Equal(t, errs.Unavailable, i.code(t, i.Token(nil)), name)
	}
	_, err := auth.NewOIDC(auth.OIDCConfig{CA: []byte("no certificate"), Metrics: prometheus.NewRegistry()})
	require.Error(t, err)
}

func TestOIDC_ignoresKeysThatSignNothing(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, nil)
	i.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != oidctest.KeysPath {
			return false
		}
		good, err := json.Marshal(i.Key())
		if err != nil {
			return false
		}
		_, _ = fmt.Fprintf(w, `{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"hmac"},{"kty":"unknown"},{"kty":"EC"},%s]}`, good)
		return true
	})
	i.run(t)
	require.Equal(t, errs.Code(0), i.code(t, i.Token(nil)))
	secret := oidctest.Sign(t, jose.JSONWebKey{Key: []byte("secret" + strings.Repeat("0", 32)), KeyID: "hmac", Algorithm: "HS256"}, []byte(`{"iss":"`+i.URL()+`"}`))
	require.NotEqual(t, errs.Code(0), i.code(t, secret))
}

// A GitLab signs the tokens of people and those of jobs. Everybody who may push to a branch chooses the audience of
// a job there, and would be a person for each branch.
func TestOIDC_aJobOfCIIsNoPerson(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, func(c *auth.OIDCConfig) { c.GroupsClaim = "groups" }).run(t)
	gitlab := oidctest.Claims{
		"sub": "project_path:mallory/app:ref_type:branch:ref:main", "groups": []string{"dev"}, "project_id": "22", "namespace_id": "72",
		"pipeline_id": "574", "job_id": "302", "ci_config_ref_uri": "gitlab.example.com/mallory/app//.gitlab-ci.yml@refs/heads/main",
	}
	require.Equal(t, errs.Forbidden, i.code(t, i.Token(gitlab)))
	for _, value := range []any{"1", 1, false, ""} {
		for _, claims := range []oidctest.Claims{
			{"job_workflow_ref": value}, {"ci_config_ref_uri": value}, {"job_id": value, "pipeline_id": value},
		} {
			require.Equal(t, errs.Forbidden, i.code(t, i.Token(claims)), "%v", claims)
		}
	}
	// A company may give its people such a claim.
	require.NotEqual(t, errs.Forbidden, i.code(t, i.Token(oidctest.Claims{"job_id": "engineer"})))
	require.Zero(t, i.code(t, i.Token(oidctest.Claims{"project_id": "22", "job": "302"})), "a person")
}
