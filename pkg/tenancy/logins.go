package tenancy

import (
	"bytes"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// LoginLabel is on the Secrets about logins in the workspace of Users. Its value is
// LoginGrant or LoginDevice.
const LoginLabel = v1alpha1.GroupName + "/login"

// The values of LoginLabel.
const (
	// LoginGrant is a ProviderGrant.
	LoginGrant = "grant"
	// LoginDevice is a DeviceLogin.
	LoginDevice = "device"
)

// LoginSecretType is the type of the Secrets about logins.
const LoginSecretType corev1.SecretType = v1alpha1.GroupName + "/login"

// ProviderGrant is the newest refresh token of a User, and the lease of the process that is
// using it. All Sessions of the User share it.
type ProviderGrant struct {
	// User is the metadata.name of the User.
	User string
	// Sealed is the refresh token, encrypted. Each time that a token is stored has other
	// bytes.
	Sealed []byte
	// SavedAt is the time at which Sealed was stored.
	SavedAt time.Time
	// IssuedAt is the time at which the identity provider issued the ID token that came with
	// the refresh token, by the provider's clock: it tells which of two logins was later.
	IssuedAt time.Time
	// Holder identifies the refresh that may present the token until HeldUntil. It is empty
	// if there is none.
	Holder    string
	HeldUntil time.Time
}

// HeldByOther reports whether a refresh other than holder has the lease.
func (g ProviderGrant) HeldByOther(holder string, now time.Time) bool {
	return g.Holder != "" && g.Holder != holder && now.Before(g.HeldUntil)
}

// ProviderGrantName is the name of the Secret of a User's grant.
func ProviderGrantName(user string) string { return "grant-" + user }

// Data is the content of the Secret.
func (g ProviderGrant) Data() map[string][]byte {
	return map[string][]byte{
		"user": []byte(g.User), "refreshToken": g.Sealed, "savedAt": formatTime(g.SavedAt), "issuedAt": formatTime(g.IssuedAt),
		"holder": []byte(g.Holder), "heldUntil": formatTime(g.HeldUntil),
	}
}

// Secret is the object that stores the grant.
func (g ProviderGrant) Secret() *corev1.Secret {
	s := loginSecret(ProviderGrantName(g.User), LoginGrant, g.Data())
	s.Labels[v1alpha1.UserLabel] = g.User
	return s
}

// ProviderGrantOf reads a grant. A field that cannot be read is empty, as if nobody had
// written it.
func ProviderGrantOf(s *corev1.Secret) ProviderGrant {
	return ProviderGrant{
		User: string(s.Data["user"]), Sealed: bytes.Clone(s.Data["refreshToken"]), SavedAt: parseTime(s.Data["savedAt"]), IssuedAt: parseTime(s.Data["issuedAt"]),
		Holder: string(s.Data["holder"]), HeldUntil: parseTime(s.Data["heldUntil"]),
	}
}

// DeviceLogin is a login of the device flow (RFC 8628) that a person is to confirm.
type DeviceLogin struct {
	// ID is the hash of the user code, in hexadecimal digits.
	ID string
	// CodeHash is the hash of the device code, in hexadecimal digits.
	CodeHash string
	// Description is what the device says about itself; Peer is the address it asked from.
	Description string
	Peer        string
	// ExpiresAt is the time until which a person can confirm.
	ExpiresAt time.Time
	// Session is the Session of the person who confirmed; empty if nobody did.
	Session string
	// Denied is true if a person refused.
	Denied bool
}

// DeviceLoginName is the name of the Secret of a login.
func DeviceLoginName(id string) string { return "device-" + id }

// Data is the content of the Secret.
func (d DeviceLogin) Data() map[string][]byte {
	data := map[string][]byte{
		"id": []byte(d.ID), "code": []byte(d.CodeHash), "description": []byte(d.Description), "peer": []byte(d.Peer),
		"expiresAt": formatTime(d.ExpiresAt), "session": []byte(d.Session),
	}
	if d.Denied {
		data["denied"] = []byte("true")
	}
	return data
}

// Secret is the object that stores the login.
func (d DeviceLogin) Secret() *corev1.Secret {
	return loginSecret(DeviceLoginName(d.ID), LoginDevice, d.Data())
}

// DeviceLoginOf reads a login. One whose time cannot be read has expired.
func DeviceLoginOf(s *corev1.Secret) DeviceLogin {
	return DeviceLogin{
		ID: string(s.Data["id"]), CodeHash: string(s.Data["code"]), Description: string(s.Data["description"]), Peer: string(s.Data["peer"]),
		ExpiresAt: parseTime(s.Data["expiresAt"]), Session: string(s.Data["session"]), Denied: len(s.Data["denied"]) > 0,
	}
}

// TokenLeeway is the time after its expiry for which a Session still knows a token: the
// clocks of replicas and of kcp differ.
const TokenLeeway = time.Minute

// SessionEnd is the time at which a Session ends if it is not used any more.
func SessionEnd(s *v1alpha1.Session, idle time.Duration) time.Time {
	end := s.Spec.LastUsedAt.Add(idle)
	if s.Spec.ExpiresAt.Time.Before(end) {
		end = s.Spec.ExpiresAt.Time
	}
	if s.Spec.Code != nil && s.Spec.Code.ExpiresAt.Time.Before(end) {
		end = s.Spec.Code.ExpiresAt.Time
	}
	return end
}

// SessionTokensEnd is the time from which no token that was handed out through a Session is
// accepted. It is zero if none was: the token of a login is handed out when its code is
// redeemed, which begins the first generation.
func SessionTokensEnd(s *v1alpha1.Session) (end time.Time) {
	if s.Spec.Generation == 0 {
		return time.Time{}
	}
	for _, t := range s.Spec.Tokens {
		if expired := t.ExpiresAt.Add(TokenLeeway); expired.After(end) {
			end = expired
		}
	}
	return end
}

func loginSecret(name, kind string, data map[string][]byte) *corev1.Secret {
	s := &corev1.Secret{Type: LoginSecretType, Data: data}
	s.Name, s.Namespace = name, DefaultNamespace
	s.Labels = map[string]string{LoginLabel: kind}
	return s
}

func formatTime(t time.Time) []byte {
	if t.IsZero() {
		return []byte{}
	}
	return []byte(t.UTC().Format(time.RFC3339Nano))
}

func parseTime(raw []byte) time.Time {
	t, err := time.Parse(time.RFC3339Nano, string(raw))
	if err != nil {
		return time.Time{}
	}
	return t
}
