package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
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
	// VerifiedEmail is the address that the identity provider says it has verified. It is empty if the
	// credential does not say so.
	VerifiedEmail string
	// Groups are the groups in the credential, with their prefix. They are compared with
	// --admin-group.
	Groups []string
	// GroupsKnown is true if the credential says which groups there are, also if it says none.
	GroupsKnown bool
	// IssuedAt is when the credential was issued. It is zero if the credential does not say.
	IssuedAt time.Time
	// ExpiresAt is when the credential expires. It is zero if the credential does not say.
	ExpiresAt time.Time
	// Credential identifies the credential without revealing it: a SHA-256 hash in
	// hexadecimal. It is that of the whole token or, for a JWT, of its signed part, because
	// one signature has several valid encodings. It is never logged.
	Credential string
	// Account is the ServiceAccount of a Bot. It is nil for a Person.
	Account *ServiceAccount
}

// ServiceAccount is what a token of a ServiceAccount proves.
type ServiceAccount struct {
	// Cluster is the logical cluster, Namespace, Name and UID the account in it.
	Cluster, Namespace, Name, UID string
	// SecretUID is the UID of the Secret that the token is bound to.
	SecretUID string
}

// Authenticator verifies bearer tokens. ok is false with a nil error if it does not know
// the token. An error with the code errs.Unavailable means that the token cannot be verified
// at present, one with errs.Forbidden that it is genuine and not accepted. Every other error
// means that the token is invalid. The Identity is shared and must not be changed.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (id *Identity, ok bool, err error)
}

// JWTCredential is the Identity.Credential of a JWT, whether it is valid or not.
func JWTCredential(token string) string {
	return credentialID(token[:max(0, strings.LastIndexByte(token, '.'))])
}

// credentialID is the Identity.Credential of a token, or of the signed part of a JWT.
func credentialID(token string) string {
	hash := sha256.Sum256([]byte(token))
	return hex.EncodeToString(hash[:])
}
