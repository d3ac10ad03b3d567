package providers_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestList_hasWhatTheOrgSees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Equal(t, http.StatusCreated, w.enable(apitest.WSAdmin).Code)
	got := w.do(apitest.WSMember, http.MethodGet, "/api/providers", "")
	require.Equal(t, []string{gadgets, widgets}, got.Items(t, "uuid"), "neither another Org's nor one with a taken slug")
	require.Equal(t, []string{"Org", "Global"}, got.Items(t, "scope"))
	require.Equal(t, []string{"Disabled", "Enabled"}, got.Items(t, "state"))

	without := apitest.Call{As: apitest.Member, Method: http.MethodGet, Path: "/api/providers?q=WIDG", Org: apitest.Acme}.Do(w.handler())
	require.Equal(t, []string{widgets}, without.Items(t, "uuid"))
	require.NotContains(t, without.Body, `"state"`)

	for _, c := range map[string]struct {
		call apitest.Call
		code int
	}{
		"no header":             {apitest.Call{As: apitest.Admin}, http.StatusBadRequest},
		"no UUID":               {apitest.Call{As: apitest.Admin, Org: "acme"}, http.StatusBadRequest},
		"another Org":           {apitest.Call{As: apitest.Foreigner, Org: apitest.Acme}, http.StatusForbidden},
		"another's Workspace":   {apitest.Call{As: apitest.Member, Org: apitest.Acme, Workspace: apitest.Dev}, http.StatusForbidden},
		"a Workspace elsewhere": {apitest.Call{As: apitest.Admin, Org: apitest.Acme, Workspace: apitest.Lab}, http.StatusForbidden},
		"a deleted Workspace":   {apitest.Call{As: apitest.Admin, Org: apitest.Acme, Workspace: apitest.Gone}, http.StatusNotFound},
	} {
		c.call.Method, c.call.Path = http.MethodGet, "/api/providers"
		c.call.Do(w.handler()).Refused(t, c.code)
	}
}

func TestEnable_writesOneBindingAsTheCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dry := w.do(apitest.WSAdmin, http.MethodPost, at+widgets+"/enable?dryRun=true", accepting).Object(t, http.StatusOK)
	require.Equal(t, true, dry["dryRun"])
	require.Equal(t, "Disabled", dry["state"])
	require.Empty(t, w.bindings)

	made := w.enable(apitest.WSAdmin)
	require.Equal(t, "Enabled", made.Object(t, http.StatusCreated)["state"])
	require.Equal(t, at+widgets, made.Header.Get("Location"))
	w.enable(apitest.Admin).Object(t, http.StatusOK)
	require.Equal(t, []string{"create widgets dry as carol", "create widgets wet as carol"}, w.did)

	w.export.Spec.PermissionClaims[0].Verbs = []string{"get", "list"}
	pending := w.do(apitest.WSMember, http.MethodGet, at+widgets, "").Object(t, http.StatusOK)
	require.Equal(t, "ClaimsPending", pending["state"])
	require.NotEmpty(t, pending["message"])
	require.Equal(t, "Enabled", w.enable(apitest.Mixed).Object(t, http.StatusCreated)["state"])
	require.Equal(t, "update widgets wet as mallory", w.did[len(w.did)-1])
	require.Len(t, w.bindings, 1)
}

func TestEnable_waitsForKCPAndForTheRoles(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){
		"kcp":   func(w *world) { w.slow = true },
		"roles": func(w *world) { w.unfollowed = true },
	} {
		w := newWorld(t)
		change(w)
		got := w.enable(apitest.WSAdmin)
		state := got.Object(t, http.StatusAccepted)["state"]
		require.Equal(t, map[string]string{"kcp": "Enabling", "roles": "Enabled"}[name], state)
		require.Equal(t, at+widgets, got.Header.Get("Location"))
	}
}

func TestEnable_triesAgainWhatKCPMayNotKnowYet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refusals = []error{forbidden(), errs.New(errs.AlreadyExists, "somebody was faster"), errs.New(errs.Conflict, "changed")}
	w.enable(apitest.WSAdmin).Object(t, http.StatusCreated)
	require.Empty(t, w.refusals)

	w = newWorld(t)
	w.refusals = []error{errs.New(errs.Unavailable, "kcp is gone")}
	w.enable(apitest.WSAdmin).Refused(t, http.StatusServiceUnavailable)
	require.Empty(t, w.did)
}

