package auth

import (
	"context"
	"time"
)

// Kind tells people from ServiceAccounts.
type Kind int

// The kinds of identity.
const (
	// Person is a human user, who has a User object.
	Person Kind = iota + 1
	// Bot is a ServiceAccount of one child Workspace (O-14).
	Bot
)

// Identity is the result of authentication: what the credential proves about the caller.
type Identity struct {
	Kind Kind
	// Issuer and Subject identify the caller together.
	Issuer  string
	Subject string
	// Username is the username that kcp authenticates the same credential as.
	Username string
	// PreferredUsername, Email and DisplayName are informational and identify nobody.
	PreferredUsername string
	Email             string
	DisplayName       string
	// Groups are the groups in the credential. They are compared with --admin-group.
	Groups []string
	// ExpiresAt is when the credential expires. It is zero if the credential does not say.
	ExpiresAt time.Time
}

// Authenticator verifies bearer tokens. ok is false with a nil error if it does not know
// the token. An error means that the token is invalid or cannot be verified at present.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (id *Identity, ok bool, err error)
}
