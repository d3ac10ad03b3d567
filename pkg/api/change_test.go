package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/keylock"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

type valueKey struct{}

// leaving are caches that never show a write. Their request ends meanwhile.
type leaving struct {
	api.Views
	await func(context.Context) error
}

func (l leaving) Await(ctx context.Context, _ []tenancy.Ref, _ func() bool) error {
	return l.await(ctx)
}

func TestWrite_outlivesItsRequest(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(context.WithValue(t.Context(), valueKey{}, "kept"))
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", http.NoBody)
	write, end := api.Context(r)
	defer end()
	d := api.Deps{FollowTimeout: time.Minute, Views: leaving{await: func(follow context.Context) error {
		require.NoError(t, follow.Err())
		leave()
		require.NoError(t, write.Err())
		require.ErrorIs(t, follow.Err(), context.Canceled)
		require.Equal(t, "kept", write.Value(valueKey{}), "the logger goes along")
		for _, c := range []context.Context{write, follow} {
			_, bounded := c.Deadline()
			require.True(t, bounded)
		}
		return follow.Err()
	}}}
	require.False(t, d.Until(r, nil, nil))
}

func TestWrite_endingsGoAheadOfOtherWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := keylock.New()
		var order []string
		h := apitest.Router(apitest.NewWorld(), func(r chi.Router) {
			r.Delete("/orgs/{org}/members/{user}", func(w http.ResponseWriter, r *http.Request) {
				user := chi.URLParam(r, "user")
				ctx, cancel, err := api.Write(r, httpmw.Intent{Reduces: user == "mallory"})
				defer cancel()
				if err != nil {
					t.Error(err)
					return
				}
				unlock, _, err := locks.Lock(ctx, apitest.Acme)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, user)
				unlock()
				w.WriteHeader(http.StatusNoContent)
			})
		})
		unlock, _, err := locks.Lock(t.Context(), apitest.Acme)
		require.NoError(t, err)
		var requests sync.WaitGroup
		for _, c := range []struct{ caller, user string }{
			{apitest.Member, "one"}, {apitest.Member, "two"}, {apitest.Member, "three"}, {apitest.WSMember, "four"}, {apitest.Admin, "mallory"},
		} {
			requests.Go(func() {
				apitest.Call{As: c.caller, Method: http.MethodDelete, Path: "/api/orgs/" + apitest.Acme + "/members/" + c.user}.Do(h)
			})
			synctest.Wait()
		}
		unlock()
		requests.Wait()
		require.Equal(t, []string{"mallory", "one", "four", "two", "three"}, order)
	})
}

func TestAsync_readsThePreferHeader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		prefer []string
		want   bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"respond-async"}, true},
		{[]string{"Respond-Async"}, true},
		{[]string{"return=minimal, respond-async"}, true},
		{[]string{"return=minimal", "respond-async"}, true},
		{[]string{"respond-async, wait=10"}, true},
		{[]string{"respond-async; wait=10"}, true},
		{[]string{"wait=10"}, false},
		{[]string{"respond-asynchronously"}, false},
		{[]string{"foo;respond-async"}, false},
		{[]string{"respond-async=1"}, false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
		r.Header["Prefer"] = c.prefer
		require.Equal(t, c.want, api.Async(r), "%q", c.prefer)
	}
}
