package bots_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const deploy = `{"displayName": "Deploy", "role": "admin"}`

func TestCreate_answersWithAReadyBot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.do(apitest.Call{Method: http.MethodPost, Path: at, Body: deploy})
	require.Equal(t, at+"/"+next, a.Header.Get("Location"))
	require.NotEmpty(t, a.Header.Get("ETag"))
	require.Equal(t, map[string]any{
		"uuid": next, "displayName": "Deploy", "role": "admin", "createdAt": "2026-03-01T12:00:00Z", "phase": "Ready", "conditions": []any{},
	}, a.Object(t, http.StatusCreated))
	require.Equal(t, []string{"mark", "decide"}, w.did, "its place is claimed first")
	require.Equal(t, "Deploy", w.do(apitest.Call{Method: http.MethodGet, Path: a.Header.Get("Location")}).Object(t, http.StatusOK)["displayName"])
}

func TestCreate_answers202WhileTheAccountIsMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unsettled = true
	a := w.do(apitest.Call{Method: http.MethodPost, Path: at, Body: deploy})
	require.Equal(t, "Progressing", a.Object(t, http.StatusAccepted)["phase"])
	w = newWorld(t)
	a = w.do(apitest.Call{Method: http.MethodPost, Path: at, Body: deploy, Header: http.Header{"Prefer": {"respond-async"}}})
	require.Equal(t, http.StatusAccepted, a.Code)
}

func TestCreate_refusesBadInput(t *testing.T) {
	t.Parallel()
	for body, field := range map[string]string{
		`{"role": "admin"}`:                                           "displayName",
		`{"displayName": "", "role": "admin"}`:                        "displayName",
		`{"displayName": "x"}`:                                        "role",
		`{"displayName": "x", "role": "guest"}`:                       "role",
		`{"displayName": "x", "role": "admin", "sudo": true}`:         "sudo",
		`{"displayName": "x", "role": "admin", "tokens": [{"id":1}]}`: "tokens",
	} {
		w := newWorld(t)
		w.do(apitest.Call{Method: http.MethodPost, Path: at, Body: body}).RefusedField(t, field)
		require.Empty(t, w.did)
	}
}

func TestCreate_stopsAtTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claim.BotClaims = map[string]metav1.Time{}
	for i := range 99 {
		w.claim.BotClaims[fmt.Sprint(i)] = apitest.Epoch()
	}
	w.do(apitest.Call{Method: http.MethodPost, Path: at, Body: deploy}).RefusedCause(t, tenancy.CauseQuota)
	require.Equal(t, []string{"mark"}, w.did)
	delete(w.claim.BotClaims, "0")
	require.Equal(t, http.StatusCreated, w.do(apitest.Call{Method: http.MethodPost, Path: at, Body: deploy}).Code, "the control")
}

func TestCreate_repeatsAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := http.Header{"Idempotency-Key": {"k1"}}
	first := w.do(apitest.Call{Method: http.MethodPost, Path: at, Body: deploy, Header: key}).Object(t, http.StatusCreated)
	again := w.do(apitest.Call{Method: http.MethodPost, Path: at, Body: deploy, Header: key}).Object(t, http.StatusCreated)
	require.Equal(t, first["uuid"], again["uuid"])
	require.NotEqual(t, next, first["uuid"])
	require.Len(t, w.held, 3)
	other := w.do(apitest.Call{Method: http.MethodPost, Path: at, Body: deploy, Header: http.Header{"Idempotency-Key": {"k2"}}}).Object(t, http.StatusCreated)
	require.NotEqual(t, first["uuid"], other["uuid"])
}

