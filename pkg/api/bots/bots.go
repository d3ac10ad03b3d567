package bots

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/idempotency"
	"github.com/faroshq/kedge-hub/pkg/api/internal/mergepatch"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/api/internal/wire"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Bots are the caches of Bots.
type Bots interface {
	Bot(orgCluster, workspace, name string) (*v1alpha1.Bot, bool)
	BotsAt(orgCluster, workspace string) []*v1alpha1.Bot
}

// KCP is the part of store.Store that reads and deletes Bots.
type KCP interface {
	// GetBot returns nil if kcp has none of that name.
	GetBot(ctx context.Context, orgCluster, name string) (*v1alpha1.Bot, error)
	DeleteBot(ctx context.Context, held *v1alpha1.Bot, match api.Match) error
}

// Tokens issues and discards tokens in the logical cluster of a Workspace.
type Tokens interface {
	// Issue returns a token and the UID of the Secret that it is bound to.
	Issue(ctx context.Context, cluster string, b *v1alpha1.Bot, id string, life time.Duration) (token, secretUID string, err error)
	Discard(ctx context.Context, cluster string, b *v1alpha1.Bot, id string) error
}

// Handler serves /api/orgs/{org}/workspaces/{ws}/serviceaccounts.
type Handler struct {
	api.Deps
	Bots    Bots
	KCP     KCP
	Tokens  Tokens
	Metrics *Metrics
	// Recheck closes the open streams of a Bot to which it no longer has the right.
	Recheck func(*v1alpha1.Bot)
	// MaxTokenTTL is the longest life of a token.
	MaxTokenTTL time.Duration
	// Issuers are the identity providers whose jobs Bots may trust.
	Issuers []string
}

// Mount adds the routes below /api.
func (h *Handler) Mount(r chi.Router) {
	const base = "/orgs/{org}/workspaces/{ws}/serviceaccounts"
	r.Group(func(r chi.Router) {
		r.Use(h.Scopes.Workspace)
		r.Get(base, httpapi.Handle(h.list))
		r.Post(base, httpapi.Handle(h.create))
		r.Get(base+"/{sa}", httpapi.Handle(h.get))
		r.Patch(base+"/{sa}", httpapi.Handle(h.patch))
		r.Delete(base+"/{sa}", httpapi.Handle(h.remove))
		r.Get(base+"/{sa}/tokens", httpapi.Handle(h.listTokens))
		r.Post(base+"/{sa}/tokens", httpapi.Handle(h.issue))
		r.Delete(base+"/{sa}/tokens", httpapi.Handle(h.revokeAll))
		r.Delete(base+"/{sa}/tokens/{token}", httpapi.Handle(h.revoke))
		r.Post(base+"/{sa}/tokens/{token}/rotate", httpapi.Handle(h.rotate))
		r.Get(base+"/{sa}/trust", httpapi.Handle(h.listTrust))
		r.Post(base+"/{sa}/trust", httpapi.Handle(h.addTrust))
		r.Get(base+"/{sa}/trust/{trust}", httpapi.Handle(h.getTrust))
		r.Delete(base+"/{sa}/trust/{trust}", httpapi.Handle(h.removeTrust))
	})
}

func (h *Handler) viewOf(b *v1alpha1.Bot) rest.Bot {
	return rest.Bot{
		UUID: b.Name, DisplayName: b.Spec.DisplayName, Role: rest.Role(b.Spec.Role), CreatedAt: b.CreationTimestamp,
		LastTokenIssuedAt: tenancy.LastIssued(b.Spec.Tokens, b.Status.LastTokenIssuedAt), NextTokenExpiresAt: tenancy.NextTokenEnd(b, h.Clock.Now()),
		Phase: string(tenancy.PhaseOf(b.Status.CommonStatus)), Conditions: wire.Conditions(b.Status.Conditions),
	}
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	var items []rest.Bot
	for _, b := range h.Bots.BotsAt(scope.Org.ClusterID, scope.Workspace.UUID) {
		if b.DeletionTimestamp.IsZero() {
			items = append(items, h.viewOf(b))
		}
	}
	return paging.Write(w, r, items, func(v rest.Bot) (string, string) { return v.DisplayName, v.UUID })
}

// named finds the Bot in the path. The answer for a Bot of another Workspace is the same as for a
// missing one.
func (h *Handler) named(r *http.Request, scope *tenancy.Scope) (*v1alpha1.Bot, error) {
	b, ok := h.find(scope, chi.URLParam(r, "sa"))
	if !ok {
		return nil, tenancy.NoSuchBot()
	}
	return b, nil
}

