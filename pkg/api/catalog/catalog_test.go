package catalog_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// body returns a request with fields changed; nil takes a field out.
func body(t testing.TB, changes map[string]any) string {
	t.Helper()
	in := map[string]any{
		"slug": "widgets", "displayName": "Widgets", "apiExport": map[string]string{"path": provider, "name": "widgets"},
		"backend": map[string]string{"url": "https://widgets.example.org"},
	}
	for name, value := range changes {
		if in[name] = value; value == nil {
			delete(in, name)
		}
	}
	raw, err := json.Marshal(in)
	require.NoError(t, err)
	return string(raw)
}

func exportAt(path, name string) map[string]any {
	return map[string]any{"apiExport": map[string]string{"path": path, "name": name}}
}

func TestCreate_publishesAnEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.do(apitest.Call{Method: http.MethodPost, Path: inAcme, Body: body(t, map[string]any{
		"description": "Things", "version": "v1", "ui": map[string]string{"iconURL": svgIcon}, "memberResources": []string{"widgets"},
	})})
	name := tenancy.CatalogEntryName(apitest.Acme, "widgets")
	require.Equal(t, inAcme+"/"+name, a.Header.Get("Location"))
	require.NotEmpty(t, a.Header.Get("ETag"))
	require.Equal(t, map[string]any{
		"uuid": name, "slug": "widgets", "displayName": "Widgets", "workspaces": 2.0, "description": "Things", "version": "v1", "scope": "Org", "org": apitest.Acme,
		"apiExport": map[string]any{"path": provider, "name": "widgets"}, "backend": map[string]any{"url": "https://widgets.example.org"},
		"ui": map[string]any{"iconURL": svgIcon}, "memberResources": []any{"widgets"},
		"createdAt": "2026-03-01T12:00:00Z", "createdBy": apitest.Admin, "phase": "Ready", "conditions": []any{}, "resources": []any{},
		"claims": []any{map[string]any{"group": "", "resource": "secrets", "verbs": []any{"get"}, "dangerous": true}},
	}, a.Object(t, http.StatusCreated))
	require.Equal(t, []string{"may bind in devcluster", "create", "read providers", "count"}, w.did, "it is written before the other place is read")

	w = newWorld(t)
	got := w.do(apitest.Call{Method: http.MethodPost, Path: global, Body: body(t, nil)}).Object(t, http.StatusCreated)
	require.Equal(t, tenancy.CatalogEntryName("", "widgets"), got["uuid"])
	require.Equal(t, "Global", got["scope"])
	require.NotContains(t, got, "org")
	require.Equal(t, []string{"create", "read all"}, w.did, "a platform admin is not asked")
}

func TestCreate_answers202WhileTheExportIsNotFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unsettled = true
	a := w.do(apitest.Call{Method: http.MethodPost, Path: inAcme, Body: body(t, nil)})
	require.Equal(t, "Progressing", a.Object(t, http.StatusAccepted)["phase"])
	require.NotEmpty(t, a.Header.Get("Location"))
	w = newWorld(t)
	a = w.do(apitest.Call{Method: http.MethodPost, Path: inAcme, Body: body(t, nil), Header: http.Header{"Prefer": {"respond-async"}}})
	require.Equal(t, http.StatusAccepted, a.Code)
}

