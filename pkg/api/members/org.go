package members

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/mergepatch"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func (h *Handler) addToOrg(w http.ResponseWriter, r *http.Request) error {
	by, in, err := api.Begin[rest.AddOrgMemberRequest](r, h.Rights, func(s tenancy.Scope) error { return s.RequireOrgAdmin("add members") })
	if err != nil {
		return err
	}
	role := v1alpha1.Role(in.Role)
	if err := tenancy.CheckRole("role", role); err != nil {
		return err
	}
	expiry, err := h.Expiry(in.ExpiresAt)
	if err != nil {
		return err
	}
	return h.add(w, r, httpmw.ScopeOf(r), by, tenancy.MemberEdit{User: in.UserRef.Name, Role: role, Expiry: expiry})
}

func (h *Handler) changeInOrg(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	by, in, err := api.Begin[rest.UpdateOrgMemberRequest](r, h.Rights, func(s tenancy.Scope) error { return s.RequireOrgAdmin("change members") })
	if err != nil {
		return err
	}
	role, given, err := roleIn(in.Role)
	if err != nil {
		return err
	}
	expiry, err := h.Expiry(in.ExpiresAt)
	if err != nil {
		return err
	}
	user, err := named(r)
	if err != nil {
		return err
	}
	if demotes := given && role != v1alpha1.RoleAdmin; !demotes && (expiry == nil || expiry.At == nil) {
		return h.patch(w, r, scope, by, tenancy.MemberEdit{User: user, Role: role, Expiry: expiry})
	}
	match, err := httpapi.IfMatch(r)
	if err != nil {
		return err
	}
	d, err := h.end(r, scope, &by, tenancy.Ending{User: user, Role: role, Expiry: expiry}, match)
	if err != nil {
		return err
	}
	return h.changed(w, r, scope, user, d, match)
}

// roleIn reads the member role of a patch.
func roleIn(raw []byte) (role v1alpha1.Role, given bool, err error) {
	text, given, err := mergepatch.Text("role", raw)
	if err != nil || !given {
		return "", false, err
	}
	role = v1alpha1.Role(text)
	return role, true, tenancy.CheckRole("role", role)
}

func (h *Handler) removeFromOrg(w http.ResponseWriter, r *http.Request) error {
	by, err := h.Rights.Begin(r, func(s tenancy.Scope) error {
		return s.RequireOrgAdmin("remove members; leave with DELETE …/memberships/me")
	})
	if err != nil {
		return err
	}
	user, err := named(r)
	if err != nil {
		return err
	}
	return h.remove(w, r, httpmw.ScopeOf(r), &by, user)
}

func (h *Handler) leaveOrg(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	return h.remove(w, r, scope, nil, scope.User)
}

// remove removes a User from the Organization. by is nil for people who leave by themselves.
func (h *Handler) remove(w http.ResponseWriter, r *http.Request, scope *tenancy.Scope, by *httpmw.Author, user string) error {
	cascade, err := httpapi.Flag(r, "cascade")
	if err != nil {
		return err
	}
	match, err := httpapi.IfMatch(r)
	if err != nil {
		return err
	}
	e := tenancy.Ending{User: user, Cascade: cascade}
	if by == nil {
		// Everybody may leave at any time. What the cache shows to be refused is refused before it
		// waits for the writers of the Organization, so that a person who repeats it delays nobody.
		e.By = user
		if _, err := h.decideEnding(scope, scope.Org.Organization, h.cached(scope), e); errs.Is(err, errs.Conflict) {
			return err
		}
	}
	d, err := h.end(r, scope, by, e, match)
	if err != nil {
		return err
	}
	return h.removed(w, r, scope, user, d, match)
}

// end has the Organization accept a removal, a demotion or an end (O-9). by is nil for people who leave by
// themselves.
func (h *Handler) end(r *http.Request, scope *tenancy.Scope, by *httpmw.Author, e tenancy.Ending, match api.Match) (decision, error) {
	e.By, e.At = scope.User, tenancy.DecisionTime(h.Clock.Now())
	intent := httpmw.Intent{Reduces: true, Object: e.User, Facts: audit.Facts{Role: string(e.Role), Cascade: e.Cascade}}
	if e.Expiry != nil {
		held, ok := h.member(scope, e.User)
		intent.Reduces = ok && tenancy.ReducesMembership(held, v1alpha1.MembershipChange{Role: cmp.Or(e.Role, tenancy.HandOf(held).Role), ExpiresAt: e.Expiry.At})
		intent.Facts.ExpiresAt = tenancy.ExpiryText(e.Expiry.At)
	}
	return h.decide(r, scope, intent, e.User, match, func(ctx context.Context, o *v1alpha1.Organization) (*v1alpha1.Membership, []v1alpha1.MembershipChange, error) {
		var list []v1alpha1.Membership
		reads, ctx := errgroup.WithContext(ctx)
		e := e
		if by != nil {
			reads.Go(func() (err error) {
				e.Author, err = by.JudgeStanding(ctx, o)
				return err
			})
		}
		reads.Go(func() (err error) {
			list, err = h.Memberships.ListMemberships(ctx, scope.Org.ClusterID)
			return err
		})
		if err := reads.Wait(); err != nil {
			return nil, nil, err
		}
		var held *v1alpha1.Membership
		all := tenancy.LivingOf(list, h.Rights.Clock.Now())
		if i := slices.IndexFunc(all, func(m *v1alpha1.Membership) bool { return m.Name == tenancy.MembershipName(e.User, "") }); i >= 0 {
			held = all[i]
		}
		changes, err := h.decideEnding(scope, o, all, e)
		return held, changes, err
	})
}

// cached returns the Memberships of the Organization itself, and those of the caller in its
// Workspaces, according to the caches.
func (h *Handler) cached(scope *tenancy.Scope) []*v1alpha1.Membership {
	all := slices.Clone(h.Views.MembershipsAt(scope.Org.ClusterID, ""))
	for _, row := range h.Views.Index(scope.User) {
		if row.OrgUUID == scope.Org.UUID() && row.WorkspaceUUID != "" {
			all = append(all, tenancy.NewMembership(scope.User, row.WorkspaceUUID, row.Role))
		}
	}
	return all
}

func (h *Handler) decideEnding(scope *tenancy.Scope, o *v1alpha1.Organization, memberships []*v1alpha1.Membership, e tenancy.Ending) ([]v1alpha1.MembershipChange, error) {
	return tenancy.DecideEnding(o, memberships, e, h.Active, func(uuid string) string {
		ws, _ := h.Views.Workspace(scope.Org.UUID(), uuid)
		return ws.DisplayName
	})
}
