package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

const (
	exchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"
	jwtType       = "urn:ietf:params:oauth:token-type:jwt"
	// exchangeRetry is the time between two attempts while the hub is unavailable.
	exchangeRetry = 2 * time.Second
)

// ErrNoJobs means that the hub gives no tokens to jobs.
var ErrNoJobs = errors.New("the hub allows no identity provider of jobs; ask its operator for --ci-issuer")

// Exchange gets a token of a bot for the ID token of a job (RFC 8693). While the hub is unavailable it tries
// again until ctx ends. The result has no Secret.
func Exchange(ctx context.Context, c Config, bot, subjectToken string) (Tokens, error) {
	for {
		tokens, err := exchange(ctx, c, bot, subjectToken)
		if !Unavailable(err) {
			return tokens, err
		}
		select {
		case <-ctx.Done():
			return Tokens{}, err
		case <-c.Clock.After(exchangeRetry):
		}
	}
}

func exchange(ctx context.Context, c Config, bot, subjectToken string) (Tokens, error) {
	h, err := discover(ctx, c)
	if errors.Is(err, ErrNoProvider) {
		return Tokens{}, ErrNoJobs
	}
	if err != nil {
		return Tokens{}, err
	}
	form := url.Values{
		"grant_type": {exchangeGrant}, "subject_token": {subjectToken}, "subject_token_type": {jwtType}, "resource": {c.Server + "/bots/" + bot},
	}
	var out rest.ExchangedToken
	asked := h.Clock.Now()
	err = h.post(ctx, h.at.TokenEndpoint, form, &out)
	var refused *Error
	if errors.As(err, &refused) && refused.Code == "unsupported_grant_type" {
		return Tokens{}, ErrNoJobs
	}
	if err != nil {
		return Tokens{}, err
	}
	if !strings.EqualFold(out.TokenType, "bearer") || !printable(out.AccessToken) || out.ExpiresIn <= 0 {
		return Tokens{}, fmt.Errorf("the answer of the hub at %s has no token", h.Server)
	}
	return Tokens{AccessToken: out.AccessToken, ExpiresAt: asked.Add(time.Duration(out.ExpiresIn) * time.Second)}, nil
}

// printable reports whether a text can be a token.
func printable(token string) bool {
	return token != "" && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

// GitHubToken asks GitHub's runner for the ID token of the job. request and bearer are what the runner sets in
// ACTIONS_ID_TOKEN_REQUEST_URL and ACTIONS_ID_TOKEN_REQUEST_TOKEN.
func GitHubToken(ctx context.Context, with *http.Client, request, bearer, audience string) (string, error) {
	at, err := url.Parse(request)
	if err != nil || at.Scheme != "https" || at.Host == "" {
		return "", errors.New("ACTIONS_ID_TOKEN_REQUEST_URL is not an https URL")
	}
	query := at.Query()
	query.Set("audience", audience)
	at.RawQuery = query.Encode()
	ctx, cancel := context.WithTimeoutCause(ctx, githubTimeout, errors.New("GitHub does not answer"))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+bearer)
	h := &Hub{Config: Config{Server: "https://" + at.Host}, http: with}
	var out struct {
		Value string `json:"value"`
	}
	if _, err := h.do(r, &out); err != nil {
		return "", fmt.Errorf("ask GitHub for the ID token of the job: %w; the job needs the permission id-token: write", err)
	}
	if !printable(out.Value) {
		return "", errors.New("the answer of GitHub has no ID token; the job needs the permission id-token: write")
	}
	return out.Value, nil
}

// githubTimeout limits the request for the ID token.
const githubTimeout = 30 * time.Second
