package invitations_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestShow_needsTheSecretAndNoLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(apitest.Dev, func(i *v1alpha1.Invitation) { i.Spec.Note = "Hi" })
	shown := call("", http.MethodGet, "", presenting(secret)).Do(w.http).Object(t, http.StatusOK)
	require.Equal(t, map[string]any{
		"id": one, "state": "Open", "role": "member", "orgDisplayName": "Acme", "workspaceDisplayName": "Development",
		"invitedBy": "Display of alice", "note": "Hi", "expiresAt": "2026-03-01T13:00:00Z",
	}, shown)
	w.held[one].Status.State = v1alpha1.InvitationRevoked
	require.Equal(t, "Revoked", call("", http.MethodGet, "", presenting(secret)).Do(w.http).Object(t, http.StatusOK)["state"])
}

func TestShow_tellsGuessersNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	missing := call("", http.MethodGet, "", presenting(secret)).Do(w.http)
	missing.Refused(t, http.StatusNotFound)
	for _, state := range []v1alpha1.InvitationState{"", v1alpha1.InvitationAccepted} {
		w.put("", func(i *v1alpha1.Invitation) { i.Status.State = state })
		for _, header := range []http.Header{nil, presenting("wrong"), presenting(""), {httpmw.InvitationHeader: {secret, secret}}, presenting(w.held[one].Spec.SecretHash)} {
			for _, as := range []string{"", apitest.Member, apitest.Admin} {
				guessed := call(as, http.MethodGet, "", header).Do(w.http)
				require.Equal(t, missing.Body, guessed.Body)
				require.Equal(t, missing.Code, guessed.Code)
			}
		}
	}
}

// Another replica made it a moment ago.
func TestShow_waitsForANewInvitation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fresh := uuid.Must(uuid.NewV7())
	w.now = time.Unix(fresh.Time().UnixTime()).Add(time.Second)
	w.Later(func(*apitest.World) { w.put("", func(i *v1alpha1.Invitation) { i.Name = fresh.String() }) })
	c := apitest.Call{Method: http.MethodGet, Path: "/api/invitations/" + fresh.String(), Header: presenting(secret)}
	c.Do(w.http).Object(t, http.StatusOK)
	w.now, w.held = w.now.Add(time.Minute), map[string]*v1alpha1.Invitation{}
	waits := w.Waits()
	c.Do(w.http).Refused(t, http.StatusNotFound)
	require.Equal(t, waits, w.Waits(), "for an old one")
}

func TestShow_isForItsAddressAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("", func(i *v1alpha1.Invitation) { i.Spec.Email = "frank@example.com" })
	call("", http.MethodGet, "", presenting(secret)).Do(w.http).Object(t, http.StatusOK)
	call(apitest.Foreigner+apitest.Verified, http.MethodGet, "", nil).Do(w.http).Object(t, http.StatusOK)
	for _, other := range []string{apitest.Foreigner, apitest.Operator + apitest.Verified, apitest.Admin} {
		call(other, http.MethodGet, "", presenting(secret)).Do(w.http).Refused(t, http.StatusNotFound)
		call(other, http.MethodPost, "/accept", presenting(secret)).Do(w.http).Refused(t, http.StatusNotFound)
	}
	mine := func(as string) []string {
		return apitest.Call{As: as, Method: http.MethodGet, Path: "/api/users/me/invitations"}.Do(w.http).Items(t, "id")
	}
	require.Equal(t, []string{one}, mine(apitest.Foreigner+apitest.Verified))
	require.Empty(t, mine(apitest.Foreigner), "the address of the account is not verified by this token")
	require.Empty(t, mine(apitest.Operator+apitest.Verified))
	call(apitest.Foreigner+apitest.Verified, http.MethodPost, "/accept", nil).Do(w.http).Object(t, http.StatusOK)
	require.Empty(t, mine(apitest.Foreigner+apitest.Verified))
}