func TestBots_areForAdminsOfTheWorkspace(t *testing.T) {
	t.Parallel()
	for _, c := range []apitest.Call{
		{Method: http.MethodPost, Path: at, Body: deploy},
		{Method: http.MethodPatch, Path: at + "/" + ci, Body: `{"role": "admin"}`},
		{Method: http.MethodDelete, Path: at + "/" + ci},
		{Method: http.MethodPost, Path: at + "/" + ci + "/tokens", Body: `{}`},
		{Method: http.MethodDelete, Path: at + "/" + ci + "/tokens"},
		{Method: http.MethodDelete, Path: at + "/" + ci + "/tokens/t1"},
	} {
		for as, admitted := range map[string]bool{
			apitest.WSMember: false, apitest.Member: false, apitest.Foreigner: false, apitest.Operator: false,
			apitest.WSAdmin: true, apitest.Mixed: true, apitest.Admin: true,
		} {
			w := newWorld(t)
			w.give("t1")
			c.As = as
			a := w.do(c)
			if admitted {
				require.Less(t, a.Code, 300, "%s %s as %s: %s", c.Method, c.Path, as, a.Body)
				continue
			}
			a.Refused(t, http.StatusForbidden)
			require.Empty(t, w.did)
		}
	}
	for _, path := range []string{at, at + "/" + ci, at + "/" + ci + "/tokens"} {
		require.Equal(t, http.StatusOK, newWorld(t).do(apitest.Call{As: apitest.WSMember, Method: http.MethodGet, Path: path}).Code, "members read")
	}
}

// A Bot of another Workspace is told apart from a missing one by no answer.
func TestBots_aForeignOneIsAMissingOne(t *testing.T) {
	t.Parallel()
	for _, c := range []apitest.Call{
		{Method: http.MethodGet},
		{Method: http.MethodPatch, Body: `{"role": "admin"}`},
		{Method: http.MethodDelete},
		{Method: http.MethodGet, Path: "/tokens"},
		{Method: http.MethodPost, Path: "/tokens", Body: `{}`},
		{Method: http.MethodDelete, Path: "/tokens"},
		{Method: http.MethodDelete, Path: "/tokens/t1"},
	} {
		w, suffix := newWorld(t), c.Path
		c.Path = at + "/" + prod + suffix
		foreign := w.do(c)
		c.Path = at + "/" + next + suffix
		missing := w.do(c)
		foreign.Refused(t, http.StatusNotFound)
		require.Equal(t, missing.Body, foreign.Body)
		require.Empty(t, w.did)
	}
}

func TestList_showsThoseOfTheWorkspace(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{ci}, newWorld(t).do(apitest.Call{Method: http.MethodGet, Path: at}).Items(t, "uuid"))
}

func TestPatch_changesRoleAndName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.do(apitest.Call{Method: http.MethodPatch, Path: at + "/" + ci, Body: `{"role": "admin"}`}).Object(t, http.StatusOK)
	require.Equal(t, "admin", got["role"])
	require.Equal(t, "CI", got["displayName"])
	require.Equal(t, []string{"account-0"}, w.rechecked, "streams with more rights are cut")
	got = w.do(apitest.Call{Method: http.MethodPatch, Path: at + "/" + ci, Body: `{"displayName": "Builder"}`}).Object(t, http.StatusOK)
	require.Equal(t, "Builder", got["displayName"])
	require.Equal(t, v1alpha1.RoleAdmin, w.held[ci].Spec.Role)
	w.unsettled = true
	require.Equal(t, http.StatusAccepted, w.do(apitest.Call{Method: http.MethodPatch, Path: at + "/" + ci, Body: `{"role": "member"}`}).Code)
	for body, field := range map[string]string{`{"role": "owner"}`: "role", `{"role": null}`: "role", `{"displayName": 1}`: "displayName", `{"generation": 2}`: "generation"} {
		w.do(apitest.Call{Method: http.MethodPatch, Path: at + "/" + ci, Body: body}).RefusedField(t, field)
	}
}

func TestDelete_endsTheBotAndGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.do(apitest.Call{Method: http.MethodDelete, Path: at + "/" + ci})
	require.Equal(t, http.StatusNoContent, a.Code, a.Body)
	require.Equal(t, []string{"delete"}, w.did, "an old bot has no claim")
	require.Equal(t, []string{"account-0"}, w.rechecked)
	w.do(apitest.Call{Method: http.MethodDelete, Path: at + "/" + ci}).Refused(t, http.StatusNotFound)
}

