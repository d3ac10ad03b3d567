package client_test

import (
	"context"
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

func TestMethods_sendWhatTheContractSays(t *testing.T) {
	t.Parallel()
	admin := rest.RoleAdmin
	const orgs, works = "/api/orgs/" + org, "/api/orgs/" + org + "/workspaces/" + ws
	in := func(c *client.Client) client.InWorkspace { return c.Org(org).Workspace(ws) }
	discard := func(_ any, err error) error { return err }
	for _, c := range []struct {
		want sent
		call func(ctx context.Context, c *client.Client) error
	}{
		{sent{"GET /api/users/me", "", "", ""}, func(ctx context.Context, c *client.Client) error { return discard(c.Me(ctx)) }},
		{sent{"PATCH /api/users/me", "", "", `{"displayName":"A"}`}, func(ctx context.Context, c *client.Client) error { return discard(c.RenameMe(ctx, "A")) }},
		{sent{"GET /api/users/me/memberships?deleted=true", "", "", ""}, func(ctx context.Context, c *client.Client) error {
			return discard(client.Collect(c.Memberships(ctx, true)))
		}},
		{sent{"GET /api/users?limit=500&q=bo", "", "", ""}, func(ctx context.Context, c *client.Client) error {
			return discard(client.Collect(c.SearchPeople(ctx, "bo")))
		}},
		{sent{"DELETE /api/users/bob", "", "", ""}, func(ctx context.Context, c *client.Client) error { return discard(c.DeletePerson(ctx, "bob")) }},
		{sent{"POST /api/users/bob/undelete", "", "", ""}, func(ctx context.Context, c *client.Client) error { return discard(c.UndeletePerson(ctx, "bob")) }},
		{sent{"GET /api/users/me/sessions?limit=500", "", "", ""}, func(ctx context.Context, c *client.Client) error {
			return discard(client.Collect(c.Sessions().List(ctx)))
		}},
		{sent{"DELETE /api/users/me/sessions/" + id, "", "", ""}, func(ctx context.Context, c *client.Client) error { return discard(c.Sessions().Delete(ctx, id)) }},
		{sent{"DELETE /api/users/me/sessions?all=true", "", "", ""}, func(ctx context.Context, c *client.Client) error { return c.Sessions().DeleteAll(ctx) }},
		{sent{"GET /api/orgs?limit=500", "", "", ""}, func(ctx context.Context, c *client.Client) error { return discard(client.Collect(c.Orgs().List(ctx))) }},
		{sent{"POST /api/orgs", "", "", `{"displayName":"A"}`}, func(ctx context.Context, c *client.Client) error {
			return discard(c.Orgs().Create(ctx, rest.CreateRequest{DisplayName: "A"}))
		}},
		{sent{"GET " + orgs, org, "", ""}, func(ctx context.Context, c *client.Client) error { return discard(c.Orgs().Get(ctx, org)) }},
		{sent{"PATCH " + orgs, org, "", `{"defaultAccess":"view"}`}, func(ctx context.Context, c *client.Client) error {
			return discard(c.Orgs().Update(ctx, org, rest.UpdateOrgRequest{DefaultAccess: rest.Set("view")}))
		}},
		{sent{"DELETE " + orgs, org, "", ""}, func(ctx context.Context, c *client.Client) error { return discard(c.Orgs().Delete(ctx, org)) }},
		{sent{"POST " + orgs + "/undelete", org, "", ""}, func(ctx context.Context, c *client.Client) error { return discard(c.Org(org).Undelete(ctx)) }},
		{sent{"GET " + orgs + "/members?limit=500", org, "", ""}, func(ctx context.Context, c *client.Client) error {
			return discard(client.Collect(c.Org(org).Members().List(ctx)))
		}},
		{sent{"POST " + orgs + "/members", org, "", `{"userRef":{"name":"bob"},"role":"admin"}`}, func(ctx context.Context, c *client.Client) error {
			return discard(c.Org(org).Members().Create(ctx, rest.AddWorkspaceMemberRequest{UserRef: rest.UserRef{Name: "bob"}, Role: admin}))
		}},
		{sent{"DELETE " + orgs + "/members/bob?cascade=true", org, "", ""}, func(ctx context.Context, c *client.Client) error {
			return discard(c.Org(org).Members().Delete(ctx, "bob", client.Cascade()))
		}},
		{sent{"DELETE " + orgs + "/memberships/me", org, "", ""}, func(ctx context.Context, c *client.Client) error { return discard(c.Org(org).Leave(ctx)) }},
		{sent{"GET " + orgs + "/workspaces?limit=500", org, "", ""}, func(ctx context.Context, c *client.Client) error {
			return discard(client.Collect(c.Org(org).Workspaces().List(ctx)))
		}},
		{sent{"POST " + orgs + "/workspaces", org, "", `{"displayName":"W"}`}, func(ctx context.Context, c *client.Client) error {
			return discard(c.Org(org).Workspaces().Create(ctx, rest.CreateRequest{DisplayName: "W"}))
		}},
		{sent{"GET " + works, org, ws, ""}, func(ctx context.Context, c *client.Client) error {
			return discard(c.Org(org).Workspaces().Get(ctx, ws))
		}},
		{sent{"PATCH " + works, org, ws, `{"displayName":"V"}`}, func(ctx context.Context, c *client.Client) error {
			return discard(c.Org(org).Workspaces().Update(ctx, ws, rest.RenameRequest{DisplayName: rest.Set("V")}))
		}},
		{sent{"DELETE " + works, org, ws, ""}, func(ctx context.Context, c *client.Client) error {
			return discard(c.Org(org).Workspaces().Delete(ctx, ws))
		}},
		{sent{"POST " + works + "/undelete", org, ws, ""}, func(ctx context.Context, c *client.Client) error { return discard(in(c).Undelete(ctx)) }},
		{sent{"PATCH " + works + "/members/bob", org, ws, `{"sudo":true}`}, func(ctx context.Context, c *client.Client) error {
			return discard(in(c).Members().Update(ctx, "bob", rest.UpdateWorkspaceMemberRequest{Sudo: rest.Set(true)}))
		}},
		{sent{"DELETE " + works + "/members/bob", org, ws, ""}, func(ctx context.Context, c *client.Client) error { return discard(in(c).Members().Delete(ctx, "bob")) }},
		{sent{"DELETE " + works + "/memberships/me", org, ws, ""}, func(ctx context.Context, c *client.Client) error { return discard(in(c).Leave(ctx)) }},
		{sent{"GET " + works + "/kubeconfig", org, ws, ""}, func(ctx context.Context, c *client.Client) error { return discard(in(c).Kubeconfig(ctx)) }},
		{sent{"GET " + works + "/serviceaccounts?limit=500", org, ws, ""}, func(ctx context.Context, c *client.Client) error {
			return discard(client.Collect(in(c).Bots().List(ctx)))
		}},
		{sent{"POST " + works + "/serviceaccounts", org, ws, `{"displayName":"CI","role":"admin"}`}, func(ctx context.Context, c *client.Client) error {
			return discard(in(c).Bots().Create(ctx, rest.CreateBotRequest{DisplayName: "CI", Role: admin}))
		}},
		{sent{"GET " + works + "/serviceaccounts/" + id, org, ws, ""}, func(ctx context.Context, c *client.Client) error { return discard(in(c).Bots().Get(ctx, id)) }},
		{sent{"PATCH " + works + "/serviceaccounts/" + id, org, ws, `{"role":"admin"}`}, func(ctx context.Context, c *client.Client) error {
			return discard(in(c).Bots().Update(ctx, id, rest.UpdateBotRequest{Role: rest.Set(admin)}))
		}},
		{sent{"DELETE " + works + "/serviceaccounts/" + id, org, ws, ""}, func(ctx context.Context, c *client.Client) error { return discard(in(c).Bots().Delete(ctx, id)) }},
		{sent{"GET " + works + "/serviceaccounts/" + id + "/tokens?limit=500", org, ws, ""}, func(ctx context.Context, c *client.Client) error {
			return discard(client.Collect(in(c).BotTokens(id).List(ctx)))
		}},
		{sent{"POST " + works + "/serviceaccounts/" + id + "/tokens", org, ws, `{"expirationSeconds":3600,"name":"n"}`}, func(ctx context.Context, c *client.Client) error {
			return discard(in(c).IssueBotToken(ctx, id, rest.IssueBotTokenRequest{Name: "n", ExpirationSeconds: new(int64(3600))}))
		}},
		{sent{"DELETE " + works + "/serviceaccounts/" + id + "/tokens/t", org, ws, ""}, func(ctx context.Context, c *client.Client) error {
			return discard(in(c).BotTokens(id).Delete(ctx, "t"))
		}},
		{sent{"DELETE " + works + "/serviceaccounts/" + id + "/tokens", org, ws, ""}, func(ctx context.Context, c *client.Client) error { return in(c).BotTokens(id).DeleteAll(ctx) }},
		{sent{"GET " + orgs + "/catalog?limit=500", org, "", ""}, func(ctx context.Context, c *client.Client) error {
			return discard(client.Collect(c.Org(org).Catalog().List(ctx)))
		}},
		{sent{"GET " + orgs + "/catalog/" + id, org, "", ""}, func(ctx context.Context, c *client.Client) error { return discard(c.Org(org).Catalog().Get(ctx, id)) }},
		{sent{"POST " + orgs + "/catalog", org, "", `{"slug":"s","displayName":"S","apiExport":{"path":"p","name":"n"}}`}, func(ctx context.Context, c *client.Client) error {
			return discard(c.Org(org).Catalog().Create(ctx, rest.CatalogEntryRequest{Slug: "s", DisplayName: "S", APIExport: rest.CatalogExportRef{Path: "p", Name: "n"}}))
		}},
		{sent{"PUT /api/admin/catalog/" + id, "", "", `{"slug":"s","displayName":"S","apiExport":{"path":"p","name":"n"}}`}, func(ctx context.Context, c *client.Client) error {
			return discard(c.Admin().Catalog().Replace(ctx, id, rest.CatalogEntryRequest{Slug: "s", DisplayName: "S", APIExport: rest.CatalogExportRef{Path: "p", Name: "n"}}))
		}},
		{sent{"DELETE /api/admin/catalog/" + id, "", "", ""}, func(ctx context.Context, c *client.Client) error { return discard(c.Admin().Catalog().Delete(ctx, id)) }},
		{sent{"GET /api/providers?limit=500", org, ws, ""}, func(ctx context.Context, c *client.Client) error {
			return discard(client.Collect(in(c).Providers().List(ctx)))
		}},
		{sent{"GET " + works + "/providers/" + id, org, ws, ""}, func(ctx context.Context, c *client.Client) error { return discard(in(c).Providers().Get(ctx, id)) }},
		{sent{"POST " + works + "/providers/" + id + "/enable", org, ws, `{"acceptClaims":[{"group":"","resource":"configmaps"}],"rejectClaims":[]}`}, func(ctx context.Context, c *client.Client) error {
			return discard(in(c).Enable(ctx, id, rest.EnableProviderRequest{AcceptClaims: []rest.GroupResource{{Resource: "configmaps"}}}))
		}},
		{sent{"POST " + works + "/providers/" + id + "/enable?dryRun=true", org, ws, `{"acceptClaims":[],"rejectClaims":[]}`}, func(ctx context.Context, c *client.Client) error {
			return discard(in(c).Enable(ctx, id, rest.EnableProviderRequest{}, client.DryRun()))
		}},
		{sent{"DELETE " + works + "/providers/" + id + "/enable?confirm=true", org, ws, ""}, func(ctx context.Context, c *client.Client) error { return discard(in(c).Disable(ctx, id)) }},
		{sent{"GET /api/admin/users?limit=500&registration=Pending", "", "", ""}, func(ctx context.Context, c *client.Client) error {
			return discard(client.Collect(c.Admin().Users().List(ctx, client.Query("q", ""), client.Query("registration", "Pending"))))
		}},
		{sent{"GET /api/admin/users/bob", "", "", ""}, func(ctx context.Context, c *client.Client) error { return discard(c.Admin().Users().Get(ctx, "bob")) }},
		{sent{"GET /api/admin/users/bob/memberships?limit=500", "", "", ""}, func(ctx context.Context, c *client.Client) error {
			return discard(client.Collect(c.Admin().Memberships(ctx, "bob", false)))
		}},
		{sent{"PATCH /api/admin/users/bob", "", "", `{"orgQuota":7}`}, func(ctx context.Context, c *client.Client) error {
			return discard(c.Admin().Users().Update(ctx, "bob", rest.AdminUpdateUserRequest{OrgQuota: rest.Set[int32](7)}))
		}},
		{sent{"GET /api/admin/users/bob/sessions?limit=500", "", "", ""}, func(ctx context.Context, c *client.Client) error {
			return discard(client.Collect(c.Admin().Sessions("bob").List(ctx)))
		}},
		{sent{"DELETE /api/admin/users/bob/sessions/" + id, "", "", ""}, func(ctx context.Context, c *client.Client) error {
			return discard(c.Admin().Sessions("bob").Delete(ctx, id))
		}},
		{sent{"DELETE /api/admin/users/bob/sessions?all=true", "", "", ""}, func(ctx context.Context, c *client.Client) error { return c.Admin().Sessions("bob").DeleteAll(ctx) }},
		{sent{"GET /api/admin/orgs?limit=500&personal=false&q=a", "", "", ""}, func(ctx context.Context, c *client.Client) error {
			return discard(client.Collect(c.Admin().Orgs().List(ctx, client.Query("q", "a"), client.Query("personal", "false"))))
		}},
		{sent{"PATCH /api/admin/orgs/" + org, "", "", `{"workspaceQuota":null}`}, func(ctx context.Context, c *client.Client) error {
			return discard(c.Admin().Orgs().Update(ctx, org, rest.AdminUpdateOrgRequest{WorkspaceQuota: rest.Null[int32]()}))
		}},
		{sent{"DELETE /api/admin/orgs/" + org, "", "", ""}, func(ctx context.Context, c *client.Client) error { return discard(c.Admin().Orgs().Delete(ctx, org)) }},
		{sent{"GET /api/admin/deletions?limit=500", "", "", ""}, func(ctx context.Context, c *client.Client) error {
			return discard(client.Collect(c.Admin().Deletions(ctx)))
		}},
	} {
		t.Run(c.want.request, func(t *testing.T) {
			t.Parallel()
			api, got := recording(t, http.StatusOK, `{"items":[],"uuid":"u"}`)
			require.NoError(t, c.call(t.Context(), api))
			require.Equal(t, []sent{c.want}, *got)
		})
	}
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
	_, err = in.Update(t.Context(), ws, rest.RenameRequest{DisplayName: rest.Set("V")}, client.IfMatch(seen.ETag))
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
	made, err := api.Org(org).Workspaces().Create(t.Context(), rest.CreateRequest{DisplayName: "W"})
	require.NoError(t, err)
	require.Equal(t, rest.PhaseReady, made.Phase)
	require.Equal(t, 2, reads)
	made, err = api.Org(org).Workspaces().Create(t.Context(), rest.CreateRequest{DisplayName: "W"}, client.NoWait())
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