func TestAccept_givesTheMembershipOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(apitest.Prod)
	accept := func(as string) apitest.Answer {
		return call(as, http.MethodPost, "/accept", presenting(secret)).Do(w.http)
	}
	made := accept(apitest.Foreigner).Object(t, http.StatusOK)
	require.Equal(t, "member", made["role"])
	require.Equal(t, apitest.Prod, made["workspaceUUID"])
	require.Equal(t, apitest.Acme, made["orgUUID"])
	require.Equal(t, v1alpha1.InvitationStatus{State: v1alpha1.InvitationAccepted, AcceptedBy: apitest.Foreigner}, w.held[one].Status)
	accept(apitest.Foreigner).Object(t, http.StatusOK)
	require.Equal(t, "[Accepted]", causes(accept(apitest.Member).Refused(t, http.StatusConflict)))
	w.Leave(apitest.Foreigner, apitest.Acme, apitest.Prod)
	require.Equal(t, "[Accepted]", causes(accept(apitest.Foreigner).Refused(t, http.StatusConflict)), "it brings nothing back")
}

func TestAccept_refusesWhatIsNotOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		workspace string
		change    func(*world, *v1alpha1.Invitation)
		as, cause string
	}{
		"expired":                     {"", func(w *world, _ *v1alpha1.Invitation) { w.now = w.now.Add(time.Hour) }, apitest.Foreigner, "[Expired]"},
		"declined":                    {"", func(_ *world, i *v1alpha1.Invitation) { i.Status.State = v1alpha1.InvitationDeclined }, apitest.Foreigner, "[Declined]"},
		"the inviter was removed":     {"", func(w *world, _ *v1alpha1.Invitation) { w.Leave(apitest.Admin, apitest.Acme, "") }, apitest.Foreigner, "[Void]"},
		"kcp has removed the inviter": {"", func(w *world, _ *v1alpha1.Invitation) { w.removed = apitest.Admin }, apitest.Foreigner, "[Void]"},
		"the inviter was demoted":     {"", func(w *world, _ *v1alpha1.Invitation) { w.Join(apitest.Admin, apitest.Acme, "", v1alpha1.RoleMember) }, apitest.Foreigner, "[Void]"},
		"the inviter's right has ended": {"", func(w *world, _ *v1alpha1.Invitation) {
			m := apitest.Membership(apitest.Admin, "", v1alpha1.RoleAdmin)
			end := apitest.Epoch()
			m.Spec.ExpiresAt = &end
			w.PutMembership(apitest.Acme, m)
		}, apitest.Foreigner, "[Void]"},
		"another membership":             {"", func(_ *world, i *v1alpha1.Invitation) { i.Spec.InvitedBy.MembershipUID = "another" }, apitest.Foreigner, "[Void]"},
		"the inviter's account deleted":  {"", func(w *world, _ *v1alpha1.Invitation) { w.deleted(apitest.Admin) }, apitest.Foreigner, "[Void]"},
		"the workspace is deleted":       {apitest.Gone, nil, apitest.Foreigner, "[Void]"},
		"the workspace does not exist":   {apitest.Nowhere, nil, apitest.Foreigner, "[Void]"},
		"a member already":               {"", nil, apitest.Member, "[AlreadyMember]"},
		"too many memberships":           {"", func(w *world, _ *v1alpha1.Invitation) { w.Crowd(apitest.Foreigner, tenancy.MaxMemberships) }, apitest.Foreigner, "[TooManyMemberships]"},
		"the inviter's removal accepted": {"", func(w *world, _ *v1alpha1.Invitation) { w.leaving(apitest.Admin) }, apitest.Foreigner, "[Void]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put(c.workspace)
			if c.change != nil {
				c.change(w, w.held[one])
			}
			state := w.held[one].Status.State
			status := call(c.as, http.MethodPost, "/accept", presenting(secret)).Do(w.http).Refused(t, http.StatusConflict)
			require.Equal(t, c.cause, causes(status))
			require.Equal(t, state, w.held[one].Status.State, "void is never written")
		})
	}
}

// deleted soft-deletes an account.
func (w *world) deleted(user string) {
	u, _ := w.ByName(user)
	gone, at := u.DeepCopy(), apitest.Epoch()
	gone.Status.DeletionRequestedAt = &at
	w.PutUser(gone)
}

// leaving accepts the removal of a person, which is not carried out yet.
func (w *world) leaving(user string) {
	w.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) {
		m, _ := w.Membership("acmecluster", user)
		o.Spec.MembershipChanges = []v1alpha1.MembershipChange{{User: user, UID: m.UID, Generation: m.Generation}}
	})
}

