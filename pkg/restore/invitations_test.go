package restore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// promisedInvitation is one that the backup has only as what its Organization has accepted.
const promisedInvitation = "5f8f0bd6-2d34-4c28-9ad4-6f0ee1b5a0f7"

// behind is a cache that sees no new Invitation, and an Organization only when told.
type behind struct {
	*world
	orgs bool
}

func (behind) Invitation(string) (*v1alpha1.Invitation, bool) { return nil, false }

func (b *behind) Org(uuid string) (tenancy.Org, bool) {
	if !b.orgs {
		return tenancy.Org{}, false
	}
	return b.world.Org(uuid)
}

// runAll carries out Steps as they are.
func (w *world) runAll(steps ...restore.Step) restore.Report {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	r, err := w.applier.Run(ctx, restore.Plan{Steps: steps}, restore.Report{})
	require.NoError(w.t, err)
	return r
}

// promiseInvitation has the Organization accept an Invitation.
func (w *world) promiseInvitation() {
	o := w.organization()
	o.Spec.InvitationChanges = []v1alpha1.InvitationChange{{
		Name: promisedInvitation, RequestedAt: metav1.NewMicroTime(then),
		Invitation: &v1alpha1.InvitationSpec{SecretHash: "hash", ExpiresAt: metav1.NewTime(now.Add(time.Hour))},
	}}
	w.Put(orgs, o)
}

// makeInvitations does what the controller of Organizations does.
func (w *world) makeInvitations() {
	o := w.organization()
	for _, c := range o.Spec.InvitationChanges {
		if c.Invitation != nil {
			w.Put(inOrg, tenancy.NewInvitation(c))
			o.Spec.InvitationChanges = nil
			w.Put(orgs, o)
		}
	}
}

// The controller makes it while the hub replays, open and with a link that works.
func TestRun_endsAnInvitationThatTheBackupHasOnlyAccepted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step  restore.Step
		ended v1alpha1.InvitationChange
	}{
		"revoked": {
			restore.Step{
				Kind: restore.AnswerInvitation, Org: org, Object: promisedInvitation, State: v1alpha1.InvitationRevoked, By: "alice",
			},
			v1alpha1.InvitationChange{State: v1alpha1.InvitationRevoked, By: "alice"},
		},
		"used": {
			restore.Step{
				Kind: restore.AnswerInvitation, Org: org, Object: promisedInvitation, State: v1alpha1.InvitationAccepted, By: "dora",
			},
			v1alpha1.InvitationChange{State: v1alpha1.InvitationAccepted, By: "dora"},
		},
		"used by somebody who signed up, of which the event does not name the organization": {
			restore.Step{Kind: restore.BindInvitation, Object: promisedInvitation, Facts: audit.Facts{Issuer: "i", Subject: "s"}},
			v1alpha1.InvitationChange{SignedUp: tenancy.IdentityHash("i", "s")},
		},
	} {
		w := newWorld(t)
		w.promiseInvitation()
		w.applier.Views = &behind{world: w, orgs: true}
		w.applier.Waiting = func(left int, why error) {
			if left > 0 {
				require.ErrorContains(t, why, "not carried it out yet", name)
			}
			w.makeInvitations()
		}
		r := w.runAll(c.step)
		require.Empty(t, r.Impossible, name)
		_, made := w.Invitation(promisedInvitation)
		require.True(t, made, name)
		held, _ := tenancy.InvitationChangeOf(w.organization(), promisedInvitation)
		c.ended.Name, c.ended.RequestedAt = promisedInvitation, held.RequestedAt
		require.Equal(t, c.ended, held, name)
	}
}

// Nobody makes it until the Organization is undeleted.
func TestRun_takesBackAnInvitationThatADeletedOrgHasAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.promiseInvitation()
	o := w.organization()
	other := v1alpha1.InvitationChange{Name: offer, RequestedAt: metav1.NewMicroTime(then)}
	o.Spec.InvitationChanges = append(o.Spec.InvitationChanges, other)
	o.Status.DeletionRequestedAt = &metav1.Time{Time: then}
	w.Put(orgs, o)
	w.applier.Waiting = func(int, error) {}
	r := w.run(restore.Step{Kind: restore.AnswerInvitation, Object: promisedInvitation, State: v1alpha1.InvitationRevoked})
	require.Empty(t, r.Impossible)
	left := w.organization().Spec.InvitationChanges
	require.Len(t, left, 1)
	require.Equal(t, offer, left[0].Name)
	require.Contains(t, w.activated, inOrg)
}
