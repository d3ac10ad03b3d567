package requests

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/idempotency"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Caches are the caches of AccessRequests.
type Caches interface {
	AccessRequest(orgCluster, name string) (*v1alpha1.AccessRequest, bool)
	AccessRequestsIn(orgCluster string) []*v1alpha1.AccessRequest
}

// KCP is the part of store.Store that decides about AccessRequests.
type KCP interface {
	// GetMembership and GetAccessRequest return nil if there is none of that name.
	GetMembership(ctx context.Context, orgCluster, name string) (*v1alpha1.Membership, error)
	GetAccessRequest(ctx context.Context, orgCluster, name string) (*v1alpha1.AccessRequest, error)
	ListAccessRequests(ctx context.Context, orgCluster string) ([]v1alpha1.AccessRequest, error)
}

// Handler serves …/requests.
type Handler struct {
	api.Deps
	Requests Caches
	KCP      KCP
	// Count counts what happens to AccessRequests: "made", or the state that a decision gives.
	Count func(event string)
	// Followed reports whether the bindings of a User are as desired in a Workspace of the Organization.
	Followed func(org, workspace, user string) bool
}

// Mount adds the routes below /api.
func (h *Handler) Mount(r chi.Router) {
	r.Group(func(r chi.Router) {
		r.Use(h.Scopes.Org)
		h.mountAt(r, "/orgs/{org}/requests")
		r.Get("/orgs/{org}/requests/workspaces", httpapi.Handle(h.workspaces))
	})
	r.Group(func(r chi.Router) {
		r.Use(h.Scopes.Definition)
		h.mountAt(r, "/orgs/{org}/workspaces/{ws}/requests")
	})
}

func (h *Handler) mountAt(r chi.Router, base string) {
	r.Get(base, httpapi.Handle(h.list))
	r.Post(base, httpapi.Handle(h.create))
	for path, state := range map[string]v1alpha1.AccessRequestState{
		"approve": v1alpha1.RequestApproved, "deny": v1alpha1.RequestDenied, "withdraw": v1alpha1.RequestWithdrawn, "revoke": v1alpha1.RequestEnded,
	} {
		r.Post(base+"/{request}/"+path, httpapi.Handle(func(w http.ResponseWriter, r *http.Request) error { return h.decide(w, r, state) }))
	}
}

// now is the time of AccessRequests, which end as Memberships do.
func (h *Handler) now() time.Time { return h.Rights.Clock.Now() }

func (h *Handler) viewOf(scope *tenancy.Scope, r *v1alpha1.AccessRequest) rest.AccessRequest {
	seen := r.DeepCopy()
	if org, ok := h.Views.Org(scope.Org.UUID()); ok && org.Organization != nil {
		if pending, ok := tenancy.RequestChangeOf(org.Organization, r.Name); ok && pending.Status != nil {
			seen.Status = *pending.Status
		}
	}
	return rest.AccessRequest{
		ID: r.Name, State: string(tenancy.RequestStateAt(seen, h.now())), User: r.Spec.UserRef.Name, Workspace: r.Spec.WorkspaceRef.Name,
		Kind: string(r.Spec.Kind), For: r.Spec.Duration.Duration.String(), Reason: r.Spec.Reason, CreatedAt: r.CreationTimestamp,
		DecidedBy: seen.Status.DecidedBy, Note: seen.Status.Note, EndsAt: seen.Status.EndsAt,
	}
}

// in returns the scope of the caller in a Workspace. ok is false if the Workspace is not that of the path, or not
// there.
func (h *Handler) in(scope *tenancy.Scope, workspace string) (at tenancy.Scope, ok bool) {
	if scope.Workspace != nil {
		return *scope, scope.Workspace.UUID == workspace
	}
	ws, ok := h.Views.Workspace(scope.Org.UUID(), workspace)
	if !ok || ws.Deleted() {
		return tenancy.Scope{}, false
	}
	at = *scope
	at.Workspace = &ws
	rows := h.Views.Index(scope.User)
	at.WorkspaceRole = tenancy.WorkspaceRole(rows, scope.Org.UUID(), workspace, scope.Org.Spec.DefaultAccess)
	at.WorkspaceManager = tenancy.IsManager(rows, scope.Org.UUID(), workspace)
	return at, true
}

