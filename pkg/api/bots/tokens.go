package bots

import (
	"context"
	"mime"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/idempotency"
	"github.com/faroshq/kedge-hub/pkg/api/internal/kubeconfig"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func tokenViewOf(b *v1alpha1.Bot, t v1alpha1.BotToken) rest.BotToken {
	return rest.BotToken{
		ID: t.ID, Name: t.Name, CreatedAt: t.CreatedAt, ExpirationTimestamp: t.ExpiresAt, LastUsedAt: tenancy.TokenUse(b, t.ID),
		Trust: t.Trust, RotatedTo: t.RotatedTo,
	}
}

// listTokens answers with the valid tokens. It leaves out tokens that are still being issued,
// because they do not work yet.
func (h *Handler) listTokens(w http.ResponseWriter, r *http.Request) error {
	b, err := h.named(r, httpmw.ScopeOf(r))
	if err != nil {
		return err
	}
	var items []rest.BotToken
	for _, t := range tenancy.LivingTokens(b, h.Clock.Now()) {
		if t.SecretUID != "" {
			items = append(items, tokenViewOf(b, t))
		}
	}
	httpapi.Tag(w, b.ResourceVersion)
	return paging.Write(w, r, items, func(v rest.BotToken) (string, string) { return v.Name, v.ID })
}

func (h *Handler) issue(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	by, in, err := api.Begin[rest.IssueBotTokenRequest](r, h.Rights, func(s tenancy.Scope) error { return s.RequireWorkspaceAdmin("issue tokens of bots") })
	if err != nil {
		return err
	}
	if in.Name != "" {
		if err := tenancy.CheckDisplayName("name", in.Name); err != nil {
			return err
		}
	}
	life, err := tenancy.CheckBotTokenTTL("expirationSeconds", in.ExpirationSeconds, h.MaxTokenTTL)
	if err != nil {
		return err
	}
	key, b, err := h.keyed(r, scope)
	if err != nil {
		return err
	}
	workspace, err := h.Ready(r, scope)
	if err != nil {
		return err
	}
	id := h.idFor(r, b, "tokens", key)
	now := metav1.NewTime(h.Clock.Now()).Rfc3339Copy()
	t := v1alpha1.BotToken{ID: id, Name: in.Name, CreatedAt: now, ExpiresAt: metav1.NewTime(now.Add(life))}
	ctx, cancel, err := api.Write(r, httpmw.Intent{Facts: audit.Facts{Token: id, TokenExpiresAt: &t.ExpiresAt.Time}})
	if err != nil {
		return err
	}
	defer cancel()
	token, err := issuing{h.Store, h.Tokens}.issue(ctx, workspace.ClusterID, b, t, life, func(ctx context.Context, b *v1alpha1.Bot) error {
		if err := by.JudgeNow(ctx); err != nil {
			return err
		}
		if _, ok := tenancy.FindToken(b.Spec.Tokens, t.ID); ok && key == "" {
			// An attempt whose answer was lost has added it.
			return nil
		}
		tokens, err := tenancy.AddToken(b, t, h.Clock.Now())
		b.Spec.Tokens = tokens
		return err
	}, func(ctx context.Context, _ *v1alpha1.Bot) error { return by.JudgeNow(ctx) })
	if err != nil {
		return err
	}
	return h.issued(w, r, workspace, b, t, token)
}

// issued answers with a new token when the caches have it.
func (h *Handler) issued(w http.ResponseWriter, r *http.Request, workspace tenancy.Workspace, b *v1alpha1.Bot, t v1alpha1.BotToken, token string,
) error {
	scope := httpmw.ScopeOf(r)
	h.Metrics.issued.Inc()
	h.Until(r, refs(scope), func() bool {
		seen, ok := h.find(scope, b.Name)
		if !ok {
			return false
		}
		bound, _ := tenancy.FindToken(seen.Spec.Tokens, t.ID)
		return bound.SecretUID != ""
	})
	w.Header().Set("Location", "/api/orgs/"+scope.Org.UUID()+"/workspaces/"+workspace.UUID+"/serviceaccounts/"+b.Name+"/tokens/"+t.ID)
	if wantsYAML(r) {
		return kubeconfig.Write(w, http.StatusCreated, h.ExternalURL, h.CA(), kubeconfig.Name(h.Views, scope, workspace), workspace, clientcmdv1.AuthInfo{Token: token})
	}
	return httpapi.Write(w, http.StatusCreated, rest.IssuedBotToken{BotToken: tokenViewOf(b, t), Token: token})
}

// without removes a token from the list, and reports whether it was there.
func without(b *v1alpha1.Bot, id string) bool {
	tokens, ok := tenancy.WithoutToken(b, id)
	if ok {
		b.Spec.Tokens = tokens
	}
	return ok
}

// wantsYAML reports whether the client asks for a kubeconfig.
func wantsYAML(r *http.Request) bool {
	for _, line := range r.Header.Values("Accept") {
		for each := range strings.SplitSeq(line, ",") {
			if got, _, err := mime.ParseMediaType(each); err == nil && got == kubeconfig.MediaType {
				return true
			}
		}
	}
	return false
}

func (h *Handler) revoke(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "token")
	return h.revoked(w, r, "revoke tokens of bots", audit.Facts{Token: id}, func(b *v1alpha1.Bot) error {
		if !without(b, id) {
			return tenancy.NoSuchToken()
		}
		return nil
	}, func(b *v1alpha1.Bot) bool {
		_, there := tenancy.FindToken(b.Spec.Tokens, id)
		return !there
	})
}