func TestCreate_refusesBadInput(t *testing.T) {
	t.Parallel()
	lab := "root:kedge:orgs:" + apitest.Globex + ":" + apitest.Lab
	for name, c := range map[string]struct {
		changes map[string]any
		field   string
		code    int
	}{
		"no name":                {map[string]any{"displayName": nil}, "displayName", http.StatusBadRequest},
		"no slug":                {map[string]any{"slug": nil}, "slug", http.StatusBadRequest},
		"an unknown field":       {map[string]any{"scope": "Global"}, "scope", http.StatusBadRequest},
		"an export of root":      {exportAt("root", "widgets"), "apiExport.path", http.StatusUnprocessableEntity},
		"an export of kcp":       {exportAt("root", "tenancy.kcp.io"), "apiExport.name", http.StatusUnprocessableEntity},
		"an export of the hub":   {exportAt("root:kedge:providers", "tenancy.kedge.faros.sh"), "apiExport.name", http.StatusUnprocessableEntity},
		"another Org's export":   {exportAt(lab, "widgets"), "apiExport.path", http.StatusUnprocessableEntity},
		"an http backend":        {map[string]any{"backend": map[string]string{"url": "http://example.org"}}, "backend.url", http.StatusUnprocessableEntity},
		"a metadata service":     {map[string]any{"backend": map[string]string{"url": "https://169.254.169.254"}}, "backend.url", http.StatusUnprocessableEntity},
		"a loopback address":     {map[string]any{"backend": map[string]string{"url": "https://127.0.0.1"}}, "backend.url", http.StatusUnprocessableEntity},
		"a port of others":       {map[string]any{"backend": map[string]string{"url": "https://example.org:22"}}, "backend.url", http.StatusUnprocessableEntity},
		"a publisher":            {map[string]any{"publishedBy": map[string]bool{"platform": true}}, "publishedBy", http.StatusBadRequest},
		"an icon that is a code": {map[string]any{"ui": map[string]string{"iconURL": "javascript:alert(1)"}}, "ui.iconURL", http.StatusUnprocessableEntity},
	} {
		for _, path := range []string{inAcme, global} {
			w := newWorld(t)
			status := w.do(apitest.Call{Method: http.MethodPost, Path: path, Body: body(t, c.changes)}).Refused(t, c.code)
			require.Equal(t, c.field, status.Details.Causes[0].Field, name)
			require.Empty(t, w.did, name)
		}
	}
	w := newWorld(t)
	w.private = true
	require.Equal(t, http.StatusCreated, w.do(apitest.Call{Method: http.MethodPost, Path: inAcme, Body: body(t, map[string]any{"backend": map[string]string{"url": "https://127.0.0.1"}})}).Code, "the control")
}

func TestCreate_asksKCPWhetherThePublisherMayBind(t *testing.T) {
	t.Parallel()
	dev := "root:kedge:orgs:" + apitest.Acme + ":" + apitest.Dev
	for name, c := range map[string]struct {
		as     string
		export map[string]any
		refuse errs.Code
		code   int
		did    []string
	}{
		"who may bind":                   {apitest.Mixed, nil, 0, http.StatusCreated, []string{"may bind in devcluster", "create", "read providers", "count"}},
		"who may not":                    {apitest.Mixed, nil, errs.Forbidden, http.StatusForbidden, []string{"may bind in devcluster"}},
		"an admin who may not":           {apitest.Admin, nil, errs.Forbidden, http.StatusForbidden, []string{"may bind in devcluster"}},
		"kcp is down":                    {apitest.Mixed, nil, errs.Unavailable, http.StatusServiceUnavailable, []string{"may bind in devcluster"}},
		"an admin of no Workspace":       {apitest.Member, nil, 0, http.StatusForbidden, nil},
		"the export of one's Workspace":  {apitest.Mixed, exportAt(dev, "widgets"), errs.Forbidden, http.StatusCreated, []string{"create", "read providers", "count"}},
		"that of a Workspace, by others": {apitest.Member, exportAt(dev, "widgets"), 0, http.StatusForbidden, nil},
		"that of a deleted Workspace":    {apitest.Admin, exportAt("root:kedge:orgs:"+apitest.Acme+":"+apitest.Gone, "widgets"), 0, http.StatusForbidden, nil},
		"that of no Workspace":           {apitest.Admin, exportAt("root:kedge:orgs:"+apitest.Acme+":"+apitest.Nowhere, "widgets"), 0, http.StatusForbidden, nil},
	} {
		w := newWorld(t)
		w.failing = func(step string) error {
			if strings.HasPrefix(step, "may bind") && c.refuse != 0 {
				return errs.New(c.refuse, "kcp says so")
			}
			return nil
		}
		a := w.do(apitest.Call{As: c.as, Method: http.MethodPost, Path: inAcme, Body: body(t, c.export)})
		require.Equal(t, c.code, a.Code, "%s: %s", name, a.Body)
		require.Equal(t, c.did, w.did, name)
	}
}

