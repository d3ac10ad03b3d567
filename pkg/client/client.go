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
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	timeout    = 60 * time.Second
	tries      = 4
	maxAnswer  = 16 << 20
	maxBackoff = 10 * time.Second

	keyHeader   = "Idempotency-Key"
	matchHeader = "If-Match"
)

// TokenFunc returns the bearer token of a request.
type TokenFunc func(ctx context.Context) (string, error)

// Config is what a Client needs.
type Config struct {
	// Server is the URL of the hub. It is https, or http on a loopback address.
	Server string
	// Token is called for each attempt of a request. StaticToken returns one that never changes.
	Token TokenFunc
	// CA is a PEM bundle. If it is empty, the system's roots are trusted.
	CA []byte
	// HTTP, if not nil, sends the requests, and CA has no effect.
	HTTP *http.Client
	// UserAgent is the header of that name.
	UserAgent string
	// Advise, if not nil, replaces the errors of requests.
	Advise func(error) error
}

// StaticToken returns a TokenFunc for a token that does not change, such as that of a bot.
func StaticToken(token string) TokenFunc {
	return func(context.Context) (string, error) { return token, nil }
}

// Client sends requests to one hub with the rights of one caller.
type Client struct {
	server, agent string
	token         TokenFunc
	http          *http.Client
	advise        func(error) error
}

// New returns a client of the hub.
func New(c Config) (*Client, error) {
	server, err := url.Parse(c.Server)
	if err != nil || server.Host == "" || server.RawQuery != "" || server.Fragment != "" ||
		server.Scheme != "https" && (server.Scheme != "http" || !loopback(server.Hostname())) {
		return nil, fmt.Errorf("the URL of the hub must look like https://hub.example.com, not %q", c.Server)
	}
	if c.Token == nil {
		return nil, errors.New("the client needs a token")
	}
	if c.HTTP == nil {
		if c.HTTP, err = HTTP(c.CA); err != nil {
			return nil, err
		}
	}
	if c.Advise == nil {
		c.Advise = func(err error) error { return err }
	}
	return &Client{server: strings.TrimRight(c.Server, "/"), token: c.Token, agent: c.UserAgent, http: c.HTTP, advise: c.Advise}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
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

// Request is one request to the API.
type Request struct {
	Method, Path string
	Query        url.Values
	Header       http.Header
	// Org and Workspace are UUIDs for the tenancy headers.
	Org, Workspace string
	// Body is sent as JSON, if it is not nil.
	Body any

	waiting func(*Response) bool
	// into, if not nil, gets the body of a successful answer, which Response does not have then.
	into io.Writer
	// made is true if the request reads a tenant that the caller has made a moment ago.
	made bool
}

// Response is the answer to a request that succeeded.
type Response struct {
	Code   int
	Header http.Header
	Body   []byte
}

// Do sends a request. It retries requests that are safe to repeat while the hub or kcp is
// unavailable. Any answer but 2xx is an *Error.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	if !strings.HasPrefix(r.Path, "/") || slices.ContainsFunc(strings.Split(r.Path[1:], "/"), ambiguous) {
		return nil, fmt.Errorf("%q is no path of the API: a UUID or a name is missing", r.Path)
	}
	for try := 1; ; try++ {
		a, err := c.attempt(ctx, r)
		if try == tries || !repeatable(r, a) {
			if err = ofRepeat(try, r.Method, err); err != nil {
				err = c.advise(err)
			}
			return a, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(max(retryAfter(a), time.Duration(try)*500*time.Millisecond), maxBackoff)):
		}
	}
}

// ambiguous reports whether a path segment is empty or could be resolved to another path.
func ambiguous(segment string) bool { return segment == "" || segment == "." || segment == ".." }

func retryAfter(a *Response) time.Duration {
	seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if err != nil {
		return -1
	}
	return time.Duration(seconds) * time.Second
}

// repeatable reports whether a request is retried after an answer. DELETE, merge patches and
// requests with an Idempotency-Key are retried if the answer has Retry-After. Another POST is never
// retried, because a creation could succeed twice.
func repeatable(r Request, a *Response) bool {
	if a == nil {
		return false
	}
	idempotent := r.Method == http.MethodDelete || r.Method == http.MethodPatch || r.Header.Get(keyHeader) != ""
	switch a.Code {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return r.Method == http.MethodGet || idempotent && retryAfter(a) >= 0
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return r.Method == http.MethodGet
	}
	return false
}

// ofRepeat marks NotFound and Forbidden answers to a repeated DELETE: the first attempt may have
// succeeded.
func ofRepeat(try int, method string, err error) error {
	var refused *Error
	if try > 1 && method == http.MethodDelete && errors.As(err, &refused) &&
		(refused.Code() == http.StatusNotFound || refused.Code() == http.StatusForbidden) {
		refused.ErrStatus.Message += "; an earlier try of this request may have been carried out all the same"
	}
	return err
}

// attempt sends a request once. The answer is nil if there was none.
func (c *Client) attempt(ctx context.Context, r Request) (*Response, error) {
	request, err := c.request(ctx, r)
	if err != nil {
		return nil, err
	}
	sender := *c.http
	if r.into != nil {
		// A long answer takes as long as it does; the context can end it.
		sender.Timeout = 0
	}
	response, err := sender.Do(request)
	if err != nil {
		return nil, Explain(c.server, err)
	}
	defer func() { _ = response.Body.Close() }()
	a := &Response{Code: response.StatusCode, Header: response.Header}
	if r.into != nil && a.Code == http.StatusOK {
		if _, err := io.Copy(r.into, response.Body); err != nil {
			return nil, &UnreachableError{Server: c.server, Err: err}
		}
		return a, nil
	}
	if a.Body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer)); err != nil {
		return nil, &UnreachableError{Server: c.server, Err: err}
	}
	if a.Code < 200 || a.Code > 299 {
		return a, failure(a)
	}
	return a, nil
}

func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	var content io.Reader = http.NoBody
	if r.Body != nil {
		raw, err := json.Marshal(r.Body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(raw)
	}
	target := c.server + r.Path
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, target, content)
	if err != nil {
		return nil, err
	}
	token, err := c.token(ctx)
	if err != nil {
		return nil, err
	}
	for name, values := range r.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	set := func(name, value string) {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	set("Authorization", "Bearer "+token)
	set("User-Agent", c.agent)
	set("X-Kedge-Org", r.Org)
	set("X-Kedge-Workspace", r.Workspace)
	if r.Body != nil {
		set("Content-Type", "application/json")
	}
	return request, nil
}