// revokeAll ends all tokens at once. It replaces the ServiceAccount, so that tokens which are not
// in the list end as well.
func (h *Handler) revokeAll(w http.ResponseWriter, r *http.Request) error {
	var generation int64
	return h.revoked(w, r, "revoke tokens of bots", audit.Facts{All: true}, func(b *v1alpha1.Bot) error {
		generation = b.Spec.Generation + 1
		b.Spec.Tokens, b.Spec.Generation = nil, generation
		return nil
	}, func(b *v1alpha1.Bot) bool { return b.Spec.Generation >= generation && tenancy.AccountReady(b) })
}

// revoked takes rights of tokens away from a Bot and answers when the caches have followed and the streams
// of the tokens are cut.
func (h *Handler) revoked(w http.ResponseWriter, r *http.Request, action string, facts audit.Facts,
	change func(*v1alpha1.Bot) error, followed func(*v1alpha1.Bot) bool,
) error {
	scope := httpmw.ScopeOf(r)
	b, c, err := h.reduced(r, scope, action, facts)
	if err != nil {
		return err
	}
	c.Write = func(ctx context.Context, match api.Match) (*v1alpha1.Bot, error) {
		// listed is the number of tokens before the change.
		first, listed := true, 0
		changed, err := h.Store.ChangeBot(ctx, b, match, func(_ context.Context, b *v1alpha1.Bot) error {
			before := len(b.Spec.Tokens)
			err := change(b)
			if err == nil {
				listed = before
			}
			if errs.Is(err, errs.NotFound) && !first {
				// An attempt whose answer was lost has removed it.
				return nil
			}
			first = false
			return err
		})
		if err == nil {
			h.Metrics.revoked.Add(float64(max(0, listed-len(changed.Spec.Tokens))))
		} else if _, ok := h.find(scope, b.Name); !ok {
			err = missing(err)
		}
		return changed, err
	}
	c.Seen = func(changed **v1alpha1.Bot) bool {
		seen, ok := h.find(scope, b.Name)
		return !ok || seen.Generation >= (*changed).Generation && followed(seen)
	}
	return c.Serve(w, r, &h.Deps)
}

// keyed returns the Idempotency-Key of a request that adds to a collection of the Bot in the path, and the Bot.
func (h *Handler) keyed(r *http.Request, scope *tenancy.Scope) (key string, b *v1alpha1.Bot, err error) {
	if key, _, err = idempotency.Key(r); err == nil {
		b, err = h.named(r, scope)
	}
	return key, b, err
}

// idFor returns the ID of what a request adds to a collection of a Bot.
func (h *Handler) idFor(r *http.Request, b *v1alpha1.Bot, collection, key string) string {
	return idempotency.ID(r, key, httpmw.ScopeOf(r).Workspace.UUID+"/serviceaccounts/"+b.Name+"/"+collection, h.NewUUID)
}
