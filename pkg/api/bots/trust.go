package bots

import (
	"context"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// trustViewOf is what admins of the Workspace see of a rule.
func (h *Handler) trustViewOf(b *v1alpha1.Bot, t v1alpha1.BotTrust) rest.BotTrust {
	v := rest.BotTrust{
		ID: t.ID, Issuer: t.Issuer, Audience: tenancy.AudienceOf(t, h.ExternalURL), Claims: map[string]string{}, CreatedBy: t.CreatedBy, CreatedAt: t.CreatedAt,
	}
	for name, value := range t.Claims {
		v.Claims[name] = string(value)
	}
	// The tokens say more than the status, which the controller writes later.
	for _, s := range tenancy.TrustStatusOf(b) {
		if s.ID != t.ID {
			continue
		}
		v.LastUsedAt = s.LastUsedAt
		if r := s.LastRefusal; r != nil {
			v.LastRefusal = &rest.TrustRefusal{At: r.At, Claim: r.Claim}
		}
	}
	return v
}

// trusting returns the Bot in the path to admins of its Workspace. Rules tell others how to get in.
func (h *Handler) trusting(r *http.Request) (*v1alpha1.Bot, error) {
	scope := httpmw.ScopeOf(r)
	if err := scope.RequireWorkspaceAdmin("see which jobs bots trust"); err != nil {
		return nil, err
	}
	return h.named(r, scope)
}

func (h *Handler) listTrust(w http.ResponseWriter, r *http.Request) error {
	b, err := h.trusting(r)
	if err != nil {
		return err
	}
	var items []rest.BotTrust
	for _, t := range b.Spec.Trust {
		items = append(items, h.trustViewOf(b, t))
	}
	httpapi.Tag(w, b.ResourceVersion)
	return paging.Write(w, r, items, func(v rest.BotTrust) (string, string) { return v.Issuer, v.ID })
}

func (h *Handler) getTrust(w http.ResponseWriter, r *http.Request) error {
	b, err := h.trusting(r)
	if err != nil {
		return err
	}
	t, ok := tenancy.TrustOf(b, chi.URLParam(r, "trust"))
	if !ok {
		return noSuchTrust()
	}
	httpapi.Tag(w, b.ResourceVersion)
	return httpapi.Write(w, http.StatusOK, h.trustViewOf(b, t))
}

func noSuchTrust() error { return errs.New(errs.NotFound, "this bot has no trust rule of that ID") }

// addTrust adds a rule. It gives rights to everybody who can make a job say what the rule wants, so that it is
// a change of the Organization, as a higher role is.
func (h *Handler) addTrust(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	by, in, err := api.Begin[rest.AddBotTrustRequest](r, h.Rights, func(s tenancy.Scope) error { return s.RequireWorkspaceAdmin("let bots trust jobs") })
	if err != nil {
		return err
	}
	key, b, err := h.keyed(r, scope)
	if err != nil {
		return err
	}
	t := v1alpha1.BotTrust{
		ID: h.idFor(r, b, "trust", key), Issuer: in.Issuer, Audience: in.Audience, Claims: map[string]v1alpha1.TrustedValue{},
		CreatedBy: scope.User, CreatedAt: metav1.NewTime(h.Clock.Now()).Rfc3339Copy(),
	}
	for name, value := range in.Claims {
		t.Claims[name] = v1alpha1.TrustedValue(value)
	}
	if err := tenancy.CheckTrust(t, h.Issuers); err != nil {
		return err
	}
	ctx, cancel, err := api.Write(r, httpmw.Intent{Facts: audit.Facts{Trust: t.ID, Issuer: t.Issuer}})
	if err != nil {
		return err
	}
	defer cancel()
	generation, err := h.decide(ctx, scope, by, v1alpha1.BotChange{Name: b.Name, UID: b.UID, Trust: &t}, nil)
	if err != nil {
		return err
	}
	changed, done, err := h.carriedOut(ctx, r, scope, b, generation)
	if err != nil {
		return err
	}
	if made, ok := tenancy.TrustOf(changed, t.ID); ok {
		t = made
	} else if done {
		return errs.New(errs.Conflict, "the bot was changed at the same time; repeat the request")
	}
	code := http.StatusAccepted
	if h.Until(r, refs(scope), func() bool {
		seen, ok := h.find(scope, b.Name)
		if !ok {
			return false
		}
		_, there := tenancy.TrustOf(seen, t.ID)
		return there
	}) {
		code = http.StatusCreated
	}
	w.Header().Set("Location", r.URL.Path+"/"+t.ID)
	return httpapi.Write(w, code, h.trustViewOf(changed, t))
}

func (h *Handler) removeTrust(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "trust")
	return h.revoked(w, r, "change which jobs bots trust", audit.Facts{Trust: id}, func(b *v1alpha1.Bot) error {
		if !tenancy.RemoveTrust(b, id) {
			return noSuchTrust()
		}
		return nil
	}, func(b *v1alpha1.Bot) bool {
		_, there := tenancy.TrustOf(b, id)
		return !there && !slices.ContainsFunc(b.Spec.Tokens, func(t v1alpha1.BotToken) bool { return t.Trust == id })
	})
}

// carriedOut waits until a change of a Bot that was decided is carried out, and returns the Bot in kcp.
// done is false if that takes too long.
func (h *Handler) carriedOut(ctx context.Context, r *http.Request, scope *tenancy.Scope, b *v1alpha1.Bot, generation int64,
) (changed *v1alpha1.Bot, done bool, err error) {
	done = h.Until(r, refs(scope), func() bool {
		org, ok := h.Views.Org(scope.Org.UUID())
		if !ok || org.Generation < generation {
			return false
		}
		_, pending := tenancy.BotChangeOf(org.Organization, b.Name)
		return !pending
	})
	changed, err = h.KCP.GetBot(ctx, scope.Org.ClusterID, b.Name)
	if err == nil && (changed == nil || changed.UID != b.UID) {
		err = tenancy.NoSuchBot()
	}
	return changed, done, err
}