// A leader that stopped after it made a Bot leaves the accepted creation on the Organization.
func TestDelete_leavesNoCreationThatAnotherLeaderRepeats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pending = []v1alpha1.BotChange{{Name: ci, Workspace: apitest.Dev}, {Name: next, Workspace: apitest.Dev}, {Name: prod, UID: "u", Workspace: apitest.Prod}}
	require.Equal(t, http.StatusNoContent, w.do(apitest.Call{Method: http.MethodDelete, Path: at + "/" + ci}).Code)
	require.Equal(t, []string{"settle " + ci, "delete"}, w.did, "in this order")
	require.Len(t, w.pending, 2)
}

func TestBots_needAReadyWorkspace(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]string{at: deploy, at + "/" + ci + "/tokens": `{}`} {
		w, tenants := newWorld(t), apitest.NewWorld()
		// kcp has not scheduled it yet.
		ws := apitest.Workspace(apitest.Acme, apitest.Dev, "Development", "")
		ws.KCPReady, ws.Status.Phase = false, v1alpha1.PhaseProgressing
		tenants.PutWorkspace(ws)
		apitest.Call{As: apitest.WSAdmin, Method: http.MethodPost, Path: path, Body: body, Org: apitest.Acme, Workspace: apitest.Dev}.
			Do(w.handler(tenants)).Refused(t, http.StatusConflict)
		require.Empty(t, w.did)
		w.becomesReady = true
		require.Equal(t, http.StatusCreated, apitest.Call{As: apitest.WSAdmin, Method: http.MethodPost, Path: path, Body: body, Org: apitest.Acme, Workspace: apitest.Dev}.
			Do(w.handler(tenants)).Code, "the control: it is waited for")
	}
}

func TestBots_honourIfMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []apitest.Call{
		{Method: http.MethodPatch, Path: at + "/" + ci, Body: `{"role": "admin"}`},
		{Method: http.MethodDelete, Path: at + "/" + ci},
		{Method: http.MethodDelete, Path: at + "/" + ci + "/tokens"},
		{Method: http.MethodDelete, Path: at + "/" + ci + "/tokens/t1"},
	} {
		w := newWorld(t)
		w.give("t1")
		c.Header = apitest.IfMatch(apitest.Tag("41"))
		require.Equal(t, http.StatusPreconditionFailed, w.do(c).Code, c.Path)
		require.Equal(t, []string{"t1"}, w.tokens())
		c.Header = apitest.IfMatch(apitest.Tag(apitest.FirstVersion))
		require.Less(t, w.do(c).Code, 300, c.Path)
	}
}

func TestBots_saySoWhenKCPIsDown(t *testing.T) {
	t.Parallel()
	for _, c := range []apitest.Call{
		{Method: http.MethodPost, Path: at, Body: deploy},
		{Method: http.MethodPatch, Path: at + "/" + ci, Body: `{"role": "admin"}`},
		{Method: http.MethodDelete, Path: at + "/" + ci},
		{Method: http.MethodPost, Path: at + "/" + ci + "/tokens", Body: `{}`},
		{Method: http.MethodDelete, Path: at + "/" + ci + "/tokens"},
	} {
		w := newWorld(t)
		w.failing = func(string) error { return errs.New(errs.Unavailable, "down") }
		w.do(c).Refused(t, http.StatusServiceUnavailable)
	}
}

func TestPatch_ofALowerRoleHasAReceiptInItsAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lower := apitest.Call{Method: http.MethodPatch, Path: at + "/" + ci, Body: `{"role": "viewer"}`}
	require.NotContains(t, w.do(lower).Object(t, http.StatusOK), "receipt", "nobody asked for it")
	w = newWorld(t)
	tenants := apitest.NewWorld()
	lower.As, lower.Org, lower.Workspace, lower.Header = apitest.WSAdmin, apitest.Acme, apitest.Dev, apitest.Prefer()
	tenants.Receipted(t, lower.Do(w.handler(tenants)), 1)
}
