package members_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// prefer is do with the preference of a representation.
func (f *fixture) prefer(as, method, path, body string) apitest.Answer {
	call := f.call(as, method, path, body)
	call.Header = http.Header{"Prefer": {"return=representation"}}
	return call.Do(f.http)
}

// receiptOf is what the audit log has of the last request.
func (f *fixture) receiptOf(t *testing.T) *rest.Receipt {
	t.Helper()
	require.Empty(t, f.world.Counting(), "nothing is counted after the answer")
	events := f.world.Events()
	require.NotEmpty(t, events)
	facts := events[len(events)-1].Facts
	if facts == nil {
		return nil
	}
	return facts.Receipt
}

func requireReceipt(t *testing.T, got *rest.Receipt, bound bool) {
	t.Helper()
	require.NotNil(t, got)
	now := apitest.Epoch().UTC()
	want := rest.Receipt{StreamsCut: apitest.StreamsCut, HubRefusedAt: &now}
	if bound {
		want.KCPRefusedAt = &now
	}
	require.Equal(t, want, *got)
}

func TestReceipt_ofAnEndedMembership(t *testing.T) {
	t.Parallel()
	for place, user := range map[string]string{inOrg: apitest.Member, inDev: apitest.WSMember} {
		for _, path := range []string{"/members/" + user, "/memberships/me"} {
			as := apitest.Admin
			if path == "/memberships/me" {
				as = user
			}
			f := newFixture(t)
			answer := f.prefer(as, http.MethodDelete, place+path, "")
			require.Equal(t, http.StatusOK, answer.Code, answer.Body)
			require.Equal(t, "return=representation", answer.Header.Get("Preference-Applied"))
			var got rest.Receipt
			require.NoError(t, json.Unmarshal([]byte(answer.Body), &got))
			requireReceipt(t, &got, true)
			requireReceipt(t, f.receiptOf(t), true)

			f = newFixture(t)
			require.Equal(t, http.StatusNoContent, f.do(as, http.MethodDelete, place+path, "").Code, "nobody asked for it")
			requireReceipt(t, f.receiptOf(t), true)
		}
	}
}

func TestReceipt_saysThatKCPFollows(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	neverFollowed(f)
	f.impatient()
	answer := f.prefer(apitest.Admin, http.MethodDelete, inOrg+"/members/"+apitest.Member, "")
	require.Equal(t, http.StatusAccepted, answer.Code, answer.Body)
	require.Contains(t, answer.Body, `"kcpRefusedAt":null`)
	requireReceipt(t, f.receiptOf(t), false)
}

func TestReceipt_ofADemotion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.join(apitest.Member, "", v1alpha1.RoleAdmin)
	answer := f.prefer(apitest.Admin, http.MethodPatch, inOrg+"/members/"+apitest.Member, `{"role":"member"}`)
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	var got rest.Member
	require.NoError(t, json.Unmarshal([]byte(answer.Body), &got))
	requireReceipt(t, got.Receipt, true)
	requireReceipt(t, f.receiptOf(t), true)
}

func TestReceipt_onlyOfWhatTakesRights(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for method, path := range map[string]string{http.MethodPost: "/members", http.MethodPatch: "/members/" + apitest.Member} {
		body := `{"role":"admin"}`
		if method == http.MethodPost {
			body = `{"userRef":{"name":"` + apitest.Foreigner + `"},"role":"member"}`
		}
		answer := f.prefer(apitest.Admin, method, inOrg+path, body)
		require.Less(t, answer.Code, http.StatusMultipleChoices, answer.Body)
		require.NotContains(t, answer.Body, "receipt")
		require.Nil(t, f.receiptOf(t))
	}
	answer := f.prefer(apitest.Admin, http.MethodDelete, inOrg+"/members/nobody-of-this-name", "")
	answer.Refused(t, http.StatusNotFound)
	require.Empty(t, f.world.Counting())
}
