package httpmw

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// The headers that choose the context of a request (O-2).
const (
	OrgHeader       = "X-Kedge-Org"
	WorkspaceHeader = "X-Kedge-Workspace"
)

// Tenants is what scopes are checked against, in memory.
type Tenants interface {
	Index(user string) []v1alpha1.MembershipIndexEntry
	Org(uuid string) (tenancy.Org, bool)
	Workspace(org, workspace string) (tenancy.Workspace, bool)
}

type scopeKey struct{}

// ScopeOf returns the scope of a request. It panics where none of the scope
// middlewares ran: a route without one is a bug that must not serve.
func ScopeOf(r *http.Request) *tenancy.Scope {
	s, ok := r.Context().Value(scopeKey{}).(*tenancy.Scope)
	if !ok {
		panic("httpmw: route without a scope")
	}
	return s
}

// Scopes makes the middlewares that check the tenant headers, the path and the
// caller's UserMembershipIndex against each other.
type Scopes struct{ Tenants Tenants }

// Org is for endpoints of an Org: the caller has a role in the Org itself.
func (s Scopes) Org(next http.Handler) http.Handler {
	return s.middleware(next, func(scope *tenancy.Scope, _ []v1alpha1.MembershipIndexEntry) bool { return scope.OrgRole != "" }, orgTarget)
}

// DeletedOrg is Org for the one endpoint that there is of a soft-deleted Org.
func (s Scopes) DeletedOrg(next http.Handler) http.Handler {
	return s.middleware(next, func(scope *tenancy.Scope, _ []v1alpha1.MembershipIndexEntry) bool { return scope.OrgRole != "" }, deletedOrgTarget)
}

// OrgVisitor is for what people may see of an Org in which they have no more
// than a Workspace.
func (s Scopes) OrgVisitor(next http.Handler) http.Handler {
	return s.middleware(next, func(scope *tenancy.Scope, entries []v1alpha1.MembershipIndexEntry) bool {
		return tenancy.InOrg(entries, scope.Org.UUID())
	}, orgTarget)
}

// Workspace is for endpoints of a Workspace: the caller has a role there, an Org
// admin always (O-15).
func (s Scopes) Workspace(next http.Handler) http.Handler {
	return s.middleware(next, func(scope *tenancy.Scope, _ []v1alpha1.MembershipIndexEntry) bool { return scope.WorkspaceRole != "" }, workspaceTarget)
}

// DeletedWorkspace is Workspace for the one endpoint that there is of a soft-deleted
// Workspace.
func (s Scopes) DeletedWorkspace(next http.Handler) http.Handler {
	return s.middleware(next, func(scope *tenancy.Scope, _ []v1alpha1.MembershipIndexEntry) bool { return scope.WorkspaceRole != "" }, deletedWorkspaceTarget)
}

// target is what an endpoint is about.
type target int

const (
	orgTarget target = iota
	deletedOrgTarget
	workspaceTarget
	deletedWorkspaceTarget
)

func (s Scopes) middleware(next http.Handler, allowed func(*tenancy.Scope, []v1alpha1.MembershipIndexEntry) bool, about target) http.Handler {
	inWorkspace := about == workspaceTarget || about == deletedWorkspaceTarget
	return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
		orgUUID, err := fromHeaderAndPath(r, OrgHeader, "org")
		if err != nil {
			return err
		}
		wsUUID := ""
		if inWorkspace {
			if wsUUID, err = fromHeaderAndPath(r, WorkspaceHeader, "ws"); err != nil {
				return err
			}
		}
		caller := CallerOf(r)
		entries := s.Tenants.Index(caller.User.Name)
		org, found := s.Tenants.Org(orgUUID)
		if !found {
			return foreign()
		}
		scope := &tenancy.Scope{
			User: caller.User.Name, PlatformAdmin: caller.PlatformAdmin,
			Org: org, OrgRole: tenancy.OrgRole(entries, orgUUID),
		}
		gone := org.Deleted() && about != deletedOrgTarget
		if inWorkspace {
			ws, ok := s.Tenants.Workspace(orgUUID, wsUUID)
			if !ok {
				return foreign()
			}
			scope.Workspace = &ws
			scope.WorkspaceRole = tenancy.WorkspaceRole(entries, orgUUID, wsUUID, org.Spec.DefaultAccess)
			gone = gone || ws.Deleted() && about != deletedWorkspaceTarget
		}
		if !allowed(scope, entries) {
			return foreign()
		}
		if gone {
			return errs.New(errs.NotFound, "it was deleted; until its grace ends it can be undeleted")
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), scopeKey{}, scope)))
		return nil
	})
}

// foreign is the one answer for what is not the caller's, whether it exists or
// not.
func foreign() error {
	return errs.New(errs.Forbidden, "you have no membership there; ask an admin of the organization to add you")
}

// fromHeaderAndPath reads the UUID that a tenant header and the path agree on.
func fromHeaderAndPath(r *http.Request, header, param string) (string, error) {
	field := "header:" + header
	values := r.Header.Values(header)
	switch {
	case len(values) == 0:
		return "", errs.InvalidField(field, "is missing; send the UUID that is in the path")
	case len(values) > 1:
		return "", errs.InvalidField(field, "is sent more than once")
	case !tenancy.IsUUID(values[0]):
		return "", errs.InvalidField(field, "is not a UUID in canonical lower case")
	case values[0] != chi.URLParam(r, param):
		return "", errs.InvalidField(field, "does not name what the path names")
	}
	return values[0], nil
}
