package workspaces_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/workspaces"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func (f *fixture) remove(as string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodDelete, Path: path(apitest.Dev), Org: apitest.Acme, Workspace: apitest.Dev}.Do(f.http)
}

func (f *fixture) undelete(as string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodPost, Path: path(apitest.Dev, "undelete"), Org: apitest.Acme, Workspace: apitest.Dev}.Do(f.http)
}

// marked applies the patched annotation to the Workspace. A deletion may patch no other
// annotation.
func marked(t testing.TB, ws tenancy.Workspace, annotations map[string]any) tenancy.Workspace {
	t.Helper()
	require.Len(t, annotations, 1)
	value, ok := annotations[v1alpha1.DeletionRequestedAtAnnotation]
	require.True(t, ok)
	ws.DeletionRequestedAt = nil
	if text, ok := value.(string); ok {
		at, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		ws.DeletionRequestedAt = &metav1.Time{Time: at}
	}
	return ws
}

// marking lets the store patch Dev. First the cache follows, then the controller, and
// then the index.
func marking(t testing.TB, f *fixture) {
	f.store.mark = func(held tenancy.Workspace, annotations map[string]any) (tenancy.Workspace, error) {
		ws := marked(t, held, annotations)
		settled := ws
		settled.Status.Conditions = apitest.Active(ws.DeletionRequestedAt == nil)
		f.world.Later(
			func(w *apitest.World) { w.PutWorkspace(ws) },
			func(w *apitest.World) { w.PutWorkspace(settled) },
			func(w *apitest.World) { w.Reindex(apitest.Acme) },
		)
		return ws, nil
	}
}

func TestO13_deletesAndUndeletesAWorkspace(t *testing.T) {
	t.Parallel()
	for _, as := range []string{apitest.WSAdmin, apitest.Admin} {
		f := newFixture(t)
		marking(t, f)
		ws := f.remove(as).Object(t, http.StatusOK)
		require.Equal(t, "2026-03-01T12:00:00Z", ws["deletionRequestedAt"])
		require.Equal(t, "2026-03-31T12:00:00Z", ws["purgeAt"])
		require.Equal(t, "Development", ws["displayName"], "the object is answered")
		if as == apitest.WSAdmin {
			require.Zero(t, f.world.StillToCome(), "it waited until it is hidden and frozen")
		}

		// A deleted Workspace answers 404 to everything but its undelete, and no list has it.
		f.get(as, apitest.Dev).Refused(t, http.StatusNotFound)
		f.patch(as, `{"displayName": "New"}`).Refused(t, http.StatusNotFound)
		f.remove(as).Refused(t, http.StatusNotFound)
		require.Equal(t, []string{apitest.Prod}, f.list(apitest.Admin, "").Items(t, "uuid"))

		ws = f.undelete(as).Object(t, http.StatusOK)
		require.NotContains(t, ws, "deletionRequestedAt")
		require.NotContains(t, ws, "purgeAt")
		require.Equal(t, []string{apitest.Dev, apitest.Prod}, f.list(apitest.Admin, "").Items(t, "uuid"))
		require.Equal(t, 2, f.store.writes)
	}
}

func TestO13_onlyAdminsDeleteAndUndeleteAWorkspace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	show(f)
	refused := func(request func(as string) apitest.Answer) {
		for _, as := range []string{apitest.Member, apitest.WSMember, apitest.Foreigner, apitest.Operator} {
			request(as).Refused(t, http.StatusForbidden)
		}
		request("").Refused(t, http.StatusUnauthorized)
	}
	refused(f.remove)
	require.Zero(t, f.store.writes)
	f.remove(apitest.WSAdmin).Object(t, http.StatusOK)
	refused(f.undelete)
	require.Equal(t, 1, f.store.writes)
	f.undelete(apitest.Mixed).Object(t, http.StatusOK)
}

// The Workspaces of a deleted Org can be neither deleted nor undeleted.
func TestO13_aWorkspaceOfADeletedOrgIsNotFound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	f.world.DeleteOrg(apitest.Acme)
	for _, as := range []string{apitest.Admin, apitest.WSAdmin} {
		f.remove(as).Refused(t, http.StatusNotFound)
		f.undelete(as).Refused(t, http.StatusNotFound)
	}
	require.Zero(t, f.store.writes)
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Status.DeletionRequestedAt = nil })
	f.remove(apitest.Admin).Object(t, http.StatusOK)
}

