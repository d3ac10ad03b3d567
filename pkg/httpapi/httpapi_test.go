package httpapi_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

type nested struct {
	Name  string `json:"name"`
	Inner struct {
		Count int `json:"count"`
	} `json:"inner"`
}

func read(contentType, body string, into any) error {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	return httpapi.Read(r, into)
}

func TestRead_acceptsAGoodBody(t *testing.T) {
	t.Parallel()
	for _, contentType := range []string{"application/json", "application/json; charset=UTF-8"} {
		var in nested
		require.NoError(t, read(contentType, ` {"name":"a","inner":{"count":3}} `, &in))
		require.Equal(t, "a", in.Name)
		require.Equal(t, 3, in.Inner.Count)
	}
}

func TestRead_refusesBadBodiesAndNamesTheField(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		contentType, body string
		code              errs.Code
		field             string
	}{
		"no content type":      {"", `{}`, errs.UnsupportedMediaType, ""},
		"a form":               {"application/x-www-form-urlencoded", `name=a`, errs.UnsupportedMediaType, ""},
		"another charset":      {"application/json; charset=utf-16", `{}`, errs.UnsupportedMediaType, ""},
		"empty":                {"application/json", ``, errs.Invalid, ""},
		"not JSON":             {"application/json", `{"name":`, errs.Invalid, ""},
		"an array":             {"application/json", `[]`, errs.Invalid, ""},
		"null":                 {"application/json", `null`, errs.Invalid, ""},
		"trailing data":        {"application/json", `{"name":"a"} {"name":"b"}`, errs.Invalid, ""},
		"unknown field":        {"application/json", `{"nam":"a"}`, errs.Invalid, "nam"},
		"unknown nested field": {"application/json", `{"inner":{"cuont":1}}`, errs.Invalid, "inner.cuont"},
		"another case":         {"application/json", `{"Name":"a"}`, errs.Invalid, "Name"},
		"duplicate field":      {"application/json", `{"name":"a","name":"b"}`, errs.Invalid, "name"},
		"wrong type":           {"application/json", `{"name":7}`, errs.Invalid, "name"},
		"wrong nested type":    {"application/json", `{"inner":{"count":"x"}}`, errs.Invalid, "inner.count"},
		"broken UTF-8":         {"application/json", "{\"name\":\"\xff\"}", errs.Invalid, ""},
		"a body bomb":          {"application/json", `{"name":"` + strings.Repeat("a", 70<<10) + `"}`, errs.TooLarge, ""},
		"a deep one":           {"application/json", strings.Repeat(`{"inner":`, 100) + `1` + strings.Repeat(`}`, 100), errs.Invalid, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var in nested
			err := read(c.contentType, c.body, &in)
			var e *errs.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.code, e.Code, e.Message)
			require.NotContains(t, e.Message, "Go ")
			require.NotContains(t, e.Message, "nested", "no name of a Go type")
			if c.field != "" {
				require.NotEmpty(t, e.Causes)
				require.Equal(t, c.field, e.Causes[0].Field)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{`{}`, `{"name":"a"}`, `{"name":"a","name":"b"}`, `[`, "\xff", `{"inner":{"count":1e99}}`, strings.Repeat("{", 200)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var in nested
		if err := read("application/json", body, &in); err != nil {
			code := errs.CodeOf(err)
			require.NotEqual(t, errs.Internal, code, "bad input is never our bug: %q", body)
		} else {
			require.True(t, json.Valid([]byte(body)))
		}
	})
}

func status(t *testing.T, err error) (*httptest.ResponseRecorder, metav1.Status) {
	t.Helper()
	w := httptest.NewRecorder()
	httpapi.WriteError(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody), err)
	var s metav1.Status
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &s))
	require.Equal(t, "Status", s.Kind)
	require.Equal(t, "v1", s.APIVersion)
	require.Equal(t, w.Code, int(s.Code))
	return w, s
}

func TestFlag_isTrueOrFalse(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"": "false", "?f": "false", "?f=": "false", "?f=false": "false", "?f=true": "true", "?g=maybe&f=true": "true",
		"?f=maybe": "refused", "?f=True": "refused",
	} {
		got, err := httpapi.Flag(httptest.NewRequest(http.MethodGet, "/"+query, http.NoBody), "f")
		if want != "refused" {
			require.NoError(t, err, query)
			require.Equal(t, want == "true", got, query)
			continue
		}
		var e *errs.Error
		require.ErrorAs(t, err, &e, query)
		require.Equal(t, errs.Invalid, e.Code)
		require.Equal(t, "query:f", e.Causes[0].Field)
	}
}

