package server

import (
	"net/http"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/api/login"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/health"
	"github.com/faroshq/kedge-hub/test/contract"
)

// TestOpenAPI_hasTheRoutesOfTheRouter holds config/openapi/openapi.yaml to the router, in both
// directions. The document says for all GET routes at once that they serve HEAD.
func TestOpenAPI_hasTheRoutesOfTheRouter(t *testing.T) {
	t.Parallel()
	document, err := contract.Load()
	require.NoError(t, err)
	for name, in := range map[string]*login.Handler{"with an identity provider": {Provider: auth.Login{}}, "without": {}} {
		r := unguarded()
		r.login = in
		app := r.router()
		served := map[contract.Operation]bool{}
		for _, router := range []chi.Routes{app, health.NewFront(health.NewChecks(), http.NotFoundHandler()).Routes()} {
			require.NoError(t, chi.Walk(router, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
				switch pattern {
				case "/api", "/apis", "/apis/*", "/services", "/services/*", "/api/v1", "/api/v1/*":
					// They answer 404 and say where the Kubernetes API is.
				case "/clusters/*":
					// The route takes every method and refuses those that Kubernetes does not have.
					if proxied[method] {
						served[contract.Operation{Method: method, Pattern: pattern}] = true
					}
				default:
					served[contract.Operation{Method: method, Pattern: pattern}] = true
				}
				return nil
			}))
		}
		documented := map[contract.Operation]bool{}
		for _, o := range document.Operations() {
			documented[o] = true
			require.True(t, served[o], "openapi.yaml has %v, and no hub %s", o, name)
		}
		for o := range served {
			require.True(t, documented[o], "add %v to config/openapi/openapi.yaml", o)
		}
	}
}

var proxied = map[string]bool{http.MethodGet: true, http.MethodPost: true, http.MethodPut: true, http.MethodPatch: true, http.MethodDelete: true}
