package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// declared returns the routes of an API behind Declare, and counts what gets to their handlers.
func declared(reached *int) http.Handler {
	handle := httpapi.Handle(func(w http.ResponseWriter, _ *http.Request) error {
		*reached++
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
	members := func(http.Handler) http.Handler {
		return httpapi.Handler(func(http.ResponseWriter, *http.Request) error { return errs.New(errs.Forbidden, "no membership") })
	}
	r := chi.NewRouter()
	r.Use(middleware.GetHead)
	r.Get("/open", handle)
	r.Route("/api/", func(r chi.Router) {
		r.Use(httpapi.Parameters{"GET /api/orgs/{org}/audit": {"actor", "limit"}, "POST /api/enable": {"dryRun"}}.Declare)
		r.Get("/orgs/{org}/audit", handle)
		r.Delete("/orgs/{org}/audit", handle)
		r.Post("/enable", handle)
		r.With(members).Get("/foreign", handle)
	})
	return r
}

// The list would show everybody, and the dry run would change something.
func TestHandle_refusesAFilterThatIsNotOne(t *testing.T) {
	t.Parallel()
	const audit = "GET /api/orgs/o/audit?"
	long := strings.Repeat("secret", 100)
	for request, field := range map[string]string{
		audit + "actors=bob":                        "query:actors",
		audit + "Actor=bob":                         "query:Actor",
		audit + "actor=bob&org=x":                   "query:org",
		audit + "watch":                             "query:watch",
		audit + "=x":                                "query:",
		audit + "%61ctors=bob":                      "query:actors",
		audit + "actor=bob&actor=carol":             "query:actor",
		audit + "actor=bob&%61ctor=bob":             "query:actor",
		audit + "limit&limit":                       "query:limit",
		audit + "actor[]=bob":                       "query:actor[]",
		audit + "%zz":                               "query",
		audit + "actor=%zz":                         "query",
		audit + "actor=bob;limit=1":                 "query",
		audit + ";":                                 "query",
		audit + strings.Repeat("a=b&", 1000):        "query:a",
		audit + long:                                "query:" + long[:64] + "…",
		audit + "%ff=1":                             "query:�",
		"HEAD /api/orgs/o/audit?actors=bob":         "query:actors",
		"DELETE /api/orgs/o/audit?actor=bob":        "query:actor",
		"POST /api/enable?dryrun=true":              "query:dryrun",
		"POST /api/enable?dryRun=true&dryRun=false": "query:dryRun",
	} {
		reached := 0
		method, target, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		declared(&reached).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody))
		require.Equal(t, http.StatusBadRequest, w.Code, request)
		require.Zero(t, reached, request)
		var s metav1.Status
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &s), request)
		require.Len(t, s.Details.Causes, 1, request)
		require.Equal(t, field, s.Details.Causes[0].Field, request)
		require.Contains(t, s.Message, field, request)
		require.NotContains(t, w.Body.String(), long, "a name may be a secret")
	}
}

func TestHandle_serves(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{
		"no query":                "GET /api/orgs/o/audit",
		"an empty query":          "GET /api/orgs/o/audit?",
		"a parameter":             "GET /api/orgs/o/audit?actor=bob",
		"all of them":             "HEAD /api/orgs/o/audit?limit=1&actor=bob%3B%26actor%3Dcarol",
		"an empty parameter":      "GET /api/orgs/o/audit?actor=&limit",
		"any query, not declared": "GET /open?actors=bob&actors=bob&%zz",
	} {
		reached := 0
		method, target, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		declared(&reached).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody))
		require.Equal(t, http.StatusNoContent, w.Code, "%s: %s", name, w.Body)
		require.Equal(t, 1, reached, name)
	}
}

// A stranger gets one answer, whatever they send.
func TestHandle_saysNothingOfParametersToStrangers(t *testing.T) {
	t.Parallel()
	reached, answers := 0, map[string]bool{}
	for _, query := range []string{"", "?actor=bob", "?a=1&a=2", "?%zz"} {
		w := httptest.NewRecorder()
		declared(&reached).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/foreign"+query, http.NoBody))
		require.Equal(t, http.StatusForbidden, w.Code, query)
		answers[w.Body.String()] = true
	}
	require.Len(t, answers, 1)
	require.Zero(t, reached)
}
