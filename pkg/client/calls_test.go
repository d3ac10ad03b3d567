package client_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

const (
	org = "231a151a-434e-4623-ad6e-69406abb9387"
	ws  = "9acbf567-a188-4c75-9c40-3c3bec1a775f"
	id  = "0b6d2f5e-7a3c-4c6b-9a3a-0d7c1f1f2a3b"
)

// sent is a request as the hub got it.
type sent struct{ request, org, workspace, body string }

// recording returns a client of a hub that answers every request alike, and what it got.
func recording(t *testing.T, code int, body string) (*client.Client, *[]sent) {
	t.Helper()
	got := &[]sent{}
	return clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		*got = append(*got, sent{r.Method + " " + r.URL.RequestURI(), r.Header.Get("X-Kedge-Org"), r.Header.Get("X-Kedge-Workspace"), string(raw)})
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}), got
}

// A hub of the version before does not know the parameter, and answers with what lives.
func TestDeletedWorkspaces_leavesOutWhatLives(t *testing.T) {
	t.Parallel()
	c, _ := recording(t, http.StatusOK,
		`{"items":[{"uuid":"live"},{"uuid":"gone","deletionRequestedAt":"2026-11-20T00:00:00Z"},{"uuid":"more"}]}`)
	items, err := client.Collect(c.Org(org).DeletedWorkspaces(t.Context()))
	require.NoError(t, err)
	require.Len(t, items, 1)
	require.Equal(t, "gone", items[0].UUID)
	c, _ = recording(t, http.StatusForbidden, `{}`)
	_, err = client.Collect(c.Org(org).DeletedWorkspaces(t.Context()))
	require.Error(t, err)
}

