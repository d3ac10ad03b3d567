package users_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func (f *fixture) remove(as, name string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodDelete, Path: "/api/users/" + name}.Do(f.http)
}

func (f *fixture) undelete(as, name string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodPost, Path: "/api/users/" + name + "/undelete"}.Do(f.http)
}

// marking lets the store patch the status of Users. The cache follows later.
func marking(t testing.TB, f *fixture) {
	f.store.mark = func(held *v1alpha1.User, status map[string]any) (*v1alpha1.User, error) {
		u := apitest.MergePatched(t, held, map[string]any{"status": status})
		f.world.Later(func(w *apitest.World) { w.PutUser(u) })
		return u, nil
	}
}

const deleted = `{"name": "bob", "displayName": "Display of bob", "deletionRequestedAt": "2026-03-01T12:00:00Z", "purgeAt": "2026-03-31T12:00:00Z"}`

func TestO8_peopleDeleteAndUndeleteThemselves(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"me", apitest.Member} {
		f := newFixture(t)
		marking(t, f)
		answer := f.remove(apitest.Member, name)
		answer.Object(t, http.StatusAccepted)
		require.JSONEq(t, deleted, answer.Body)
		require.Zero(t, f.world.StillToCome(), "it waited for the view")
		require.Equal(t, "2026-03-31T12:00:00Z", f.get(apitest.Member, "").Object(t, http.StatusOK)["purgeAt"])

		// A deleted user may only withdraw the deletion. Repeating it is refused, too.
		f.get(apitest.Member, "/memberships").Refused(t, http.StatusForbidden)
		f.remove(apitest.Member, name).Refused(t, http.StatusForbidden)
		f.undelete(apitest.Member, apitest.Admin).Refused(t, http.StatusForbidden)

		answer = f.undelete(apitest.Member, name)
		answer.Object(t, http.StatusOK)
		require.JSONEq(t, `{"name": "bob", "displayName": "Display of bob"}`, answer.Body)
		f.get(apitest.Member, "/memberships").Object(t, http.StatusOK)
		require.Equal(t, 2, f.store.writes)
	}
}

// The leader writes the end of the Sessions a moment after the soft-delete, if there is one.
func TestUndelete_startsNoSessionAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	f.undelete(apitest.Operator, apitest.Member).Object(t, http.StatusOK)
	f.remove(apitest.Operator, apitest.Member).Object(t, http.StatusAccepted)
	require.Empty(t, f.wroteEnds)
	f.endsFail = errs.New(errs.Unavailable, "kcp is away")
	f.undelete(apitest.Operator, apitest.Member).Refused(t, http.StatusServiceUnavailable)
	require.Equal(t, 1, f.store.writes, "the person is deleted still")
	f.endsFail = nil
	f.undelete(apitest.Operator, apitest.Member).Object(t, http.StatusOK)
	require.Equal(t, []string{apitest.Member, apitest.Member}, f.wroteEnds)
}

// Other users cannot delete a user, and the refusal does not reveal that the user exists.
func TestO8_onlyPlatformAdminsDeleteOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	for _, request := range []func(as, name string) apitest.Answer{f.remove, f.undelete} {
		there, missing := request(apitest.Admin, apitest.Member), request(apitest.Admin, "nobody")
		there.Refused(t, http.StatusForbidden)
		require.Equal(t, there, missing)
		request("", apitest.Member).Refused(t, http.StatusUnauthorized)
		request(apitest.Operator, "nobody").Refused(t, http.StatusNotFound)
		request(apitest.Operator, "%2e%2e").Refused(t, http.StatusNotFound)
	}
	require.Zero(t, f.store.writes)
	answer := f.remove(apitest.Operator, apitest.Member)
	answer.Object(t, http.StatusAccepted)
	require.JSONEq(t, deleted, answer.Body)
	f.undelete(apitest.Operator, apitest.Member).Object(t, http.StatusOK)
	require.Equal(t, 2, f.store.writes)
}

// A repeated deletion does not restart the grace period. An undelete without a deletion
// writes nothing.
func TestO8_aSecondDeletionChangesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	f.undelete(apitest.Operator, apitest.Member).Object(t, http.StatusOK)
	require.Zero(t, f.store.writes)
	f.remove(apitest.Operator, apitest.Member).Object(t, http.StatusAccepted)
	f.clock.SetTime(apitest.Epoch().AddDate(0, 0, 7))
	answer := f.remove(apitest.Operator, apitest.Member)
	answer.Object(t, http.StatusAccepted)
	require.JSONEq(t, deleted, answer.Body)
	require.Equal(t, 1, f.store.writes)
}

// A deletion can be undone until the controller removes the object. The handler does not
// compare the clock with the end of the grace period.
func TestO8_undeletesUpToTheLastSecondOfTheGrace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	f.remove(apitest.Member, "me").Object(t, http.StatusAccepted)
	f.clock.SetTime(apitest.Epoch().Add(720*time.Hour - time.Second))
	f.undelete(apitest.Member, "me").Object(t, http.StatusOK)
	f.clock.SetTime(apitest.Epoch().Time)
	f.remove(apitest.Member, "me").Object(t, http.StatusAccepted)
	u, _ := f.world.ByName(apitest.Member)
	u = u.DeepCopy()
	now := apitest.Epoch()
	u.DeletionTimestamp = &now
	f.world.PutUser(u)
	for _, as := range []string{apitest.Member, apitest.Operator} {
		require.Contains(t, f.undelete(as, apitest.Member).Refused(t, http.StatusNotFound).Message, "grace")
	}
	f.remove(apitest.Operator, apitest.Member).Refused(t, http.StatusNotFound)
	require.Equal(t, 3, f.store.writes)
}

func TestO8_answersWhenTheRightsInKcpAreGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	followed := false
	f.handler.Bound = func(user string) bool { return user == apitest.Member && followed }
	mark := f.store.mark
	f.store.mark = func(held *v1alpha1.User, status map[string]any) (*v1alpha1.User, error) {
		u, err := mark(held, status)
		f.world.Later(func(*apitest.World) { followed = true })
		return u, err
	}
	f.remove(apitest.Member, "me").Object(t, http.StatusAccepted)
	require.True(t, followed)
	require.Zero(t, f.world.StillToCome())
}

func TestDelete_answersAFailureWithoutWaiting(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store.mark = func(*v1alpha1.User, map[string]any) (*v1alpha1.User, error) {
		return nil, apitest.ErrDown
	}
	f.remove(apitest.Member, "me").Down(t)
	require.Zero(t, f.world.Waits())
}

func TestDelete_goesThroughWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, leave := context.WithCancel(t.Context())
	f.store.mark = func(held *v1alpha1.User, status map[string]any) (*v1alpha1.User, error) {
		leave()
		return apitest.MergePatched(t, held, map[string]any{"status": status}), nil
	}
	f.store.check = func(write context.Context) { require.NoError(t, write.Err()) }
	answer := apitest.Call{As: apitest.Member, Method: http.MethodDelete, Path: "/api/users/me", Context: ctx}.Do(f.http)
	answer.Object(t, http.StatusAccepted)
	require.JSONEq(t, deleted, answer.Body)
}
