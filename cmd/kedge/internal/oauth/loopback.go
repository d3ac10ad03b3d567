package oauth

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
)

// pageTimeout is the maximum time for sending the last page to the browser.
const pageTimeout = 2 * time.Second

// A code is presented again while the hub is unavailable, which can be restarting, for most of the
// minute that a code lives.
const (
	redeemTries = 20
	redeemPause = 2 * time.Second
)

// Browser shows a login to the person.
type Browser struct {
	// Show opens the URL of the login, or prints it.
	Show func(url string)
	// Warn tells of something that does not end the login.
	Warn func(text string)
}

// LogInWithBrowser logs in with a browser on this computer. description names this computer to
// the person.
func (h *Hub) LogInWithBrowser(ctx context.Context, description string, browser Browser) (Tokens, error) {
	if err := h.checkClock(); err != nil {
		return Tokens{}, err
	}
	listener, err := listen(ctx)
	if err != nil {
		return Tokens{}, fmt.Errorf("listen for the browser's answer: %w; kedge login --device works without", err)
	}
	l := &loopback{answers: make(chan answer, 1), browser: browser}
	server := &http.Server{Handler: l, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()

	redirect := "http://" + listener.Addr().String() + "/callback"
	state, verifier := rand.Text(), rand.Text()+rand.Text()
	challenge := sha256.Sum256([]byte(verifier))
	browser.Show(h.at.AuthorizationEndpoint + "?" + url.Values{
		"response_type": {"code"}, "client_id": {clientID}, "redirect_uri": {redirect}, "state": {state}, "description": {description},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}, "code_challenge_method": {"S256"},
	}.Encode())

	select {
	case <-ctx.Done():
		return Tokens{}, context.Cause(ctx)
	case a := <-l.answers:
		tokens, err := h.redeem(ctx, a.query, state, verifier, redirect)
		a.result <- err
		select {
		case <-a.shown:
		case <-time.After(pageTimeout):
		}
		return tokens, err
	}
}

func listen(ctx context.Context) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err == nil {
		return listener, nil
	}
	if other, errOther := config.Listen(ctx, "tcp", "[::1]:0"); errOther == nil {
		return other, nil
	}
	return nil, err
}

// redeem exchanges the code in an answer for tokens.
func (h *Hub) redeem(ctx context.Context, query url.Values, state, verifier, redirect string) (Tokens, error) {
	for _, name := range []string{"state", "code", "error", "iss"} {
		if len(query[name]) > 1 {
			return Tokens{}, errors.New("the answer to this login names a parameter twice; run kedge login again")
		}
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(state)) != 1:
		return Tokens{}, errors.New("the answer has the state of another login, so it was refused; run kedge login again")
	case query.Has("iss") && query.Get("iss") != h.at.Issuer:
		return Tokens{}, errors.New("the answer comes from another server than the hub, so it was refused; run kedge login again")
	case query.Has("error"):
		return Tokens{}, outcome(&Error{Code: clean(query.Get("error")), Description: clean(query.Get("error_description"))})
	case query.Get("code") == "":
		return Tokens{}, errors.New("the answer to this login has no code; run kedge login again")
	}
	for try := 1; ; try++ {
		tokens, err := h.tokens(ctx, url.Values{
			"grant_type": {"authorization_code"}, "code": {query.Get("code")}, "code_verifier": {verifier}, "redirect_uri": {redirect},
		})
		if try == redeemTries || !Unavailable(err) {
			return tokens, err
		}
		select {
		case <-ctx.Done():
			return Tokens{}, context.Cause(ctx)
		case <-h.Clock.After(redeemPause):
		}
	}
}

// outcome is the error of a login that the person, the hub or the provider ended.
func outcome(e *Error) error {
	switch {
	case e.Code != "access_denied":
		return fmt.Errorf("not logged in: the hub or its identity provider failed (%s): %w", e.Code, e)
	case e.Description == "":
		return errors.New("not logged in: the login was refused")
	}
	return fmt.Errorf("not logged in: %w", e)
}

// answer is the redirect that the browser followed. The handler sends the page after result, and
// closes shown then.
type answer struct {
	query  url.Values
	result chan<- error
	shown  <-chan struct{}
}

// loopback serves the redirect URI of one login.
type loopback struct {
	answers  chan answer
	answered atomic.Bool
	browser  Browser
}

// ServeHTTP hands the first answer to the login and shows its result.
func (l *loopback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != "/callback":
		http.NotFound(w, r)
		return
	case r.Method != http.MethodGet:
		http.Error(w, "only GET is allowed", http.StatusMethodNotAllowed)
		return
	case !l.answered.CompareAndSwap(false, true):
		l.browser.Warn("a second answer to this login came and was ignored")
		show(w, http.StatusConflict, "This login was answered already", "Go back to the terminal.")
		return
	}
	result, shown := make(chan error, 1), make(chan struct{})
	defer close(shown)
	l.answers <- answer{query: r.URL.Query(), result: result, shown: shown}
	select {
	case <-r.Context().Done():
	case err := <-result:
		if err != nil {
			show(w, http.StatusBadRequest, "You are not logged in", "kedge: "+err.Error())
			return
		}
		show(w, http.StatusOK, "You are logged in", "You can close this page and go back to the terminal.")
	}
}

func show(w http.ResponseWriter, code int, title, text string) {
	page := template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Title}} - kedge</title><h1>{{.Title}}</h1><p>{{.Text}}</p></html>
`))
	body := &bytes.Buffer{}
	_ = page.Execute(body, map[string]string{"Title": title, "Text": text})
	header := w.Header()
	// With its length the page is whole when it is flushed. The end of chunks would come after the handler, when the login
	// may have ended the server.
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'")
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Connection", "close")
	w.WriteHeader(code)
	// The browser may be gone; the terminal tells the result, too.
	_, _ = body.WriteTo(w)
	_ = http.NewResponseController(w).Flush()
}
