package members_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// tomorrow is an end that a request may ask for.
func tomorrow() metav1.Time { return metav1.NewTime(apitest.Epoch().Add(24 * time.Hour)) }

func ending(at metav1.Time) string {
	raw, _ := json.Marshal(map[string]any{"expiresAt": at.UTC().Format(time.RFC3339)})
	return string(raw)
}

func TestExpiry_isGivenMovedAndTakenOff(t *testing.T) {
	t.Parallel()
	for _, place := range []string{inOrg, inDev} {
		f := newFixture(t)
		end := tomorrow().UTC().Format(time.RFC3339)
		body := fmt.Sprintf(`{"userRef": {"name": "frank"}, "role": "member", "expiresAt": %q}`, end)
		made := f.add(apitest.Admin, place, body).Object(t, http.StatusCreated)
		require.Equal(t, end, made["expiresAt"])
		require.Equal(t, []any{map[string]any{"source": "hand", "role": "member", "expiresAt": end}}, made["sources"])
		f.add(apitest.Admin, place, body).Object(t, http.StatusOK)
		for _, other := range []string{"", `, "expiresAt": null`, `, "expiresAt": "2040-01-01T00:00:00Z"`} {
			f.add(apitest.Admin, place, `{"userRef": {"name": "frank"}, "role": "member"`+other+`}`).Refused(t, http.StatusConflict)
		}
		later := metav1.NewTime(tomorrow().Add(time.Hour))
		require.Equal(t, later.UTC().Format(time.RFC3339), f.patch(apitest.Admin, place, "frank", ending(later)).Object(t, http.StatusOK)["expiresAt"])
		require.NotContains(t, f.patch(apitest.Admin, place, "frank", `{"expiresAt": null}`).Object(t, http.StatusOK), "expiresAt")
	}
}

func TestExpiry_isRefusedWhereItCannotBe(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	soon := apitest.Epoch().Add(59 * time.Second).UTC().Format(time.RFC3339)
	for value, code := range map[string]int{
		`"soon"`: http.StatusUnprocessableEntity, `""`: http.StatusUnprocessableEntity, `"2030-01-01"`: http.StatusUnprocessableEntity,
		`"2001-01-01T00:00:00Z"`: http.StatusUnprocessableEntity, fmt.Sprintf("%q", soon): http.StatusUnprocessableEntity,
		`5`: http.StatusBadRequest, `{}`: http.StatusBadRequest, `true`: http.StatusBadRequest,
	} {
		for _, place := range []string{inOrg, inDev} {
			for _, answer := range []apitest.Answer{
				f.add(apitest.Admin, place, `{"userRef": {"name": "frank"}, "role": "member", "expiresAt": `+value+`}`),
				f.patch(apitest.Admin, place, apitest.Admin, `{"expiresAt": `+value+`}`),
			} {
				require.Equal(t, "expiresAt", answer.Refused(t, code).Details.Causes[0].Field, value)
			}
		}
	}
	require.Empty(t, f.store.writes)
}

func TestExpiry_ofTheLastAdminIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, body := range []string{ending(tomorrow()), `{"role": "member", "expiresAt": "2030-01-01T00:00:00Z"}`, `{"role": "admin", "expiresAt": "2030-01-01T00:00:00Z"}`} {
		causes := refusedCauses(t, f.patch(apitest.Admin, inOrg, apitest.Admin, body))
		require.Equal(t, metav1.CauseType(tenancy.CauseSoleAdmin), causes[0].Type)
	}
	require.Empty(t, f.store.writes)
	f.patch(apitest.Admin, inOrg, "bob", `{"role": "admin"}`).Object(t, http.StatusOK)
	f.patch(apitest.Admin, inOrg, apitest.Admin, ending(tomorrow())).Object(t, http.StatusOK)
	causes := refusedCauses(t, f.remove(apitest.Admin, inOrg, "bob"))
	require.Equal(t, metav1.CauseType(tenancy.CauseSoleAdmin), causes[0].Type, "the one who is left has an end")
}