func TestMethods_sendWhatTheContractSays(t *testing.T) {
	t.Parallel()
	c, got := recording(t, http.StatusOK, `{"items":[],"uuid":"u"}`)
	sends := func(request, org, workspace, body string) func(any, error) {
		return func(_ any, err error) {
			t.Helper()
			require.NoError(t, err)
			require.Equal(t, []sent{{request, org, workspace, body}}, *got)
			*got = nil
		}
	}
	const orgs, works, admin = "/api/orgs/" + org, "/api/orgs/" + org + "/workspaces/" + ws, rest.RoleAdmin
	ctx, o, in := t.Context(), c.Org(org), c.Org(org).Workspace(ws)
	entry := rest.CatalogEntryRequest{Slug: "s", DisplayName: "S", APIExport: rest.CatalogExportRef{Path: "p", Name: "n"}}
	sends("GET /api/users/me", "", "", "")(c.Me(ctx))
	sends("PATCH /api/users/me", "", "", `{"displayName":"A"}`)(c.RenameMe(ctx, "A"))
	sends("GET /api/users/me/memberships?deleted=true", "", "", "")(client.Collect(c.Memberships(ctx, true)))
	sends("GET /api/users?limit=500&q=bo", "", "", "")(client.Collect(c.SearchPeople(ctx, "bo")))
	sends("DELETE /api/users/bob", "", "", "")(c.DeletePerson(ctx, "bob"))
	sends("POST /api/users/bob/undelete", "", "", "")(c.UndeletePerson(ctx, "bob"))
	sends("GET /api/users/me/sessions?limit=500", "", "", "")(client.Collect(c.Sessions().List(ctx)))
	sends("DELETE /api/users/me/sessions/"+id, "", "", "")(c.Sessions().Delete(ctx, id))
	sends("DELETE /api/users/me/sessions?all=true", "", "", "")(c.Sessions().EndAll(ctx))
	sends("GET /api/orgs?limit=500", "", "", "")(client.Collect(c.Orgs().List(ctx)))
	sends("POST /api/orgs", "", "", `{"displayName":"A"}`)(c.Orgs().Create(ctx, rest.CreateRequest{DisplayName: "A"}))
	sends("GET "+orgs, org, "", "")(c.Orgs().Get(ctx, org))
	sends("PATCH "+orgs, org, "", `{"defaultAccess":"view"}`)(c.Orgs().Update(ctx, org, rest.UpdateOrgRequest{DefaultAccess: rest.Set("view")}))
	sends("DELETE "+orgs, org, "", "")(c.Orgs().Delete(ctx, org))
	sends("POST "+orgs+"/undelete", org, "", "")(o.Undelete(ctx))
	sends("GET "+orgs+"/members?limit=500", org, "", "")(client.Collect(o.Members().List(ctx)))
	sends("POST "+orgs+"/members", org, "", `{"userRef":{"name":"bob"},"role":"admin"}`)(
		o.Members().Create(ctx, rest.AddWorkspaceMemberRequest{UserRef: rest.UserRef{Name: "bob"}, Role: admin}),
	)
	sends("DELETE "+orgs+"/members/bob?cascade=true", org, "", "")(o.Members().Delete(ctx, "bob", client.Cascade()))
	sends("DELETE "+orgs+"/memberships/me", org, "", "")(o.Leave(ctx))
	sends("GET "+orgs+"/workspaces?limit=500", org, "", "")(client.Collect(o.Workspaces().List(ctx)))
	sends("GET "+orgs+"/workspaces?deleted=true&limit=500", org, "", "")(client.Collect(o.DeletedWorkspaces(ctx)))
	sends("POST "+orgs+"/workspaces", org, "", `{"displayName":"W"}`)(o.Workspaces().Create(ctx, rest.CreateWorkspaceRequest{DisplayName: "W"}))
	sends("GET "+works, org, ws, "")(o.Workspaces().Get(ctx, ws))
	sends("PATCH "+works, org, ws, `{"displayName":"V"}`)(o.Workspaces().Update(ctx, ws, rest.UpdateWorkspaceRequest{DisplayName: rest.Set("V")}))
	sends("DELETE "+works, org, ws, "")(o.Workspaces().Delete(ctx, ws))
	sends("POST "+works+"/undelete", org, ws, "")(in.Undelete(ctx))
	sends("PATCH "+works+"/members/bob", org, ws, `{"sudo":true}`)(in.Members().Update(ctx, "bob", rest.UpdateWorkspaceMemberRequest{Sudo: rest.Set(true)}))
	sends("DELETE "+works+"/members/bob", org, ws, "")(in.Members().Delete(ctx, "bob"))
	sends("DELETE "+works+"/memberships/me", org, ws, "")(in.Leave(ctx))
	sends("GET "+works+"/kubeconfig", org, ws, "")(in.Kubeconfig(ctx))
	sends("GET "+works+"/serviceaccounts?limit=500", org, ws, "")(client.Collect(in.Bots().List(ctx)))
	sends("POST "+works+"/serviceaccounts", org, ws, `{"displayName":"CI","role":"admin"}`)(
		in.Bots().Create(ctx, rest.CreateBotRequest{DisplayName: "CI", Role: admin}),
	)
	sends("GET "+works+"/serviceaccounts/"+id, org, ws, "")(in.Bots().Get(ctx, id))
	sends("PATCH "+works+"/serviceaccounts/"+id, org, ws, `{"role":"admin"}`)(in.Bots().Update(ctx, id, rest.UpdateBotRequest{Role: rest.Set(admin)}))
	sends("DELETE "+works+"/serviceaccounts/"+id, org, ws, "")(in.Bots().Delete(ctx, id))
	sends("GET "+works+"/serviceaccounts/"+id+"/tokens?limit=500", org, ws, "")(client.Collect(in.BotTokens(id).List(ctx)))
	sends("POST "+works+"/serviceaccounts/"+id+"/tokens", org, ws, `{"expirationSeconds":3600,"name":"n"}`)(
		in.IssueBotToken(ctx, id, rest.IssueBotTokenRequest{Name: "n", ExpirationSeconds: new(int64(3600))}),
	)
	sends("DELETE "+works+"/serviceaccounts/"+id+"/tokens/t", org, ws, "")(in.BotTokens(id).Delete(ctx, "t"))
	sends("DELETE "+works+"/serviceaccounts/"+id+"/tokens", org, ws, "")(in.BotTokens(id).EndAll(ctx))
	sends("GET "+orgs+"/catalog?limit=500", org, "", "")(client.Collect(o.Catalog().List(ctx)))
	sends("GET "+orgs+"/catalog/"+id, org, "", "")(o.Catalog().Get(ctx, id))
	sends("POST "+orgs+"/catalog", org, "", `{"slug":"s","displayName":"S","apiExport":{"path":"p","name":"n"}}`)(o.Catalog().Create(ctx, entry))
	sends("PUT /api/admin/catalog/"+id, "", "", `{"slug":"s","displayName":"S","apiExport":{"path":"p","name":"n"}}`)(
		c.Admin().Catalog().Replace(ctx, id, entry),
	)
	sends("DELETE /api/admin/catalog/"+id, "", "", "")(c.Admin().Catalog().Delete(ctx, id))
	sends("GET /api/providers?limit=500", org, ws, "")(client.Collect(in.Providers().List(ctx)))
	sends("GET "+works+"/providers/"+id, org, ws, "")(in.Providers().Get(ctx, id))
	sends("POST "+works+"/providers/"+id+"/enable", org, ws, `{"acceptClaims":[{"group":"","resource":"configmaps"}],"rejectClaims":[]}`)(
		in.Enable(ctx, id, rest.EnableProviderRequest{AcceptClaims: []rest.GroupResource{{Resource: "configmaps"}}}),
	)
	sends("POST "+works+"/providers/"+id+"/enable?dryRun=true", org, ws, `{"acceptClaims":[],"rejectClaims":[]}`)(
		in.Enable(ctx, id, rest.EnableProviderRequest{}, client.DryRun()),
	)
	sends("DELETE "+works+"/providers/"+id+"/enable?confirm=true", org, ws, "")(in.Disable(ctx, id))
	sends("GET /api/admin/users?limit=500&registration=Pending", "", "", "")(
		client.Collect(c.Admin().Users().List(ctx, client.Query("q", ""), client.Query("registration", "Pending"))),
	)
	sends("GET /api/admin/users/bob", "", "", "")(c.Admin().Users().Get(ctx, "bob"))
	sends("GET /api/admin/users/bob/memberships?limit=500", "", "", "")(client.Collect(c.Admin().Memberships(ctx, "bob", false)))
	sends("PATCH /api/admin/users/bob", "", "", `{"orgQuota":7}`)(
		c.Admin().Users().Update(ctx, "bob", rest.AdminUpdateUserRequest{OrgQuota: rest.Set[int32](7)}),
	)
	sends("GET /api/admin/users/bob/sessions?limit=500", "", "", "")(client.Collect(c.Admin().Sessions("bob").List(ctx)))
	sends("DELETE /api/admin/users/bob/sessions/"+id, "", "", "")(c.Admin().Sessions("bob").Delete(ctx, id))
	sends("DELETE /api/admin/users/bob/sessions?all=true", "", "", "")(c.Admin().Sessions("bob").EndAll(ctx))
	sends("GET /api/admin/orgs?limit=500&personal=false&q=a", "", "", "")(
		client.Collect(c.Admin().Orgs().List(ctx, client.Query("q", "a"), client.Query("personal", "false"))),
	)
	sends("PATCH /api/admin/orgs/"+org, "", "", `{"workspaceQuota":null}`)(
		c.Admin().Orgs().Update(ctx, org, rest.AdminUpdateOrgRequest{WorkspaceQuota: rest.Null[int32]()}),
	)
	sends("DELETE /api/admin/orgs/"+org, "", "", "")(c.Admin().Orgs().Delete(ctx, org))
	sends("GET /api/admin/deletions?limit=500", "", "", "")(client.Collect(c.Admin().Deletions(ctx)))
}

