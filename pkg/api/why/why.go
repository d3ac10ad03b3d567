package why

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	rbacv1 "k8s.io/api/rbac/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// askTimeout limits the time of the question to kcp.
const askTimeout = 5 * time.Second

// Caches are the caches that explain a verdict.
type Caches interface {
	Bot(orgCluster, workspace, name string) (*v1alpha1.Bot, bool)
	BindingsIn(cluster string) []*kcpapisv1alpha2.APIBinding
	HubRole(cluster, name string) (*rbacv1.ClusterRole, bool)
}

// Handler serves /api/orgs/{org}/workspaces/{ws}/why.
type Handler struct {
	api.Deps
	// Enter is the method of tenancy.Gates.
	Enter func(caller, cluster string) (tenancy.Entry, error)
	// Allows asks kcp's authorizer.
	Allows func(ctx context.Context, caller, cluster string, a tenancy.Action) (bool, error)
	Caches Caches
	// Entries are those of the catalog that people of an Organization can enable.
	Entries func(org tenancy.Org) []*v1alpha1.CatalogEntry
	Policy  tenancy.Policy
}

// Mount adds the route below /api.
func (h *Handler) Mount(r chi.Router) {
	r.With(h.Scopes.Definition).Get("/orgs/{org}/workspaces/{ws}/why", httpapi.Handle(h.why))
}

// subject is the person or the bot that a question is about.
type subject struct {
	user string
	bot  *v1alpha1.Bot
}

// key is the key of the subject as a caller.
func (s subject) key() string {
	if s.bot != nil {
		return tenancy.BotKey(s.bot.Status.ServiceAccountUID)
	}
	return s.user
}

func (h *Handler) why(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	about, err := h.subject(r, scope)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	a := tenancy.Action{
		Verb: query.Get("verb"), Group: query.Get("group"), Resource: query.Get("resource"), Subresource: query.Get("subresource"),
		Namespace: query.Get("namespace"), Name: query.Get("name"),
	}
	if err := a.Check(); err != nil {
		return err
	}
	cluster := scope.Workspace.ClusterID
	e := tenancy.Explanation{
		Bindings: h.Caches.BindingsIn(cluster), Entries: h.Entries(scope.Org), Policy: h.Policy,
		ClusterRole: func(name string) (*rbacv1.ClusterRole, bool) { return h.Caches.HubRole(cluster, name) },
	}
	if !query.Has("group") {
		a.Group = e.GroupOf(a.Resource)
	}
	v := rest.Why{
		Verb: a.Verb, Group: a.Group, Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace, Name: a.Name,
		User: about.user, Through: []rest.AccessSource{}, Missing: []rest.Missing{},
	}
	if about.bot != nil {
		v.Bot = about.bot.Name
	}
	e.Action = a
	var refused error
	if e.Entry, refused = h.Enter(about.key(), h.Tree.Workspace(scope.Org.UUID(), scope.Workspace.UUID)); refused != nil {
		v.Missing = append(v.Missing, outside(about, refused))
		return httpapi.Write(w, http.StatusOK, v)
	}
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	if e.Allowed, err = h.Allows(ctx, about.key(), cluster, a); err != nil {
		return errs.Wrap(errs.Unavailable, err, "kcp could not be asked; try again").After(time.Second)
	}
	v.Allowed, v.Role, v.Sudo, v.Through = e.Allowed, rest.Role(e.Entry.Role), e.Entry.Sudo, h.through(scope, about)
	for _, m := range e.Missing() {
		v.Missing = append(v.Missing, rest.Missing{Code: m.Code, Message: m.Message, Role: rest.Role(m.Role), Slug: m.Slug})
	}
	return httpapi.Write(w, http.StatusOK, v)
}