func TestEnable_interruptsNoAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.reads = func(ctx context.Context) {
		until, limited := ctx.Deadline()
		require.True(t, limited)
		require.Greater(t, time.Until(until), 10*time.Second, "kcp may still carry out what is interrupted, and its answer is lost")
	}
	w.enable(apitest.WSAdmin).Object(t, http.StatusCreated)
}

func TestEnable_isRefused(t *testing.T) {
	t.Parallel()
	kept := &kcpapisv1alpha2.APIBinding{}
	kept.Name = "kept"
	kept.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Path: "root:kedge:providers:widgets", Name: "widgets.example.org"}
	for name, c := range map[string]struct {
		as, path, body string
		change         func(*world)
		code           int
	}{
		"a member":            {as: apitest.WSMember, code: http.StatusForbidden},
		"another Org":         {as: apitest.Foreigner, code: http.StatusForbidden},
		"another Org's entry": {path: at + tools, code: http.StatusNotFound},
		"a taken slug":        {path: at + clash, code: http.StatusNotFound},
		"no entry":            {path: at + "widgets", code: http.StatusNotFound},
		"no answers":          {body: `{}`, code: http.StatusUnprocessableEntity},
		"an unknown field":    {body: `{"all":true}`, code: http.StatusBadRequest},
		"a claim twice":       {body: `{"acceptClaims":[{"group":"","resource":"configmaps"}],"rejectClaims":[{"group":"","resource":"configmaps"}]}`, code: http.StatusUnprocessableEntity},
		"a parameter":         {path: at + widgets + "/enable?dryRun=yes", code: http.StatusBadRequest},
		"the export is gone":  {change: func(w *world) { w.export = nil }, code: http.StatusConflict},
		"the template's":      {change: func(w *world) { w.bindings = append(w.bindings, kept) }, code: http.StatusConflict},
		"an entry that is being deleted": {change: func(w *world) {
			now := apitest.Epoch()
			w.entries[""][0].DeletionTimestamp = &now
		}, code: http.StatusNotFound},
	} {
		w := newWorld(t)
		if c.change != nil {
			c.change(w)
		}
		if c.as == "" {
			c.as = apitest.WSAdmin
		}
		if c.body == "" {
			c.body = accepting
		}
		switch c.path {
		case "":
			c.path = at + widgets + "/enable"
		case at + widgets + "/enable?dryRun=yes":
		default:
			c.path += "/enable"
		}
		got := w.do(c.as, http.MethodPost, c.path, c.body)
		require.Equal(t, c.code, got.Code, "%s: %s", name, got.Body)
		require.NotContains(t, strings.Join(w.did, ","), "create", name)
	}
}

// A dry run that is misspelt would enable the API, and give its provider what it claims.
func TestEnable_ofADryRunThatIsMisspeltChangesNothing(t *testing.T) {
	t.Parallel()
	for query, field := range map[string]string{
		"?dryrun=true": "query:dryrun", "?dry-run=true": "query:dry-run", "?dryRun": "query:dryRun",
		"?dryRun=": "query:dryRun", "?dryRun=All": "query:dryRun",
		"?dryRun=false&dryRun=true": "query:dryRun", "?dryRun=true&confirm=true": "query:confirm", "?dryRun=true;": "query",
	} {
		w := newWorld(t)
		w.do(apitest.WSAdmin, http.MethodPost, at+widgets+"/enable"+query, accepting).RefusedField(t, field)
		require.Empty(t, w.did, query)
		require.Empty(t, w.bindings, query)
	}
}

func TestDisable_deletesWhenItIsConfirmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(apitest.WSAdmin, http.MethodDelete, at+widgets+"/enable", "").Object(t, http.StatusOK)
	w.enable(apitest.WSAdmin)
	w.counts = []tenancy.Loss{{Group: "example.org", Resource: "widgets", Count: new(int64(3))}, {Group: "example.org", Resource: "wheels"}}
	one := w.do(apitest.WSMember, http.MethodGet, at+widgets, "").Object(t, http.StatusOK)
	require.Equal(t, []any{map[string]any{"group": "example.org", "resource": "widgets", "count": 3.0}, map[string]any{"group": "example.org", "resource": "wheels"}}, one["wouldLose"])
	w.bindings[0].Status.Phase = kcpapisv1alpha2.APIBindingPhaseBinding
	again := w.do(apitest.WSMember, http.MethodGet, at+widgets, "").Object(t, http.StatusOK)
	require.Equal(t, one["wouldLose"], again["wouldLose"], "kcp binds again after a change")
	w.bindings[0].Status.Phase = kcpapisv1alpha2.APIBindingPhaseBound

	w.do(apitest.WSMember, http.MethodDelete, at+widgets+"/enable?confirm=true", "").Refused(t, http.StatusForbidden)
	for _, query := range []string{"", "?confirm=false"} {
		status := w.do(apitest.WSAdmin, http.MethodDelete, at+widgets+"/enable"+query, "").Refused(t, http.StatusConflict)
		require.Len(t, status.Details.Causes, 2)
		require.Equal(t, "widgets.example.org", status.Details.Causes[0].Field)
		require.Contains(t, status.Message, "an unknown number of wheels.example.org")
		require.EqualValues(t, "WouldLose", status.Details.Causes[0].Type)
	}
	stale := apitest.Call{As: apitest.WSAdmin, Method: http.MethodDelete, Path: at + widgets + "/enable?confirm=true", Org: apitest.Acme, Workspace: apitest.Dev, Header: http.Header{"If-Match": {`"old"`}}}
	stale.Do(w.handler()).Refused(t, http.StatusPreconditionFailed)
	require.Len(t, w.did, 1)

	w.slow = true
	held := w.do(apitest.Mixed, http.MethodDelete, at+widgets+"/enable?confirm=true", "").Object(t, http.StatusAccepted)
	require.Equal(t, "Disabled", held["state"])
	require.Contains(t, held["message"], "being disabled")
	w.enable(apitest.WSAdmin).Refused(t, http.StatusConflict)
	w.slow = false
	require.Equal(t, "Disabled", w.do(apitest.Mixed, http.MethodDelete, at+widgets+"/enable", "").Object(t, http.StatusOK)["state"])
	require.Equal(t, "delete widgets wet as mallory", w.did[len(w.did)-1])
	require.Empty(t, w.bindings)
}

func TestDeletedEntry_canBeDisabled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enable(apitest.WSAdmin)
	w.entries[""] = nil
	got := w.do(apitest.WSMember, http.MethodGet, "/api/providers", "")
	require.Equal(t, []string{gadgets, widgets}, got.Items(t, "uuid"))
	require.Equal(t, []string{"Org", "Deleted"}, got.Items(t, "scope"))
	require.Equal(t, []string{"Disabled", "Enabled"}, got.Items(t, "state"))
	require.Equal(t, "Deleted", w.do(apitest.WSMember, http.MethodGet, at+widgets, "").Object(t, http.StatusOK)["scope"])
	w.enable(apitest.WSAdmin).Refused(t, http.StatusNotFound)
	w.do(apitest.WSAdmin, http.MethodDelete, at+widgets+"/enable?confirm=true", "").Object(t, http.StatusOK)
	require.Empty(t, w.bindings)
	w.do(apitest.WSAdmin, http.MethodGet, at+widgets, "").Refused(t, http.StatusNotFound)
}

func TestBinding_thatTheTemplateKeepsStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enable(apitest.WSAdmin)
	w.bindings[0] = w.bindings[0].DeepCopy()
	w.bindings[0].Name = "kept"
	w.do(apitest.WSAdmin, http.MethodDelete, at+widgets+"/enable?confirm=true", "").Refused(t, http.StatusConflict)
	require.Len(t, w.bindings, 1)
	require.Nil(t, w.bindings[0].DeletionTimestamp)
}

// kcp schedules a Workspace a moment after its creation: a request that waits for it must not go
// on with the logical cluster that it did not have.
func TestProviders_waitForAWorkspaceThatIsNotScheduled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h, tenants := w.audited()
	ws := apitest.Workspace(apitest.Acme, apitest.Dev, "Development", "")
	ws.KCPReady, ws.Status.Phase = false, v1alpha1.PhaseProgressing
	tenants.PutWorkspace(ws)
	w.becomesReady = true
	enabled := do(h, apitest.WSAdmin, http.MethodPost, at+widgets+"/enable", accepting).Object(t, http.StatusCreated)
	require.Equal(t, "Enabled", enabled["state"])
	disabled := do(h, apitest.WSAdmin, http.MethodDelete, at+widgets+"/enable?confirm=true", "").Object(t, http.StatusOK)
	require.Equal(t, "Disabled", disabled["state"])
	w.becomesReady = false
	do(h, apitest.WSAdmin, http.MethodDelete, at+widgets+"/enable?confirm=true", "").Refused(t, http.StatusConflict)
}