func TestUndelete_refusesForeignAndMissingWorkspacesAlike(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	f.remove(apitest.WSAdmin).Object(t, http.StatusOK)
	missing := apitest.Call{As: apitest.Member, Method: http.MethodPost, Path: path(apitest.Nowhere, "undelete"), Org: apitest.Acme, Workspace: apitest.Nowhere}.Do(f.http)
	missing.Refused(t, http.StatusForbidden)
	require.Equal(t, missing, f.undelete(apitest.Member))
	apitest.Call{As: apitest.Admin, Method: http.MethodPost, Path: path(apitest.Dev, "undelete"), Org: apitest.Acme}.Do(f.http).RefusedField(t, "header:X-Kedge-Workspace")
}

// A repeated deletion does not restart the grace period, even if the cache does not have
// the first deletion.
func TestO13_aSecondDeletionChangesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	settled, _ := f.world.Workspace(apitest.Acme, apitest.Dev)
	settled.Status.Conditions = apitest.Active(true)
	f.world.PutWorkspace(settled)
	f.undelete(apitest.WSAdmin).Object(t, http.StatusOK)
	require.Zero(t, f.store.writes, "there was nothing to withdraw")
	at := metav1.NewTime(apitest.Epoch().Add(-time.Hour))
	f.store.held = func(ws tenancy.Workspace) tenancy.Workspace {
		ws.DeletionRequestedAt = &at
		ws.Status.Conditions = apitest.Active(false)
		f.world.Later(
			func(w *apitest.World) { w.PutWorkspace(ws) },
			func(w *apitest.World) { w.Join(apitest.WSAdmin, apitest.Acme, apitest.Dev, v1alpha1.RoleAdmin) },
		)
		return ws
	}
	ws := f.remove(apitest.WSAdmin).Object(t, http.StatusOK)
	require.Equal(t, "2026-03-01T11:00:00Z", ws["deletionRequestedAt"])
	require.Equal(t, "2026-03-31T11:00:00Z", ws["purgeAt"])
	require.Zero(t, f.store.writes)
}

// A deletion can be undone until the controller removes the object. The handler does not
// compare the clock with the end of the grace period.
func TestO13_undeletesUpToTheLastSecondOfTheGrace(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(apitest.Epoch().Time)
	f := newFixture(t, func(h *workspaces.Handler) { h.Clock = clock })
	marking(t, f)
	f.remove(apitest.WSAdmin).Object(t, http.StatusOK)
	clock.SetTime(apitest.Epoch().Add(720*time.Hour - time.Second))
	f.undelete(apitest.WSAdmin).Object(t, http.StatusOK)
	require.Equal(t, "2026-04-30T11:59:59Z", f.remove(apitest.WSAdmin).Object(t, http.StatusOK)["purgeAt"], "a new request has its own full grace")
	ws, _ := f.world.Workspace(apitest.Acme, apitest.Dev)
	ws.Terminating = true
	f.world.PutWorkspace(ws)
	require.Contains(t, f.undelete(apitest.WSAdmin).Refused(t, http.StatusNotFound).Message, "grace")
	require.Equal(t, 3, f.store.writes)
}

func TestUndelete_doesNotWaitForAPurgedWorkspace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store.mark = func(held tenancy.Workspace, annotations map[string]any) (tenancy.Workspace, error) {
		f.world.Later(func(w *apitest.World) { w.DropWorkspace(held.UUID) })
		return marked(t, held, annotations), nil
	}
	require.Equal(t, "2026-03-31T12:00:00Z", f.remove(apitest.WSAdmin).Object(t, http.StatusOK)["purgeAt"])
}

func TestDelete_answersAFailureWithoutWaiting(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store.mark = func(tenancy.Workspace, map[string]any) (tenancy.Workspace, error) {
		return tenancy.Workspace{}, apitest.ErrDown
	}
	f.remove(apitest.WSAdmin).Down(t)
	require.Zero(t, f.world.Waits())
}

func TestDelete_goesThroughWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, leave := context.WithCancel(t.Context())
	f.store.mark = func(held tenancy.Workspace, annotations map[string]any) (tenancy.Workspace, error) {
		leave()
		return marked(t, held, annotations), nil
	}
	call := apitest.Call{As: apitest.WSAdmin, Method: http.MethodDelete, Path: path(apitest.Dev), Org: apitest.Acme, Workspace: apitest.Dev, Context: ctx}
	require.Equal(t, "2026-03-31T12:00:00Z", call.Do(f.http).Object(t, http.StatusOK)["purgeAt"], "the write stands")
}
