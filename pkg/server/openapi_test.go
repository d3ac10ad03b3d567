package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/api/login"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/health"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/storage"
	"github.com/faroshq/kedge-hub/test/contract"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
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

// TestOpenAPI_hasTheAnswerOfAFullStore sends the first request of a person to each route of the API while the store takes
// nothing new: the hub would have to store the person. This covers what a route itself stores, because only routes behind
// the login write. The tests of pkg/api/login and pkg/proxy hold the other routes to the document.
func TestOpenAPI_hasTheAnswerOfAFullStore(t *testing.T) {
	t.Parallel()
	document, err := contract.Load()
	require.NoError(t, err)
	limits, err := httpmw.NewLimits(clock.RealClock{}, prometheus.NewRegistry())
	require.NoError(t, err)
	auditor := httpmw.NewAuditor(func(audit.Event) error { return nil }, clock.RealClock{}, func(w storage.Write) error {
		if w == storage.Growth {
			return errs.New(errs.InsufficientStorage, "the store is full")
		}
		return nil
	}, nil, nil)
	world := apitest.NewWorld()
	people := world.Authentication()
	people.SignUp = auditor.SignUp(nil, world, httpmw.RegistrationOpen, limits.SignUps(0, 0), nil)
	r := unguarded()
	r.authenticate = httpmw.Authenticate(people)
	r.recognize = func(http.Handler) http.Handler {
		return httpmw.Recognize(people)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	}
	app, full := r.router(), 0
	for _, o := range document.Operations() {
		if !strings.HasPrefix(o.Pattern, "/api/") {
			continue
		}
		in := httptest.NewRequestWithContext(t.Context(), o.Method, o.Pattern, http.NoBody)
		in.Header.Set("Authorization", "Bearer "+apitest.Token("somebody-new"))
		w := httptest.NewRecorder()
		app.ServeHTTP(w, in)
		answered := w.Code == http.StatusInsufficientStorage
		require.Equal(t, answered, document.Answers(o, http.StatusInsufficientStorage), "%v answers %d: %s", o, w.Code, w.Body)
		if answered {
			full++
		}
	}
	require.Greater(t, full, 100)
}

var proxied = map[string]bool{http.MethodGet: true, http.MethodPost: true, http.MethodPut: true, http.MethodPatch: true, http.MethodDelete: true}