func TestList_readsEveryPageAndStopsWhereTold(t *testing.T) {
	t.Parallel()
	pages := 0
	api := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		switch pages++; r.URL.Query().Get("continue") {
		case "":
			_, _ = io.WriteString(w, `{"items":[{"uuid":"1"},{"uuid":"2"}],"continue":"next"}`)
		case "next":
			_, _ = io.WriteString(w, `{"items":[{"uuid":"3"}],"continue":"broken"}`)
		default:
			refusal(w, http.StatusBadRequest, "begin again")
		}
	})
	var got []string
	var last error
	for o, err := range api.Orgs().List(t.Context()) {
		got, last = append(got, o.UUID), err
	}
	require.Equal(t, []string{"1", "2", "3", ""}, got)
	require.EqualError(t, last, "begin again")
	require.Equal(t, 3, pages)
	_, err := client.Collect(api.Orgs().List(t.Context()))
	require.Error(t, err)
	pages = 0
	for _, err := range api.Orgs().List(t.Context()) {
		require.NoError(t, err)
		break
	}
	require.Equal(t, 1, pages)
}

func TestIfMatch_sendsTheETagThatWasRead(t *testing.T) {
	t.Parallel()
	match := ""
	api := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		match = r.Header.Get("If-Match")
		w.Header().Set("ETag", `"41"`)
		_, _ = io.WriteString(w, `{"uuid":"`+ws+`"}`)
	})
	in := api.Org(org).Workspaces()
	seen, err := in.Get(t.Context(), ws)
	require.NoError(t, err)
	require.Empty(t, match)
	_, err = in.Update(t.Context(), ws, rest.UpdateWorkspaceRequest{DisplayName: rest.Set("V")}, client.IfMatch(seen.ETag))
	require.NoError(t, err)
	require.Equal(t, `"41"`, match)
}

