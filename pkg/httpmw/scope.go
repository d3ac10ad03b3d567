package httpmw

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/tracing"
)

// The tenancy headers of a request (O-2).
const (
	OrgHeader       = "X-Kedge-Org"
	WorkspaceHeader = "X-Kedge-Workspace"
)

// Tenants are the caches that scopes are checked against.
type Tenants interface {
	Index(user string) []v1alpha1.MembershipIndexEntry
	Org(uuid string) (tenancy.Org, bool)
	Workspace(org, workspace string) (tenancy.Workspace, bool)
}

type scopeKey struct{}

// ScopeOf returns the scope of a request. It panics if no scope middleware ran: a route without
// one must not serve.
func ScopeOf(r *http.Request) *tenancy.Scope {
	s, ok := r.Context().Value(scopeKey{}).(*tenancy.Scope)
	if !ok {
		panic("httpmw: route without a scope")
	}
	return s
}

// OrgOf returns the UUID of the Organization of the scope of a request, or nothing if it has none.
func OrgOf(r *http.Request) string {
	if s, ok := r.Context().Value(scopeKey{}).(*tenancy.Scope); ok {
		return s.Org.UUID()
	}
	return ""
}

// Scopes provides the middleware that compares the tenancy headers with the path and with the
// caller's UserMembershipIndex.
type Scopes struct {
	Tenants Tenants
	// Creator is used by CreatedOrg and CreatedWorkspace.
	Creator tenancy.Creator
	// Reachable returns what a caller is told while an Organization cannot be reached, because the
	// caches do not follow its changes then. It may be nil.
	Reachable func(org string, clusters ...string) error
}

// Org admits callers with a role in the Org itself.
func (s Scopes) Org(next http.Handler) http.Handler { return s.middleware(next, orgTarget, hasOrgRole) }

// CreatedOrg is Org for reads of an Org. It also admits the creator of an Org that their
// index does not have yet.
func (s Scopes) CreatedOrg(next http.Handler) http.Handler {
	return s.middleware(next, createdOrgTarget, hasOrgRole)
}

// DeletedOrg is Org for the one endpoint that a soft-deleted Org has.
func (s Scopes) DeletedOrg(next http.Handler) http.Handler {
	return s.middleware(next, deletedOrgTarget, hasOrgRole)
}

// OrgVisitor also admits callers who have a role in a Workspace of the Org only.
func (s Scopes) OrgVisitor(next http.Handler) http.Handler {
	return s.middleware(next, orgTarget, inOrg)
}

// Workspace admits callers with a role in the Workspace. Org admins always have one
// (O-15).
func (s Scopes) Workspace(next http.Handler) http.Handler {
	return s.middleware(next, workspaceTarget, hasWorkspaceRole)
}

// Definition admits managers of the Workspace, too. It is for endpoints about the Workspace itself and its
// people, and for none about what is in it.
func (s Scopes) Definition(next http.Handler) http.Handler {
	return s.middleware(next, workspaceTarget, seesDefinition)
}

// CreatedWorkspace is Definition for reads of a Workspace. It also admits the creator of a
// Workspace that their index does not have yet.
func (s Scopes) CreatedWorkspace(next http.Handler) http.Handler {
	return s.middleware(next, createdWorkspaceTarget, seesDefinition)
}

// DeletedWorkspace is Workspace for the one endpoint that a soft-deleted Workspace has.
func (s Scopes) DeletedWorkspace(next http.Handler) http.Handler {
	return s.middleware(next, deletedWorkspaceTarget, hasWorkspaceRole)
}

// Headers is OrgVisitor for an endpoint that has the tenants in the headers alone. With a
// Workspace header it is Workspace.
func (s Scopes) Headers(next http.Handler) http.Handler {
	return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
		org, err := fromHeader(r, OrgHeader)
		if err != nil {
			return err
		}
		if len(r.Header.Values(WorkspaceHeader)) == 0 {
			return s.serve(w, r, next, org, "", visitedOrgTarget, inOrg)
		}
		workspace, err := fromHeader(r, WorkspaceHeader)
		if err != nil {
			return err
		}
		return s.serve(w, r, next, org, workspace, workspaceTarget, hasWorkspaceRole)
	})
}

func inOrg(scope *tenancy.Scope, entries []v1alpha1.MembershipIndexEntry) bool {
	return tenancy.InOrg(entries, scope.Org.UUID())
}

func hasOrgRole(scope *tenancy.Scope, _ []v1alpha1.MembershipIndexEntry) bool {
	return scope.OrgRole != ""
}

func hasWorkspaceRole(scope *tenancy.Scope, _ []v1alpha1.MembershipIndexEntry) bool {
	return scope.WorkspaceRole != ""
}

func seesDefinition(scope *tenancy.Scope, _ []v1alpha1.MembershipIndexEntry) bool {
	return scope.WorkspaceRole != "" || scope.WorkspaceManager
}

// target is what an endpoint is about.
type target int

const (
	orgTarget target = iota
	createdOrgTarget
	deletedOrgTarget
	// visitedOrgTarget is what bots may ask of their Organization, too.
	visitedOrgTarget
	workspaceTarget
	createdWorkspaceTarget
	deletedWorkspaceTarget
)

func (t target) inWorkspace() bool { return t >= workspaceTarget }

func (s Scopes) middleware(next http.Handler, about target, allowed func(*tenancy.Scope, []v1alpha1.MembershipIndexEntry) bool) http.Handler {
	return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
		orgUUID, err := fromHeaderAndPath(r, OrgHeader, "org")
		if err != nil {
			return err
		}
		wsUUID := ""
		if about.inWorkspace() {
			if wsUUID, err = fromHeaderAndPath(r, WorkspaceHeader, "ws"); err != nil {
				return err
			}
		}
		return s.serve(w, r, next, orgUUID, wsUUID, about, allowed)
	})
}

