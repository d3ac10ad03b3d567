package members

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/mergepatch"
	"github.com/faroshq/kedge-hub/pkg/api/internal/waiting"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

type addToWorkspace struct {
	UserRef v1alpha1.NamedRef  `json:"userRef"`
	Role    v1alpha1.Role      `json:"role"`
	Roles   []v1alpha1.RoleRef `json:"roles"`
	Sudo    bool               `json:"sudo"`
}

// addToWorkspace takes people who need not be members of the Org.
func (h *Handler) addToWorkspace(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	if err := scope.RequireWorkspaceAdmin("add members"); err != nil {
		return err
	}
	var in addToWorkspace
	if err := httpapi.Read(r, &in); err != nil {
		return err
	}
	if err := tenancy.CheckRole("role", in.Role); err != nil {
		return err
	}
	if err := tenancy.CheckRoles("roles", in.Roles); err != nil {
		return err
	}
	return h.add(w, r, tenancy.NewWorkspaceMembership(in.UserRef.Name, scope.Workspace.UUID, in.Role, in.Roles, in.Sudo))
}

type changeInWorkspace struct {
	Role  json.RawMessage `json:"role"`
	Roles json.RawMessage `json:"roles"`
	Sudo  json.RawMessage `json:"sudo"`
}

func (h *Handler) changeInWorkspace(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	if err := scope.RequireWorkspaceAdmin("change members"); err != nil {
		return err
	}
	var in changeInWorkspace
	if err := httpapi.Read(r, &in); err != nil {
		return err
	}
	role, given, err := roleIn(in.Role)
	if err != nil {
		return err
	}
	spec := roleSpec(role, given)
	if in.Roles != nil {
		if spec["roles"], err = rolesIn(in.Roles); err != nil {
			return err
		}
	}
	if in.Sudo != nil {
		var sudo bool
		if mergepatch.IsNull(in.Sudo) || json.Unmarshal(in.Sudo, &sudo) != nil {
			return errs.InvalidField("sudo", "must be true or false")
		}
		spec["sudo"] = sudo
	}
	user, err := named(r)
	if err != nil {
		return err
	}
	// A lower role takes sudo and further roles along. An unknown one counts as higher.
	if m, ok := h.member(scope, user); given && (!ok || tenancy.Lowers(m.Spec.Role, role)) {
		if in.Roles == nil {
			spec["roles"] = []v1alpha1.RoleRef{}
		}
		if in.Sudo == nil {
			spec["sudo"] = false
		}
	}
	return h.patched(w, r, user, spec)
}

// rolesIn reads the whole list, which replaces the one before; none where the patch
// takes it away.
func rolesIn(raw json.RawMessage) ([]v1alpha1.RoleRef, error) {
	in := struct {
		Roles []v1alpha1.RoleRef `json:"roles"`
	}{Roles: []v1alpha1.RoleRef{}}
	if mergepatch.IsNull(raw) {
		return in.Roles, nil
	}
	// As the body had it, so that what is at fault in it has the same name.
	if err := httpapi.Decode(slices.Concat([]byte(`{"roles":`), raw, []byte("}")), &in); err != nil {
		return nil, err
	}
	return in.Roles, tenancy.CheckRoles("roles", in.Roles)
}

func (h *Handler) removeFromWorkspace(w http.ResponseWriter, r *http.Request) error {
	if err := httpmw.ScopeOf(r).RequireWorkspaceAdmin("remove members; leave with DELETE …/memberships/me"); err != nil {
		return err
	}
	user, err := named(r)
	if err != nil {
		return err
	}
	return h.removeHere(w, r, user)
}

func (h *Handler) leaveWorkspace(w http.ResponseWriter, r *http.Request) error {
	return h.removeHere(w, r, httpmw.ScopeOf(r).User)
}

// removeHere removes a person from the Workspace. That it may leave it without an
// admin is no harm: the Org's admins are admins in it (O-15). There is nothing below
// it to cascade to, but what is no answer to that question is refused as in an Org.
func (h *Handler) removeHere(w http.ResponseWriter, r *http.Request, user string) error {
	scope := httpmw.ScopeOf(r)
	if _, err := httpapi.Flag(r, "cascade"); err != nil {
		return err
	}
	match, err := httpapi.IfMatch(r)
	if err != nil {
		return err
	}
	ctx, cancel, err := waiting.Write(r, httpmw.Intent{Reduces: true, Object: user})
	if err != nil {
		return err
	}
	defer cancel()
	held, _ := h.member(scope, user)
	err = h.Store.DeleteMembership(ctx, scope.Org.ClusterID, tenancy.MembershipName(user, scope.Workspace.UUID), match)
	if errs.Is(err, errs.NotFound) {
		return tenancy.NotAMember(user)
	}
	if err != nil {
		return err
	}
	w.WriteHeader(h.awaitRemoval(r, user, func() bool {
		m, ok := h.member(scope, user)
		return !ok || held != nil && m.UID != held.UID
	}))
	return nil
}
