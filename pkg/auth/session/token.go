package session

import (
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// maxIDToken is the maximum length of an ID token in bytes. A longer one fits in no
	// request header.
	maxIDToken = 32 << 10
	// maxMargin is the remaining life at which an ID token is refreshed at the latest.
	maxMargin = 5 * time.Minute
	// maxTokens is the number of tokens that a Session can remember.
	maxTokens = 64
)

// storedToken is the newest ID token of a Session, as it is encrypted in spec.idToken.
type storedToken struct {
	Token string `json:"token"`
	// Credential is the hash that spec.tokens has.
	Credential string    `json:"credential"`
	IssuedAt   time.Time `json:"issuedAt"`
	ExpiresAt  time.Time `json:"expiresAt"`
}

func storedTokenOf(g *auth.Grant) storedToken {
	return storedToken{Token: g.IDToken, Credential: g.Identity.Credential, IssuedAt: g.Identity.IssuedAt, ExpiresAt: g.Identity.ExpiresAt}
}

// fresh reports whether the token has enough of its life left to be returned again: at least
// five minutes, or half its life if that is less.
func (k storedToken) fresh(now time.Time) bool {
	margin := min(maxMargin, k.ExpiresAt.Sub(k.IssuedAt)/2)
	return k.Token != "" && now.Before(k.ExpiresAt) && !now.Add(margin).After(k.ExpiresAt)
}

func (k storedToken) record() v1alpha1.SessionToken {
	return v1alpha1.SessionToken{Hash: k.Credential, ExpiresAt: metav1.NewTime(k.ExpiresAt)}
}

func (s *Service) seal(k storedToken) ([]byte, error) {
	if len(k.Token) > maxIDToken {
		return nil, &Error{Code: CodeAccessDenied, Description: "the ID token of the identity provider is longer than 32 KiB; ask a platform admin to shorten it"}
	}
	plain, err := json.Marshal(k)
	if err != nil {
		return nil, failure(err)
	}
	sealed, err := s.Keys.Seal(purposeIDToken, plain)
	return sealed, failure(err)
}

// storedToken returns the newest ID token of a Session. It is empty if the key that encrypted it is
// no longer in use.
func (s *Service) storedToken(held *v1alpha1.Session) (k storedToken) {
	plain, err := s.Keys.Open(purposeIDToken, held.Spec.IDToken)
	if err != nil || json.Unmarshal(plain, &k) != nil {
		return storedToken{}
	}
	return k
}

// remember returns the tokens of a Session that are still valid, with one more. ok is false
// if there are too many.
func remember(tokens []v1alpha1.SessionToken, more v1alpha1.SessionToken, now time.Time) (kept []v1alpha1.SessionToken, ok bool) {
	for _, t := range tokens {
		if now.Before(t.ExpiresAt.Add(tenancy.TokenLeeway)) && t.Hash != more.Hash {
			kept = append(kept, t)
		}
	}
	kept = append(kept, more)
	return kept, len(kept) <= maxTokens
}

// maxEmail is the longest address that RFC 5321 permits.
const maxEmail = 254

// emailOf returns the verified address of an identity that a Session keeps.
func emailOf(id *auth.Identity) string {
	if len(id.VerifiedEmail) > maxEmail {
		return ""
	}
	return id.VerifiedEmail
}

// groupsOf returns the groups of an identity that a Session keeps.
func groupsOf(id *auth.Identity) []string {
	return slices.Clone(id.Groups[:min(len(id.Groups), maxGroups)])
}
