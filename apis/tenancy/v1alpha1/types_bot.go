package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Bot is a ServiceAccount of one Workspace for programs such as CI. It lives in the
// workspace of the Organization, where tenants cannot write; the ServiceAccount, its binding
// and the Secrets of its tokens in the Workspace are derived from it. The name is a UUID,
// and that of the ServiceAccount, too.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$')",message="the name of a Bot is a UUID in canonical lower case"
// +kubebuilder:printcolumn:name="Workspace",type=string,JSONPath=`.spec.workspaceRef.name`
// +kubebuilder:printcolumn:name="Display name",type=string,JSONPath=`.spec.displayName`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.role`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
type Bot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the Workspace, the role and the tokens of the Bot.
	Spec BotSpec `json:"spec"`
	// status is the observed state of the Bot. Set by the hub.
	// +optional
	Status BotStatus `json:"status,omitempty"`
}

// BotSpec is the desired state of a Bot.
type BotSpec struct {
	// workspaceRef refers to the Workspace by its UUID. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="workspaceRef is immutable"
	WorkspaceRef NamedRef `json:"workspaceRef"`
	// displayName is the name shown to people, 1 to 128 characters. It need not be unique.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	DisplayName string `json:"displayName"`
	// role is the role of the Bot in the Workspace: admin, member or viewer.
	Role Role `json:"role"`
	// tokens are the tokens that were issued and not revoked. A token that is not listed
	// here is refused.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=256
	Tokens []BotToken `json:"tokens,omitempty"`
	// trust are the workloads of identity providers that get tokens of the Bot for their own.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=20
	Trust []BotTrust `json:"trust,omitempty"`
	// rightsGeneration is raised when the role is lowered and when a rule of trust is removed. An
	// accepted change that gives rights and is from before is not carried out any more.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="rightsGeneration never decreases"
	RightsGeneration int64 `json:"rightsGeneration,omitempty"`
	// generation is raised when all tokens are revoked. The hub then recreates the
	// ServiceAccount under the same name.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="generation never decreases"
	Generation int64 `json:"generation,omitempty"`
}

// BotToken is a token of a Bot. The token itself is stored nowhere.
type BotToken struct {
	// id identifies the token: a UUID in canonical lower case.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`
	ID string `json:"id"`
	// name is the name shown to people, at most 128 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`
	// createdAt is the time of the request.
	CreatedAt metav1.Time `json:"createdAt"`
	// expiresAt is the time at which the token expires.
	ExpiresAt metav1.Time `json:"expiresAt"`
	// secretUID is the metadata.uid of the Secret that the token is bound to. Empty until
	// the Secret exists; the token is refused until then.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	SecretUID string `json:"secretUID,omitempty"`
	// trust is the id of the trust rule that a job got the token by. The token is refused once
	// the Bot has no such rule. Absent means that a person issued the token.
	// +optional
	// +kubebuilder:validation:MaxLength=36
	Trust string `json:"trust,omitempty"`
	// rotatedTo is the id of the token that replaced this one. The token works until expiresAt, which
	// the rotation brought forward, and is not rotated again.
	// +optional
	// +kubebuilder:validation:MaxLength=36
	RotatedTo string `json:"rotatedTo,omitempty"`
}

// BotTrust is a rule: a job whose ID token has the issuer, the audience and the claims gets a token
// of the Bot.
type BotTrust struct {
	// id identifies the rule: a UUID in canonical lower case.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`
	ID string `json:"id"`
	// issuer is the iss of the ID token.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Issuer string `json:"issuer"`
	// audience must be in the aud of the ID token. Absent means the external URL of the hub.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Audience string `json:"audience,omitempty"`
	// claims must be in the ID token with exactly these values.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	Claims map[string]TrustedValue `json:"claims"`
	// createdBy is the metadata.name of the User who made the rule.
	// +kubebuilder:validation:MaxLength=253
	CreatedBy string `json:"createdBy"`
	// createdAt is the time of the request.
	CreatedAt metav1.Time `json:"createdAt"`
}

// TrustedValue is the value of a claim, 1 to 512 characters.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
type TrustedValue string

// BotStatus is the observed state of a Bot.
type BotStatus struct {
	CommonStatus `json:",inline"`
	// serviceAccountUID is the metadata.uid of the ServiceAccount whose tokens are accepted.
	// Set by the hub.
	// +optional
	ServiceAccountUID string `json:"serviceAccountUID,omitempty"`
	// serviceAccountGeneration is the spec.generation for which that ServiceAccount was
	// created. Tokens are refused while it differs from spec.generation. Set by the hub.
	// +optional
	ServiceAccountGeneration int64 `json:"serviceAccountGeneration,omitempty"`
	// authorizedRole is the highest role by which kcp may authorize the Bot. It is raised before
	// the ServiceAccount is bound to a higher role, and lowered when kcp refuses what only the
	// higher role permits. Tokens are refused while it is higher than spec.role. Set by the hub.
	// +optional
	AuthorizedRole Role `json:"authorizedRole,omitempty"`
	// lastTokenIssuedAt is the time at which the last token was issued. Set by the hub.
	// +optional
	LastTokenIssuedAt *metav1.Time `json:"lastTokenIssuedAt,omitempty"`
	// trust is what happened to the rules in spec.trust. Set by the hub.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=20
	Trust []BotTrustStatus `json:"trust,omitempty"`
	// tokens is what happened to the tokens in spec.tokens. Set by the hub.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=256
	Tokens []BotTokenStatus `json:"tokens,omitempty"`
}

// BotTokenStatus is what happened to a token of a Bot.
type BotTokenStatus struct {
	// id is that of the token.
	// +kubebuilder:validation:MaxLength=36
	ID string `json:"id"`
	// lastUsedAt is the time of a use: the first one, or the last one up to an hour ago.
	LastUsedAt metav1.Time `json:"lastUsedAt"`
}

// BotTrustStatus is what happened to a trust rule.
type BotTrustStatus struct {
	// id is that of the rule.
	// +kubebuilder:validation:MaxLength=36
	ID string `json:"id"`
	// lastUsedAt is the time at which a job last got a token by the rule.
	// +optional
	LastUsedAt *metav1.Time `json:"lastUsedAt,omitempty"`
	// lastRefusal is the last genuine ID token of the issuer that no rule of the Bot let in.
	// +optional
	LastRefusal *TrustRefusal `json:"lastRefusal,omitempty"`
}

// TrustRefusal is an ID token that a trust rule did not let in.
type TrustRefusal struct {
	// at is the time of the refusal.
	At metav1.Time `json:"at"`
	// claim is the name of the claim that did not match.
	// +kubebuilder:validation:MaxLength=64
	Claim string `json:"claim"`
}

// BotList is a list of Bots.
//
// +kubebuilder:object:root=true
type BotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Bot `json:"items"`
}
