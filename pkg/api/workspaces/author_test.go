package workspaces_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/workspaces"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// until has kcp lose the rights of all authors from when lost returns true.
func until(lost func() bool) func(*workspaces.Handler) {
	return func(h *workspaces.Handler) { h.Rights = h.Views.(*apitest.World).RightsUntil(lost) }
}

func TestCreate_ofARemovedMemberIsRefusedWhenItIsWritten(t *testing.T) {
	t.Parallel()
	lost := true
	f := newFixture(t, until(func() bool { return lost }))
	f.post(apitest.Member, `{"displayName": "Staging"}`).Refused(t, http.StatusForbidden)
	require.Zero(t, f.store.writes)
	lost = false
	f.post(apitest.Member, `{"displayName": "Staging"}`).Object(t, http.StatusCreated)
}

// The maker of a Workspace was removed after it was claimed: it stays, without them.
func TestCreate_tellsAMakerWhoWasRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.world.Later(func(w *apitest.World) { w.Leave(apitest.Member, apitest.Acme, "") })
	answer := f.post(apitest.Member, `{"displayName": "Staging"}`)
	require.Contains(t, answer.Refused(t, http.StatusForbidden).Message, "stays")
	require.Equal(t, 1, f.store.writes)
}

func TestUndelete_ofARemovedAdminIsRefusedWhenItIsWritten(t *testing.T) {
	t.Parallel()
	lost := false
	f := newFixture(t, until(func() bool { return lost }))
	marking(t, f)
	f.remove(apitest.WSAdmin).Object(t, http.StatusOK)
	lost = true
	f.undelete(apitest.WSAdmin).Refused(t, http.StatusForbidden)
	require.Equal(t, 1, f.store.writes)
	lost = false
	require.Equal(t, "admin", f.undelete(apitest.WSAdmin).Object(t, http.StatusOK)["role"])
}

// An admin who is removed after kcp stored the grant, and before its answer, has granted nothing.
func TestGrant_ofAnAdminRemovedMeanwhileIsTakenBack(t *testing.T) {
	t.Parallel()
	before := metav1.NewTime(apitest.Epoch().Add(time.Hour))
	later := `"` + before.Add(time.Hour).Format(time.RFC3339) + `"`
	for name, grant := range map[string]func(*fixture) apitest.Answer{
		"undelete": func(f *fixture) apitest.Answer {
			f.change(func(ws *tenancy.Workspace) {
				ws.DeletionRequestedAt, ws.Status.Conditions = &before, apitest.Active(false)
			})
			return f.undelete(apitest.WSAdmin)
		},
		"a later end": func(f *fixture) apitest.Answer { return f.patch(apitest.WSAdmin, `{"expiresAt": `+later+`}`) },
		"no end":      func(f *fixture) apitest.Answer { return f.patch(apitest.WSAdmin, `{"expiresAt": null}`) },
		"requests": func(f *fixture) apitest.Answer {
			return f.patch(apitest.WSAdmin, `{"requests": "members", "expiresAt": null}`)
		},
	} {
		for _, removed := range []bool{true, false} {
			var f *fixture
			f = newFixture(t, until(func() bool { return removed && f.store.writes > 0 }))
			f.change(func(ws *tenancy.Workspace) { ws.ExpiresAt = &before })
			f.keeps(t)
			answer := grant(f)
			ws, _ := f.world.Workspace(apitest.Acme, apitest.Dev)
			if removed {
				answer.Refused(t, http.StatusForbidden)
				require.Equal(t, 2, f.store.writes, name)
				require.Equal(t, before.Unix(), ws.ExpiresAt.Unix(), name)
				require.Equal(t, name == "undelete", ws.DeletionRequestedAt != nil, name)
				require.Empty(t, ws.Requests, name)
				continue
			}
			answer.Object(t, http.StatusOK)
			require.Equal(t, 1, f.store.writes, name)
			require.Nil(t, ws.DeletionRequestedAt, name)
			require.False(t, ws.ExpiresAt.Equal(&before), name)
		}
	}
}

// What somebody else has changed since stays as it is.
func TestGrant_takesOnlyItselfBack(t *testing.T) {
	t.Parallel()
	end := metav1.NewTime(apitest.Epoch().Add(time.Hour))
	other := metav1.NewTime(apitest.Epoch().Add(2 * time.Hour))
	var f *fixture
	f = newFixture(t, until(func() bool {
		if f.store.writes == 1 {
			f.change(func(ws *tenancy.Workspace) { ws.ExpiresAt = &other })
		}
		return f.store.writes > 0
	}))
	f.change(func(ws *tenancy.Workspace) { ws.ExpiresAt = &end })
	f.keeps(t)
	f.patch(apitest.WSAdmin, `{"expiresAt": null}`).Refused(t, http.StatusForbidden)
	ws, _ := f.world.Workspace(apitest.Acme, apitest.Dev)
	require.Equal(t, other.Unix(), ws.ExpiresAt.Unix())
	require.Equal(t, 1, f.store.writes)
}

// change changes Dev in the caches.
func (f *fixture) change(edit func(*tenancy.Workspace)) {
	ws, _ := f.world.Workspace(apitest.Acme, apitest.Dev)
	edit(&ws)
	f.world.PutWorkspace(ws)
}

// keeps lets the store and the caches have what is written at once.
func (f *fixture) keeps(t *testing.T) {
	at := func(raw any) *metav1.Time {
		text, ok := raw.(string)
		if !ok {
			return nil
		}
		parsed, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return &metav1.Time{Time: parsed}
	}
	write := func(annotations map[string]any) (ws tenancy.Workspace, err error) {
		f.change(func(w *tenancy.Workspace) {
			if raw, ok := annotations[v1alpha1.DeletionRequestedAtAnnotation]; ok {
				w.DeletionRequestedAt = at(raw)
				w.Status.Conditions = apitest.Active(w.DeletionRequestedAt == nil)
			}
			if raw, ok := annotations[v1alpha1.ExpiresAtAnnotation]; ok {
				w.ExpiresAt = at(raw)
			}
			if raw, ok := annotations[v1alpha1.RequestsAnnotation]; ok {
				w.Requests, _ = raw.(string)
			}
			ws = *w
		})
		f.world.Reindex(apitest.Acme)
		return ws, nil
	}
	f.store.held = func(tenancy.Workspace) tenancy.Workspace {
		ws, _ := f.world.Workspace(apitest.Acme, apitest.Dev)
		return ws
	}
	f.store.mark = func(_ tenancy.Workspace, annotations map[string]any) (tenancy.Workspace, error) {
		return write(annotations)
	}
	f.store.patch = func(_ context.Context, _, _, _ string, patch any) (tenancy.Workspace, error) {
		annotations, _ := patch.(map[string]any)
		return write(annotations)
	}
}
