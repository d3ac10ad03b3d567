package identity

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// codes counts the codes of answers, and the causes of conflicts.
func codes(t *testing.T, answers []framework.Answer) map[string]int {
	t.Helper()
	counted := map[string]int{}
	for _, a := range answers {
		key := fmt.Sprint(a.Code)
		if a.Code == http.StatusConflict || a.Code == http.StatusForbidden {
			key = fmt.Sprintf("%d%v", a.Code, framework.CausesOf(t, a))
		}
		counted[key]++
	}
	return counted
}

// On two hubs, of several people who accept an invitation at the same moment one gets the place; a
// revocation or the removal of the inviter beside it wins or loses as a whole.
func TestInvitation_isAcceptedOnceAtMost(t *testing.T) {
	t.Parallel()
	hubs := kcp.Shared(t, 2)
	people := []string{"alice", "bob", "carol", "dave", "erin", "frank"}
	framework.SignUp(t, hubs[0], people...)
	org := hubs[0].CreateOrg(t, "alice", "ACME")
	for round := range 8 {
		name := people[1+round%5]
		if round < 3 {
			i := invite(t, hubs[0], framework.InOrg("alice", http.MethodPost, org, "/invitations", inviting("member")))
			var calls []call
			for _, who := range people[1:] {
				calls = append(calls, i.by(call{As: who}, http.MethodPost, "/accept"))
			}
			answers, err := framework.AtOnce(hubs, calls)
			require.NoError(t, err)
			require.Equal(t, map[string]int{"200": 1, "409[Accepted]": 4}, codes(t, answers))
			_, by := stateOf(t, hubs[0], "alice", org, i.id)
			roles := framework.RolesListed(hubs[0].Do(t, framework.InOrg("alice", http.MethodGet, org, "/members", nil), http.StatusOK))
			require.Equal(t, map[string]string{"alice": "admin", by: "member"}, roles)
			hubs[0].Do(t, framework.InOrg("alice", http.MethodDelete, org, "/members/"+by, nil), http.StatusNoContent)
			continue
		}
		i := invite(t, hubs[0], framework.InOrg("alice", http.MethodPost, org, "/invitations", inviting("member")))
		answers, err := framework.AtOnce(hubs, []call{
			i.by(call{As: name}, http.MethodPost, "/accept"),
			framework.InOrg("alice", http.MethodDelete, org, "/invitations/"+i.id, nil),
		})
		require.NoError(t, err)
		state, by := stateOf(t, hubs[0], "alice", org, i.id)
		if answers[0].Code == http.StatusOK {
			require.Equal(t, http.StatusConflict, answers[1].Code, "%s", answers[1].Raw)
			require.Equal(t, []string{"Accepted", name}, []string{state, by})
			hubs[0].Do(t, framework.InOrg("alice", http.MethodDelete, org, "/members/"+name, nil), http.StatusNoContent)
			continue
		}
		require.Equal(t, []int{http.StatusConflict, http.StatusNoContent}, []int{answers[0].Code, answers[1].Code})
		require.Equal(t, "Revoked", state)
		require.Len(t, framework.RolesListed(hubs[0].Do(t, framework.InOrg("alice", http.MethodGet, org, "/members", nil), http.StatusOK)), 1)
	}
}

// After the answer to the removal of the inviter nobody accepts, on whichever hub.
func TestInvitation_isNotAcceptedAfterTheInvitersRemoval(t *testing.T) {
	t.Parallel()
	hubs := kcp.Shared(t, 2)
	framework.SignUp(t, hubs[0], "alice", "bob", "carol")
	org := hubs[0].CreateOrg(t, "alice", "ACME")
	for range 8 {
		hubs[0].Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "admin")), http.StatusCreated)
		i := invite(t, hubs[0], framework.InOrg("bob", http.MethodPost, org, "/invitations", inviting("member")))
		answers, err := framework.AtOnce(hubs, []call{
			i.by(call{As: "carol"}, http.MethodPost, "/accept"),
			framework.InOrg("alice", http.MethodDelete, org, "/members/bob", nil),
		})
		require.NoError(t, err)
		require.Equal(t, http.StatusNoContent, answers[1].Code, "%s", answers[1].Raw)
		roles := framework.RolesListed(hubs[0].Do(t, framework.InOrg("alice", http.MethodGet, org, "/members", nil), http.StatusOK))
		if answers[0].Code == http.StatusOK {
			require.Equal(t, "member", roles["carol"])
			hubs[0].Do(t, framework.InOrg("alice", http.MethodDelete, org, "/members/carol", nil), http.StatusNoContent)
			continue
		}
		require.Equal(t, []string{"Void"}, framework.CausesOf(t, answers[0]))
		require.Equal(t, map[string]string{"alice": "admin"}, roles)
	}
}

// The quota of open invitations holds on two hubs. No other test writes as grace: one person has eight writes in flight
// at a hub.
func TestInvitation_quotaHoldsUnderConcurrency(t *testing.T) {
	t.Parallel()
	hubs := kcp.Shared(t, 2)
	framework.SignUp(t, hubs[0], "grace")
	org := hubs[0].CreateOrg(t, "grace", "ACME")
	const limit, atOnce = 100, 16
	post := framework.InOrg("grace", http.MethodPost, org, "/invitations", inviting("member"))
	made := 0
	for made < limit-atOnce/2 {
		hubs[made%2].Do(t, post, http.StatusCreated)
		made++
	}
	// Half of the first ones fit. A hub answers 503 to a request that others overtook all the time.
	for refused := 0; refused == 0 || made < limit; {
		answers, err := framework.AtOnce(hubs, slices.Repeat([]call{post}, atOnce))
		require.NoError(t, err)
		counted := codes(t, answers)
		made += counted["201"]
		refused += counted["403[QuotaExceeded]"]
		require.Equal(t, atOnce, counted["201"]+counted["403[QuotaExceeded]"]+counted["503"], "%v", counted)
	}
	require.Equal(t, limit, made)
}
