package bots_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// An admin who is removed while kcp issues a token gets none, and none is left.
func TestIssue_throwsAwayATokenOfARemovedAdmin(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]int{"before it is listed": 0, "after it is issued": 3, "never": 100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.becomesReady = true
			w.author = func() bool { return len(w.did) >= at }
			answer := w.do(apitest.Call{Method: http.MethodPost, Path: inDev + "/serviceaccounts/" + ci + "/tokens", Body: `{}`})
			if name == "never" {
				require.NotEmpty(t, answer.Object(t, http.StatusCreated)["token"])
				return
			}
			answer.Refused(t, http.StatusForbidden)
			require.NotContains(t, answer.Body, "hush")
			require.Empty(t, w.tokens())
			if at > 0 {
				require.Contains(t, w.did, "discard "+next)
			}
		})
	}
}

func TestBots_ofARemovedAdminAreNotMadeOrRaised(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(*world) apitest.Answer{
		"make": func(w *world) apitest.Answer {
			return w.do(apitest.Call{Method: http.MethodPost, Path: at, Body: `{"displayName": "New", "role": "member"}`})
		},
		"raise": func(w *world) apitest.Answer {
			return w.do(apitest.Call{Method: http.MethodPatch, Path: at + "/" + ci, Body: `{"role": "admin"}`})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.becomesReady = true
			w.author = func() bool { return true }
			send(w).Refused(t, http.StatusForbidden)
			require.NotContains(t, w.did, "decide")
			require.NotContains(t, w.held, next)
			require.Equal(t, v1alpha1.RoleMember, w.held[ci].Spec.Role)
			w.author = nil
			require.Less(t, send(w).Code, http.StatusMultipleChoices, "the control")
		})
	}
}