func TestCreate_isForWhomTheOrganizationSays(t *testing.T) {
	t.Parallel()
	for _, setting := range []v1alpha1.Who{v1alpha1.WhoMembers, v1alpha1.WhoAdmin} {
		for as, code := range map[string]int{
			apitest.Admin: http.StatusCreated, apitest.Mixed: map[v1alpha1.Who]int{v1alpha1.WhoMembers: http.StatusCreated, v1alpha1.WhoAdmin: http.StatusForbidden}[setting],
			apitest.WSAdmin: http.StatusForbidden, apitest.Foreigner: http.StatusForbidden, apitest.Operator: http.StatusForbidden,
		} {
			w := newWorld(t)
			org, _ := w.tenants.Org(apitest.Acme)
			o := org.DeepCopy()
			o.Spec.CatalogEntryCreation = setting
			w.tenants.PutOrg(o, acmeCluster)
			require.Equal(t, code, w.do(apitest.Call{As: as, Method: http.MethodPost, Path: inAcme, Body: body(t, nil)}).Code, "%s, %s", as, setting)
		}
	}
	for _, as := range []string{apitest.Admin, apitest.Member, apitest.Foreigner} {
		for _, c := range []apitest.Call{
			{Method: http.MethodGet, Path: global}, {Method: http.MethodPost, Path: global, Body: body(t, nil)},
			{Method: http.MethodGet, Path: global + "/" + apitest.Nowhere}, {Method: http.MethodDelete, Path: global + "/" + apitest.Nowhere},
		} {
			c.As = as
			w := newWorld(t)
			w.do(c).Refused(t, http.StatusForbidden)
			require.Empty(t, w.did)
		}
	}
}

func TestCreate_refusesASlugThatIsTaken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path string
		in   []string
		code int
		says []string
	}{
		"in the Org":              {inAcme, []string{apitest.Acme}, http.StatusConflict, []string{"already"}},
		"in the Global catalog":   {inAcme, []string{""}, http.StatusConflict, []string{"global"}},
		"in another Org":          {inAcme, []string{apitest.Globex}, http.StatusCreated, nil},
		"Global, twice":           {global, []string{""}, http.StatusConflict, []string{"already"}},
		"Global, in the way of 2": {global, []string{apitest.Acme, apitest.Globex}, http.StatusConflict, []string{"2 organizations", "Acme (" + apitest.Acme + ")", "Globex (" + apitest.Globex + ")"}},
	} {
		// The caches have the other one already, or kcp alone.
		for _, cached := range []bool{true, false} {
			w := newWorld(t)
			for _, org := range c.in {
				if cached {
					w.put(org, "widgets", "somebody")
				} else {
					w.others = append(w.others, cluster(org))
				}
			}
			a := w.do(apitest.Call{Method: http.MethodPost, Path: c.path, Body: body(t, nil)})
			require.Equal(t, c.code, a.Code, "%s: %s", name, a.Body)
			for _, text := range c.says {
				require.Contains(t, a.Body, text, name)
			}
			if c.code == http.StatusConflict {
				require.NotContains(t, a.Body, "somebody", name)
				require.Equal(t, cached, !slices.Contains(w.did, "create"), name)
				require.Equal(t, cached, !slices.Contains(w.did, "delete"), "%s: it withdraws", name)
			}
		}
	}
}

