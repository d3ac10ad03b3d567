package httpmw_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

const invited = "/api/invitations/77777777-7777-4777-8777-777777777777/accept"

// The first request of a person can present an invitation, if it is the one that accepts it.
func TestAuthenticate_presentsTheInvitationOfAnAcceptance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, path string
		header       []string
		presented    bool
	}{
		"an acceptance":     {http.MethodPost, invited, []string{"s"}, true},
		"without a secret":  {http.MethodPost, invited, nil, false},
		"two secrets":       {http.MethodPost, invited, []string{"s", "t"}, false},
		"a long secret":     {http.MethodPost, invited, []string{string(make([]byte, 200))}, false},
		"a read":            {http.MethodGet, invited, []string{"s"}, false},
		"another request":   {http.MethodPost, "/api/orgs", []string{"s"}, false},
		"no ID":             {http.MethodPost, "/api/invitations/../accept", []string{"s"}, false},
		"an encoded path":   {http.MethodPost, "/api/invitations%2f77777777-7777-4777-8777-777777777777/accept", []string{"s"}, false},
		"the answer of two": {http.MethodPost, invited + "/accept", []string{"s"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []httpmw.PresentedInvitation
			tokens := authenticator(func(token string) (*auth.Identity, bool, error) {
				return &auth.Identity{Kind: auth.Person, Issuer: "https://idp", Subject: token}, true, nil
			})
			h := httpmw.Authenticate(authentication(tokens, registry{}, func(ctx context.Context, _ *auth.Identity, vouched bool) (*v1alpha1.User, error) {
				require.False(t, vouched)
				if p, ok := httpmw.InvitationFrom(ctx); ok {
					got = append(got, p)
				}
				return nil, context.Canceled
			}))(http.HandlerFunc(ok))
			header := []string{"Authorization", "Bearer carol"}
			for _, secret := range c.header {
				header = append(header, httpmw.InvitationHeader, secret)
			}
			require.NotEqual(t, http.StatusOK, ask(h, c.method, c.path, header...).Code)
			require.Equal(t, c.presented, len(got) == 1 && got[0].Secret == "s" && got[0].ID == "77777777-7777-4777-8777-777777777777")
		})
	}
}

func TestRecognize_letsEverybodyPass(t *testing.T) {
	t.Parallel()
	tokens := authenticator(func(token string) (*auth.Identity, bool, error) {
		return &auth.Identity{Kind: auth.Person, Issuer: "https://idp", Subject: token}, token != "bad", nil
	})
	known := registry{}.with("alice", v1alpha1.RegistrationApproved).with("waits", v1alpha1.RegistrationPending)
	a := authentication(tokens, known, func(context.Context, *auth.Identity, bool) (*v1alpha1.User, error) {
		require.Fail(t, "it signs nobody up")
		return nil, nil
	})
	for token, want := range map[string]string{"alice": "alice", "bad": "", "unknown": "", "waits": "", "": ""} {
		called, got := false, ""
		h := httpmw.Recognize(a)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			called = true
			if c := httpmw.CallerIn(r); c != nil {
				got = c.User.Name
			}
		}))
		header := []string{"Authorization", "Bearer " + token}
		if token == "" {
			header = nil
		}
		ask(h, http.MethodGet, "/thing", header...)
		require.True(t, called, token)
		require.Equal(t, want, got, token)
	}
}

func TestPerPeer_limitsEachPeer(t *testing.T) {
	t.Parallel()
	limits, clock, _ := newLimits(t)
	h := limits.PerPeer("guesses", 1)(http.HandlerFunc(ok))
	for range 10 {
		require.Equal(t, http.StatusOK, ask(h, http.MethodGet, "/thing").Code)
	}
	require.Equal(t, http.StatusTooManyRequests, ask(h, http.MethodGet, "/thing").Code)
	clock.SetTime(clock.Now().Add(time.Second))
	require.Equal(t, http.StatusOK, ask(h, http.MethodGet, "/thing").Code)
}