func (h *Handler) find(scope *tenancy.Scope, name string) (*v1alpha1.Bot, bool) {
	return h.Bots.Bot(scope.Org.ClusterID, scope.Workspace.UUID, name)
}

func (h *Handler) get(w http.ResponseWriter, r *http.Request) error {
	b, err := h.named(r, httpmw.ScopeOf(r))
	if err != nil {
		return err
	}
	return h.answer(w, http.StatusOK, b)
}

func (h *Handler) answer(w http.ResponseWriter, code int, b *v1alpha1.Bot) error {
	httpapi.Tag(w, b.ResourceVersion)
	return httpapi.Write(w, code, h.viewOf(b))
}

func (h *Handler) create(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	by, in, err := api.Begin[rest.CreateBotRequest](r, h.Rights, func(s tenancy.Scope) error { return s.RequireWorkspaceAdmin("make bots") })
	if err != nil {
		return err
	}
	role := v1alpha1.Role(in.Role)
	if err := tenancy.CheckDisplayName("displayName", in.DisplayName); err != nil {
		return err
	}
	if err := tenancy.CheckRole("role", role); err != nil {
		return err
	}
	key, hash, err := idempotency.Key(r)
	if err != nil {
		return err
	}
	if _, err := h.Ready(r, scope); err != nil {
		return err
	}
	uuid := idempotency.ID(r, key, scope.Workspace.UUID+"/serviceaccounts", h.NewUUID)
	ctx, cancel, err := api.Write(r, httpmw.Intent{Object: uuid, Facts: audit.Facts{Role: string(role)}})
	if err != nil {
		return err
	}
	defer cancel()
	b, there := h.find(scope, uuid)
	if !there {
		if err := h.claim(ctx, scope, uuid); err != nil {
			return err
		}
		c := v1alpha1.BotChange{Name: uuid, Role: role, DisplayName: in.DisplayName, IdempotencyKey: hash}
		if _, err := h.decide(ctx, scope, by, c, nil); err != nil {
			return err
		}
		b = tenancy.ChangedBot(nil, c)
		b.CreationTimestamp = metav1.NewTime(h.Clock.Now()).Rfc3339Copy()
	}
	seen := func() bool {
		seen, ok := h.find(scope, uuid)
		if ok {
			b = seen
		}
		return ok
	}
	code := h.Made(r, refs(scope), func() bool { return seen() && reconciled(b, 0) }, seen)
	w.Header().Set("Location", r.URL.Path+"/"+uuid)
	return h.answer(w, code, b)
}

// claim records a claim for one more Bot on the Workspace, unless its limit is reached.
func (h *Handler) claim(ctx context.Context, scope *tenancy.Scope, uuid string) error {
	_, err := h.Store.ChangeWorkspace(ctx, scope.Org.ClusterID, *scope.Workspace, nil, func(ws tenancy.Workspace, annotations map[string]string) error {
		if ws.Deleted() {
			return api.NotReady()
		}
		var names []string
		for _, b := range h.Bots.BotsAt(scope.Org.ClusterID, ws.UUID) {
			names = append(names, b.Name)
		}
		claims, err := tenancy.ClaimBot(ws, names, uuid, h.Clock.Now())
		if claims != "" {
			annotations[v1alpha1.BotClaimsAnnotation] = claims
		}
		return err
	})
	return err
}

// release removes the claim of a deleted Bot. Otherwise the claim would count until it expires,
// some minutes after it was made.
func (h *Handler) release(ctx context.Context, scope *tenancy.Scope, uuid string) {
	if _, claimed := scope.Workspace.BotClaims[uuid]; !claimed {
		return
	}
	_, _ = h.Store.ChangeWorkspace(ctx, scope.Org.ClusterID, *scope.Workspace, nil, func(ws tenancy.Workspace, annotations map[string]string) error {
		claims, ok, err := tenancy.ReleaseBot(ws, uuid, h.Clock.Now())
		if err == nil && ok {
			annotations[v1alpha1.BotClaimsAnnotation] = claims
		}
		return err
	})
}

// reconciled reports whether the controller has carried out the generation of the Bot.
func reconciled(b *v1alpha1.Bot, generation int64) bool {
	return b.Generation >= generation && b.Status.ObservedGeneration == b.Generation && b.Status.Phase == v1alpha1.PhaseReady
}

func refs(scope *tenancy.Scope) []tenancy.Ref {
	return []tenancy.Ref{tenancy.WorkspaceRef(scope.Workspace.UUID), tenancy.OrgRef(scope.Org.UUID())}
}