// The hub checks every entry once a minute, and members decide how many there are.
func TestCreate_refusesMoreEntriesThanTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range tenancy.MaxCatalogEntries - 1 {
		w.put(apitest.Acme, fmt.Sprintf("entry-%d", i), apitest.Member)
	}
	w.do(apitest.Call{Method: http.MethodPost, Path: inAcme, Body: body(t, nil)}).Object(t, http.StatusCreated)
	a := w.do(apitest.Call{Method: http.MethodPost, Path: inAcme, Body: body(t, map[string]any{"slug": "gadgets"})})
	a.RefusedCause(t, tenancy.CauseQuota)
	w.do(apitest.Call{Method: http.MethodPost, Path: global, Body: body(t, map[string]any{"slug": "gadgets"})}).Object(t, http.StatusCreated)
}

// The cache has room for one more entry, and another replica creates one at the same moment.
func TestCreate_withdrawsWhatIsOverTheLimit(t *testing.T) {
	t.Parallel()
	for _, raced := range []bool{true, false} {
		w := newWorld(t)
		for i := range tenancy.MaxCatalogEntries - 1 {
			w.put(apitest.Acme, fmt.Sprintf("entry-%d", i), apitest.Member)
		}
		w.failing = func(step string) error {
			if step == "create" && raced {
				w.put(apitest.Acme, "raced", apitest.Member)
			}
			return nil
		}
		a := w.do(apitest.Call{Method: http.MethodPost, Path: inAcme, Body: body(t, nil)})
		if raced {
			require.Contains(t, a.RefusedCause(t, tenancy.CauseQuota).Message, "200 of at most 200")
			require.Contains(t, w.did, "delete")
		} else {
			a.Object(t, http.StatusCreated)
		}
		require.Len(t, w.CatalogEntriesOf(apitest.Acme), tenancy.MaxCatalogEntries)
	}
}

func TestCreate_withdrawsWhereItCannotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.failing = func(step string) error {
		if step == "count" {
			return errs.New(errs.Unavailable, "down")
		}
		return nil
	}
	w.do(apitest.Call{Method: http.MethodPost, Path: inAcme, Body: body(t, nil)}).Refused(t, http.StatusServiceUnavailable)
	require.Empty(t, w.CatalogEntriesOf(apitest.Acme))
}

func TestCreate_withdrawsWhereTheOtherPlaceIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.failing = func(step string) error {
		if step == "read providers" {
			return errs.New(errs.Unavailable, "down")
		}
		return nil
	}
	w.do(apitest.Call{Method: http.MethodPost, Path: inAcme, Body: body(t, nil)}).Refused(t, http.StatusServiceUnavailable)
	require.Empty(t, w.CatalogEntriesOf(apitest.Acme))
}

func TestCreate_loseTheRaceForAName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	deleted := metav1.NewTime(time.Unix(1, 0))
	w.put(apitest.Acme, "widgets", "somebody").DeletionTimestamp = &deleted
	require.Contains(t, w.do(apitest.Call{Method: http.MethodPost, Path: inAcme, Body: body(t, nil)}).Refused(t, http.StatusConflict).Message, "being deleted")
	require.Empty(t, w.do(apitest.Call{Method: http.MethodGet, Path: inAcme}).Items(t, "uuid"), "it is not shown")

	w = newWorld(t)
	w.failing = func(step string) error {
		if step == "create" {
			w.put(apitest.Acme, "widgets", "somebody")
		}
		return nil
	}
	w.do(apitest.Call{Method: http.MethodPost, Path: inAcme, Body: body(t, nil)}).Refused(t, http.StatusConflict)
	require.Len(t, w.CatalogEntriesOf(apitest.Acme), 1, "that of the other")
}

