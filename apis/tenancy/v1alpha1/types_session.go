package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SessionClient is the program that a person logged in with: cli for the command line,
// portal for a browser.
//
// +kubebuilder:validation:Enum=cli;portal
type SessionClient string

// The clients of a Session.
const (
	// SessionCLI is the command line. It has a secret that rotates at every refresh.
	SessionCLI SessionClient = "cli"
	// SessionPortal is a browser. It has a cookie.
	SessionPortal SessionClient = "portal"
)

// Session is one login of one User. The hub creates it when the identity provider has
// authenticated the User. It never holds a token or a secret in the clear: the secret of a
// Session is a MAC that the hub computes again when it is presented. The name is a version
// 7 UUID.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=`.spec.userRef.name`
// +kubebuilder:printcolumn:name="Client",type=string,JSONPath=`.spec.client`
// +kubebuilder:printcolumn:name="Last used",type=date,JSONPath=`.spec.lastUsedAt`
// +kubebuilder:printcolumn:name="Ended",type=date,JSONPath=`.spec.endedAt`
type Session struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the login and what was handed out through it. Set by the hub.
	Spec SessionSpec `json:"spec"`
}

// SessionSpec is the state of a Session.
type SessionSpec struct {
	// userRef refers to the User by metadata.name. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="userRef is immutable"
	UserRef NamedRef `json:"userRef"`
	// client is cli or portal. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="client is immutable"
	Client SessionClient `json:"client"`
	// description is the host name of the command line or the user agent of the browser, as
	// the client reported it. It is informational.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Description string `json:"description,omitempty"`
	// groups are the groups of the User in the newest ID token, with their prefix. They count
	// until the tokens in tokens have expired.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Groups []string `json:"groups,omitempty"`
	// email is the address in the newest ID token, if the identity provider has verified it.
	// It counts as long as groups do.
	// +optional
	// +kubebuilder:validation:MaxLength=254
	Email string `json:"email,omitempty"`
	// lastUsedAt is the time of the last use. It is written at most once in five minutes.
	LastUsedAt metav1.Time `json:"lastUsedAt"`
	// expiresAt is the time at which the Session ends even if it is in use
	// (--session-max-age).
	ExpiresAt metav1.Time `json:"expiresAt"`
	// endedAt is the time at which the Session was ended. Absent while it is not. The hub
	// removes the object when no token that was handed out through it is valid any more.
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
	// generation is the number of the current secret. It is 0 until the first secret is
	// handed out.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Generation int64 `json:"generation,omitempty"`
	// rotations are the secrets of the last minute, the current one included. A secret is
	// accepted for a minute after its successor was handed out.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Rotations []SessionRotation `json:"rotations,omitempty"`
	// code is what the client must present to get the first secret. Absent after it was
	// presented.
	// +optional
	Code *SessionCode `json:"code,omitempty"`
	// tokens are the ID tokens of the login and those that were handed out through the
	// Session, unless they have expired. They are refused from endedAt on.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tokens []SessionToken `json:"tokens,omitempty"`
	// idToken is the newest ID token, encrypted with the hub's session key. Clients that
	// refresh at the same time get the same one.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	IDToken []byte `json:"idToken,omitempty"`
}

// SessionRotation is the time at which a secret was handed out first.
type SessionRotation struct {
	// generation is the number of the secret.
	// +kubebuilder:validation:Minimum=1
	Generation int64 `json:"generation"`
	// at is the time at which it was handed out first.
	At metav1.MicroTime `json:"at"`
}

// SessionCode is an authorization code or a device code that was not redeemed yet.
type SessionCode struct {
	// hash is the SHA-256 hash of the code, in hexadecimal digits.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Hash string `json:"hash"`
	// challenge is the code_challenge of RFC 7636 with the method S256. Absent for a device
	// code.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Challenge string `json:"challenge,omitempty"`
	// redirectURI is the redirect_uri of the authorization request. Absent for a device
	// code.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	RedirectURI string `json:"redirectURI,omitempty"`
	// expiresAt is the time until which the code can be redeemed. A Session whose code was
	// not redeemed by then has ended.
	ExpiresAt metav1.Time `json:"expiresAt"`
}

// SessionToken is an ID token that was handed out through a Session.
type SessionToken struct {
	// hash is the SHA-256 hash of the token, in hexadecimal digits.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Hash string `json:"hash"`
	// expiresAt is the time at which the token expires.
	ExpiresAt metav1.Time `json:"expiresAt"`
}

// SessionList is a list of Sessions.
//
// +kubebuilder:object:root=true
type SessionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Session `json:"items"`
}
