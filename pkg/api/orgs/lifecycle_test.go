package orgs_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/orgs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const acmePath = "/api/orgs/" + apitest.Acme

func (f *fixture) remove(as string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodDelete, Path: acmePath, Org: apitest.Acme}.Do(f.http)
}

func (f *fixture) undelete(as string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodPost, Path: acmePath + "/undelete", Org: apitest.Acme}.Do(f.http)
}

// marking lets the store patch Acme. First the cache follows, then the controller, and
// then the index.
func marking(t testing.TB, f *fixture) {
	f.store.mark = func(held *v1alpha1.Organization, status map[string]any) (*v1alpha1.Organization, error) {
		o := apitest.MergePatched(t, held, map[string]any{"status": status})
		settled := o.DeepCopy()
		settled.Status.Conditions = apitest.Active(o.Status.DeletionRequestedAt == nil)
		f.world.Later(
			func(w *apitest.World) { w.PutOrg(o, "acmecluster") },
			func(w *apitest.World) { w.PutOrg(settled, "acmecluster") },
			func(w *apitest.World) { w.Reindex(apitest.Acme) },
		)
		return o, nil
	}
}

func TestO13_deletesAndUndeletesAnOrg(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	o := f.remove(apitest.Admin).Object(t, http.StatusOK)
	require.Equal(t, "2026-03-01T12:00:00Z", o["deletionRequestedAt"])
	require.Equal(t, "2026-03-31T12:00:00Z", o["purgeAt"])
	require.Equal(t, "Acme", o["displayName"], "the object is answered")
	require.Equal(t, "admin", o["role"])
	require.Zero(t, f.world.StillToCome(), "it waited until it is hidden and frozen")

	// A deleted Org answers 404 to everything but its undelete, and no list has it.
	f.get(apitest.Admin, acmePath).Refused(t, http.StatusNotFound)
	f.patch(apitest.Admin, `{"displayName": "New"}`).Refused(t, http.StatusNotFound)
	f.remove(apitest.Admin).Refused(t, http.StatusNotFound)
	require.Empty(t, f.get(apitest.Admin, "/api/orgs").Items(t, "uuid"))

	o = f.undelete(apitest.Admin).Object(t, http.StatusOK)
	require.NotContains(t, o, "deletionRequestedAt")
	require.NotContains(t, o, "purgeAt")
	require.Zero(t, f.world.StillToCome())
	require.Equal(t, []string{apitest.Acme}, f.get(apitest.Admin, "/api/orgs").Items(t, "uuid"))
	require.Equal(t, 2, f.store.writes)
}

func TestO13_onlyAdminsDeleteAndUndeleteAnOrg(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	refused := func(request func(as string) apitest.Answer) {
		for _, as := range []string{apitest.Member, apitest.Mixed, apitest.WSAdmin, apitest.WSMember, apitest.Foreigner, apitest.Operator} {
			request(as).Refused(t, http.StatusForbidden)
		}
		request("").Refused(t, http.StatusUnauthorized)
	}
	refused(f.remove)
	require.Zero(t, f.store.writes)
	f.remove(apitest.Admin).Object(t, http.StatusOK)
	refused(f.undelete)
	require.Equal(t, 1, f.store.writes)
	f.undelete(apitest.Admin).Object(t, http.StatusOK)
}

// A removal that was accepted waits while the Organization is deleted: who is removed does not undelete it.
func TestO13_whoIsBeingRemovedNeitherDeletesNorUndeletes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	f.world.Join(apitest.Member, apitest.Acme, "", v1alpha1.RoleAdmin)
	removing := []v1alpha1.MembershipChange{{User: apitest.Admin, By: apitest.Member}}
	change := func(c []v1alpha1.MembershipChange) {
		f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.MembershipChanges = c })
	}
	change(removing)
	f.remove(apitest.Admin).Refused(t, http.StatusForbidden)
	f.remove(apitest.Member).Object(t, http.StatusOK)
	f.undelete(apitest.Admin).Refused(t, http.StatusForbidden)
	change(nil)
	f.undelete(apitest.Admin).Object(t, http.StatusOK)
}