// A creation that the hub answers with 202 is read until the object is ready.
func TestCreate_waitsUntilItIsReady(t *testing.T) {
	t.Parallel()
	reads := 0
	api := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, `{"uuid":"`+ws+`","phase":"Progressing"}`)
			return
		}
		if r.Header.Get("X-Kedge-Workspace") != ws {
			refusal(w, http.StatusBadRequest, "the header is missing")
			return
		}
		if reads++; reads == 1 {
			refusal(w, http.StatusForbidden, "not yet")
			return
		}
		_, _ = io.WriteString(w, `{"uuid":"`+ws+`","phase":"Ready"}`)
	})
	made, err := api.Org(org).Workspaces().Create(t.Context(), rest.CreateWorkspaceRequest{DisplayName: "W"})
	require.NoError(t, err)
	require.Equal(t, rest.PhaseReady, made.Phase)
	require.Equal(t, 2, reads)
	made, err = api.Org(org).Workspaces().Create(t.Context(), rest.CreateWorkspaceRequest{DisplayName: "W"}, client.NoWait())
	require.NoError(t, err)
	require.Equal(t, "Progressing", made.Phase)
	require.Equal(t, 2, reads)
}

func TestDisable_waitsForTheFinalizers(t *testing.T) {
	t.Parallel()
	reads, deleted := 0, false
	api := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, `{"uuid":"`+id+`","state":"Disabled","message":"waits for 1 widgets"}`)
			return
		}
		reads++
		switch {
		case reads == 1:
			_, _ = io.WriteString(w, `{"uuid":"`+id+`","state":"Disabled","message":"waits for 1 widgets"}`)
		case deleted:
			refusal(w, http.StatusNotFound, "no such entry")
		default:
			_, _ = io.WriteString(w, `{"uuid":"`+id+`","state":"Disabled"}`)
		}
	})
	p, err := api.Org(org).Workspace(ws).Disable(t.Context(), id)
	require.NoError(t, err)
	require.True(t, p.Removed())
	require.Equal(t, 2, reads)
	reads, deleted = 0, true
	p, err = api.Org(org).Workspace(ws).Disable(t.Context(), id)
	require.NoError(t, err, "the entry goes with the binding, if it was deleted before")
	require.True(t, p.Removed())
	require.Equal(t, 2, reads)
	p, err = api.Org(org).Workspace(ws).Disable(t.Context(), id, client.NoWait())
	require.NoError(t, err)
	require.Equal(t, "waits for 1 widgets", p.Message)
}
