package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"k8s.io/utils/clock"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

const (
	clientID  = "kedge-cli"
	maxAnswer = 1 << 20
	// maxText is the maximum length, in characters, of a text of the hub in an error.
	maxText = 300
	// maxSkew is the largest difference between this computer's clock and the hub's.
	maxSkew = 5 * time.Minute
)

// Config says which hub to ask.
type Config struct {
	// Server is the URL of the hub, without a trailing slash, and CA the PEM bundle that
	// signs its certificate; if it is empty, the system's roots are trusted.
	Server string
	CA     []byte
	// Agent is the User-Agent.
	Agent string
	Clock clock.Clock
}

// Hub is a hub whose metadata was read.
type Hub struct {
	Config
	http *http.Client
	at   rest.AuthorizationServer
	// skew is how far the hub's clock is ahead of this computer's.
	skew time.Duration
}

// Tokens are the answer to a login or a refresh.
type Tokens struct {
	// AccessToken is the bearer token. ExpiresAt is when it expires, on this computer's clock.
	AccessToken string
	ExpiresAt   time.Time
	// Secret gets the next token.
	Secret string
}

// ErrNoProvider means that the hub has no identity provider.
var ErrNoProvider = errors.New("the hub has no identity provider")

// Error is an error answer of the hub.
type Error struct {
	// Status is the HTTP status code, Code and Description what OAuth calls error and
	// error_description.
	Status            int
	Code, Description string
}

// Error is the description or, without one, the code.
func (e *Error) Error() string {
	switch {
	case e.Description != "":
		return e.Description
	case e.Code != "":
		return "the hub answered " + e.Code
	}
	return fmt.Sprintf("the hub answered %d %s", e.Status, http.StatusText(e.Status))
}

// Unavailable reports whether the hub gave no answer, or none for now, so that the same request
// can succeed later.
func Unavailable(err error) bool {
	var refused *Error
	return errors.As(err, new(*client.UnreachableError)) ||
		errors.As(err, &refused) && (refused.Status >= http.StatusInternalServerError || refused.Status == http.StatusTooManyRequests)
}

// Discover reads the metadata of a hub with an identity provider of people.
func Discover(ctx context.Context, c Config) (*Hub, error) {
	h, err := discover(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case h.at.AuthorizationEndpoint == "" && h.at.DeviceAuthorizationEndpoint == "":
		// It has one of jobs alone.
		return nil, ErrNoProvider
	}
	return h, h.own(h.at.AuthorizationEndpoint, h.at.DeviceAuthorizationEndpoint, h.at.RevocationEndpoint)
}

// own fails if an endpoint in the metadata is not at the hub.
func (h *Hub) own(endpoints ...string) error {
	for _, endpoint := range endpoints {
		if !strings.HasPrefix(endpoint, h.Server+"/") {
			return fmt.Errorf("the metadata of the hub at %s names an endpoint at another server", h.Server)
		}
	}
	return nil
}

// discover reads the metadata of a hub for people or for jobs.
func discover(ctx context.Context, c Config) (*Hub, error) {
	transport, err := client.HTTP(c.CA)
	if err != nil {
		return nil, err
	}
	h := &Hub{Config: c, http: transport}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Server+"/.well-known/oauth-authorization-server", http.NoBody)
	if err != nil {
		return nil, err
	}
	header, err := h.do(request, &h.at)
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return nil, ErrNoProvider
	}
	if err != nil {
		return nil, err
	}
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		h.skew = date.Sub(c.Clock.Now())
	}
	if h.at.Issuer != c.Server {
		return nil, fmt.Errorf("the hub at %s says that its URL is %s; run: kedge login --server %s", c.Server, clean(h.at.Issuer), clean(h.at.Issuer))
	}
	return h, h.own(h.at.TokenEndpoint)
}

// Refresh gets the next tokens.
func (h *Hub) Refresh(ctx context.Context, secret string) (Tokens, error) {
	return h.tokens(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {secret}})
}

// RevokeSession ends the session of a secret.
func (h *Hub) RevokeSession(ctx context.Context, secret string) error {
	return h.post(ctx, h.at.RevocationEndpoint, url.Values{"token": {secret}, "token_type_hint": {"refresh_token"}}, nil)
}

// checkClock fails if this computer's clock and the hub's differ too much.
func (h *Hub) checkClock() error {
	way := "slow"
	if h.skew < 0 {
		way = "fast"
	}
	if off := h.skew.Abs(); off > maxSkew {
		return fmt.Errorf("the clock of this computer is %s %s compared with the hub's; set it, then run kedge login again", off.Round(time.Minute), way)
	}
	return nil
}

func (h *Hub) tokens(ctx context.Context, form url.Values) (Tokens, error) {
	var out rest.Tokens
	asked := h.Clock.Now()
	if err := h.post(ctx, h.at.TokenEndpoint, form, &out); err != nil {
		return Tokens{}, err
	}
	if !strings.EqualFold(out.TokenType, "bearer") || !printable(out.AccessToken) || out.RefreshToken == "" || out.ExpiresIn < 0 {
		return Tokens{}, fmt.Errorf("the answer of the hub at %s has no tokens", h.Server)
	}
	return Tokens{AccessToken: out.AccessToken, Secret: out.RefreshToken, ExpiresAt: asked.Add(time.Duration(out.ExpiresIn) * time.Second)}, nil
}

// post sends a form and decodes the answer into out, unless that is nil.
func (h *Hub) post(ctx context.Context, endpoint string, form url.Values, out any) error {
	if form.Get("grant_type") != exchangeGrant {
		form.Set("client_id", clientID)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	_, err = h.do(request, out)
	return err
}

// do sends a request, decodes the answer into out, unless that is nil, and returns its header.
func (h *Hub) do(request *http.Request, out any) (http.Header, error) {
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", h.Agent)
	response, err := h.http.Do(request)
	if ctx := request.Context(); err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, client.Explain(h.Server, err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, &client.UnreachableError{Server: h.Server, Err: err}
	}
	if response.StatusCode != http.StatusOK {
		return nil, failure(response.StatusCode, raw)
	}
	if out != nil && json.Unmarshal(raw, out) != nil {
		return nil, fmt.Errorf("the answer of %s is not a kedge-hub's", h.Server)
	}
	return response.Header, nil
}

// failure reads an error answer: OAuth's, or the hub's Status.
func failure(status int, raw []byte) error {
	var out struct {
		rest.OAuthError
		Message string `json:"message"`
	}
	e := &Error{Status: status}
	if json.Unmarshal(raw, &out) == nil {
		e.Code, e.Description = clean(out.OAuthError.Error), clean(out.Description)
		if e.Description == "" {
			e.Description = clean(out.Message)
		}
	}
	return e
}

// clean makes a text of another program one line that a terminal can show.
func clean(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if runes := []rune(text); len(runes) > maxText {
		return string(runes[:maxText]) + "…"
	}
	return text
}
