package client_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

func refusal(w http.ResponseWriter, code int, message string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "message": message})
}

func clientOf(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	hub := httptest.NewServer(h)
	t.Cleanup(hub.Close)
	c, err := client.New(client.Config{Server: hub.URL, Token: client.StaticToken("token"), UserAgent: "test"})
	require.NoError(t, err)
	return c
}

func TestDo_retriesWhatIsSafeToRepeat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method     string
		code       int
		retryAfter string
		tries      int32
	}{
		{http.MethodGet, http.StatusServiceUnavailable, "", 2},
		{http.MethodGet, http.StatusBadGateway, "", 2},
		{http.MethodGet, http.StatusTooManyRequests, "0", 2},
		{http.MethodDelete, http.StatusServiceUnavailable, "0", 2},
		{http.MethodDelete, http.StatusTooManyRequests, "0", 2},
		{http.MethodPatch, http.StatusServiceUnavailable, "0", 2},
		{http.MethodDelete, http.StatusServiceUnavailable, "", 1},
		{http.MethodPatch, http.StatusServiceUnavailable, "soon", 1},
		{http.MethodDelete, http.StatusBadGateway, "0", 1},
		{http.MethodDelete, http.StatusConflict, "0", 1},
		{http.MethodPost, http.StatusServiceUnavailable, "0", 1},
		{http.MethodPost, http.StatusTooManyRequests, "0", 1},
	} {
		t.Run(c.method+" "+http.StatusText(c.code)+" "+c.retryAfter, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int32
			api := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
				// What is sent again is all of it.
				raw, err := io.ReadAll(r.Body)
				if err != nil || string(raw) != `{"a":"b"}` || r.URL.RawQuery != "q=1" {
					refusal(w, http.StatusTeapot, "half a request")
					return
				}
				if tries.Add(1) > 1 {
					w.WriteHeader(http.StatusNoContent)
					return
				}
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}
				refusal(w, c.code, "away")
			})
			a, err := api.Do(t.Context(), client.Request{Method: c.method, Path: "/x", Query: url.Values{"q": {"1"}}, Body: map[string]string{"a": "b"}})
			require.Equal(t, c.tries, tries.Load())
			if c.tries > 1 {
				require.NoError(t, err)
				require.Equal(t, http.StatusNoContent, a.Code)
			} else {
				require.EqualError(t, err, "away")
			}
		})
	}
}

func TestDo_saysThatARepeatedDeleteMayHaveWorked(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	api := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		if tries.Add(1) == 1 {
			w.Header().Set("Retry-After", "0")
			refusal(w, http.StatusServiceUnavailable, "away")
			return
		}
		refusal(w, http.StatusNotFound, "bob is not a member")
	})
	_, err := api.Do(t.Context(), client.Request{Method: http.MethodDelete, Path: "/x"})
	require.EqualError(t, err, "bob is not a member; an earlier try of this request may have been carried out all the same")
	_, err = api.Do(t.Context(), client.Request{Method: http.MethodDelete, Path: "/x"})
	require.EqualError(t, err, "bob is not a member", "of a first try there is nothing to say")
}

