package bots_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/bots"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const rotateOne = tokensOfCI + "/one/rotate"

func TestRotate_replacesATokenAndLetsTheOldOneEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.becomesReady = true
	w.give("one")
	a := w.do(apitest.Call{Method: http.MethodPost, Path: rotateOne, Body: `{"gracePeriodSeconds": 60}`})
	require.Equal(t, map[string]any{
		"id": next, "name": "of one", "token": "hush-" + next,
		"createdAt": "2026-03-01T12:00:00Z", "expirationTimestamp": "2026-03-01T13:00:00Z",
	}, a.Object(t, http.StatusCreated))
	require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
	require.Equal(t, tokensOfCI+"/"+next, a.Header.Get("Location"))
	require.Equal(t, []string{"amend", "issue", "amend", "amend"}, w.did, "the new token is whole before the old one ends")
	old, _ := tenancy.FindToken(w.held[ci].Spec.Tokens, "one")
	require.Equal(t, next, old.RotatedTo)
	require.Equal(t, apitest.Epoch().Add(time.Minute), old.ExpiresAt.UTC())
	again := apitest.Call{Method: http.MethodPost, Path: rotateOne, Body: `{}`, Header: http.Header{"Idempotency-Key": {"k"}}}
	require.Contains(t, w.do(again).Refused(t, http.StatusConflict).Message, next, "a copy of the old token makes no new ones")
}

// Whatever is revoked while a token is rotated, the new one is not given out.
func TestRotate_losesAgainstARevocation(t *testing.T) {
	t.Parallel()
	for what, revoke := range map[string]func(*v1alpha1.Bot){
		"of the old token":  func(b *v1alpha1.Bot) { b.Spec.Tokens = b.Spec.Tokens[1:] },
		"of all tokens":     func(b *v1alpha1.Bot) { b.Spec.Tokens, b.Spec.Generation = nil, 1 },
		"and another bot's": func(b *v1alpha1.Bot) { b.Spec.Tokens[0].RotatedTo = "another" },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w, amends := newWorld(t), 0
			w.becomesReady = true
			w.give("one")
			w.failing = func(step string) error {
				if step == "amend" {
					amends++
				}
				if amends == 3 && step == "amend" {
					b := w.held[ci].DeepCopy()
					revoke(b)
					w.held[ci] = b
				}
				return nil
			}
			a := w.do(apitest.Call{Method: http.MethodPost, Path: rotateOne, Body: `{}`})
			require.GreaterOrEqual(t, a.Code, http.StatusBadRequest)
			require.NotContains(t, a.Body, "hush")
			require.Contains(t, w.did, "discard "+next)
			require.NotContains(t, w.tokens(), next)
		})
	}
}

func TestRotate_ofAFailedHalfLeavesTheOldTokenAsItWas(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 4; n++ {
		w, calls := newWorld(t), 0
		w.becomesReady = true
		w.give("one")
		before := w.held[ci].Spec.Tokens[0]
		w.failing = func(string) error {
			if calls++; calls == n {
				return errs.New(errs.Unavailable, "down")
			}
			return nil
		}
		w.do(apitest.Call{Method: http.MethodPost, Path: rotateOne, Body: `{}`}).Refused(t, http.StatusServiceUnavailable)
		require.Equal(t, []string{"one"}, w.tokens(), "step %d", n)
		require.True(t, before.ExpiresAt.Equal(&w.held[ci].Spec.Tokens[0].ExpiresAt), "step %d", n)
	}
}

func TestRotate_isForAdminsOfTheWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.becomesReady = true
	w.give("one")
	w.do(apitest.Call{As: apitest.WSMember, Method: http.MethodPost, Path: rotateOne, Body: `{}`}).Refused(t, http.StatusForbidden)
	require.Empty(t, w.did)
	for _, path := range []string{tokensOfCI + "/two/rotate", at + "/" + prod + "/tokens/one/rotate"} {
		w.do(apitest.Call{Method: http.MethodPost, Path: path, Body: `{}`}).Refused(t, http.StatusNotFound)
	}
	status := w.do(apitest.Call{Method: http.MethodPost, Path: rotateOne, Body: `{"gracePeriodSeconds": 86401}`}).Refused(t, http.StatusUnprocessableEntity)
	require.Equal(t, "gracePeriodSeconds", status.Details.Causes[0].Field)
	require.Equal(t, http.StatusCreated, w.do(apitest.Call{Method: http.MethodPost, Path: rotateOne, Body: `{}`}).Code, "the control")
}

func TestRotate_ofARemovedAdminLeavesTheOldToken(t *testing.T) {
	t.Parallel()
	for _, at := range []int{0, 3} {
		w := newWorld(t)
		w.becomesReady = true
		w.give("one")
		w.author = func() bool { return len(w.did) >= at }
		w.do(apitest.Call{Method: http.MethodPost, Path: rotateOne, Body: `{}`}).Refused(t, http.StatusForbidden)
		require.Equal(t, []string{"one"}, w.tokens())
		require.Empty(t, w.held[ci].Spec.Tokens[0].RotatedTo)
	}
}

func TestListTokens_showsTheLastUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.give("one", "two")
	tenancy.RecordTokenUses(w.held[ci], map[string]time.Time{"two": apitest.Epoch().Time})
	a := w.do(apitest.Call{Method: http.MethodGet, Path: tokensOfCI})
	require.Equal(t, []string{"one", "two"}, a.Items(t, "id"))
	require.Equal(t, 1, strings.Count(a.Body, `"lastUsedAt":"2026-03-01T12:00:00Z"`))
}

func TestUses_areWrittenTogetherWithinFifteenSeconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.give("one", "two")
	k := clocktesting.NewFakeClock(apitest.Epoch().Time)
	written := make(chan *v1alpha1.Bot, 10)
	u := bots.NewUses(changer{w, written, nil}, k)
	for range 1000 {
		u.Record(w.held[ci], "one")
		u.Record(w.held[ci], "two")
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { u.Run(ctx); close(ended) }()
	require.Eventually(t, k.HasWaiters, time.Second, time.Millisecond)
	k.Step(15 * time.Second)
	require.Len(t, (<-written).Status.Tokens, 2)
	stop()
	<-ended
	require.Empty(t, written, "in one write")
}