func TestCreate_repeatsAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := http.Header{"Idempotency-Key": {"k1"}}
	first := w.do(apitest.Call{Method: http.MethodPost, Path: inAcme, Body: body(t, nil), Header: key}).Object(t, http.StatusCreated)
	w.did = nil
	again := w.do(apitest.Call{Method: http.MethodPost, Path: inAcme, Body: body(t, map[string]any{"slug": "other"}), Header: key}).Object(t, http.StatusCreated)
	require.Equal(t, first["uuid"], again["uuid"])
	require.Empty(t, w.did)
	w.do(apitest.Call{Method: http.MethodPost, Path: inAcme, Body: body(t, nil), Header: http.Header{"Idempotency-Key": {"k2"}}}).Refused(t, http.StatusConflict)
	w.do(apitest.Call{As: apitest.Mixed, Method: http.MethodPost, Path: inAcme, Body: body(t, nil), Header: key}).Refused(t, http.StatusConflict)
}

func TestEntries_areReadByMembersOfTheOrg(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own, foreign := w.put(apitest.Acme, "widgets", apitest.Admin), w.put(apitest.Globex, "widgets", apitest.Foreigner)
	w.put("", "gadgets", apitest.Operator)
	for as, code := range map[string]int{
		apitest.Admin: http.StatusOK, apitest.Member: http.StatusOK, apitest.WSMember: http.StatusForbidden,
		apitest.Foreigner: http.StatusForbidden, apitest.Operator: http.StatusForbidden,
	} {
		for _, path := range []string{inAcme, inAcme + "/" + own.Name} {
			require.Equal(t, code, w.do(apitest.Call{As: as, Method: http.MethodGet, Path: path}).Code, "%s %s", as, path)
		}
	}
	require.Equal(t, []string{own.Name}, w.do(apitest.Call{Method: http.MethodGet, Path: inAcme}).Items(t, "uuid"))
	require.Equal(t, []string{tenancy.CatalogEntryName("", "gadgets")}, w.do(apitest.Call{Method: http.MethodGet, Path: global}).Items(t, "uuid"))
	w.do(apitest.Call{Method: http.MethodGet, Path: inAcme + "?limit=0"}).RefusedField(t, "query:limit")

	missing := w.do(apitest.Call{Method: http.MethodGet, Path: inAcme + "/" + apitest.Nowhere})
	missing.Refused(t, http.StatusNotFound)
	for _, c := range []apitest.Call{
		{Method: http.MethodGet}, {Method: http.MethodPut, Body: body(t, nil)}, {Method: http.MethodDelete},
	} {
		c.Path = inAcme + "/" + foreign.Name
		require.Equal(t, missing.Body, w.do(c).Body, "an entry of another Organization is a missing one")
	}
	w.grace()
	for _, path := range []string{inAcme, inAcme + "/" + own.Name} {
		w.do(apitest.Call{Method: http.MethodGet, Path: path}).Refused(t, http.StatusNotFound)
	}
}

func TestReplace_changesWhatIsNotLocked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.put(apitest.Acme, "widgets", apitest.Mixed)
	at := inAcme + "/" + e.Name
	a := w.do(apitest.Call{As: apitest.Mixed, Method: http.MethodPut, Path: at, Body: body(t, map[string]any{
		"displayName": "New", "description": "d", "version": "2", "ui": map[string]string{"iconURL": svgIcon}, "memberResources": []string{"widgets"},
	})})
	got := a.Object(t, http.StatusOK)
	require.Equal(t, []any{"New", "d", "2", []any{"widgets"}, map[string]any{"iconURL": svgIcon}},
		[]any{got["displayName"], got["description"], got["version"], got["memberResources"], got["ui"]})
	got = w.do(apitest.Call{As: apitest.Mixed, Method: http.MethodPut, Path: at, Body: body(t, nil)}).Object(t, http.StatusOK)
	for _, name := range []string{"description", "version", "memberResources", "ui"} {
		require.NotContains(t, got, name, "it replaces")
	}
	held := w.held[acmeCluster][e.Name]
	w.do(apitest.Call{As: apitest.Mixed, Method: http.MethodPut, Path: at, Body: body(t, nil)}).Object(t, http.StatusOK)
	require.Equal(t, held, w.held[acmeCluster][e.Name], "nothing changes")

	for field, changes := range map[string]map[string]any{
		"slug": {"slug": "other"}, "apiExport.path": exportAt(provider+"x", "widgets"), "apiExport.name": exportAt(provider, "gadgets"),
		"backend.url": {"backend": nil},
	} {
		status := w.do(apitest.Call{Method: http.MethodPut, Path: at, Body: body(t, changes)}).Refused(t, http.StatusUnprocessableEntity)
		require.Equal(t, field, status.Details.Causes[0].Field)
		require.Contains(t, status.Message, field)
	}
	w.do(apitest.Call{Method: http.MethodPut, Path: at, Body: body(t, map[string]any{"displayName": nil})}).RefusedField(t, "displayName")
	w.do(apitest.Call{Method: http.MethodPatch, Path: at, Body: `{}`}).Refused(t, http.StatusMethodNotAllowed)
}