func TestDelete_ofAPersonalOrgIsForItsOwner(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.Personal = true })
	f.world.Join(apitest.Member, apitest.Acme, "", v1alpha1.RoleAdmin)
	require.Contains(t, f.remove(apitest.Member).Refused(t, http.StatusForbidden).Message, "owner")
	f.remove(apitest.Admin).Object(t, http.StatusOK)
	require.Contains(t, f.undelete(apitest.Member).Refused(t, http.StatusForbidden).Message, "owner")
	f.undelete(apitest.Admin).Object(t, http.StatusOK)
	// Any admin may delete an Org that is not personal.
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.Personal = false })
	f.remove(apitest.Member).Object(t, http.StatusOK)
}

// Another admin may delete a personal Org after its owner has left. Otherwise the last
// admin could neither delete the Org nor leave it.
func TestDelete_ofAPersonalOrgThatItsOwnerLeft(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.Personal = true })
	f.world.Join(apitest.Member, apitest.Acme, "", v1alpha1.RoleAdmin)
	f.remove(apitest.Member).Refused(t, http.StatusForbidden)
	f.world.Leave(apitest.Admin, apitest.Acme, "")
	require.Contains(t, f.remove(apitest.Mixed).Refused(t, http.StatusForbidden).Message, "admin", "a member is not enough")
	f.remove(apitest.Member).Object(t, http.StatusOK)
	f.undelete(apitest.Mixed).Refused(t, http.StatusForbidden)
	f.undelete(apitest.Member).Object(t, http.StatusOK)
}

// The attack: send an undelete that is delayed until another admin has undeleted the Org, removed its author, and deleted it again.
func TestUndelete_isOfTheDeletionThatTheRequestSaw(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	f.remove(apitest.Admin).Object(t, http.StatusOK)
	f.store.held = func(o *v1alpha1.Organization) *v1alpha1.Organization {
		o = o.DeepCopy()
		again := metav1.NewTime(o.Status.DeletionRequestedAt.Add(time.Minute))
		o.Status.DeletionRequestedAt = &again
		return o
	}
	f.undelete(apitest.Admin).Refused(t, http.StatusConflict)
	f.store.held = nil
	f.undelete(apitest.Admin).Object(t, http.StatusOK)

	// Nothing was deleted when it was sent.
	f.store.held = func(o *v1alpha1.Organization) *v1alpha1.Organization {
		o = o.DeepCopy()
		o.Status.DeletionRequestedAt = &metav1.Time{Time: apitest.Epoch().Time}
		return o
	}
	f.undelete(apitest.Admin).Refused(t, http.StatusConflict)
}

func TestUndelete_refusesForeignAndMissingOrgsAlike(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	f.remove(apitest.Admin).Object(t, http.StatusOK)
	missing := apitest.Call{As: apitest.Foreigner, Method: http.MethodPost, Path: "/api/orgs/" + apitest.Nowhere + "/undelete", Org: apitest.Nowhere}.Do(f.http)
	missing.Refused(t, http.StatusForbidden)
	require.Equal(t, missing, f.undelete(apitest.Foreigner))
	apitest.Call{As: apitest.Admin, Method: http.MethodPost, Path: acmePath + "/undelete"}.Do(f.http).RefusedField(t, "header:X-Kedge-Org")
}

