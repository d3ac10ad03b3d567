package login

import (
	"net/http"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// deviceGrant is the grant_type of RFC 8628.
const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// metadata answers with the document of RFC 8414. Without an identity provider of people it has only
// what jobs need.
func (h *Handler) metadata(w http.ResponseWriter, _ *http.Request) error {
	m := rest.AuthorizationServer{
		Issuer: h.ExternalURL, TokenEndpoint: h.ExternalURL + tokenPath,
		ResponseTypes: []string{}, TokenEndpointAuthMethods: []string{"none"},
	}
	if h.Provider != nil {
		m.AuthorizationEndpoint = h.ExternalURL + authorizePath
		m.DeviceAuthorizationEndpoint = h.ExternalURL + devicePath
		m.RevocationEndpoint = h.ExternalURL + revokePath
		m.ResponseTypes, m.ResponseModes = []string{"code"}, []string{"query"}
		m.GrantTypes = []string{"authorization_code", "refresh_token", deviceGrant}
		m.CodeChallengeMethods = []string{"S256"}
		m.RevocationEndpointAuthMethods = []string{"none"}
		m.IssInAnswers = true
	}
	if h.Jobs != nil {
		m.GrantTypes = append(m.GrantTypes, exchangeGrant)
	}
	return httpapi.Write(w, http.StatusOK, m)
}
