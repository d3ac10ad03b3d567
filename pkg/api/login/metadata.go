package login

import (
	"net/http"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// deviceGrant is the grant_type of RFC 8628.
const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// metadata answers with the document of RFC 8414.
func (h *Handler) metadata(w http.ResponseWriter, _ *http.Request) error {
	return httpapi.Write(w, http.StatusOK, rest.AuthorizationServer{
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