// A repeated deletion does not restart the grace period, even if the cache does not have
// the first deletion.
func TestO13_aSecondDeletionChangesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Status.Conditions = apitest.Active(true) })
	f.undelete(apitest.Admin).Object(t, http.StatusOK)
	require.Zero(t, f.store.writes, "there was nothing to withdraw")
	at := metav1.NewTime(apitest.Epoch().Add(-time.Hour))
	f.store.held = func(o *v1alpha1.Organization) *v1alpha1.Organization {
		o = o.DeepCopy()
		o.Status.DeletionRequestedAt = &at
		f.world.Later(
			func(w *apitest.World) { w.PutOrg(o, "acmecluster") },
			func(w *apitest.World) {
				w.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) {
					o.Status.Conditions = apitest.Active(false)
				})
			},
			func(w *apitest.World) { w.Join(apitest.Admin, apitest.Acme, "", v1alpha1.RoleAdmin) },
		)
		return o
	}
	o := f.remove(apitest.Admin).Object(t, http.StatusOK)
	require.Equal(t, "2026-03-01T11:00:00Z", o["deletionRequestedAt"])
	require.Equal(t, "2026-03-31T11:00:00Z", o["purgeAt"])
	require.Zero(t, f.store.writes)
}

// A deletion can be undone until the controller removes the object. The handler does not
// compare the clock with the end of the grace period.
func TestO13_undeletesUpToTheLastSecondOfTheGrace(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(apitest.Epoch().Time)
	f := newFixture(t, func(h *orgs.Handler) { h.Clock = clock })
	marking(t, f)
	f.remove(apitest.Admin).Object(t, http.StatusOK)
	clock.SetTime(apitest.Epoch().Add(720*time.Hour - time.Second))
	f.undelete(apitest.Admin).Object(t, http.StatusOK)
	require.Equal(t, "2026-04-30T11:59:59Z", f.remove(apitest.Admin).Object(t, http.StatusOK)["purgeAt"], "a new request has its own full grace")
	now := apitest.Epoch()
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.DeletionTimestamp = &now })
	require.Contains(t, f.undelete(apitest.Admin).Refused(t, http.StatusNotFound).Message, "grace")
	require.Equal(t, 3, f.store.writes)
}

func TestUndelete_doesNotWaitForAPurgedOrg(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store.mark = func(held *v1alpha1.Organization, status map[string]any) (*v1alpha1.Organization, error) {
		f.world.Later(func(w *apitest.World) { w.DropOrg(held.Name) })
		return apitest.MergePatched(t, held, map[string]any{"status": status}), nil
	}
	require.Equal(t, "2026-03-31T12:00:00Z", f.remove(apitest.Admin).Object(t, http.StatusOK)["purgeAt"])
}

func TestDelete_answersAFailureWithoutWaiting(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store.mark = func(*v1alpha1.Organization, map[string]any) (*v1alpha1.Organization, error) {
		return nil, apitest.ErrDown
	}
	f.remove(apitest.Admin).Down(t)
	require.Zero(t, f.world.Waits())
}

// The write succeeds although the client disconnects and the index never follows. The
// answer reports the write.
func TestDelete_goesThroughWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, leave := context.WithCancel(t.Context())
	f.store.mark = func(held *v1alpha1.Organization, status map[string]any) (*v1alpha1.Organization, error) {
		leave()
		return apitest.MergePatched(t, held, map[string]any{"status": status}), nil
	}
	answer := apitest.Call{As: apitest.Admin, Method: http.MethodDelete, Path: acmePath, Org: apitest.Acme, Context: ctx}.Do(f.http)
	require.Equal(t, "2026-03-31T12:00:00Z", answer.Object(t, http.StatusOK)["purgeAt"])
	org, _ := f.world.Org(apitest.Acme)
	require.Equal(t, tenancy.Org{Organization: apitest.Organization(apitest.Acme, "Acme", apitest.Admin), ClusterID: "acmecluster"}, org, "the view's own object is left as it was")
}

// A caller may lose the row in the index by leaving at the same time. The answer must not
// wait for that row.
func TestDelete_waitsForNoIndexEntryThatIsMissing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	mark := f.store.mark
	f.store.mark = func(held *v1alpha1.Organization, status map[string]any) (*v1alpha1.Organization, error) {
		f.world.Unindex(apitest.Admin)
		return mark(held, status)
	}
	f.remove(apitest.Admin).Object(t, http.StatusOK)
	require.Equal(t, 1, f.world.StillToCome(), "all but the row")
}