// sees returns the scope of the caller in the Workspace of a request that is their own, or that they may decide about.
func (h *Handler) sees(scope *tenancy.Scope, r *v1alpha1.AccessRequest) (tenancy.Scope, bool) {
	at, ok := h.in(scope, r.Spec.WorkspaceRef.Name)
	return at, ok && (r.Spec.UserRef.Name == scope.User || tenancy.MayDecideRequest(r.Spec.Kind)(at) == nil)
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	var items []rest.AccessRequest
	for _, one := range h.Requests.AccessRequestsIn(scope.Org.ClusterID) {
		if _, ok := h.sees(scope, one); ok {
			items = append(items, h.viewOf(scope, one))
		}
	}
	return paging.Write(w, r, items, func(v rest.AccessRequest) (string, string) { return v.User, v.ID })
}

func (h *Handler) workspaces(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	var items []rest.RequestableWorkspace
	for _, ws := range h.Views.Workspaces(scope.Org.UUID()) {
		if ws.Requests == tenancy.RequestsMembers && !ws.Deleted() {
			items = append(items, rest.RequestableWorkspace{UUID: ws.UUID, DisplayName: ws.DisplayName})
		}
	}
	return paging.Write(w, r, items, func(v rest.RequestableWorkspace) (string, string) { return v.DisplayName, v.UUID })
}

// asked reads a request, and returns the scope of the caller in its Workspace.
func (h *Handler) asked(r *http.Request) (at tenancy.Scope, spec v1alpha1.AccessRequestSpec, err error) {
	scope := httpmw.ScopeOf(r)
	var in rest.CreateOrgAccessRequest
	if scope.Workspace != nil {
		if err := httpapi.Read(r, &in.CreateAccessRequest); err != nil {
			return at, spec, err
		}
		in.Workspace = scope.Workspace.UUID
	} else if err := httpapi.Read(r, &in); err != nil {
		return at, spec, err
	}
	kind := v1alpha1.AccessRequestKind(in.Kind)
	lasts, err := tenancy.CheckRequest(kind, in.For, in.Reason)
	if err != nil {
		return at, spec, err
	}
	at, ok := h.in(scope, in.Workspace)
	if !ok {
		return at, spec, tenancy.NoSuchRequestedWorkspace()
	}
	if err := tenancy.MayRequest(at); err != nil {
		return at, spec, err
	}
	held, _ := h.Views.Membership(scope.Org.ClusterID, tenancy.MembershipName(scope.User, in.Workspace))
	if tenancy.Has(kind, at, held, h.now()) {
		return at, spec, tenancy.HasAlready(kind)
	}
	return at, v1alpha1.AccessRequestSpec{
		UserRef: v1alpha1.NamedRef{Name: scope.User}, WorkspaceRef: v1alpha1.NamedRef{Name: in.Workspace},
		Kind: kind, Duration: metav1.Duration{Duration: lasts}, Reason: in.Reason,
	}, nil
}

// factsOf are what a request is about, for the audit log.
func factsOf(id string, s v1alpha1.AccessRequestSpec) audit.Facts {
	facts := audit.Facts{Request: id, Role: string(tenancy.RoleOfRequest(s.Kind)), Reason: s.Reason}
	if facts.Role == "" {
		sudo := true
		facts.Sudo = &sudo
	}
	return facts
}

