package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BotTrust is a rule of a bot: jobs whose ID token has the issuer, the audience and exactly these
// claims get tokens of the bot.
type BotTrust struct {
	Answer    `json:"-"`
	ID        string            `json:"id"`
	Issuer    string            `json:"issuer"`
	Audience  string            `json:"audience"`
	Claims    map[string]string `json:"claims"`
	CreatedBy string            `json:"createdBy"`
	CreatedAt metav1.Time       `json:"createdAt"`
	// LastUsedAt is when a job last got a token by the rule.
	LastUsedAt  *metav1.Time  `json:"lastUsedAt,omitempty"`
	LastRefusal *TrustRefusal `json:"lastRefusal,omitempty"`
}

// TrustRefusal is the last genuine ID token that the rule did not let in, and the claim that did not
// match.
type TrustRefusal struct {
	At    metav1.Time `json:"at"`
	Claim string      `json:"claim"`
}

// AddBotTrustRequest adds a rule. Without Audience it is the external URL of the hub.
type AddBotTrustRequest struct {
	Issuer   string            `json:"issuer"`
	Audience string            `json:"audience,omitempty"`
	Claims   map[string]string `json:"claims"`
}

// ExchangedToken is the answer of RFC 8693, section 2.2.1: a token of a bot for the ID token of a job.
type ExchangedToken struct {
	AccessToken     string `json:"access_token"`
	IssuedTokenType string `json:"issued_token_type"`
	TokenType       string `json:"token_type"`
	ExpiresIn       int64  `json:"expires_in"`
}