func TestWriteError_answersWithAStatus(t *testing.T) {
	t.Parallel()
	for code, want := range map[errs.Code]struct {
		status int
		reason metav1.StatusReason
	}{
		errs.Invalid: {400, "BadRequest"}, errs.Unauthenticated: {401, "Unauthorized"}, errs.Forbidden: {403, "Forbidden"},
		errs.NotFound: {404, "NotFound"}, errs.MethodNotAllowed: {405, "MethodNotAllowed"}, errs.Conflict: {409, "Conflict"},
		errs.AlreadyExists: {409, "AlreadyExists"}, errs.PreconditionFailed: {412, "PreconditionFailed"}, errs.TooLarge: {413, "RequestEntityTooLarge"},
		errs.UnsupportedMediaType: {415, "UnsupportedMediaType"}, errs.Unprocessable: {422, "Invalid"}, errs.TooManyRequests: {429, "TooManyRequests"},
		errs.Unavailable: {503, "ServiceUnavailable"}, errs.BadGateway: {502, "ServiceUnavailable"}, errs.Timeout: {504, "Timeout"},
	} {
		w, s := status(t, errs.New(code, "what and what to do", errs.Cause{Type: "T", Field: "f", Message: "m"}))
		require.Equal(t, want.status, w.Code)
		require.Equal(t, want.reason, s.Reason)
		require.Equal(t, "what and what to do", s.Message)
		require.Equal(t, []metav1.StatusCause{{Type: "T", Field: "f", Message: "m"}}, s.Details.Causes)
		require.Equal(t, want.status == 401, w.Header().Get("WWW-Authenticate") == "Bearer")
	}
}

// kubectl shows the reason of a refused discovery only if it is plain text.
func TestWriteError_answersDiscoveryInPlainText(t *testing.T) {
	t.Parallel()
	answer := func(code errs.Code, accept string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/clusters/c/api", http.NoBody)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		httpapi.WriteError(w, r, errs.New(code, "approval is pending"))
		return w
	}
	const discovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
	for _, code := range []errs.Code{errs.Forbidden, errs.NotFound} {
		w := answer(code, discovery)
		require.Equal(t, "approval is pending", w.Body.String())
		require.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
		status := answer(code, "application/json")
		require.Equal(t, status.Code, w.Code)
		require.Equal(t, "application/json", status.Header().Get("Content-Type"))
	}
	for _, code := range []errs.Code{errs.Unauthenticated, errs.Unavailable, errs.TooManyRequests, errs.Internal} {
		require.Equal(t, "application/json", answer(code, discovery).Header().Get("Content-Type"), "what kubectl understands by itself stays a Status")
	}
}

func TestMethodNotAllowed_listsWhatThePathHas(t *testing.T) {
	t.Parallel()
	r := chi.NewRouter()
	r.MethodNotAllowed(httpapi.MethodNotAllowed)
	r.Route("/api", func(r chi.Router) {
		served := func(http.ResponseWriter, *http.Request) {}
		r.Get("/things", served)
		r.Post("/things", served)
		r.Delete("/things/{thing}", served)
	})
	for path, allow := range map[string]string{"/api/things": "GET, HEAD, POST", "/api/things/a": "DELETE", "/api/things/a%2Fb": "DELETE"} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodPut, path, http.NoBody))
		require.Equal(t, http.StatusMethodNotAllowed, w.Code, path)
		require.Equal(t, []string{allow}, w.Header().Values("Allow"), path)
	}
	w := httptest.NewRecorder()
	httpapi.MethodNotAllowed(w, httptest.NewRequest(http.MethodPut, "/", http.NoBody))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code, "without a router, too")
}

func TestWriteError_internalTextNeverLeaves(t *testing.T) {
	t.Parallel()
	for _, err := range []error{errors.New("secret-detail"), errs.Wrap(errs.Internal, errors.New("secret-detail"), "secret-detail")} {
		w, s := status(t, err)
		require.Equal(t, 500, w.Code)
		require.NotContains(t, w.Body.String(), "secret-detail")
		require.Contains(t, s.Message, "X-Request-Id")
	}
	w, _ := status(t, errs.Wrap(errs.Unavailable, errors.New("secret-detail"), "try again"))
	require.NotContains(t, w.Body.String(), "secret-detail")
}

func TestWriteError_retryAfterIsInWholeSeconds(t *testing.T) {
	t.Parallel()
	e := errs.New(errs.Unavailable, "later")
	e.RetryAfter = 1200 * time.Millisecond
	w, s := status(t, e)
	require.Equal(t, "2", w.Header().Get("Retry-After"))
	require.Equal(t, int32(2), s.Details.RetryAfterSeconds)
}
