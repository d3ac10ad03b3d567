package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"
)

// The limits of a request to the issuer.
const (
	dialTimeout    = 5 * time.Second
	requestTimeout = 10 * time.Second
	// maxDocument is the maximum length of an answer, in bytes.
	maxDocument = 1 << 20
)

// asymmetric are the algorithms that are ever accepted. A symmetric one would take the
// issuer's public key for a shared secret.
func asymmetric() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
		jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	}
}

// provider is what the discovery document says about the issuer.
type provider struct {
	endpoint oauth2.Endpoint
	keysURL  string
	// algorithms are those in the document that are accepted.
	algorithms []string
}

// newIssuerClient returns a client that verifies the issuer's certificate and bounds its
// answers.
func newIssuerClient(ca []byte) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("there is no PEM certificate in it")
		}
	}
	return &http.Client{
		Timeout: requestTimeout,
		Transport: boundedAnswers{&http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true,
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSHandshakeTimeout: dialTimeout, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
		}},
		// A code, a secret or a refresh token goes to the endpoint that the issuer named, and
		// nothing goes out in the clear.
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Scheme != "https" || via[0].Method != http.MethodGet || len(via) > 3 {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}, nil
}

// boundedAnswers bounds the length of answers.
type boundedAnswers struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (b boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.Transport.RoundTrip(r)
	if err == nil {
		response.Body = boundedBody{io.LimitReader(response.Body, maxDocument), response.Body}
	}
	return response, err
}

type boundedBody struct {
	io.Reader
	io.Closer
}

// Reach fetches the discovery document and the keys once, for a hub that does not run.
func (o *OIDC) Reach(ctx context.Context) error {
	defer func() { o.client.Load().CloseIdleConnections() }()
	return o.refresh(ctx)
}

// refresh fetches the discovery document and the keys. What was known before stays known if
// it fails.
func (o *OIDC) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, o.client.Load()), o.config.IssuerURL)
	if err != nil {
		// The library quotes the whole answer.
		return fmt.Errorf("read its discovery document: %.200s", err.Error())
	}
	p, err := providerOf(found)
	if err != nil {
		return fmt.Errorf("read its discovery document: %w", err)
	}
	o.provider.Store(p)
	if err := o.keys.refresh(ctx); err != nil {
		return fmt.Errorf("read its keys: %w", err)
	}
	return nil
}

func providerOf(found *oidc.Provider) (*provider, error) {
	var document struct {
		KeysURL     string   `json:"jwks_uri"`
		Algorithms  []string `json:"id_token_signing_alg_values_supported"`
		AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := found.Claims(&document); err != nil {
		return nil, err
	}
	p := &provider{endpoint: found.Endpoint(), keysURL: document.KeysURL}
	for name, address := range map[string]string{
		"jwks_uri": p.keysURL, "authorization_endpoint": p.endpoint.AuthURL, "token_endpoint": p.endpoint.TokenURL,
	} {
		if u, err := url.Parse(address); err != nil || u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("its %s is not an https URL", name)
		}
	}
	if len(document.Algorithms) == 0 {
		document.Algorithms = []string{string(jose.RS256)}
	}
	for _, accepted := range asymmetric() {
		if slices.Contains(document.Algorithms, string(accepted)) {
			p.algorithms = append(p.algorithms, string(accepted))
		}
	}
	if len(p.algorithms) == 0 {
		return nil, errors.New("it signs ID tokens with no algorithm of the families RS, PS, ES and EdDSA")
	}
	// client_secret_basic is the default of the specification. The library would find out by
	// sending a code twice.
	p.endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if len(document.AuthMethods) > 0 && !slices.Contains(document.AuthMethods, "client_secret_basic") {
		p.endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return p, nil
}

// fetchKeys fetches the public keys of the issuer. Keys of unknown types are left out.
func (o *OIDC) fetchKeys(ctx context.Context) ([]jose.JSONWebKey, error) {
	p := o.provider.Load()
	if p == nil {
		return nil, errNotReached
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.keysURL, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	response, err := o.client.Load().Do(r)
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