// subject returns the subject of the question: the caller, or somebody whom an admin asks about.
func (h *Handler) subject(r *http.Request, scope *tenancy.Scope) (subject, error) {
	user, bot := r.URL.Query().Get("user"), r.URL.Query().Get("bot")
	switch {
	case user != "" && bot != "":
		return subject{}, errs.InvalidField("query:bot", "must not be sent together with user")
	case bot == "" && (user == "" || user == scope.User):
		return subject{user: scope.User}, nil
	}
	if err := scope.RequireWorkspaceAdmin("ask about other people and about bots"); err != nil {
		return subject{}, err
	}
	if bot == "" {
		return subject{user: user}, nil
	}
	b, ok := h.Caches.Bot(scope.Org.ClusterID, scope.Workspace.UUID, bot)
	if !ok {
		return subject{}, tenancy.NoSuchBot()
	}
	return subject{bot: b}, nil
}

// outside says why the gate does not let the subject in. Of people it says the same about everybody, so
// that an admin learns nothing about the accounts of people who are not in the Workspace.
func outside(about subject, refused error) rest.Missing {
	var e *errs.Error
	if !errors.As(refused, &e) {
		e = errs.New(errs.Forbidden, "the hub does not let it in")
	}
	switch {
	case e.Code == errs.Unavailable:
		return rest.Missing{Code: tenancy.MissingReady, Message: e.Message}
	case about.bot == nil && len(e.Causes) > 0 && e.Causes[0].Type == tenancy.CauseRoleTooLow:
		return rest.Missing{Code: tenancy.CauseRoleTooLow, Role: rest.Role(v1alpha1.RoleViewer), Message: e.Message}
	case about.bot == nil:
		return rest.Missing{
			Code:    tenancy.MissingMembership,
			Message: "nobody of that name can enter this workspace: that needs a membership in it, and an account that is approved and not deleted",
		}
	case about.bot.Status.ServiceAccountUID == "":
		return rest.Missing{Code: tenancy.MissingReady, Message: "the bot is still being made"}
	}
	return rest.Missing{Code: tenancy.CauseRoleTooLow, Message: e.Message}
}

// parts are the parts of a Membership that give a role, that with the highest one first.
func parts(m *v1alpha1.Membership) (all []rest.AccessSource) {
	for _, x := range m.Spec.Extra {
		through := tenancy.ThroughMembership
		if _, ok := tenancy.RequestOf(x.Source); ok {
			through = tenancy.ThroughRequest
		} else if _, ok := tenancy.GroupOf(x.Source); ok {
			through = tenancy.ThroughGroup
		}
		if x.Role != "" {
			all = append(all, rest.AccessSource{Through: string(through), Role: rest.Role(x.Role), ExpiresAt: x.ExpiresAt})
		}
	}
	slices.SortStableFunc(all, func(a, b rest.AccessSource) int {
		return slices.Index(v1alpha1.Roles(), v1alpha1.Role(b.Role)) - slices.Index(v1alpha1.Roles(), v1alpha1.Role(a.Role))
	})
	return all
}

// through are the sources of the subject's access, that in effect first.
func (h *Handler) through(scope *tenancy.Scope, about subject) []rest.AccessSource {
	if about.bot != nil {
		return []rest.AccessSource{{Through: string(tenancy.ThroughBot), Role: rest.Role(about.bot.Spec.Role)}}
	}
	all := []rest.AccessSource{}
	for s := range tenancy.WorkspaceSources(h.Views.Index(about.user), scope.Org.UUID(), scope.Workspace.UUID, scope.Org.Spec.DefaultAccess) {
		source := rest.AccessSource{Through: string(s.Through), Role: rest.Role(s.Role)}
		at := ""
		if s.Through == tenancy.ThroughMembership {
			at = scope.Workspace.UUID
		}
		m, ok := h.Views.Membership(scope.Org.ClusterID, tenancy.MembershipName(about.user, at))
		if ok && s.Through == tenancy.ThroughMembership && len(tenancy.ExtrasOf(m)) > 0 {
			all = append(all, parts(m)...)
			continue
		}
		if ok {
			source.ExpiresAt = m.Spec.ExpiresAt
		}
		all = append(all, source)
	}
	return all
}
