package members

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/mergepatch"
	"github.com/faroshq/kedge-hub/pkg/api/internal/waiting"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

type addToOrg struct {
	UserRef v1alpha1.NamedRef `json:"userRef"`
	Role    v1alpha1.Role     `json:"role"`
}

func (h *Handler) addToOrg(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	if err := scope.RequireOrgAdmin("add members"); err != nil {
		return err
	}
	var in addToOrg
	if err := httpapi.Read(r, &in); err != nil {
		return err
	}
	if err := tenancy.CheckRole("role", in.Role); err != nil {
		return err
	}
	return h.add(w, r, tenancy.NewMembership(in.UserRef.Name, "", in.Role))
}

type changeInOrg struct {
	Role json.RawMessage `json:"role"`
}

func (h *Handler) changeInOrg(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	if err := scope.RequireOrgAdmin("change members"); err != nil {
		return err
	}
	var in changeInOrg
	if err := httpapi.Read(r, &in); err != nil {
		return err
	}
	role, given, err := roleIn(in.Role)
	if err != nil {
		return err
	}
	user, err := named(r)
	if err != nil {
		return err
	}
	if !given || role == v1alpha1.RoleAdmin {
		return h.patched(w, r, user, roleSpec(role, given))
	}
	match, err := httpapi.IfMatch(r)
	if err != nil {
		return err
	}
	change, err := h.end(r, tenancy.Ending{User: user, Role: role}, match)
	if err != nil {
		return err
	}
	late := !waiting.Until(r, h.FollowTimeout, h.Await, refs(scope, user), func() bool {
		m, ok := h.member(scope, user)
		// No change is needed: kcp has the role already, and the cache will follow.
		return ok && m.Spec.Role == role || change.User != "" && h.carriedOut(scope, change)
	})
	m, ok := h.member(scope, user)
	switch {
	case !ok:
		return tenancy.NotAMember(user)
	case late:
		httpapi.Tag(w, m.ResourceVersion)
		return httpapi.Write(w, http.StatusAccepted, h.viewOf(m))
	case m.Spec.Role != role:
		return changedMeanwhile(m, match)
	}
	return h.answer(w, r, http.StatusOK, m)
}

// roleIn reads the member role of a patch.
func roleIn(raw json.RawMessage) (role v1alpha1.Role, given bool, err error) {
	text, given, err := mergepatch.Text("role", raw)
	if err != nil || !given {
		return "", false, err
	}
	role = v1alpha1.Role(text)
	return role, true, tenancy.CheckRole("role", role)
}

func roleSpec(role v1alpha1.Role, given bool) map[string]any {
	if !given {
		return map[string]any{}
	}
	return map[string]any{"role": role}
}

func (h *Handler) removeFromOrg(w http.ResponseWriter, r *http.Request) error {
	if err := httpmw.ScopeOf(r).RequireOrgAdmin("remove members; leave with DELETE …/memberships/me"); err != nil {
		return err
	}
	user, err := named(r)
	if err != nil {
		return err
	}
	return h.remove(w, r, user)
}

func (h *Handler) leaveOrg(w http.ResponseWriter, r *http.Request) error {
	return h.remove(w, r, httpmw.ScopeOf(r).User)
}

func (h *Handler) remove(w http.ResponseWriter, r *http.Request, user string) error {
	cascade, err := httpapi.Flag(r, "cascade")
	if err != nil {
		return err
	}
	match, err := httpapi.IfMatch(r)
	if err != nil {
		return err
	}
	change, err := h.end(r, tenancy.Ending{User: user, Cascade: cascade}, match)
	if err != nil {
		return err
	}
	scope := httpmw.ScopeOf(r)
	code := h.awaitRemoval(r, user, func() bool { return h.carriedOut(scope, change) })
	if m, ok := h.member(scope, user); ok && m.UID == change.UID && m.Generation != change.Generation {
		return changedMeanwhile(m, match)
	}
	w.WriteHeader(code)
	return nil
}

