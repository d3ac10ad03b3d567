package client_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/client"
)

func refusal(w http.ResponseWriter, code int, message string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "message": message})
}

func token(context.Context) (string, error) { return "token", nil }

func clientOf(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	hub := httptest.NewServer(h)
	t.Cleanup(hub.Close)
	c, err := client.New(hub.URL, token, "test", nil)
	require.NoError(t, err)
	return c
}

func TestOnlyWhatDoesNoHarmTwiceIsTriedAgain(t *testing.T) {
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
			code, _, err := api.Do(t.Context(), client.Request{Method: c.method, Path: "/x", Query: url.Values{"q": {"1"}}, Body: map[string]string{"a": "b"}})
			require.Equal(t, c.tries, tries.Load())
			if c.tries > 1 {
				require.NoError(t, err)
				require.Equal(t, http.StatusNoContent, code)
			} else {
				require.EqualError(t, err, "away")
			}
		})
	}
}

func TestARepeatedDeleteThatFindsNothingSaysThatItMayHaveWorked(t *testing.T) {
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
	_, _, err := api.Do(t.Context(), client.Request{Method: http.MethodDelete, Path: "/x"})
	require.EqualError(t, err, "bob is not a member; an earlier try of this command may have been carried out all the same")
	_, _, err = api.Do(t.Context(), client.Request{Method: http.MethodDelete, Path: "/x"})
	require.EqualError(t, err, "bob is not a member", "of a first try there is nothing to say")
}

func TestAHubThatHangsUpIsNotTakenForOneThatCannotBeReached(t *testing.T) {
	t.Parallel()
	api := clientOf(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, _, err := api.Do(t.Context(), client.Request{Method: http.MethodDelete, Path: "/x"})
	var away *client.UnreachableError
	require.ErrorAs(t, err, &away)
	require.Regexp(t, `^the hub at http://127\.0\.0\.1:\d+ gave no answer: EOF$`, err.Error())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = api.Do(ctx, client.Request{Method: http.MethodGet, Path: "/x"})
	require.ErrorIs(t, err, context.Canceled, "an interrupt is still one")
}

func TestCausesOfARefusalAreKept(t *testing.T) {
	t.Parallel()
	api := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_, _ = io.Copy(w, strings.NewReader(`{"message":"no","details":{"causes":[{"reason":"SoleAdmin","field":"f","message":"m"}]}}`))
	})
	_, _, err := api.Do(t.Context(), client.Request{Method: http.MethodDelete, Path: "/x"})
	var refused *client.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, &client.Error{Code: http.StatusConflict, Message: "no", Causes: []client.Cause{{Type: "SoleAdmin", Field: "f", Message: "m"}}}, refused)
}
