package providers

import (
	"net/http"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func (h *Handler) disable(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	if err := scope.RequireWorkspaceAdmin("disable providers"); err != nil {
		return err
	}
	confirmed, err := flag(r, "confirm")
	if err != nil {
		return err
	}
	match, err := httpapi.IfMatch(r)
	if err != nil {
		return err
	}
	workspace, err := h.Ready(r, scope)
	if err != nil {
		return err
	}
	ctx, cancel := api.Context(r)
	defer cancel()
	cluster := workspace.ClusterID
	bindings, _, err := h.KCP.WorkspaceAPIs(ctx, cluster)
	if err != nil {
		return err
	}
	p, err := h.find(r, bindings)
	if err != nil {
		return err
	}
	if match != nil {
		if err := match(p.version()); err != nil {
			return err
		}
	}
	switch b := p.binding; {
	case b == nil:
		return answer(w, http.StatusOK, p, p.view())
	case h.Kept(b):
		return errReserved()
	case !b.DeletionTimestamp.IsZero():
	case !confirmed:
		losses, err := h.losses(ctx, cluster, b)
		if err != nil {
			return err
		}
		return tenancy.WouldLose(losses)
	default:
		as, err := h.As(r)
		if err != nil {
			return err
		}
		if err := httpmw.Intend(r, httpmw.Intent{Reduces: true}); err != nil {
			return err
		}
		if err := as.DeleteBinding(ctx, cluster, b); err != nil {
			return err
		}
	}
	return h.awaitDisabled(w, r, cluster, p)
}

// awaitDisabled answers when the binding is gone, or says what kcp waits for.
func (h *Handler) awaitDisabled(w http.ResponseWriter, r *http.Request, cluster string, p provider) error {
	scope, uid := httpmw.ScopeOf(r), p.binding.UID
	find := func() *kcpapisv1alpha2.APIBinding {
		for _, b := range h.Catalog.BindingsIn(cluster) {
			if b.UID == uid {
				return b
			}
		}
		return nil
	}
	v := rest.Provider{Entry: p.view().Entry, State: rest.StateDisabled}
	for i := range v.Claims {
		v.Claims[i].State = ""
	}
	if h.Made(r, refs(scope), func() bool { return find() == nil }, nil) == http.StatusCreated {
		if p.entry != nil {
			p.binding = nil
		}
		return answer(w, http.StatusOK, p, v)
	}
	v.Message = "kcp has begun to delete what belongs to it"
	if b := find(); b != nil && !b.DeletionTimestamp.IsZero() {
		p.binding = b
		_, v.Message = tenancy.CatalogStateOf(nil, b)
	}
	return answer(w, http.StatusAccepted, p, v)
}