func TestEntries_areChangedByTheirPublisherAndAdmins(t *testing.T) {
	t.Parallel()
	for as, code := range map[string]int{
		apitest.Admin: http.StatusOK, apitest.Mixed: http.StatusOK, apitest.Member: http.StatusForbidden,
		apitest.WSAdmin: http.StatusForbidden, apitest.Foreigner: http.StatusForbidden,
	} {
		for method, want := range map[string]int{http.MethodPut: code, http.MethodDelete: map[bool]int{true: http.StatusNoContent, false: code}[code == http.StatusOK]} {
			w := newWorld(t)
			e := w.put(apitest.Acme, "widgets", apitest.Mixed)
			c := apitest.Call{As: as, Method: method, Path: inAcme + "/" + e.Name}
			if method == http.MethodPut {
				c.Body = body(t, nil)
			}
			require.Equal(t, want, w.do(c).Code, "%s %s", method, as)
			require.Equal(t, code == http.StatusOK, len(w.did) > 0)
		}
	}
}

func TestDelete_endsAnEntry(t *testing.T) {
	t.Parallel()
	for path, org := range map[string]string{inAcme: apitest.Acme, global: ""} {
		w := newWorld(t)
		at := path + "/" + w.put(org, "widgets", "somebody").Name
		require.Equal(t, http.StatusNoContent, w.do(apitest.Call{Method: http.MethodDelete, Path: at}).Code)
		w.do(apitest.Call{Method: http.MethodDelete, Path: at}).Refused(t, http.StatusNotFound)
		w.do(apitest.Call{Method: http.MethodGet, Path: at}).Refused(t, http.StatusNotFound)
	}
}

func TestEntries_honourIfMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []apitest.Call{{Method: http.MethodPut, Body: body(t, map[string]any{"displayName": "New"})}, {Method: http.MethodDelete}} {
		w := newWorld(t)
		c.Path = inAcme + "/" + w.put(apitest.Acme, "widgets", apitest.Admin).Name
		c.Header = apitest.IfMatch(apitest.Tag("41"))
		require.Equal(t, http.StatusPreconditionFailed, w.do(c).Code, c.Method)
		require.Len(t, w.CatalogEntriesOf(apitest.Acme), 1)
		c.Header = apitest.IfMatch(apitest.Tag(apitest.FirstVersion))
		require.Less(t, w.do(c).Code, 300, c.Method)
	}
}

func TestEntries_saySoWhenKCPIsDown(t *testing.T) {
	t.Parallel()
	for _, path := range []string{inAcme, global} {
		for _, c := range []apitest.Call{
			{Method: http.MethodPost, Body: body(t, map[string]any{"slug": "new"})}, {Method: http.MethodPut, Body: body(t, nil)}, {Method: http.MethodDelete},
		} {
			w := newWorld(t)
			e := w.put(map[string]string{inAcme: apitest.Acme}[path], "widgets", apitest.Admin)
			w.failing = func(string) error { return errs.New(errs.Unavailable, "down") }
			if c.Path = path; c.Method != http.MethodPost {
				c.Path += "/" + e.Name
			}
			w.do(c).Refused(t, http.StatusServiceUnavailable)
		}
	}
}
