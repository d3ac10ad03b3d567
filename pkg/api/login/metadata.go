package login

import (
	"net/http"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// deviceGrant is the grant_type of RFC 8628.
const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// metadata is the document of RFC 8414.
type metadata struct {
	Issuer                        string   `json:"issuer"`
	AuthorizationEndpoint         string   `json:"authorization_endpoint"`
	TokenEndpoint                 string   `json:"token_endpoint"`
	DeviceAuthorizationEndpoint   string   `json:"device_authorization_endpoint"`
	RevocationEndpoint            string   `json:"revocation_endpoint"`
	ResponseTypes                 []string `json:"response_types_supported"`
	ResponseModes                 []string `json:"response_modes_supported"`
	GrantTypes                    []string `json:"grant_types_supported"`
	CodeChallengeMethods          []string `json:"code_challenge_methods_supported"`
	TokenEndpointAuthMethods      []string `json:"token_endpoint_auth_methods_supported"`
	RevocationEndpointAuthMethods []string `json:"revocation_endpoint_auth_methods_supported"`
	IssInAnswers                  bool     `json:"authorization_response_iss_parameter_supported"`
}

func (h *Handler) metadata(w http.ResponseWriter, _ *http.Request) error {
	return httpapi.Write(w, http.StatusOK, metadata{
		Issuer:                        h.ExternalURL,
		AuthorizationEndpoint:         h.ExternalURL + authorizePath,
		TokenEndpoint:                 h.ExternalURL + tokenPath,
		DeviceAuthorizationEndpoint:   h.ExternalURL + devicePath,
		RevocationEndpoint:            h.ExternalURL + revokePath,
		ResponseTypes:                 []string{"code"},
		ResponseModes:                 []string{"query"},
		GrantTypes:                    []string{"authorization_code", "refresh_token", deviceGrant},
		CodeChallengeMethods:          []string{"S256"},
		TokenEndpointAuthMethods:      []string{"none"},
		RevocationEndpointAuthMethods: []string{"none"},
		IssInAnswers:                  true,
	})
}
