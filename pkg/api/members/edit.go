package members

import (
	"context"
	"net/http"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// decision is an accepted change of a Membership, which the reconciler of the Organization carries
// out.
type decision struct {
	// change is zero if there is nothing to change.
	change v1alpha1.MembershipChange
	// generation is that of the Organization that has the change, or does not have it any more.
	generation int64
	// written is true if the change is this request's own.
	written bool
	// ending follows a change that takes rights. It is nil for every other one.
	ending *api.Ending
}

// decide has the Organization accept a change of a User's Membership by compare-and-swap. change
// returns the Membership as kcp has it and spec.membershipChanges with the new change last, or nil
// for none. match is called with that Membership at the time of the write; the change is for that
// generation of it only.
func (h *Handler) decide(r *http.Request, scope *tenancy.Scope, intent httpmw.Intent, user string, match api.Match,
	change func(context.Context, *v1alpha1.Organization) (*v1alpha1.Membership, []v1alpha1.MembershipChange, error),
) (decision, error) {
	ctx, cancel, err := api.Write(r, intent)
	if err != nil {
		return decision{}, err
	}
	defer cancel()
	d := decision{}
	if intent.Reduces {
		d.ending = h.Follow(r, user)
	}
	var sent v1alpha1.MembershipChange
	var seen *v1alpha1.Membership
	var judge api.Match
	var judged error
	if match != nil {
		// match is about the Membership that the decision saw.
		judge = func(string) error { return judged }
	}
	decided, err := h.Store.ChangeOrganization(ctx, scope.Org.Organization, judge, func(ctx context.Context, o *v1alpha1.Organization) error {
		held, changes, err := change(ctx, o)
		if seen = held; match != nil {
			judged = matched(o, held, user, match)
		}
		if sent.User != "" && errs.Is(err, errs.NotFound) {
			// The answer of the first attempt was lost, and the change is carried out already.
			return nil
		}
		if err != nil || changes == nil {
			return err
		}
		sent, o.Spec.MembershipChanges = changes[len(changes)-1], changes
		return nil
	})
	if err != nil {
		d.ending.Close()
		return decision{}, err
	}
	d.change, d.generation = sent, decided.Generation
	if pending, ok := tenancy.ChangeOf(decided, user, scope.WorkspaceUUID()); ok && tenancy.ChangeApplies(pending, seen) {
		d.change, d.written = pending, tenancy.SameChange(pending, sent)
	}
	return d, nil
}

// matched evaluates If-Match on a Membership. It fails if a change by another request is pending,
// because the Membership is about to differ from what the caller saw.
func matched(o *v1alpha1.Organization, m *v1alpha1.Membership, user string, match api.Match) error {
	if m == nil {
		return tenancy.NotAMember(user)
	}
	if change, ok := tenancy.ChangeOf(o, user, tenancy.WorkspaceUUID(m)); ok && tenancy.ChangeApplies(change, m) {
		return httpapi.Changed("")
	}
	return match(m.ResourceVersion)
}

// edit has the Organization accept an edit. The author is nil for people who leave by themselves.
func (h *Handler) edit(r *http.Request, scope *tenancy.Scope, by *httpmw.Author, e tenancy.MemberEdit, match api.Match) (decision, error) {
	e.By, e.Workspace, e.At = scope.User, scope.WorkspaceUUID(), tenancy.DecisionTime(h.Clock.Now())
	return h.decide(r, scope, h.intentOf(scope, e), e.User, match, func(ctx context.Context, o *v1alpha1.Organization) (*v1alpha1.Membership, []v1alpha1.MembershipChange, error) {
		var held *v1alpha1.Membership
		// The longer the reads take, the more other writes of the Organization come in between.
		reads, ctx := errgroup.WithContext(ctx)
		e := e
		if by != nil {
			reads.Go(func() (err error) {
				e.Author, err = by.JudgeStanding(ctx, o)
				return err
			})
		}
		reads.Go(func() (err error) {
			held, err = h.Memberships.GetMembership(ctx, scope.Org.ClusterID, tenancy.MembershipName(e.User, e.Workspace))
			return err
		})
		if err := reads.Wait(); err != nil {
			return nil, nil, err
		}
		if held != nil {
			if held = tenancy.EffectiveAt(held, h.Rights.Clock.Now()); held == nil && e.Add {
				return nil, nil, errs.New(errs.Conflict, "the membership of "+e.User+" has ended and is being removed at the moment; add them again afterwards")
			}
		}
		changes, err := tenancy.DecideEdit(o, held, e)
		return held, changes, err
	})
}

// patch changes what a Membership gives, and answers with it.
func (h *Handler) patch(w http.ResponseWriter, r *http.Request, scope *tenancy.Scope, by httpmw.Author, e tenancy.MemberEdit) error {
	match, err := httpapi.IfMatch(r)
	if err != nil {
		return err
	}
	d, err := h.edit(r, scope, &by, e, match)
	if err != nil {
		return err
	}
	return h.changed(w, r, scope, e.User, d, match)
}

// changed answers with a Membership after a decision.
func (h *Handler) changed(w http.ResponseWriter, r *http.Request, scope *tenancy.Scope, user string, d decision, match api.Match) error {
	defer d.ending.Close()
	if d.change.User != "" {
		return h.finish(w, r, scope, http.StatusOK, d, match)
	}
	// Nothing is to change.
	m, err := h.present(r, scope, user)
	if err != nil {
		return err
	}
	return h.answer(w, r, scope, http.StatusOK, m, nil)
}

// finish waits until a change is carried out and answers with the Membership: with code, or with
// 202 if that takes too long.
func (h *Handler) finish(w http.ResponseWriter, r *http.Request, scope *tenancy.Scope, code int, d decision, match api.Match) error {
	user := d.change.User
	late := !h.Until(r, refs(scope, user), func() bool { return h.carriedOut(scope, d) })
	m, ok := h.member(scope, user)
	switch {
	case late && !ok:
		m = tenancy.ChangedMembership(nil, d.change)
		m.CreationTimestamp = metav1.NewTime(d.change.RequestedAt.Time)
	case !ok:
		// The cache of Memberships is behind that of Organizations, or the change is void.
		var err error
		if m, err = h.present(r, scope, user); err != nil {
			return err
		}
	}
	switch {
	case late || api.Async(r) && code == http.StatusCreated:
		return h.write(w, http.StatusAccepted, m, d.ending)
	case !tenancy.CarriedOut(m, d.change):
		return changedMeanwhile(m, match)
	}
	return h.answer(w, r, scope, code, m, d.ending)
}

// present reads the Membership of a User in the scope from kcp.
func (h *Handler) present(r *http.Request, scope *tenancy.Scope, user string) (*v1alpha1.Membership, error) {
	m, err := h.Memberships.GetMembership(r.Context(), scope.Org.ClusterID, tenancy.MembershipName(user, scope.WorkspaceUUID()))
	if err == nil && m == nil {
		err = tenancy.NotAMember(user)
	}
	return m, err
}

// removed waits until a removal is carried out and answers 204, or 202 if that takes too long.
func (h *Handler) removed(w http.ResponseWriter, r *http.Request, scope *tenancy.Scope, user string, d decision, match api.Match) error {
	defer d.ending.Close()
	late := !h.Until(r, refs(scope, user), func() bool {
		if !h.carriedOut(scope, d) || !h.refused(scope, user) {
			return false
		}
		d.ending.HubRefuses()
		if !h.Followed(scope.Org.UUID(), scope.WorkspaceUUID(), user) {
			return false
		}
		d.ending.KCPRefuses()
		return true
	})
	if m, ok := h.member(scope, user); ok && m.UID == d.change.UID && m.Generation != d.change.Generation {
		return changedMeanwhile(m, match)
	}
	return d.ending.Write(w, late)
}

// refused reports whether the gate has no row of the User that an ended Membership gave. Somebody may have
// made another one since.
func (h *Handler) refused(scope *tenancy.Scope, user string) bool {
	_, again := h.member(scope, user)
	return again || tenancy.Row(h.Views.Index(user), scope.Org.UUID(), scope.WorkspaceUUID()) == nil
}

// carriedOut reports whether a change is done, or void because the Membership was changed by
// somebody else. As long as the cached Membership is unchanged, the cache may be outdated.
func (h *Handler) carriedOut(scope *tenancy.Scope, d decision) bool {
	if m, ok := h.member(scope, d.change.User); ok && tenancy.ChangeApplies(d.change, m) {
		return false
	}
	org, ok := h.Views.Org(scope.Org.UUID())
	if !ok {
		return true
	}
	pending, ok := tenancy.ChangeOf(org.Organization, d.change.User, d.change.Workspace)
	return org.Generation >= d.generation && (!ok || !tenancy.SameChange(pending, d.change))
}

// changedMeanwhile is the error for a Membership that was changed by somebody else: a failed
// precondition if the request had one.
func changedMeanwhile(m *v1alpha1.Membership, match api.Match) error {
	if match != nil {
		return httpapi.Changed(m.ResourceVersion)
	}
	return errs.New(errs.Conflict, "the membership of "+m.Spec.UserRef.Name+" was changed at the same time; look at it and repeat the request")
}