// A Membership whose end has come is none, also while the controller has not removed it.
func TestExpiry_thatHasComeIsTheEnd(t *testing.T) {
	t.Parallel()
	for _, place := range []string{inOrg, inDev} {
		f := newFixture(t)
		workspace := ""
		if place == inDev {
			workspace = apitest.Dev
		}
		over := apitest.Membership("frank", workspace, v1alpha1.RoleMember)
		over.UID, over.Spec.ExpiresAt = types.UID("over"), &metav1.Time{Time: apitest.Epoch().Time}
		f.store.held[over.Name] = over
		f.patch(apitest.Admin, place, "frank", ending(tomorrow())).Refused(t, http.StatusNotFound)
		f.patch(apitest.Admin, place, "frank", `{"expiresAt": null}`).Refused(t, http.StatusNotFound)
		f.remove(apitest.Admin, place, "frank").Refused(t, http.StatusNotFound)
		f.add(apitest.Admin, place, addFrank).Refused(t, http.StatusConflict)
		require.Empty(t, f.store.writes)
	}
}

// PATCH and POST are about the part that was given by hand, DELETE takes it and what came by request.
func TestParts_areShownAndLeftToWhatGaveThem(t *testing.T) {
	t.Parallel()
	end := tomorrow()
	request := v1alpha1.MembershipExtra{Source: "request:r", Role: v1alpha1.RoleAdmin, ExpiresAt: &end}
	group := v1alpha1.MembershipExtra{Source: "group:g", Role: v1alpha1.RoleMember}
	has := func(role v1alpha1.Role, extra ...v1alpha1.MembershipExtra) *fixture {
		f := newFixture(t)
		m := apitest.Membership("frank", apitest.Dev, role)
		m.UID, m.Generation, m.ResourceVersion, m.Spec.Extra = "parts", 1, apitest.FirstVersion, extra
		m.Status.ObservedGeneration = 1
		f.world.PutMembership(apitest.Acme, m)
		f.store.held[m.Name] = m
		return f
	}
	f := has(v1alpha1.RoleViewer, request, group)
	sources := []any{
		map[string]any{"source": "hand", "role": "viewer"},
		map[string]any{"source": "request:r", "role": "admin", "expiresAt": end.UTC().Format(time.RFC3339)},
		map[string]any{"source": "group:g", "role": "member"},
	}
	shown := f.do(apitest.Admin, http.MethodGet, inDev+"/members/frank", "").Object(t, http.StatusOK)
	require.Equal(t, sources, shown["sources"])
	require.Equal(t, "admin", shown["role"])
	require.Equal(t, end.UTC().Format(time.RFC3339), shown["expiresAt"])
	causes := refusedCauses(t, f.remove(apitest.Admin, inDev, "frank"))
	require.Equal(t, metav1.CauseType(tenancy.CauseGroup), causes[0].Type)
	require.Equal(t, "g", causes[0].Field, "it names the mapping")
	require.Empty(t, f.store.writes)

	f = has("", group)
	causes = refusedCauses(t, f.patch(apitest.Admin, inDev, "frank", `{"role": "admin"}`))
	require.Equal(t, metav1.CauseType(tenancy.CauseNotByHand), causes[0].Type)
	require.Empty(t, f.store.writes)

	f = has(v1alpha1.RoleViewer, request)
	require.Equal(t, http.StatusNoContent, f.remove(apitest.Admin, inDev, "frank").Code)
}

// The cache may be behind: the end of an author counts by what kcp has, at the time of the write.
func TestGrant_ofAnAdminWhoseRightHasEndedIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  time.Duration
		code int
	}{"over": {0, http.StatusForbidden}, "a second left": {time.Second, http.StatusCreated}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			end := metav1.NewTime(apitest.Epoch().Add(c.end))
			f.handler.Rights.Store = ahead{f.world, func(m *v1alpha1.Membership) *v1alpha1.Membership {
				m.Spec.ExpiresAt = &end
				return m
			}}
			var sent v1alpha1.MembershipChange
			f.store.decided = func(change v1alpha1.MembershipChange) {
				sent = change
				f.store.carryOut(change)
				f.store.caughtUp()
			}
			answer := f.add(apitest.Admin, inOrg, addFrank)
			require.Equal(t, c.code, answer.Code, answer.Body)
			if c.code == http.StatusCreated {
				require.Equal(t, end.Unix(), sent.ValidUntil.Unix(), "the leader drops it from then on")
			}
		})
	}
}
