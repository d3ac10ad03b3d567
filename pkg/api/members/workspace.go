package members

import (
	"net/http"
	"slices"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/mergepatch"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// addToWorkspace takes people who need not be members of the Org.
func (h *Handler) addToWorkspace(w http.ResponseWriter, r *http.Request) error {
	by, in, err := api.Begin[rest.AddWorkspaceMemberRequest](r, h.Rights, func(s tenancy.Scope) error { return s.RequireWorkspaceManager("add members") })
	if err != nil {
		return err
	}
	role, roles := v1alpha1.Role(in.Role), converted(in.Roles)
	if role != "" || !in.Manager {
		if err := tenancy.CheckRole("role", role); err != nil {
			return err
		}
	}
	if err := tenancy.CheckRoles("roles", roles); err != nil {
		return err
	}
	expiry, err := h.Expiry(in.ExpiresAt)
	if err != nil {
		return err
	}
	e := tenancy.MemberEdit{User: in.UserRef.Name, Role: role, Manager: &in.Manager, Roles: &roles, Sudo: &in.Sudo, Expiry: expiry}
	if by, e, err = limited(httpmw.ScopeOf(r), by, e); err != nil {
		return err
	}
	return h.add(w, r, httpmw.ScopeOf(r), by, e)
}

func (h *Handler) changeInWorkspace(w http.ResponseWriter, r *http.Request) error {
	by, in, err := api.Begin[rest.UpdateWorkspaceMemberRequest](r, h.Rights, func(s tenancy.Scope) error { return s.RequireWorkspaceManager("change members") })
	if err != nil {
		return err
	}
	var e tenancy.MemberEdit
	if e.NoRole = in.Role != nil && mergepatch.IsNull(in.Role); !e.NoRole {
		if e.Role, _, err = roleIn(in.Role); err != nil {
			return err
		}
	}
	if e.Manager, err = flagIn("manager", in.Manager); err != nil {
		return err
	}
	if in.Roles != nil {
		roles, err := rolesIn(in.Roles)
		if err != nil {
			return err
		}
		e.Roles = &roles
	}
	if e.Sudo, err = flagIn("sudo", in.Sudo); err != nil {
		return err
	}
	if e.Expiry, err = h.Expiry(in.ExpiresAt); err != nil {
		return err
	}
	if e.User, err = named(r); err != nil {
		return err
	}
	if by, e, err = limited(httpmw.ScopeOf(r), by, e); err != nil {
		return err
	}
	return h.patch(w, r, httpmw.ScopeOf(r), by, e)
}

// flagIn reads a field that is true or false. It is nil where there is none.
func flagIn(name string, field rest.Field[bool]) (*bool, error) {
	if field == nil {
		return nil, nil
	}
	value, err := field.Value()
	if mergepatch.IsNull(field) || err != nil {
		return nil, errs.InvalidField(name, "must be true or false")
	}
	return &value, nil
}

// limited puts the author of an edit under the rule that entitles them: an admin as one, and anybody else as a
// manager, who may edit less.
func limited(scope *tenancy.Scope, by httpmw.Author, e tenancy.MemberEdit) (httpmw.Author, tenancy.MemberEdit, error) {
	if scope.WorkspaceRole.AtLeast(v1alpha1.RoleAdmin) {
		by, err := by.Under(func(s tenancy.Scope) error { return s.RequireWorkspaceAdmin("change members") })
		return by, e, err
	}
	e.AsManager, e.By = true, scope.User
	return by, e, e.CheckManager()
}

// rolesIn reads the whole list, which replaces the one before; none where the patch
// takes it away.
func rolesIn(raw []byte) ([]v1alpha1.RoleRef, error) {
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

// converted converts the further roles of a request. It keeps nil.
func converted(all []rest.RoleRef) (roles []v1alpha1.RoleRef) {
	for _, role := range all {
		roles = append(roles, v1alpha1.RoleRef(role))
	}
	return roles
}

func (h *Handler) removeFromWorkspace(w http.ResponseWriter, r *http.Request) error {
	by, err := h.Rights.Begin(r, func(s tenancy.Scope) error {
		return s.RequireWorkspaceManager("remove members; leave with DELETE …/memberships/me")
	})
	if err != nil {
		return err
	}
	user, err := named(r)
	if err != nil {
		return err
	}
	by, e, err := limited(httpmw.ScopeOf(r), by, tenancy.MemberEdit{User: user, Remove: true})
	if err != nil {
		return err
	}
	return h.removeHere(w, r, httpmw.ScopeOf(r), &by, e)
}

func (h *Handler) leaveWorkspace(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	return h.removeHere(w, r, scope, nil, tenancy.MemberEdit{User: scope.User, Remove: true})
}

// removeHere removes a person from the Workspace. That it may leave it without an
// admin is no harm: the Org's admins are admins in it (O-15). There is nothing below
// it to cascade to, but what is no answer to that question is refused as in an Org.
// by is nil for people who leave by themselves.
func (h *Handler) removeHere(w http.ResponseWriter, r *http.Request, scope *tenancy.Scope, by *httpmw.Author, e tenancy.MemberEdit) error {
	if _, err := httpapi.Flag(r, "cascade"); err != nil {
		return err
	}
	match, err := httpapi.IfMatch(r)
	if err != nil {
		return err
	}
	d, err := h.edit(r, scope, by, e, match)
	if err != nil {
		return err
	}
	return h.removed(w, r, scope, e.User, d, match)
}