// ended returns an entry with the condition that the controller gives it.
func ended(e *v1alpha1.CatalogEntry) *v1alpha1.CatalogEntry {
	e = e.DeepCopy()
	e.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPublisherMayBind, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRightEnded}}
	return e
}

// The publisher of an entry may not bind its export any more, or the platform took its slug.
func TestHiddenEntry_isSeenWhereItIsEnabledOnly(t *testing.T) {
	t.Parallel()
	for name, hide := range map[string]func(*world){
		"the right of the publisher ended": func(w *world) { w.entries[""][0] = ended(w.entries[""][0]) },
		"another entry has the slug":       func(w *world) { w.clashing = widgets },
	} {
		w := newWorld(t)
		hide(w)
		require.NotContains(t, w.do(apitest.WSMember, http.MethodGet, "/api/providers", "").Items(t, "uuid"), widgets, name)
		w.do(apitest.WSMember, http.MethodGet, at+widgets, "").Refused(t, http.StatusNotFound)
		w.enable(apitest.WSAdmin).Refused(t, http.StatusNotFound)
		require.Empty(t, w.did, name)

		w = newWorld(t)
		require.Equal(t, http.StatusCreated, w.enable(apitest.WSAdmin).Code, "the control")
		hide(w)
		require.Contains(t, w.do(apitest.WSMember, http.MethodGet, "/api/providers", "").Items(t, "uuid"), widgets, name)
		one := w.do(apitest.WSMember, http.MethodGet, at+widgets, "").Object(t, http.StatusOK)
		require.Equal(t, "Enabled", one["state"], name)
		require.Equal(t, "Global", one["scope"], name)
		require.Contains(t, one["message"], "stays enabled", name)
		require.Contains(t, w.enable(apitest.WSAdmin).Refused(t, http.StatusConflict).Message, "can be disabled", name)
		w.do(apitest.WSAdmin, http.MethodDelete, at+widgets+"/enable?confirm=true", "").Object(t, http.StatusOK)
		require.Empty(t, w.bindings, name)
		w.do(apitest.WSMember, http.MethodGet, at+widgets, "").Refused(t, http.StatusNotFound)

		// Somebody bound the export with kubectl, or by another entry.
		w = newWorld(t)
		require.Equal(t, http.StatusCreated, w.enable(apitest.WSAdmin).Code)
		hide(w)
		w.bindings[0] = w.bindings[0].DeepCopy()
		w.bindings[0].Annotations = nil
		require.Contains(t, w.do(apitest.WSMember, http.MethodGet, "/api/providers", "").Items(t, "uuid"), widgets, name)
		w.bindings[0].Annotations = map[string]string{v1alpha1.CatalogEntryAnnotation: `{"uuid":"` + tools + `","slug":"tools","displayName":"Tools"}`}
		require.NotContains(t, w.do(apitest.WSMember, http.MethodGet, "/api/providers", "").Items(t, "uuid"), widgets, name)
	}
}

// The hub reads the export with its own right: what the export has is for those who may bind it.
func TestEnable_namesNothingOfAnExportToWhomMayNotBindIt(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"no answer": `{}`, "another answer": `{"acceptClaims":[{"group":"","resource":"secrets"}]}`} {
		w := newWorld(t)
		got := w.do(apitest.WSAdmin, http.MethodPost, at+widgets+"/enable", body)
		got.Refused(t, http.StatusUnprocessableEntity)
		require.Contains(t, got.Body, "configmaps", "the control: "+name)
		w.mayNotBind = true
		got = w.do(apitest.WSAdmin, http.MethodPost, at+widgets+"/enable?dryRun=true", body)
		got.Refused(t, http.StatusForbidden)
		require.NotContains(t, got.Body, "configmaps", name)
	}
}
