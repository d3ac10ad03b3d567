package auth

import (
	"crypto/tls"
	"crypto/x509"
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

// providerOf reads a discovery document. logins says that people log in at the issuer.
func providerOf(found *oidc.Provider, logins bool) (*provider, error) {
	var document struct {
		KeysURL     string   `json:"jwks_uri"`
		Algorithms  []string `json:"id_token_signing_alg_values_supported"`
		AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := found.Claims(&document); err != nil {
		return nil, err
	}
	p := &provider{endpoint: found.Endpoint(), keysURL: document.KeysURL}
	endpoints := map[string]string{"jwks_uri": p.keysURL}
	if logins {
		endpoints["authorization_endpoint"], endpoints["token_endpoint"] = p.endpoint.AuthURL, p.endpoint.TokenURL
	}
	for name, address := range endpoints {
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
