package invitations_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestCreate_answersTheLinkOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := post(apitest.Admin, `{"role":"admin","email":"Jane@Example.com","note":"Hi\nJane"}`).Do(w.http)
	made := a.Object(t, http.StatusCreated)
	require.Equal(t, apitest.HubURL+"/ui/invitations/"+one+"#"+secret, made["url"])
	require.Equal(t, inOrg+"/invitations/"+one, a.Header.Get("Location"))
	require.Equal(t, "jane@example.com", made["email"])
	require.Equal(t, apitest.Epoch().Add(7*24*time.Hour).UTC().Format(time.RFC3339), made["expiresAt"])
	held := w.held[one]
	require.Equal(t, tenancy.InvitationHash(secret), held.Spec.SecretHash)
	require.Equal(t, v1alpha1.Inviter{Name: apitest.Admin, MembershipUID: "uid of " + apitest.Admin}, held.Spec.InvitedBy)
	list := apitest.Call{As: apitest.Admin, Method: http.MethodGet, Path: inOrg + "/invitations", Org: apitest.Acme}.Do(w.http)
	require.Equal(t, []string{"Open"}, list.Items(t, "state"))
	require.NotContains(t, list.Body, secret)
	require.Equal(t, []string{"made"}, w.counted)
	other := apitest.Call{As: apitest.Admin, Method: http.MethodGet, Path: inDev + "/invitations", Org: apitest.Acme, Workspace: apitest.Dev}.Do(w.http)
	require.Empty(t, other.Items(t, "state"), "it is not to the Workspace")
}

func TestCreate_saysWhenTheMembershipEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	end := apitest.Epoch().Add(90 * 24 * time.Hour).UTC().Format(time.RFC3339)
	made := post(apitest.Admin, `{"role":"member","membershipExpiresAt":"`+end+`"}`).Do(w.http).Object(t, http.StatusCreated)
	require.Equal(t, end, made["membershipExpiresAt"])
	require.Equal(t, end, tenancy.ExpiryText(w.held[one].Spec.MembershipExpiresAt))
}

// A Workspace's admin invites by their own Membership there.
func TestCreate_recordsWhatEntitlesTheInviter(t *testing.T) {
	t.Parallel()
	for who, uid := range map[string]string{apitest.Admin: apitest.Admin, apitest.WSAdmin: apitest.Dev + "." + apitest.WSAdmin, apitest.Mixed: apitest.Dev + "." + apitest.Mixed} {
		w := newWorld(t)
		apitest.Call{As: who, Method: http.MethodPost, Path: inDev + "/invitations", Org: apitest.Acme, Workspace: apitest.Dev, Body: `{"role":"member"}`}.Do(w.http).Object(t, http.StatusCreated)
		require.EqualValues(t, "uid of "+uid, w.held[one].Spec.InvitedBy.MembershipUID, who)
		require.Equal(t, apitest.Dev, tenancy.InvitedWorkspace(w.held[one].Spec))
	}
}

func TestCreate_refusesBadInput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body  string
		code  int
		field string
	}{
		"no role":       {`{}`, 400, "role"},
		"a role":        {`{"role":"owner"}`, 400, "role"},
		"an address":    {`{"role":"member","email":"Jane <jane@example.com>"}`, 400, "email"},
		"no address":    {`{"role":"member","email":"jane"}`, 400, "email"},
		"a note":        {`{"role":"member","note":"\u202e"}`, 400, "note"},
		"too early":     {`{"role":"member","expiresAt":"` + apitest.Epoch().Add(59*time.Second).UTC().Format(time.RFC3339) + `"}`, 422, "expiresAt"},
		"too late":      {`{"role":"member","expiresAt":"` + apitest.Epoch().Add(721*time.Hour).UTC().Format(time.RFC3339) + `"}`, 422, "expiresAt"},
		"ends at once":  {`{"role":"member","membershipExpiresAt":"` + apitest.Epoch().Add(59*time.Second).UTC().Format(time.RFC3339) + `"}`, 422, "membershipExpiresAt"},
		"further roles": {`{"role":"member","roles":[]}`, 400, "roles"},
		"sudo":          {`{"role":"member","sudo":true}`, 400, "sudo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			status := post(apitest.Admin, c.body).Do(w.http).Refused(t, c.code)
			require.Contains(t, status.Message, c.field)
			require.Empty(t, w.held)
		})
	}
}

func TestCreate_isForThoseWhoMayAddMembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, who := range []string{apitest.Member, apitest.Mixed, apitest.WSAdmin, apitest.Foreigner} {
		post(who, `{"role":"member"}`).Do(w.http).Refused(t, http.StatusForbidden)
		apitest.Call{As: who, Method: http.MethodGet, Path: inOrg + "/invitations", Org: apitest.Acme}.Do(w.http).Refused(t, http.StatusForbidden)
	}
	apitest.Call{As: apitest.WSMember, Method: http.MethodPost, Path: inDev + "/invitations", Org: apitest.Acme, Workspace: apitest.Dev, Body: `{"role":"member"}`}.Do(w.http).Refused(t, http.StatusForbidden)
	w.put("")
	apitest.Call{As: apitest.WSAdmin, Method: http.MethodDelete, Path: inDev + "/invitations/" + one, Org: apitest.Acme, Workspace: apitest.Dev}.Do(w.http).Refused(t, http.StatusNotFound)
	require.Empty(t, w.held[one].Status.State, "an invitation to the organization")
	apitest.Call{As: apitest.Foreigner, Method: http.MethodDelete, Path: "/api/orgs/" + apitest.Globex + "/invitations/" + one, Org: apitest.Globex}.Do(w.http).Refused(t, http.StatusNotFound)
	require.Empty(t, w.held[one].Status.State, "an invitation to another organization")
}

// Nobody could accept it: it would be void.
func TestCreate_isRefusedToThoseWhomAGroupAloneEntitles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := apitest.Membership(apitest.Admin, "", "")
	m.Spec.Extra = []v1alpha1.MembershipExtra{{Source: tenancy.GroupSource("g1"), Role: v1alpha1.RoleAdmin}}
	w.PutMembership(apitest.Acme, tenancy.EffectiveAt(m, w.now))
	status := post(apitest.Admin, `{"role":"member"}`).Do(w.http).Refused(t, http.StatusForbidden)
	require.Contains(t, status.Message, "by hand")
	require.Empty(t, w.held)
}

func TestCreate_keepsToTheQuota(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range tenancy.MaxOpenInvitations {
		w.put("", func(i *v1alpha1.Invitation) { i.Name = fmt.Sprintf("%08d-7777-4777-8777-777777777777", n) })
	}
	post(apitest.Admin, `{"role":"member"}`).Do(w.http).RefusedCause(t, tenancy.CauseQuota)
	w.put("", func(i *v1alpha1.Invitation) {
		i.Name, i.Status.State = "00000000-7777-4777-8777-777777777777", v1alpha1.InvitationRevoked
	})
	post(apitest.Admin, `{"role":"member"}`).Do(w.http).Object(t, http.StatusCreated)
}

func TestCreate_repeatsNoLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := post(apitest.Admin, `{"role":"member"}`)
	c.Header = http.Header{"Idempotency-Key": {"k"}}
	made := c.Do(w.http).Object(t, http.StatusCreated)
	// Another request has another secret.
	w.held[made["id"].(string)].Spec.SecretHash = tenancy.InvitationHash("another")
	status := c.Do(w.http).Refused(t, http.StatusConflict)
	require.Contains(t, status.Message, made["id"])
	require.Len(t, w.held, 1)
}

func TestRevoke_endsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("")
	c := apitest.Call{As: apitest.Admin, Method: http.MethodDelete, Path: inOrg + "/invitations/" + one, Org: apitest.Acme}
	require.Equal(t, http.StatusNoContent, c.Do(w.http).Code)
	require.Equal(t, v1alpha1.InvitationRevoked, w.held[one].Status.State)
	require.Equal(t, http.StatusNoContent, c.Do(w.http).Code, "again")
	status := call(apitest.Foreigner, http.MethodPost, "/accept", presenting(secret)).Do(w.http).Refused(t, http.StatusConflict)
	require.Equal(t, "[Revoked]", causes(status))
	w.held[one].Status = v1alpha1.InvitationStatus{State: v1alpha1.InvitationAccepted, AcceptedBy: apitest.Foreigner}
	require.Equal(t, "[Accepted]", causes(c.Do(w.http).Refused(t, http.StatusConflict)))
}

func TestInvitations_areAudited(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) (http.Handler, *apitest.World) {
		w := newWorld(t)
		w.put(apitest.Prod, func(i *v1alpha1.Invitation) { i.Name = one })
		return w.http, w.World
	}
	apitest.RequireIntents(t, start, map[string]apitest.Intent{
		"accept":  {Call: call(apitest.Member, http.MethodPost, "/accept", presenting(secret)), Object: one, Facts: `{"role":"member"}`},
		"decline": {Call: call(apitest.Member, http.MethodPost, "/decline", presenting(secret)), Object: one, Facts: `null`, Reduces: true},
		"revoke": {
			Call: apitest.Call{
				As: apitest.Admin, Method: http.MethodDelete, Path: inOrg + "/workspaces/" + apitest.Prod + "/invitations/" + one,
				Org: apitest.Acme, Workspace: apitest.Prod,
			}, Object: one, Facts: `null`, Reduces: true,
		},
	})
	empty := func(t *testing.T) (http.Handler, *apitest.World) {
		w := newWorld(t)
		return w.http, w.World
	}
	apitest.RequireIntents(t, empty, map[string]apitest.Intent{
		"create": {Call: post(apitest.Admin, `{"role":"admin"}`), Object: one, Facts: `{"role":"admin"}`},
	})
}