func TestDo_tellsAHangUpFromAFailedDial(t *testing.T) {
	t.Parallel()
	api := clientOf(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, err := api.Do(t.Context(), client.Request{Method: http.MethodDelete, Path: "/x"})
	var away *client.UnreachableError
	require.ErrorAs(t, err, &away)
	require.Regexp(t, `^the hub at http://127\.0\.0\.1:\d+ gave no answer: EOF$`, err.Error())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = api.Do(ctx, client.Request{Method: http.MethodGet, Path: "/x"})
	require.ErrorIs(t, err, context.Canceled, "an interrupt is still one")
}

func TestDo_retriesACreationWithAKey(t *testing.T) {
	t.Parallel()
	var keys []string
	api := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if keys = append(keys, r.Header.Get("Idempotency-Key")); len(keys) == 1 {
			w.Header().Set("Retry-After", "0")
			refusal(w, http.StatusServiceUnavailable, "away")
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"uuid":"o","phase":"Ready"}`)
	})
	_, err := api.Orgs().Create(t.Context(), rest.CreateRequest{DisplayName: "ACME"})
	require.NoError(t, err)
	require.NotEmpty(t, keys[0])
	require.Equal(t, keys[0], keys[1], "the same creation")
	_, err = api.Orgs().Create(t.Context(), rest.CreateRequest{DisplayName: "ACME"}, client.IdempotencyKey("mine"))
	require.NoError(t, err)
	require.Equal(t, "mine", keys[2])
}

// A path that a proxy resolves to another one must not be sent.
func TestDo_refusesPathsWithDots(t *testing.T) {
	t.Parallel()
	api := clientOf(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) })
	for _, name := range []string{"", ".", ".."} {
		_, err := api.Org("o").Members().Delete(t.Context(), name)
		require.ErrorContains(t, err, "missing", name)
		_, err = api.Orgs().Get(t.Context(), name)
		require.Error(t, err, name)
	}
	_, err := api.Org("o").Members().Get(t.Context(), "a/b")
	require.NoError(t, err)
}

func TestError_isAnAPIStatus(t *testing.T) {
	t.Parallel()
	api := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "r1")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"kind":"Status","reason":"Conflict","code":409,"message":"no","details":{"causes":[{"reason":"SoleAdmin","field":"f","message":"m"}]}}`)
	})
	_, err := api.Org("o").Members().Delete(t.Context(), "bob")
	require.True(t, apierrors.IsConflict(err))
	var refused *client.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusConflict, refused.Code())
	require.Equal(t, "r1", refused.RequestID)
	require.Equal(t, []metav1.StatusCause{{Type: "SoleAdmin", Field: "f", Message: "m"}}, refused.Causes())
	require.EqualError(t, err, "no")
}

func TestError_saysWhatAnswersIfNoHubDoes(t *testing.T) {
	t.Parallel()
	api := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "<html>")
	})
	_, err := api.Me(t.Context())
	require.EqualError(t, err, "the server answered 400 Bad Request; is it a kedge-hub?")
	var refused *client.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusBadRequest, refused.Code())
}

func TestNew_refusesAServerThatWouldSeeTheTokenInClear(t *testing.T) {
	t.Parallel()
	for server, good := range map[string]bool{
		"https://hub.example.com": true, "https://hub.example.com/": true, "http://127.0.0.1:1": true, "http://localhost:1": true, "http://[::1]:1": true,
		"http://hub.example.com": false, "hub.example.com": false, "": false, "https://": false, "https://hub?x=y": false, "ftp://127.0.0.1": false,
	} {
		_, err := client.New(client.Config{Server: server, Token: client.StaticToken("t")})
		require.Equal(t, good, err == nil, server)
	}
	_, err := client.New(client.Config{Server: "https://hub.example.com"})
	require.ErrorContains(t, err, "token")
}

func TestCertificateError_namesWhatIsWrong(t *testing.T) {
	t.Parallel()
	hub := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"name":"alice"}`) }))
	t.Cleanup(hub.Close)
	c := client.Config{Server: hub.URL, Token: client.StaticToken("t")}
	api, err := client.New(c)
	require.NoError(t, err)
	_, err = api.Me(t.Context())
	var wrong *client.CertificateError
	require.ErrorAs(t, err, &wrong)
	require.True(t, wrong.Untrusted)
	c.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hub.Certificate().Raw})
	api, err = client.New(c)
	require.NoError(t, err)
	me, err := api.Me(t.Context())
	require.NoError(t, err)
	require.Equal(t, "alice", me.Name)
	c.CA = []byte("none")
	_, err = client.New(c)
	require.ErrorContains(t, err, "PEM")
}
