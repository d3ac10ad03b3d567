package httpmw_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

func do(h http.Handler, method, path string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, http.NoBody)
	for k, v := range header {
		r.Header[k] = v
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestRequirePlatformAdmin_refusesOthers(t *testing.T) {
	t.Parallel()
	h := routes(func(r chi.Router) { r.With(httpmw.RequirePlatformAdmin).Get("/admin", ok) })
	for name, code := range map[string]int{
		"admin": http.StatusOK, "ops-carol": http.StatusOK,
		"Admin": http.StatusForbidden, "admins": http.StatusForbidden, "ops": http.StatusForbidden, "alice": http.StatusForbidden,
	} {
		require.Equal(t, code, get(h, "/admin", as(name)).Code, name)
	}
}

func TestRequireAuditor_admitsAuditorsAndPlatformAdmins(t *testing.T) {
	t.Parallel()
	h := routes(func(r chi.Router) {
		r.With(httpmw.RequireAuditor).Get("/audit", ok)
		r.With(httpmw.RequirePlatformAdmin).Get("/admin", ok)
	})
	for name, code := range map[string]int{
		"admin": http.StatusOK, "ops-carol": http.StatusOK, "guest": http.StatusOK, "audit-carol": http.StatusOK,
		"Guest": http.StatusForbidden, "audit": http.StatusForbidden, "alice": http.StatusForbidden,
	} {
		require.Equal(t, code, get(h, "/audit", as(name)).Code, name)
	}
	for _, name := range []string{"guest", "audit-carol"} {
		require.Equal(t, http.StatusForbidden, get(h, "/admin", as(name)).Code, name)
	}
}

// O-8: there is one thing that the soft-deleted may do, about themselves.
func TestO8_TheDeletedWithdrawTheirOwnRequestAndNoOthers(t *testing.T) {
	t.Parallel()
	h := newWorld().routerWith(func(r chi.Router) {
		r.Post("/api/users/{name}/undelete", ok)
		r.Delete("/api/users/{name}", ok)
		r.Get("/api/users/{name}/undelete", ok)
		r.Patch("/api/users/me", ok)
	})
	for _, c := range []struct {
		method, path string
		code         int
	}{
		{http.MethodPost, "/api/users/me/undelete", http.StatusOK},
		{http.MethodPost, "/api/users/deleted/undelete", http.StatusOK},
		{http.MethodPost, "/api/users/member/undelete", http.StatusForbidden},
		{http.MethodPost, "/api/users/deleted//undelete", http.StatusForbidden},
		{http.MethodGet, "/api/users/me/undelete", http.StatusForbidden},
		{http.MethodPatch, "/api/users/me", http.StatusForbidden},
		{http.MethodDelete, "/api/users/me", http.StatusForbidden},
	} {
		require.Equal(t, c.code, do(h, c.method, c.path, as("deleted")).Code, "%s %s", c.method, c.path)
	}
	require.Equal(t, http.StatusOK, do(h, http.MethodDelete, "/api/users/me", as("member")).Code)
}

// O-13: what is soft-deleted is 404 for everything but its undelete, which is for
// those alone who are in it.
func TestO13_TheDeletedIsReachedByItsUndeleteAlone(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := httpmw.Scopes{Tenants: w, Creator: w.creator()}
	h := w.routerWith(func(r chi.Router) {
		r.With(s.DeletedOrg).Get("/orgs/{org}/undelete", ok)
		r.With(s.DeletedWorkspace).Get("/orgs/{org}/ws/{ws}/undelete", ok)
	})
	ask := func(name, o, workspace, suffix string) int {
		header, path := as(name, httpmw.OrgHeader, o), "/orgs/"+o
		if workspace != "" {
			header.Set(httpmw.WorkspaceHeader, workspace)
			path += "/ws/" + workspace
		}
		return get(h, path+suffix, header).Code
	}
	for _, c := range []struct {
		name, org, workspace string
		undelete, other      int
	}{
		{"admin", other, "", http.StatusOK, http.StatusNotFound},
		{"admin", org, "", http.StatusOK, http.StatusOK},
		{"member", other, "", http.StatusForbidden, http.StatusForbidden},
		{"guest", org, "", http.StatusForbidden, http.StatusForbidden},
		{"stranger", other, "", http.StatusForbidden, http.StatusForbidden},
		{"guest", org, gone, http.StatusOK, http.StatusNotFound},
		{"admin", org, gone, http.StatusOK, http.StatusNotFound},
		{"guest", org, ws, http.StatusOK, http.StatusOK},
		{"member", org, gone, http.StatusForbidden, http.StatusForbidden},
		{"stranger", org, gone, http.StatusForbidden, http.StatusForbidden},
	} {
		require.Equal(t, c.undelete, ask(c.name, c.org, c.workspace, "/undelete"), "undelete: %+v", c)
		require.Equal(t, c.other, ask(c.name, c.org, c.workspace, ""), "%+v", c)
	}
	require.Equal(t, http.StatusBadRequest, get(h, "/orgs/"+other+"/undelete", as("admin")).Code)
	require.Equal(t, http.StatusBadRequest, get(h, "/orgs/"+org+"/ws/"+gone+"/undelete", as("admin", httpmw.OrgHeader, org)).Code)
}

// Nothing of a Workspace comes back as long as its Org is deleted.
func TestO13_AWorkspaceOfADeletedOrgIsNotFoundByItsUndelete(t *testing.T) {
	t.Parallel()
	w := newWorld()
	deleted := deletedOrg{w}
	h := w.routerWith(func(r chi.Router) {
		r.With(httpmw.Scopes{Tenants: deleted, Creator: w.creator()}.DeletedWorkspace).Get("/of-deleted/{org}/ws/{ws}", ok)
		r.With(httpmw.Scopes{Tenants: w, Creator: w.creator()}.DeletedWorkspace).Get("/of-live/{org}/ws/{ws}", ok)
	})
	header := as("guest", httpmw.OrgHeader, org, httpmw.WorkspaceHeader, gone)
	require.Equal(t, http.StatusNotFound, get(h, "/of-deleted/"+org+"/ws/"+gone, header).Code)
	require.Equal(t, http.StatusOK, get(h, "/of-live/"+org+"/ws/"+gone, header).Code)
}