func (h *Handler) patch(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	by, err := h.Rights.Begin(r, func(s tenancy.Scope) error { return s.RequireWorkspaceAdmin("change bots") })
	if err != nil {
		return err
	}
	wanted, err := editOf(r)
	if err != nil {
		return err
	}
	b, err := h.named(r, scope)
	if err != nil {
		return err
	}
	return api.Change[*v1alpha1.Bot]{
		Intent: wanted.intent(b), Ends: []string{tenancy.BotKey(b.Status.ServiceAccountUID)},
		Write: func(ctx context.Context, match api.Match) (*v1alpha1.Bot, error) {
			changed, err := h.change(ctx, r, scope, by, b, wanted, match)
			return changed, missing(err)
		},
		Refs: func(*v1alpha1.Bot) []tenancy.Ref { return refs(scope) },
		Seen: func(changed **v1alpha1.Bot) bool {
			seen, ok := h.find(scope, b.Name)
			if !ok || !reconciled(seen, (*changed).Generation) {
				return false
			}
			*changed = seen
			return true
		},
		Done: h.Recheck,
		Ended: func(b *v1alpha1.Bot, receipt *rest.Receipt) (any, string) {
			v := h.viewOf(b)
			v.Receipt = receipt
			return v, b.ResourceVersion
		},
		Late: http.StatusAccepted,
	}.Serve(w, r, &h.Deps)
}

// edit is a change of a Bot. A field that does not change is nil.
type edit struct {
	name *string
	role *v1alpha1.Role
}

// editOf reads a patch.
func editOf(r *http.Request) (e edit, err error) {
	var in rest.UpdateBotRequest
	if err := httpapi.Read(r, &in); err != nil {
		return e, err
	}
	if e.name, err = mergepatch.Given(mergepatch.DisplayName(in.DisplayName)); err != nil {
		return e, err
	}
	text, ok, err := mergepatch.Text("role", in.Role)
	if err != nil {
		return e, err
	}
	if role := v1alpha1.Role(text); ok {
		e.role, err = &role, tenancy.CheckRole("role", role)
	}
	return e, err
}

// intent is that of the change of b. It reduces rights if it only lowers the role.
func (e edit) intent(b *v1alpha1.Bot) (i httpmw.Intent) {
	if e.role != nil {
		i.Facts.Role = string(*e.role)
		i.Reduces = e.name == nil && tenancy.Lowers(b.Spec.Role, *e.role)
	}
	if e.name != nil {
		i.Facts.Fields = []string{"displayName"}
	}
	return i
}

// missing is the answer for a Bot that was deleted after it was found in the cache.
func missing(err error) error {
	if errs.Is(err, errs.NotFound) {
		return tenancy.NoSuchBot()
	}
	return err
}

// reduced is a change that takes rights of the Bot in the path away. It refuses callers who are not
// admins of the Workspace; action says in the infinitive what they want to do.
func (h *Handler) reduced(r *http.Request, scope *tenancy.Scope, action string, facts audit.Facts) (b *v1alpha1.Bot, c api.Change[*v1alpha1.Bot], err error) {
	if err := scope.RequireWorkspaceAdmin(action); err != nil {
		return nil, c, err
	}
	if b, err = h.named(r, scope); err != nil {
		return nil, c, err
	}
	return b, api.Change[*v1alpha1.Bot]{
		Intent: httpmw.Intent{Reduces: true, Facts: facts}, Ends: []string{tenancy.BotKey(b.Status.ServiceAccountUID)},
		Refs: func(*v1alpha1.Bot) []tenancy.Ref { return refs(scope) },
		// Open streams belong to the account from before the change.
		Done: func(*v1alpha1.Bot) { h.Recheck(b) },
	}, nil
}

func (h *Handler) remove(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	b, c, err := h.reduced(r, scope, "delete bots", audit.Facts{})
	if err != nil {
		return err
	}
	c.Write = func(ctx context.Context, match api.Match) (*v1alpha1.Bot, error) {
		if err := h.settled(ctx, scope, b.Name); err != nil {
			return nil, err
		}
		if err := h.KCP.DeleteBot(ctx, b, match); err != nil {
			return nil, missing(err)
		}
		h.release(ctx, scope, b.Name)
		return b, nil
	}
	c.Seen = func(**v1alpha1.Bot) bool { _, there := h.find(scope, b.Name); return !there }
	return c.Serve(w, r, &h.Deps)
}