func (h *Handler) create(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	at, spec, err := h.asked(r)
	if err != nil {
		return err
	}
	key, _, err := idempotency.Key(r)
	if err != nil {
		return err
	}
	id := idempotency.ID(r, key, scope.Org.UUID()+"/requests", h.NewUUID)
	c := v1alpha1.RequestChange{Name: id, Request: &spec, RequestedAt: tenancy.DecisionTime(h.now())}
	made := tenancy.NewAccessRequest(c)
	made.CreationTimestamp = metav1.NewTime(c.RequestedAt.Time).Rfc3339Copy()
	valid := httpmw.CallerOf(r).Valid
	return api.Change[*v1alpha1.AccessRequest]{
		Intent: httpmw.Intent{Workspace: at.Workspace.UUID, Object: scope.User, Facts: factsOf(id, spec)},
		Write: func(ctx context.Context, _ api.Match) (*v1alpha1.AccessRequest, error) {
			_, err := h.Store.ChangeOrganization(ctx, scope.Org.Organization, nil, func(ctx context.Context, o *v1alpha1.Organization) error {
				if err := valid(); err != nil {
					return err
				}
				all, err := h.KCP.ListAccessRequests(ctx, scope.Org.ClusterID)
				if err != nil {
					return err
				}
				changes, err := tenancy.DecideRequest(o, all, c, h.now())
				if changes != nil {
					o.Spec.RequestChanges = changes
				}
				return err
			})
			return made, err
		},
		Refs: func(*v1alpha1.AccessRequest) []tenancy.Ref { return []tenancy.Ref{tenancy.OrgRef(scope.Org.UUID())} },
		Seen: func(made **v1alpha1.AccessRequest) bool {
			seen, ok := h.Requests.AccessRequest(scope.Org.ClusterID, id)
			if ok {
				*made = seen
			}
			return ok
		},
		Done: func(*v1alpha1.AccessRequest) { h.Count("made") },
		View: func(made *v1alpha1.AccessRequest) (any, string) { return h.viewOf(scope, made), made.ResourceVersion },
		Code: http.StatusCreated,
	}.Serve(w, r, &h.Deps)
}

// sourcesWithout are the sources of the parts of a Membership that were not given by hand, without that of a request.
// It is nil if the Membership does not have that.
func (h *Handler) sourcesWithout(scope *tenancy.Scope, r *v1alpha1.AccessRequest) *[]string {
	m, ok := h.Views.Membership(scope.Org.ClusterID, tenancy.MembershipName(r.Spec.UserRef.Name, r.Spec.WorkspaceRef.Name))
	if !ok {
		return nil
	}
	left := []string{}
	for _, x := range tenancy.ExtrasOf(m) {
		left = append(left, x.Source)
	}
	i := slices.Index(left, tenancy.RequestSource(r.Name))
	if i < 0 {
		return nil
	}
	left = slices.Delete(left, i, i+1)
	return &left
}

