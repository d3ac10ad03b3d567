package workspaces

import (
	"context"
	"maps"
	"time"

	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// takeBackTimeout limits the time in which a grant is taken back.
const takeBackTimeout = 30 * time.Second

// granted is what a grant changed in an annotation.
type granted struct{ before, after string }

// grant is change for what may give rights: gives reports whether it does so in a Workspace. kcp does not
// order the writes of a Workspace and of its Organization, so the author is judged before the write and
// after it. A grant is taken back before it is answered if its author lost the right to it meanwhile, or
// if kcp does not say.
func (h *Handler) grant(ctx context.Context, scope *tenancy.Scope, match api.Match, by httpmw.Author, gives func(tenancy.Workspace) bool,
	edit func(tenancy.Workspace, map[string]string) error,
) (tenancy.Workspace, error) {
	given := map[string]granted{}
	changed, err := h.change(ctx, scope, match, func(ws tenancy.Workspace, annotations map[string]string) error {
		if !gives(ws) {
			return edit(ws, annotations)
		}
		if err := by.JudgeNow(ctx); err != nil {
			return err
		}
		held := maps.Clone(annotations)
		if err := edit(ws, annotations); err != nil {
			return err
		}
		for _, key := range []string{v1alpha1.DeletionRequestedAtAnnotation, v1alpha1.ExpiresAtAnnotation, v1alpha1.RequestsAnnotation} {
			if annotations[key] != held[key] {
				given[key] = granted{held[key], annotations[key]}
			}
		}
		return nil
	})
	if len(given) == 0 {
		return changed, err
	}
	if lost := by.JudgeNow(ctx); lost != nil {
		h.takeBack(ctx, scope, given)
		return tenancy.Workspace{}, lost
	}
	return changed, err
}

// takeBack restores what a grant changed, unless somebody else has changed it since.
func (h *Handler) takeBack(ctx context.Context, scope *tenancy.Scope, given map[string]granted) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackTimeout)
	defer cancel()
	_, err := h.change(ctx, scope, nil, func(_ tenancy.Workspace, annotations map[string]string) error {
		for key, g := range given {
			switch {
			case annotations[key] != g.after:
			case g.before == "":
				delete(annotations, key)
			default:
				annotations[key] = g.before
			}
		}
		return nil
	})
	if err != nil {
		log.From(ctx).Error("a change of a Workspace by somebody who lost the right to it meanwhile was not taken back",
			zap.String("workspace", scope.Workspace.UUID), zap.Error(err))
	}
}
