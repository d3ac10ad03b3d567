package workspaces_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// follows has patches of the end followed by the cache, and returns the ends that were written.
func (f *fixture) follows(t *testing.T) *[]any {
	var ends []any
	f.store.patch = func(_ context.Context, _, org, workspace string, patch any) (tenancy.Workspace, error) {
		ws, ok := f.world.Workspace(org, workspace)
		require.True(t, ok)
		raw, given := patch.(map[string]any)[v1alpha1.ExpiresAtAnnotation]
		require.True(t, given)
		ends = append(ends, raw)
		ws.ExpiresAt = nil
		if text, ok := raw.(string); ok {
			at, err := time.Parse(time.RFC3339, text)
			require.NoError(t, err)
			ws.ExpiresAt = &metav1.Time{Time: at}
		}
		f.world.PutWorkspace(ws)
		return ws, nil
	}
	return &ends
}

func TestEnd_isSetAndTakenOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ends := f.follows(t)
	set := f.patch(apitest.WSAdmin, `{"expiresAt": "2026-03-01T13:00:00.9+00:00"}`).Object(t, http.StatusOK)
	require.Equal(t, "2026-03-01T13:00:00Z", set["expiresAt"])
	require.Equal(t, "2026-03-01T13:00:00Z", f.get(apitest.WSAdmin, apitest.Dev).Object(t, http.StatusOK)["expiresAt"])
	require.Equal(t, []any{"2026-03-01T13:00:00Z"}, *ends)
}

func TestEnd_refusesWhatIsNoTimeAhead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for text, code := range map[string]int{
		`"2026-03-01T12:00:59Z"`: http.StatusUnprocessableEntity, `"2020-01-01T00:00:00Z"`: http.StatusUnprocessableEntity,
		`"tomorrow"`: http.StatusUnprocessableEntity, `7`: http.StatusBadRequest,
	} {
		for _, send := range []func(as, body string) apitest.Answer{f.post, f.patch} {
			status := send(apitest.Admin, `{"displayName": "A", "expiresAt": `+text+`}`).Refused(t, code)
			require.Equal(t, "expiresAt", status.Details.Causes[0].Field, text)
		}
	}
	require.Zero(t, f.store.writes)
}

func TestEnd_isThatOfANewWorkspace(t *testing.T) {
	t.Parallel()
	for end, want := range map[string]string{`"2026-03-01T20:00:00Z"`: "2026-03-01T20:00:00Z", "null": "never"} {
		f := newFixture(t)
		var claimed []v1alpha1.Claim
		keep := f.store.claimed
		f.store.claimed = func(org string, claims []v1alpha1.Claim) { claimed = claims; keep(org, claims) }
		f.post(apitest.Admin, `{"displayName": "Preview", "expiresAt": `+end+`}`).Object(t, http.StatusCreated)
		require.Equal(t, want, tenancy.ExpiryText(claimed[len(claimed)-1].Request.ExpiresAt))
	}
}

func TestEnd_isForAdminsOfTheWorkspace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.follows(t)
	f.patch(apitest.WSMember, `{"expiresAt": "2026-03-01T13:00:00Z"}`).Refused(t, http.StatusForbidden)
	require.Zero(t, f.store.writes)
	f.patch(apitest.WSAdmin, `{"expiresAt": "2026-03-01T13:00:00Z"}`).Object(t, http.StatusOK)
}

// The 404 says to those who were in a Workspace when and why it ended; others learn nothing.
func TestEnd_isSaidToThoseWhoWereThere(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ws, _ := f.world.Workspace(apitest.Acme, apitest.Dev)
	past := metav1.NewTime(apitest.Epoch().Add(-time.Hour))
	ws.ExpiresAt = &past
	f.world.PutWorkspace(ws.AtEnd())
	require.Contains(t, f.get(apitest.WSMember, apitest.Dev).Refused(t, http.StatusNotFound).Message, "was over at 2026-03-01T11:00:00Z")
	require.NotContains(t, f.get(apitest.Foreigner, apitest.Dev).Refused(t, http.StatusForbidden).Message, "2026")
}
