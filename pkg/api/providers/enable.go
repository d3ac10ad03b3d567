package providers

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/idempotency"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// patience is the time for which a write is retried after kcp refused it: kcp may not know yet
	// that the caller became an admin, or somebody else changes the binding at the same time.
	patience = 5 * time.Second
	// retryInterval is the time between two attempts.
	retryInterval = 200 * time.Millisecond
)

func resources(given []rest.GroupResource) (all []v1alpha1.CatalogResource) {
	for _, r := range given {
		all = append(all, v1alpha1.CatalogResource(r))
	}
	return all
}

// texts returns the claims for the audit log, sorted and without duplicates, because the log
// truncates a long list.
func texts(claims []rest.GroupResource) (all []string) {
	for _, c := range claims {
		all = append(all, schema.GroupResource{Group: c.Group, Resource: c.Resource}.String())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (h *Handler) enable(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	by, in, err := api.Begin[rest.EnableProviderRequest](r, h.Rights, func(s tenancy.Scope) error { return s.RequireWorkspaceAdmin("enable providers") })
	if err != nil {
		return err
	}
	dryRun, err := flag(r, "dryRun")
	if err != nil {
		return err
	}
	// A repeated request finds the first binding by its name, so the key is only validated.
	if _, _, err := idempotency.Key(r); err != nil {
		return err
	}
	p, err := h.find(r, h.Catalog.BindingsIn(scope.Workspace.ClusterID))
	if err != nil {
		return err
	}
	if p.entry == nil {
		return tenancy.NoSuchCatalogEntry()
	}
	if p.hidden != "" {
		return errs.New(errs.Conflict, p.hidden+"; what is enabled stays enabled and can be disabled, and nothing else can be done with it here")
	}
	workspace, err := h.Ready(r, scope)
	if err != nil {
		return err
	}
	cluster := workspace.ClusterID
	as, err := h.As(r)
	if err != nil {
		return err
	}
	if !dryRun {
		if err := httpmw.Intend(r, httpmw.Intent{
			// Who rejects claims of what is enabled takes them from the provider.
			Reduces: p.binding != nil && len(in.AcceptClaims) == 0 && len(in.RejectClaims) > 0,
			Facts: audit.Facts{
				Slug: p.entry.Spec.Slug, AcceptedClaims: texts(in.AcceptClaims), RejectedClaims: texts(in.RejectClaims),
			},
		}); err != nil {
			return err
		}
	}
	ctx, cancel := api.Context(r)
	defer cancel()
	e := tenancy.Enabling{Entry: p.entry, Accepted: resources(in.AcceptClaims), Rejected: resources(in.RejectClaims)}
	if e.Export, err = h.KCP.GetExport(ctx, p.entry.Spec.APIExport); err != nil {
		return err
	}
	b, before, err := h.bind(ctx, as, cluster, e, dryRun)
	if err != nil {
		return err
	}
	changed := b != before
	if changed && !dryRun {
		// kcp has judged the caller by its cache, which may be behind.
		if lost := by.JudgeNow(ctx); lost != nil {
			return cmp.Or(h.KCP.RestoreBinding(ctx, cluster, b, before), lost)
		}
	}
	if dryRun {
		return h.wouldBe(w, p, b)
	}
	p.binding = b
	code := http.StatusOK
	if state := p.view().State; changed || state != string(tenancy.CatalogEnabled) {
		code = h.Made(r, refs(scope), func() bool {
			seen := h.current(cluster, b)
			if seen == nil {
				return false
			}
			p.binding = seen
			return p.view().State == string(tenancy.CatalogEnabled) && h.Followed(scope.Org.UUID(), scope.Workspace.UUID)
		}, nil)
	}
	if code != http.StatusOK {
		w.Header().Set("Location", strings.TrimSuffix(r.URL.Path, "/enable"))
	}
	return answer(w, code, p, p.view())
}

// bind creates or changes the binding. It retries until kcp accepts it or patience is over. before is
// the binding that was there, which is nil if there was none, and b itself if nothing changed.
func (h *Handler) bind(ctx context.Context, as Bindings, cluster string, e tenancy.Enabling, dryRun bool) (b, before *kcpapisv1alpha2.APIBinding, err error) {
	// The timeout does not interrupt an attempt, whose answer says why kcp refuses.
	waited := wait.PollUntilContextTimeout(ctx, retryInterval, patience, true, func(context.Context) (bool, error) {
		var again bool
		b, before, again, err = h.try(ctx, as, cluster, e, dryRun)
		return !again, nil
	})
	if err == nil {
		err = waited
	}
	return b, before, err
}

// try is one attempt. again is true if the next one may succeed.
func (h *Handler) try(ctx context.Context, as Bindings, cluster string, e tenancy.Enabling, dryRun bool) (b, before *kcpapisv1alpha2.APIBinding, again bool, err error) {
	if e.Bindings, e.CustomResources, err = h.KCP.WorkspaceAPIs(ctx, cluster); err != nil {
		return nil, nil, false, err
	}
	want, held, changed, err := e.Binding()
	if err != nil && e.Export != nil && !bound(e) {
		// The error says what the export has, as the hub reads it. Only those who may bind the
		// export get it.
		if refusal := as.MayBind(ctx, cluster, e.Entry.Spec.APIExport); refusal != nil {
			return nil, nil, errs.Is(refusal, errs.Forbidden), refusal
		}
	}
	switch {
	case err != nil:
		return nil, nil, false, err
	case held != nil && h.Kept(held):
		return nil, nil, false, errReserved()
	case !changed:
		return held, held, false, nil
	case held == nil:
		b, err = as.CreateBinding(ctx, cluster, want, dryRun)
	case !tenancy.ClaimsWithdrawn(held, want):
		return nil, nil, true, errs.New(errs.Unavailable,
			"kcp is still taking back a claim that was rejected a moment ago; try again").After(time.Second)
	default:
		b, err = as.UpdateBinding(ctx, cluster, want, dryRun)
	}
	switch errs.CodeOf(err) {
	case errs.Forbidden, errs.AlreadyExists, errs.Conflict:
		again = err != nil
	}
	return b, held, again, err
}

// bound reports whether the Workspace has a binding of the export itself, which shows what the
// export has. The annotation of another binding does not count: admins can write it.
func bound(e tenancy.Enabling) bool {
	return slices.ContainsFunc(e.Bindings, func(b *kcpapisv1alpha2.APIBinding) bool { return tenancy.BindsExport(b, e.Entry.Spec.APIExport) })
}

// errReserved refuses a change of a binding of the hub or the Workspace template.
func errReserved() error {
	return errs.New(errs.Conflict, "this API is part of every workspace here; the operator of the hub decides about it")
}

// wouldBe answers a dry run with the present state and the claims after the change.
func (h *Handler) wouldBe(w http.ResponseWriter, p provider, b *kcpapisv1alpha2.APIBinding) error {
	v := p.view()
	v.DryRun = true
	for i, c := range v.Claims {
		for _, answered := range b.Spec.PermissionClaims {
			if answered.Group == c.Group && answered.Resource == c.Resource {
				v.Claims[i].State = string(answered.State)
			}
		}
	}
	return answer(w, http.StatusOK, p, v)
}

// current is the cached binding that is at least as new as b, or nil.
func (h *Handler) current(cluster string, b *kcpapisv1alpha2.APIBinding) *kcpapisv1alpha2.APIBinding {
	for _, seen := range h.Catalog.BindingsIn(cluster) {
		if seen.UID == b.UID && seen.Generation >= b.Generation {
			return seen
		}
	}
	return nil
}

func refs(scope *tenancy.Scope) []tenancy.Ref {
	return []tenancy.Ref{tenancy.WorkspaceRef(scope.Workspace.UUID)}
}

// flag is httpapi.Flag for a parameter that an empty value does not answer: nobody who writes ?dryRun wants a change.
func flag(r *http.Request, name string) (bool, error) {
	if query := r.URL.Query(); query.Has(name) && query.Get(name) == "" {
		return false, errs.InvalidField("query:"+name, "must be true or false")
	}
	return httpapi.Flag(r, name)
}
