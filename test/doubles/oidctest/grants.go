package oidctest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
)

// login is a code that was given out.
type login struct {
	person                 Claims
	challenge, redirectURI string
	nonce                  string
}

// grant is the refresh token of a person. A client has one grant for each person.
type grant struct {
	person Claims
	token  string
}

// RevokeGrant makes the refresh token of a person useless.
func (p *Provider) RevokeGrant(subject string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.refresh, subject)
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	back, err := url.Parse(query.Get("redirect_uri"))
	if err != nil || back.Host == "" || query.Get("client_id") != ClientID || query.Get("response_type") != "code" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	values := url.Values{"state": {query.Get("state")}}
	p.mu.Lock()
	if p.person == nil {
		values.Set("error", "access_denied")
	} else {
		code := rand.Text()
		p.codes[code] = login{
			person: maps.Clone(p.person), challenge: query.Get("code_challenge"), redirectURI: query.Get("redirect_uri"), nonce: query.Get("nonce"),
		}
		values.Set("code", code)
	}
	p.mu.Unlock()
	back.RawQuery = values.Encode()
	http.Redirect(w, r, back.String(), http.StatusSeeOther)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, basic := r.BasicAuth()
	if basic {
		// RFC 6749, 2.3.1: both are form-encoded.
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if id != ClientID || secret != p.options.ClientSecret {
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		code := r.PostFormValue("code")
		l, ok := p.codes[code]
		delete(p.codes, code)
		challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if !ok || l.redirectURI != r.PostFormValue("redirect_uri") || l.challenge != base64.RawURLEncoding.EncodeToString(challenge[:]) {
			refuse(w, http.StatusBadRequest, "invalid_grant")
			return
		}
		claims := maps.Clone(l.person)
		claims["nonce"] = l.nonce
		p.give(w, l.person, claims)
	case "refresh_token":
		for _, g := range p.refresh {
			if g.token == r.PostFormValue("refresh_token") {
				p.give(w, g.person, g.person)
				return
			}
		}
		// Dex 2.41 says this, not invalid_grant.
		refuse(w, http.StatusBadRequest, "invalid_request")
	default:
		refuse(w, http.StatusBadRequest, "unsupported_grant_type")
	}
}

// give answers with an ID token of the claims and a new refresh token, which replaces the one
// that the person had. The caller holds the lock.
func (p *Provider) give(w http.ResponseWriter, person, claims Claims) {
	next := grant{person: person, token: rand.Text()}
	subject, _ := person["sub"].(string)
	p.refresh[subject] = next
	// Tokens of one second differ.
	claims = maps.Clone(claims)
	claims["jti"] = rand.Text()
	answer(w, http.StatusOK, map[string]any{
		"access_token": rand.Text(), "token_type": "bearer", "expires_in": int(p.options.Lifetime.Seconds()),
		"refresh_token": next.token, "id_token": p.sign(claims),
	})
}

func refuse(w http.ResponseWriter, code int, reason string) {
	answer(w, code, map[string]string{"error": reason, "error_description": "refused by the test"})
}
