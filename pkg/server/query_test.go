package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	hubconfig "github.com/faroshq/kedge-hub/config"
	"github.com/faroshq/kedge-hub/pkg/api/openapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/test/contract"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// declaring returns the routes of a hub that refuses parameters which the OpenAPI document does not have.
func declaring(t *testing.T) routes {
	t.Helper()
	document, err := openapi.New(hubconfig.OpenAPI)
	require.NoError(t, err)
	r := unguarded()
	r.parameters = document.Parameters
	return r
}

// An endpoint that took any query would do something else than its caller thinks.
func TestAPI_everyEndpointRefusesAParameterThatItDoesNotHave(t *testing.T) {
	t.Parallel()
	document, err := contract.Load()
	require.NoError(t, err)
	r, endpoints := declaring(t), 0
	type middleware = func(http.Handler) http.Handler
	require.NoError(t, chi.Walk(r.router(), func(method, pattern string, endpoint http.Handler, _ ...middleware) error {
		if !strings.HasPrefix(pattern, "/api/") || strings.HasPrefix(pattern, "/api/v1") {
			return nil
		}
		endpoints++
		routing := chi.NewRouteContext()
		routing.RoutePatterns = []string{pattern}
		routed := context.WithValue(t.Context(), chi.RouteCtxKey, routing)
		in := httptest.NewRequestWithContext(routed, method, "/?undeclared=1", http.NoBody)
		w := httptest.NewRecorder()
		r.parameters.Declare(endpoint).ServeHTTP(w, in)
		require.Equal(t, http.StatusBadRequest, w.Code, "%s %s: %s", method, pattern, w.Body)
		require.Contains(t, w.Body.String(), `"field":"query:undeclared"`, "%s %s", method, pattern)
		o := contract.Operation{Method: method, Pattern: pattern}
		require.True(t, document.Answers(o, http.StatusBadRequest), "%v lacks 400", o)
		return nil
	}))
	require.Greater(t, endpoints, 100)
}

// The routes behind the login, and the one that needs none.
func TestAPI_refusesAParameterThatARouteDoesNotHave(t *testing.T) {
	t.Parallel()
	r, people := declaring(t), apitest.NewWorld().Authentication()
	r.authenticate, r.recognize = httpmw.Authenticate(people), httpmw.Recognize(people)
	app := r.router()
	for target, code := range map[string]int{
		"GET /api/users/me?undeclared=1": http.StatusBadRequest, "POST /api/orgs?undeclared=1": http.StatusBadRequest,
		"GET /api/orgs?limit=1&limit=2": http.StatusBadRequest, "DELETE /api/users/me?%zz": http.StatusBadRequest,
		"GET /api/invitations/i?undeclared=1": http.StatusBadRequest,
		"GET /api/nowhere?undeclared=1":       http.StatusNotFound, "PUT /api/orgs?undeclared=1": http.StatusMethodNotAllowed,
	} {
		method, path, _ := strings.Cut(target, " ")
		in := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
		in.Header.Set("Authorization", "Bearer "+apitest.Token(apitest.Admin))
		w := httptest.NewRecorder()
		app.ServeHTTP(w, in)
		require.Equal(t, code, w.Code, "%s: %s", target, w.Body)
	}
	require.Equal(t, http.StatusUnauthorized, answer(t, app, http.MethodGet, "/api/users/me?undeclared=1").Code)
}
