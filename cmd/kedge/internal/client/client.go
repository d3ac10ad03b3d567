// Package client speaks the hub's REST API.
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
	"net/http"
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

// Client talks to one hub as one person.
type Client struct {
	server, token, agent string
	http                 *http.Client
}

// New returns a client. ca is PEM; the system's own roots are trusted where it is
// empty.
func New(server, token, agent string, ca []byte) (*Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("the CA file holds no PEM certificate")
		}
	}
	return &Client{server: strings.TrimSuffix(server, "/"), token: token, agent: agent, http: &http.Client{
		Timeout:   timeout,
		Transport: &http.Transport{TLSClientConfig: config, Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true},
		// A redirect would carry the token to wherever it points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Error is what a hub answered.
type Error struct {
	Code    int
	Message string
}

func (e *Error) Error() string { return e.Message }

// Request is one call of the API.
type Request struct {
	Method, Path   string
	Org, Workspace string
	Body           any
}

// Do sends a request and returns the answer's code and body. A GET is tried again
// where the hub or what is behind it is away for a moment.
func (c *Client) Do(ctx context.Context, r Request) (int, []byte, error) {
	for try := 1; ; try++ {
		code, wait, body, err := c.once(ctx, r)
		again := r.Method == http.MethodGet && try < tries &&
			(code == http.StatusTooManyRequests || code == http.StatusBadGateway || code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout)
		if !again {
			return code, body, err
		}
		select {
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		case <-time.After(min(max(wait, time.Duration(try)*500*time.Millisecond), maxBackoff)):
		}
	}
}

func (c *Client) once(ctx context.Context, r Request) (code int, retryAfter time.Duration, body []byte, err error) {
	var content io.Reader = http.NoBody
	if r.Body != nil {
		raw, err := json.Marshal(r.Body)
		if err != nil {
			return 0, 0, nil, err
		}
		content = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, c.server+r.Path, content)
	if err != nil {
		return 0, 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
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
		return 0, 0, nil, explain(c.server, err)
	}
	defer func() { _ = response.Body.Close() }()
	if body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer)); err != nil {
		return response.StatusCode, 0, nil, fmt.Errorf("read the answer of %s: %w", c.server, err)
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		retryAfter = time.Duration(seconds) * time.Second
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return response.StatusCode, retryAfter, body, failure(response.StatusCode, body)
	}
	return response.StatusCode, 0, body, nil
}

func failure(code int, body []byte) error {
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &status) != nil || status.Message == "" {
		status.Message = "the server answered " + strconv.Itoa(code) + " " + http.StatusText(code) + "; is it a kedge-hub?"
	}
	return &Error{Code: code, Message: status.Message}
}

func explain(server string, err error) error {
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return fmt.Errorf("the certificate of %s is signed by an authority that is not trusted; give the hub's CA with kedge login --ca-file", server)
	}
	return err
}
