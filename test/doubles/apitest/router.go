package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/config"
	"github.com/faroshq/kedge-hub/pkg/api/openapi"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const tokenPrefix = "token-of-"

// Expiring ends the token of a person that expires at Epoch.
const Expiring = "-expiring"

// Verified ends the token of a person that says that the identity provider has verified their address.
const Verified = "-verified"

// IdleTimeout is the time without a use after which a Session ends.
const IdleTimeout = time.Hour

// Token returns the bearer token of a person in the world.
func Token(user string) string { return tokenPrefix + user }

// Tree is the tree under root:kedge.
func Tree(t testing.TB) tenancy.Tree {
	tree, err := tenancy.NewTree("root:kedge")
	require.NoError(t, err)
	return tree
}

type tokens struct{}

func (tokens) Authenticate(_ context.Context, token string) (*auth.Identity, bool, error) {
	name, ok := strings.CutPrefix(token, tokenPrefix)
	name, expires := strings.CutSuffix(name, Expiring)
	name, verified := strings.CutSuffix(name, Verified)
	id := &auth.Identity{Kind: auth.Person, Issuer: "static", Subject: name, Username: name, Credential: token}
	if verified {
		id.VerifiedEmail = strings.ToUpper(name[:1]) + name[1:] + "@Example.com"
	}
	if expires {
		id.ExpiresAt = Epoch().Time
	}
	return id, ok, nil
}

// Authentication is how the hub knows the people in the world by their tokens. Nobody signs up.
func (w *World) Authentication() httpmw.Authentication {
	return httpmw.Authentication{
		Tokens: tokens{}, People: w, Sessions: w, SignUp: func(context.Context, *auth.Identity, bool) (*v1alpha1.User, error) {
			return nil, errs.New(errs.Forbidden, "nobody signs up here")
		},
		Admins: httpmw.Admins{Users: []string{Operator}}, Auditors: httpmw.Admins{Users: []string{Auditor}},
		SessionIdleTimeout: IdleTimeout, Clock: clocktesting.NewFakePassiveClock(Now()),
	}
}

// documented is the OpenAPI document of the hub. It is parsed once in a process.
var documented = sync.OnceValues(func() (*openapi.Document, error) { return openapi.New(config.OpenAPI) })

// Router returns the routes that mount adds behind the middleware of the hub, and at the root those of
// open, which need no login. It compares every request and every answer with the OpenAPI document.
func Router(w *World, mount func(chi.Router), open ...func(chi.Router)) http.Handler {
	metrics, err := httpmw.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		panic(err)
	}
	r := chi.NewRouter()
	r.Use(httpmw.Observe(zap.NewNop(), metrics, nil))
	r.NotFound(httpapi.NotFound)
	r.MethodNotAllowed(httpapi.MethodNotAllowed)
	document, err := documented()
	if err != nil {
		panic(err)
	}
	authentication := w.Authentication()
	for _, mount := range open {
		mount(r.With(httpmw.Recognize(authentication), document.Parameters.Declare))
	}
	r.Route("/api/", func(r chi.Router) {
		audited := httpmw.NewAuditor(w.audit, clocktesting.NewFakePassiveClock(Now()), nil, nil, nil).Audit
		r.Use(audited, httpmw.Authenticate(authentication), httpmw.Limited, document.Parameters.Declare)
		mount(r)
	})
	return AsDocumented(r)
}

// Call is one request. Org and Workspace are the tenant headers, which are not sent if they
// are empty. A body is sent as JSON unless ContentType is set.
type Call struct {
	As, Method, Path, Body string
	Org, Workspace         string
	ContentType            string
	Header                 http.Header
	// Context is the context of the request; context.Background() if nil.
	Context context.Context
}

// Answer is the answer to a Call.
type Answer struct {
	Code   int
	Header http.Header
	Body   string
}

// Do sends the request.
func (c Call) Do(handler http.Handler) Answer {
	ctx := c.Context
	if ctx == nil {
		ctx = context.Background()
	}
	r := httptest.NewRequestWithContext(ctx, c.Method, c.Path, strings.NewReader(c.Body))
	for name, values := range c.Header {
		r.Header[name] = values
	}
	if c.As != "" {
		r.Header.Set("Authorization", "Bearer "+Token(c.As))
	}
	if c.Org != "" {
		r.Header.Set(httpmw.OrgHeader, c.Org)
	}
	if c.Workspace != "" {
		r.Header.Set(httpmw.WorkspaceHeader, c.Workspace)
	}
	switch {
	case c.ContentType != "":
		r.Header.Set("Content-Type", c.ContentType)
	case c.Body != "":
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	// It differs between equal answers.
	w.Header().Del(httpmw.RequestIDHeader)
	return Answer{Code: w.Code, Header: w.Header(), Body: w.Body.String()}
}

// Into decodes the body of an answer with the code.
func (a Answer) Into(t testing.TB, code int, into any) {
	t.Helper()
	require.Equal(t, code, a.Code, a.Body)
	require.Equal(t, "application/json", a.Header.Get("Content-Type"))
	require.NoError(t, json.NewDecoder(bytes.NewBufferString(a.Body)).Decode(into), a.Body)
}

// Object returns the body of an answer with the code as a map.
func (a Answer) Object(t testing.TB, code int) map[string]any {
	t.Helper()
	var o map[string]any
	a.Into(t, code, &o)
	return o
}

// Items returns a field of each item of a list.
func (a Answer) Items(t testing.TB, field string) []string {
	t.Helper()
	var list struct{ Items []map[string]any }
	a.Into(t, http.StatusOK, &list)
	values := []string{}
	for _, item := range list.Items {
		value, ok := item[field].(string)
		require.True(t, ok, "%v", item)
		values = append(values, value)
	}
	return values
}

// Refused checks that the answer is a metav1.Status of the code, and returns it.
func (a Answer) Refused(t testing.TB, code int) metav1.Status {
	t.Helper()
	var status metav1.Status
	a.Into(t, code, &status)
	require.Equal(t, "Status", status.Kind)
	require.Equal(t, metav1.StatusFailure, status.Status)
	require.EqualValues(t, code, status.Code)
	require.NotEmpty(t, status.Message)
	return status
}

// RefusedField checks that the answer is a 400 that names the field.
func (a Answer) RefusedField(t testing.TB, field string) metav1.Status {
	t.Helper()
	status := a.Refused(t, http.StatusBadRequest)
	require.NotNil(t, status.Details, a.Body)
	require.Len(t, status.Details.Causes, 1, a.Body)
	require.Equal(t, field, status.Details.Causes[0].Field)
	require.Contains(t, status.Message, field)
	return status
}

// RefusedCause checks that the answer is a 403 with a cause of that type.
func (a Answer) RefusedCause(t testing.TB, cause string) metav1.Status {
	t.Helper()
	status := a.Refused(t, http.StatusForbidden)
	require.Equal(t, metav1.StatusReasonForbidden, status.Reason)
	require.NotNil(t, status.Details, a.Body)
	require.Len(t, status.Details.Causes, 1, a.Body)
	require.EqualValues(t, cause, status.Details.Causes[0].Type)
	return status
}