// decide has the Organization accept a decision about a request, which leads to the state.
func (h *Handler) decide(w http.ResponseWriter, r *http.Request, state v1alpha1.AccessRequestState) error {
	scope := httpmw.ScopeOf(r)
	var in rest.DecideAccessRequest
	if err := httpapi.Read(r, &in); err != nil {
		return err
	}
	if err := tenancy.CheckReason("note", in.Note); err != nil {
		return err
	}
	held, ok := h.Requests.AccessRequest(scope.Org.ClusterID, chi.URLParam(r, "request"))
	if !ok {
		return tenancy.NoSuchRequest()
	}
	at, ok := h.sees(scope, held)
	if !ok {
		return tenancy.NoSuchRequest()
	}
	may, own := tenancy.MayDecideRequest(held.Spec.Kind), held.Spec.UserRef.Name == scope.User
	if state == v1alpha1.RequestWithdrawn {
		if !own {
			return tenancy.RoleTooLow("only the person who made a request may withdraw it; deny it, or revoke what it gave")
		}
		may = func(tenancy.Scope) error { return nil }
	}
	by, err := h.Rights.BeginIn(r, at, may)
	if err != nil {
		return err
	}
	intent := httpmw.Intent{
		Workspace: at.Workspace.UUID, Object: held.Spec.UserRef.Name, Reduces: state != v1alpha1.RequestApproved,
		Facts: audit.Facts{Request: held.Name, Reason: in.Note},
	}
	var ends []string
	if intent.Reduces {
		if intent.Facts.Sources = h.sourcesWithout(scope, held); intent.Facts.Sources != nil {
			ends = []string{held.Spec.UserRef.Name}
		}
	} else {
		intent.Facts = factsOf(held.Name, held.Spec)
		intent.Facts.Reason = cmp.Or(in.Note, held.Spec.Reason)
	}
	d := tenancy.RequestDecision{State: state, By: scope.User, Note: in.Note, At: tenancy.DecisionTime(h.now())}
	return api.Change[*v1alpha1.Organization]{
		Intent: intent, Ends: ends,
		Write: func(ctx context.Context, match api.Match) (*v1alpha1.Organization, error) {
			if match != nil {
				if err := match(held.ResourceVersion); err != nil {
					return nil, err
				}
			}
			return h.Store.ChangeOrganization(ctx, scope.Org.Organization, nil, func(ctx context.Context, o *v1alpha1.Organization) error {
				d := d
				var err error
				if d.ValidUntil, err = by.JudgeUntil(ctx, o); err != nil {
					return err
				}
				of, err := h.read(ctx, scope, held)
				if err != nil {
					return err
				}
				changes, members, err := tenancy.DecideRequestAnswer(o, of, d, h.now())
				if err != nil || changes == nil {
					return err
				}
				if o.Spec.RequestChanges = changes; members != nil {
					o.Spec.MembershipChanges = members
				}
				return nil
			})
		},
		Refs: func(*v1alpha1.Organization) []tenancy.Ref {
			return []tenancy.Ref{tenancy.UserRef(held.Spec.UserRef.Name), tenancy.OrgRef(scope.Org.UUID()), tenancy.WorkspaceRef(at.Workspace.UUID)}
		},
		Seen: func(o **v1alpha1.Organization) bool { return h.carriedOut(scope, held, (*o).Generation) },
		Done: func(*v1alpha1.Organization) { h.Count(string(state)) },
		Ended: func(_ *v1alpha1.Organization, receipt *rest.Receipt) (any, string) {
			seen, ok := h.Requests.AccessRequest(scope.Org.ClusterID, held.Name)
			if !ok {
				seen = held
			}
			v := h.viewOf(scope, seen)
			v.Receipt = receipt
			return v, seen.ResourceVersion
		},
	}.Serve(w, r, &h.Deps)
}

// read reads from kcp what a decision is about.
func (h *Handler) read(ctx context.Context, scope *tenancy.Scope, held *v1alpha1.AccessRequest) (of tenancy.Requested, err error) {
	cluster, user := scope.Org.ClusterID, held.Spec.UserRef.Name
	if of.Request, err = h.KCP.GetAccessRequest(ctx, cluster, held.Name); err != nil {
		return of, err
	}
	if of.InOrg, err = h.KCP.GetMembership(ctx, cluster, tenancy.MembershipName(user, "")); err != nil {
		return of, err
	}
	of.InWorkspace, err = h.KCP.GetMembership(ctx, cluster, tenancy.MembershipName(user, held.Spec.WorkspaceRef.Name))
	return of, err
}

// carriedOut reports whether the caches show the Organization at a generation without a change of the request and of
// the Membership, and kcp's bindings follow that.
func (h *Handler) carriedOut(scope *tenancy.Scope, r *v1alpha1.AccessRequest, generation int64) bool {
	org, ok := h.Views.Org(scope.Org.UUID())
	if !ok {
		return true
	}
	_, pending := tenancy.RequestChangeOf(org.Organization, r.Name)
	_, changing := tenancy.ChangeOf(org.Organization, r.Spec.UserRef.Name, r.Spec.WorkspaceRef.Name)
	return org.Generation >= generation && !pending && !changing && h.Followed(org.UUID(), r.Spec.WorkspaceRef.Name, r.Spec.UserRef.Name)
}