// end decides a removal or demotion. The decision is written to the Organization by
// compare-and-swap and carried out by its reconciler (O-9). The change is zero if there is
// nothing to do. match is called with the Membership at the time of the write; the change is
// for that generation of it only.
func (h *Handler) end(r *http.Request, e tenancy.Ending, match func(version string) error) (v1alpha1.MembershipChange, error) {
	scope := httpmw.ScopeOf(r)
	e.By, e.At = scope.User, metav1.NewMicroTime(h.Clock.Now())
	ctx, cancel, err := waiting.Write(r, httpmw.Intent{
		Reduces: true, Object: e.User, Facts: audit.Facts{Role: string(e.Role), Cascade: e.Cascade},
	})
	if err != nil {
		return v1alpha1.MembershipChange{}, err
	}
	defer cancel()
	var sent v1alpha1.MembershipChange
	var judge func(version string) error
	var judged error
	if match != nil {
		// match is about the Membership that the decision saw.
		judge = func(string) error { return judged }
	}
	decided, err := h.Store.AmendOrganization(ctx, scope.Org.Organization, func(ctx context.Context, o *v1alpha1.Organization) (map[string]any, error) {
		memberships, err := h.Store.ListMemberships(ctx, scope.Org.ClusterID)
		if err != nil {
			return nil, err
		}
		if match != nil {
			judged = matched(o, memberships, e.User, match)
		}
		changes, err := tenancy.DecideEnding(o, memberships, e, h.active, func(uuid string) string {
			ws, _ := h.Views.Workspace(scope.Org.UUID(), uuid)
			return ws.DisplayName
		})
		if sent.User != "" && errs.Is(err, errs.NotFound) {
			// The answer of the first attempt was lost, and the change is carried out already.
			return nil, nil
		}
		if err != nil || changes == nil {
			return nil, err
		}
		sent = changes[len(changes)-1]
		return map[string]any{"membershipChanges": changes}, nil
	}, judge)
	if err != nil {
		return v1alpha1.MembershipChange{}, err
	}
	if change, ok := tenancy.ChangeOf(decided, e.User); ok {
		return change, nil
	}
	return sent, nil
}

// matched evaluates If-Match on the Membership of the User. It fails if a change by another
// request is pending, because the Membership is about to differ from what the caller saw.
func matched(o *v1alpha1.Organization, memberships []v1alpha1.Membership, user string, match func(version string) error) error {
	i := slices.IndexFunc(memberships, func(m v1alpha1.Membership) bool { return m.Name == tenancy.MembershipName(user, "") })
	if i < 0 {
		return tenancy.NotAMember(user)
	}
	if change, ok := tenancy.ChangeOf(o, user); ok && tenancy.ChangeApplies(change, &memberships[i]) {
		return httpapi.Changed("")
	}
	return match(memberships[i].ResourceVersion)
}

func (h *Handler) active(user string) bool {
	u, _ := h.Views.ByName(user)
	return tenancy.Active(u)
}

// carriedOut reports whether a change is done, or void because the Membership was changed by
// somebody else. As long as the cached Membership is unchanged, the cache may be outdated.
func (h *Handler) carriedOut(scope *tenancy.Scope, change v1alpha1.MembershipChange) bool {
	if m, ok := h.member(scope, change.User); ok && tenancy.ChangeApplies(change, m) {
		return false
	}
	org, ok := h.Views.Org(scope.Org.UUID())
	if !ok {
		return true
	}
	pending, ok := tenancy.ChangeOf(org.Organization, change.User)
	return !ok || pending.UID != change.UID
}

// changedMeanwhile is the error for a Membership that was changed by somebody else: a failed
// precondition if the request had one.
func changedMeanwhile(m *v1alpha1.Membership, match func(version string) error) error {
	if match != nil {
		return httpapi.Changed(m.ResourceVersion)
	}
	return errs.New(errs.Conflict, "the membership of "+m.Spec.UserRef.Name+" was changed at the same time; look at it and repeat the request")
}
