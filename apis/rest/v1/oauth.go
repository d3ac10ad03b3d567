package v1

// Tokens is the answer of RFC 6749, section 5.1. AccessToken is the provider's ID token, which the
// hub and kcp take as bearer token.
type Tokens struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"`
	RefreshToken string `json:"refresh_token"`
}

// Device is the answer of RFC 8628, section 3.2.
type Device struct {
	DeviceCode              string `json:"device_code"`
	UserCode                string `json:"user_code"`
	VerificationURI         string `json:"verification_uri"`
	VerificationURIComplete string `json:"verification_uri_complete"`
	ExpiresIn               int64  `json:"expires_in"`
	Interval                int64  `json:"interval"`
}

// OAuthError is the error answer of RFC 6749, section 5.2.
type OAuthError struct {
	Error       string `json:"error"`
	Description string `json:"error_description,omitempty"`
}

// AuthorizationServer is the document of RFC 8414. A hub without an identity provider of people has
// only the token endpoint, for jobs.
type AuthorizationServer struct {
	Issuer                        string   `json:"issuer"`
	AuthorizationEndpoint         string   `json:"authorization_endpoint,omitempty"`
	TokenEndpoint                 string   `json:"token_endpoint"`
	DeviceAuthorizationEndpoint   string   `json:"device_authorization_endpoint,omitempty"`
	RevocationEndpoint            string   `json:"revocation_endpoint,omitempty"`
	ResponseTypes                 []string `json:"response_types_supported"`
	ResponseModes                 []string `json:"response_modes_supported,omitempty"`
	GrantTypes                    []string `json:"grant_types_supported"`
	CodeChallengeMethods          []string `json:"code_challenge_methods_supported,omitempty"`
	TokenEndpointAuthMethods      []string `json:"token_endpoint_auth_methods_supported"`
	RevocationEndpointAuthMethods []string `json:"revocation_endpoint_auth_methods_supported,omitempty"`
	IssInAnswers                  bool     `json:"authorization_response_iss_parameter_supported,omitempty"`
}
