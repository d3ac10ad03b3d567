package auth

import "context"

// Kind tells people from bots.
type Kind int

// The kinds of identity.
const (
	// Person is somebody with a User object.
	Person Kind = iota + 1
	// Bot is a ServiceAccount of one Workspace (O-14).
	Bot
)

// Identity is what a credential proves, and nothing that a header claims.
type Identity struct {
	Kind Kind
	// Issuer and Subject are the identity; equal pairs are the same person.
	Issuer  string
	Subject string
	// Username is the name that kcp derives from the same credential.
	Username string
	// PreferredUsername, Email and DisplayName are information only.
	PreferredUsername string
	Email             string
	DisplayName       string
	// Groups are those that the credential carries, for --admin-group.
	Groups []string
}

// Authenticator proves who holds a bearer token. ok is false, with no error,
// where the token is not one of this authenticator's; an error means that it is
// one and is bad, or that it cannot be checked now.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (id *Identity, ok bool, err error)
}