func TestDecline_endsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("")
	require.Equal(t, http.StatusNoContent, call(apitest.Foreigner, http.MethodPost, "/decline", presenting(secret)).Do(w.http).Code)
	require.Equal(t, v1alpha1.InvitationDeclined, w.held[one].Status.State)
	call("", http.MethodPost, "/decline", presenting(secret)).Do(w.http).Refused(t, http.StatusUnauthorized)
}

func TestCookie_presentsTheInvitationItWasMadeFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("")
	recorder := httptest.NewRecorder()
	require.NoError(t, w.cookies.Set(recorder, httpmw.PresentedInvitation{ID: one, Secret: secret}))
	cookie := recorder.Result().Cookies()[0]
	require.True(t, cookie.HttpOnly && cookie.Secure && cookie.Path == "/" && cookie.MaxAge == 600)
	kept := http.Header{"Cookie": {cookie.Name + "=" + cookie.Value}}
	call("", http.MethodGet, "", kept).Do(w.http).Object(t, http.StatusOK)
	accepted := call(apitest.Foreigner, http.MethodPost, "/accept", kept).Do(w.http)
	require.Equal(t, http.StatusOK, accepted.Code, accepted.Body)
	require.Contains(t, accepted.Header.Get("Set-Cookie"), "Max-Age=0")
	other := apitest.Call{Method: http.MethodGet, Path: "/api/invitations/" + apitest.Nowhere, Header: kept}
	other.Do(w.http).Refused(t, http.StatusNotFound)
}

func TestVouch_isForOnePersonOfAnOpenInvitation(t *testing.T) {
	t.Parallel()
	person := func(subject, email string) *auth.Identity {
		return &auth.Identity{Issuer: "https://idp", Subject: subject, VerifiedEmail: email}
	}
	for name, c := range map[string]struct {
		change func(*world, *v1alpha1.Invitation)
		secret string
		email  string
		want   string
	}{
		"the link":                    {nil, secret, "", one},
		"a wrong secret":              {nil, "wrong", "", ""},
		"no link":                     {nil, "", "eve@example.com", ""},
		"the address":                 {func(_ *world, i *v1alpha1.Invitation) { i.Spec.Email = "eve@example.com" }, "", "Eve@Example.com", one},
		"the link of another address": {func(_ *world, i *v1alpha1.Invitation) { i.Spec.Email = "eve@example.com" }, secret, "mallory@example.com", ""},
		"the link without an address": {func(_ *world, i *v1alpha1.Invitation) { i.Spec.Email = "eve@example.com" }, secret, "", ""},
		"a letter like that address":  {func(_ *world, i *v1alpha1.Invitation) { i.Spec.Email = "kate@example.com" }, "", "\u212aate@example.com", ""},
		"the link, such a letter":     {func(_ *world, i *v1alpha1.Invitation) { i.Spec.Email = "kate@example.com" }, secret, "\u212aate@example.com", ""},
		"expired":                     {func(w *world, _ *v1alpha1.Invitation) { w.now = w.now.Add(time.Hour) }, secret, "", ""},
		"void in kcp":                 {func(w *world, _ *v1alpha1.Invitation) { w.removed = apitest.Admin }, secret, "", ""},
		"somebody has signed up":      {func(_ *world, i *v1alpha1.Invitation) { i.Status.SignedUp = "another" }, secret, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("")
			if c.change != nil {
				c.change(w, w.held[one])
			}
			ctx := t.Context()
			if c.secret != "" {
				ctx = httpmw.WithInvitation(ctx, httpmw.PresentedInvitation{ID: one, Secret: c.secret})
			}
			for range 2 {
				got, err := w.service.Vouch(ctx, person("eve", c.email))
				require.NoError(t, err)
				require.Equal(t, c.want, got)
			}
			if c.want != "" {
				require.Equal(t, tenancy.IdentityHash("https://idp", "eve"), w.held[one].Status.SignedUp)
				got, err := w.service.Vouch(ctx, person("trudy", c.email))
				require.NoError(t, err)
				require.Empty(t, got, "the second person")
			}
		})
	}
}
