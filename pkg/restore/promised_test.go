package restore_test

import (
	"testing"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// The controller of people makes it while the hub replays, alive and with its creator as admin.
func TestRun_endsAnOrgThatTheBackupHasOnlyAsAPromise(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		promise func(w *world, u *v1alpha1.User)
		never   bool
	}{
		"a claim": {promise: func(_ *world, u *v1alpha1.User) {
			u.Spec.OrgClaims = []v1alpha1.Claim{{UUID: org, Request: &v1alpha1.ClaimRequest{CreatedBy: "alice"}}}
		}},
		"the person's own": {promise: func(w *world, u *v1alpha1.User) {
			w.applier.PersonalOrgs = true
			u.Annotations = map[string]string{v1alpha1.PersonalOrgAnnotation: org}
		}},
		"a hub without such": {never: true, promise: func(_ *world, u *v1alpha1.User) {
			u.Annotations = map[string]string{v1alpha1.PersonalOrgAnnotation: org}
		}},
		"the person's own, which they deleted": {never: true, promise: func(w *world, u *v1alpha1.User) {
			w.applier.PersonalOrgs = true
			u.Annotations, u.Status.PersonalOrg = map[string]string{v1alpha1.PersonalOrgAnnotation: org}, org
		}},
		"a claim of a deleted person": {never: true, promise: func(_ *world, u *v1alpha1.User) {
			u.Spec.OrgClaims = []v1alpha1.Claim{{UUID: org, Request: &v1alpha1.ClaimRequest{CreatedBy: "alice"}}}
			u.Status.DeletionRequestedAt = &metav1.Time{Time: then}
		}},
		"a deleted person's own": {never: true, promise: func(w *world, u *v1alpha1.User) {
			w.applier.PersonalOrgs = true
			u.Annotations = map[string]string{v1alpha1.PersonalOrgAnnotation: org}
			u.Status.DeletionRequestedAt = &metav1.Time{Time: then}
		}},
		"a claim of one that is gone": {never: true, promise: func(_ *world, u *v1alpha1.User) {
			u.Spec.OrgClaims = []v1alpha1.Claim{{UUID: org}}
		}},
		"a claim of a person who is being removed": {never: true, promise: func(_ *world, u *v1alpha1.User) {
			u.Spec.OrgClaims = []v1alpha1.Claim{{UUID: org, Request: &v1alpha1.ClaimRequest{CreatedBy: "alice"}}}
			u.Finalizers, u.DeletionTimestamp = []string{v1alpha1.CascadeFinalizer}, &metav1.Time{Time: then}
		}},
	} {
		w := newWorld(t)
		o := w.organization()
		w.Remove(orgs, o)
		alice := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "alice"}}
		require.True(t, w.Read(users, alice))
		c.promise(w, alice)
		w.Put(users, alice)
		views := &behind{world: w}
		w.applier.Views, w.applier.Members = views, ofNobody{w}
		passes := 0
		w.applier.Waiting = func(int, error) {
			switch passes++; passes {
			case 2:
				// The claim is gone before the cache has the Organization.
				alice.Spec.OrgClaims, alice.Status.PersonalOrg = nil, org
				w.Put(users, alice)
				w.Put(orgs, o)
			case 4:
				views.orgs = true
			}
			if views.orgs {
				w.carryOut()
			}
		}
		r := w.runAll(
			restore.Step{Kind: restore.RemoveMember, Org: org, Object: "alice"}, restore.Step{Kind: restore.DeleteOrg, Org: org, At: then},
		)
		if c.never {
			require.Len(t, r.Impossible, 2, name)
			require.True(t, w.Read(users, alice))
			if alice.Status.DeletionRequestedAt != nil {
				require.Empty(t, alice.Spec.OrgClaims, name)
				require.True(t, !w.applier.PersonalOrgs || alice.Status.PersonalOrg == org, "%s: it is not made after an undeletion", name)
			}
			continue
		}
		require.Empty(t, r.Impossible, name)
		require.NotNil(t, w.organization().Status.DeletionRequestedAt, name)
		require.Nil(t, w.member("alice"), name)
	}
}

// ofNobody has no Memberships.
type ofNobody struct{ *world }

func (ofNobody) Orgs() []tenancy.Org { return nil }

func (ofNobody) MembershipsOf(string) []*v1alpha1.Membership { return nil }

// So it is with the default Workspace in the Organization of a person who has just signed up.
func TestRun_endsADefaultWorkspaceThatTheBackupDoesNotHaveYet(t *testing.T) {
	t.Parallel()
	const made = "5f8f0bd6-2d34-4c28-9ad4-6f0ee1b5a0f6"
	for name, c := range map[string]struct {
		had   string
		never bool
	}{"it comes": {}, "the person deleted it before": {had: made, never: true}} {
		w := newWorld(t)
		w.applier.PersonalOrgs = true
		o := w.organization()
		o.Spec.Personal, o.Annotations[v1alpha1.DefaultWorkspaceAnnotation] = true, made
		w.Put(orgs, o)
		alice := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "alice"}}
		require.True(t, w.Read(users, alice))
		alice.Spec.Registration, alice.Status.DefaultWorkspace = v1alpha1.RegistrationApproved, c.had
		w.Put(users, alice)
		w.applier.Waiting = func(left int, _ error) {
			if left > 0 {
				child := &kcptenancyv1alpha1.Workspace{}
				child.Name = made
				w.Put(inOrg, child)
			}
		}
		r := w.run(restore.Step{Kind: restore.DeleteWorkspace, Workspace: made})
		require.Equal(t, c.never, len(r.Impossible) == 1, name)
		child, _ := w.Workspace(org, made)
		require.Equal(t, c.never, child.DeletionRequestedAt == nil, name)
	}
}
