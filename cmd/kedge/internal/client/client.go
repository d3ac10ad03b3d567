package client

import (
	"bytes"
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
	"strconv"
	"strings"
	"time"
)

const (
	timeout    = 60 * time.Second
	tries      = 4
	maxAnswer  = 16 << 20
	maxBackoff = 10 * time.Second
)

// TokenFunc returns the bearer token of a request.
type TokenFunc func(ctx context.Context) (string, error)

// Client sends requests to one hub as one person.
type Client struct {
	server, agent string
	token         TokenFunc
	http          *http.Client
}

// New returns a client. ca is a PEM bundle; if it is empty, the system's roots are trusted.
func New(server string, token TokenFunc, agent string, ca []byte) (*Client, error) {
	transport, err := HTTP(ca)
	if err != nil {
		return nil, err
	}
	return &Client{server: strings.TrimSuffix(server, "/"), token: token, agent: agent, http: transport}, nil
}

// HTTP returns an HTTP client that trusts a PEM bundle or, if that is empty, the system's roots.
// It follows no redirects.
func HTTP(ca []byte) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("the CA file holds no PEM certificate")
		}
	}
	return &http.Client{
		Timeout:   timeout,
		Transport: &http.Transport{TLSClientConfig: config, Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true},
		// A redirect could send the token to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// Error is an error answer of a hub.
type Error struct {
	Code    int
	Message string
	Causes  []Cause
}

// Cause is one of the causes in an error answer.
type Cause struct {
	Type    string `json:"reason"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Message }

// Request is one request to the API.
type Request struct {
	Method, Path   string
	Query          url.Values
	Org, Workspace string
	Body           any
}

// answer is the answer to one attempt.
type answer struct {
	code int
	body []byte
	// retryAfter is the Retry-After of the answer; comeBack is true if it has one.
	retryAfter time.Duration
	comeBack   bool
}

// Do sends a request and returns the status code and body of the answer. It retries requests that
// are safe to repeat while the hub or kcp is unavailable.
func (c *Client) Do(ctx context.Context, r Request) (int, []byte, error) {
	for try := 1; ; try++ {
		a, err := c.once(ctx, r)
		if try == tries || !repeatable(r.Method, a) {
			return a.code, a.body, ofRepeat(try, r.Method, err)
		}
		select {
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		case <-time.After(min(max(a.retryAfter, time.Duration(try)*500*time.Millisecond), maxBackoff)):
		}
	}
}

// repeatable reports whether a request is retried after an answer. DELETE and merge patches are
// idempotent and are retried if the answer has Retry-After. POST is never retried, because a
// create could succeed twice.
func repeatable(method string, a answer) bool {
	switch a.code {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return method == http.MethodGet || a.comeBack && (method == http.MethodDelete || method == http.MethodPatch)
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return method == http.MethodGet
	}
	return false
}

// ofRepeat marks NotFound and Forbidden answers to a repeated DELETE: the first attempt may have
// succeeded.
func ofRepeat(try int, method string, err error) error {
	var refused *Error
	if try > 1 && method == http.MethodDelete && errors.As(err, &refused) &&
		(refused.Code == http.StatusNotFound || refused.Code == http.StatusForbidden) {
		refused.Message += "; an earlier try of this command may have been carried out all the same"
	}
	return err
}

func (c *Client) once(ctx context.Context, r Request) (answer, error) {
	var content io.Reader = http.NoBody
	if r.Body != nil {
		raw, err := json.Marshal(r.Body)
		if err != nil {
			return answer{}, err
		}
		content = bytes.NewReader(raw)
	}
	target := c.server + r.Path
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, target, content)
	if err != nil {
		return answer{}, err
	}
	token, err := c.token(ctx)
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("User-Agent", c.agent)
	if r.Body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if r.Org != "" {
		request.Header.Set("X-Kedge-Org", r.Org)
	}
	if r.Workspace != "" {
		request.Header.Set("X-Kedge-Workspace", r.Workspace)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, Explain(c.server, err)
	}
	defer func() { _ = response.Body.Close() }()
	a := answer{code: response.StatusCode}
	if a.body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer)); err != nil {
		return answer{code: a.code}, fmt.Errorf("read the answer of %s: %w", c.server, err)
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		a.retryAfter, a.comeBack = time.Duration(seconds)*time.Second, true
	}
	if a.code < 200 || a.code > 299 {
		return a, failure(a.code, a.body)
	}
	return a, nil
}

func failure(code int, body []byte) error {
	var status struct {
		Message string `json:"message"`
		Details struct {
			Causes []Cause `json:"causes"`
		} `json:"details"`
	}
	if json.Unmarshal(body, &status) != nil || status.Message == "" {
		status.Message = "the server answered " + strconv.Itoa(code) + " " + http.StatusText(code) + "; is it a kedge-hub?"
	}
	return &Error{Code: code, Message: status.Message, Causes: status.Details.Causes}
}

// UnreachableError means that the hub could not be reached or did not answer.
type UnreachableError struct {
	Server string
	Err    error
}

// Error names the hub.
func (e *UnreachableError) Error() string {
	what := "gave no answer"
	if dial := new(net.OpError); errors.As(e.Err, &dial) && dial.Op == "dial" {
		what = "cannot be reached"
	}
	return "the hub at " + e.Server + " " + what + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Explain converts the error of a request that got no answer.
func Explain(server string, err error) error {
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return fmt.Errorf("the certificate of %s is signed by an authority that is not trusted; give the hub's CA with kedge login --ca-file", server)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("the certificate of %s is not valid at this time; check the clock of this computer, then tell the hub's operator", server)
	}
	// url.Error adds the method and path of the API, which users do not need.
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err
	}
	return &UnreachableError{Server: server, Err: err}
}