// serve calls next with the scope of the caller.
func (s Scopes) serve(w http.ResponseWriter, r *http.Request, next http.Handler, orgUUID, wsUUID string, about target, allowed func(*tenancy.Scope, []v1alpha1.MembershipIndexEntry) bool) error {
	caller := CallerOf(r)
	if caller.Bot != nil {
		scope, err := botScope(caller, about, orgUUID, wsUUID)
		if err == nil {
			err = s.reachable(orgUUID)
		}
		if err != nil {
			return err
		}
		belongs(r)
		enter(w, r, next, scope)
		return nil
	}
	entries := s.Tenants.Index(caller.User.Name)
	scope := &tenancy.Scope{User: caller.User.Name, PlatformAdmin: caller.PlatformAdmin}
	if !s.findOrg(scope, caller.User, entries, orgUUID, about) {
		return s.outside(scope, caller.User, orgUUID, wsUUID)
	}
	gone := scope.Org.Deleted() && about != deletedOrgTarget
	if about.inWorkspace() {
		if !s.findWorkspace(scope, caller.User, entries, wsUUID, about) {
			return s.outside(scope, caller.User, orgUUID, wsUUID)
		}
		gone = gone || scope.Workspace.Deleted() && about != deletedWorkspaceTarget
	}
	if !allowed(scope, entries) {
		if err := scope.RequireContent(); err != nil && !gone {
			return err
		}
		return s.outside(scope, caller.User, orgUUID, wsUUID)
	}
	belongs(r)
	if err := s.reachable(orgUUID); err != nil {
		return err
	}
	if gone {
		return errs.New(errs.NotFound, tenancy.Gone(scope.Org, scope.Workspace))
	}
	enter(w, r, next, scope)
	return nil
}

// enter calls next with a scope that the caller has.
func enter(w http.ResponseWriter, r *http.Request, next http.Handler, scope *tenancy.Scope) {
	workspace, cluster := "", scope.Org.ClusterID
	if scope.Workspace != nil {
		workspace, cluster = scope.Workspace.UUID, scope.Workspace.ClusterID
	}
	tracing.Place(r.Context(), scope.Org.UUID(), workspace, cluster)
	next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), scopeKey{}, scope)))
}

func (s Scopes) reachable(org string) error {
	if s.Reachable == nil {
		return nil
	}
	return s.Reachable(org)
}

// botScope is the scope of a bot, which has one in its own Workspace only.
func botScope(c *Caller, about target, org, workspace string) (*tenancy.Scope, error) {
	p := *c.Bot
	if about == visitedOrgTarget && p.Org.UUID() == org {
		return &tenancy.Scope{User: c.Key(), Org: p.Org}, nil
	}
	if about != workspaceTarget || p.Org.UUID() != org || p.Workspace.UUID != workspace {
		return nil, foreign()
	}
	return &tenancy.Scope{User: c.Key(), Org: p.Org, Workspace: &p.Workspace, WorkspaceRole: p.Bot.Spec.Role}, nil
}

// findOrg puts the Org and the caller's role in it into the scope.
func (s Scopes) findOrg(scope *tenancy.Scope, u *v1alpha1.User, entries []v1alpha1.MembershipIndexEntry, uuid string, about target) (found bool) {
	scope.Org, found = s.Tenants.Org(uuid)
	scope.OrgRole = tenancy.OrgRole(entries, uuid)
	if scope.OrgRole == "" && about == createdOrgTarget {
		if org, role := s.Creator.ReadOrg(u, uuid); role != "" {
			scope.Org, scope.OrgRole, found = org, role, true
		}
	}
	return found
}

// findWorkspace puts the Workspace and the caller's role in it into the scope.
func (s Scopes) findWorkspace(scope *tenancy.Scope, u *v1alpha1.User, entries []v1alpha1.MembershipIndexEntry, uuid string, about target) bool {
	org := scope.Org
	ws, found := s.Tenants.Workspace(org.UUID(), uuid)
	scope.Workspace = &ws
	if found {
		scope.WorkspaceRole = tenancy.WorkspaceRole(entries, org.UUID(), uuid, org.Spec.DefaultAccess)
		scope.WorkspaceManager = tenancy.IsManager(entries, org.UUID(), uuid)
	}
	if scope.WorkspaceRole == "" && scope.OrgRole != "" && about == createdWorkspaceTarget {
		if made, role := s.Creator.ReadWorkspace(u, org, uuid); role != "" {
			ws, scope.WorkspaceRole, found = made, role, true
		}
	}
	return found
}

// foreign is the one answer for what is not the caller's, so that nobody learns whether
// it exists.
func foreign() error {
	return errs.New(errs.Forbidden, "you have no membership there; ask an admin of the organization to add you")
}

// fromHeaderAndPath returns the UUID of a tenancy header, which must be equal to the one in the
// path.
func fromHeaderAndPath(r *http.Request, header, param string) (string, error) {
	value, err := fromHeader(r, header)
	if err == nil && value != chi.URLParam(r, param) {
		return "", errs.InvalidField("header:"+header, "does not name what the path names")
	}
	return value, err
}

// fromHeader returns the UUID of a tenancy header.
func fromHeader(r *http.Request, header string) (string, error) {
	field := "header:" + header
	values := r.Header.Values(header)
	switch {
	case len(values) == 0:
		return "", errs.InvalidField(field, "is missing; send the UUID of what the request is about")
	case len(values) > 1:
		return "", errs.InvalidField(field, "is sent more than once")
	case !tenancy.IsUUID(values[0]):
		return "", errs.InvalidField(field, "is not a UUID in canonical lower case")
	}
	return values[0], nil
}
