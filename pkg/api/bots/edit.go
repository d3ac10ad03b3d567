package bots

import (
	"context"
	"errors"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// errRaised is the error of a change in which the role turns out to be raised.
var errRaised = errs.New(errs.Conflict, "the role of the bot was changed at the same time; read it again and repeat the request")

// decide has the Organization accept a change that gives rights to a Bot, by compare-and-swap. The
// reconciler of the Organization carries it out. match is called with the version of the Bot that
// the decision saw.
func (h *Handler) decide(ctx context.Context, scope *tenancy.Scope, by httpmw.Author, c v1alpha1.BotChange, match func(version string) error) (generation int64, err error) {
	c.Workspace, c.By = scope.Workspace.UUID, scope.User
	c.RequestedAt = metav1.NewMicroTime(h.Clock.Now().Truncate(time.Microsecond))
	written := false
	o, err := h.Store.AmendOrganization(ctx, scope.Org.Organization, func(ctx context.Context, o *v1alpha1.Organization) (map[string]any, error) {
		if err := by.Judge(ctx, o); err != nil {
			return nil, err
		}
		held, err := h.Store.GetBot(ctx, scope.Org.ClusterID, c.Name)
		if err != nil {
			return nil, err
		}
		changes, err := tenancy.DecideBot(o, held, c)
		if err != nil || changes == nil {
			return nil, err
		}
		if match != nil && !written {
			if err := match(held.ResourceVersion); err != nil {
				return nil, err
			}
		}
		written = true
		return map[string]any{"botChanges": changes}, nil
	}, nil)
	if err != nil {
		return 0, err
	}
	return o.Generation, nil
}

// change changes the role or the display name of a Bot. A change that raises the role is a grant.
// Any other is one write of the Bot, and nothing waits for it.
func (h *Handler) change(ctx context.Context, r *http.Request, by httpmw.Author, b *v1alpha1.Bot, spec map[string]any, match func(version string) error) (*v1alpha1.Bot, error) {
	scope := httpmw.ScopeOf(r)
	role, given := spec["role"].(v1alpha1.Role)
	raises := func(b *v1alpha1.Bot) bool { return given && tenancy.RaisesBot(b, role) }
	if !raises(b) {
		changed, err := h.Store.AmendBot(ctx, b, func(_ context.Context, b *v1alpha1.Bot) (map[string]any, error) {
			switch {
			case raises(b):
				return nil, errRaised
			case (!given || role == b.Spec.Role) && (spec["displayName"] == nil || spec["displayName"] == b.Spec.DisplayName):
				return nil, nil
			}
			return spec, nil
		}, match)
		if !errors.Is(err, errRaised) {
			return changed, err
		}
	}
	name, _ := spec["displayName"].(string)
	generation, err := h.decide(ctx, scope, by, v1alpha1.BotChange{Name: b.Name, UID: b.UID, Role: role, DisplayName: name}, match)
	if err != nil {
		return nil, err
	}
	done := h.until(r, func() bool {
		org, ok := h.Views.Org(scope.Org.UUID())
		if !ok || org.Generation < generation {
			return false
		}
		_, pending := tenancy.BotChangeOf(org.Organization, b.Name)
		return !pending
	})
	changed, err := h.Store.GetBot(ctx, scope.Org.ClusterID, b.Name)
	switch {
	case err != nil:
		return nil, err
	case changed == nil || changed.UID != b.UID:
		return nil, tenancy.NoSuchBot()
	case done && changed.Spec.Role != role:
		return nil, errRaised
	}
	return changed, nil
}
