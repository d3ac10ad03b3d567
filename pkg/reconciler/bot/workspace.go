package bot

import (
	"context"

	"github.com/kcp-dev/logicalcluster/v3"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// workspace waits for the Workspace of the Bot, removes what a deleted Bot has in it, and
// deletes a Bot without a Workspace.
type workspace struct{ config Config }

func (*workspace) Condition() string { return v1alpha1.ConditionWorkspaceReady }

func (s *workspace) Reconcile(ctx context.Context, b *v1alpha1.Bot) (controller.Result, error) {
	c, orgCluster := s.config, string(logicalcluster.From(b))
	ws, deleted, ok := c.Cache.Workspace(orgCluster, b.Spec.WorkspaceRef.Name)
	if !ok {
		exists, err := c.WorkspaceExists(ctx, orgCluster, b.Spec.WorkspaceRef.Name)
		switch {
		case err != nil:
			return controller.Result{}, err
		case exists:
			return controller.Result{Message: "the workspace is not in the cache yet", Stop: true}, nil
		case b.DeletionTimestamp.IsZero():
			return controller.Result{Message: "the workspace does not exist any more", Stop: true}, c.Bots.Delete(ctx, orgCluster, b)
		}
	}
	if !b.DeletionTimestamp.IsZero() {
		return s.remove(ctx, b, ws, deleted)
	}
	if !controller.AddFinalizer(b) {
		return controller.Result{Message: "the bot is being prepared", Stop: true}, nil
	}
	switch {
	case deleted:
		return controller.Result{Message: "the workspace, or its organization, was deleted", Stop: true}, nil
	case !ws.KCPReady || ws.ClusterID == "":
		return controller.Result{Message: "kcp is making the workspace", Stop: true}, nil
	}
	return controller.Result{}, nil
}

// remove removes what the Bot has in its Workspace, the account first: its tokens end with
// it. kcp itself removes the content of a Workspace that is being removed.
func (s *workspace) remove(ctx context.Context, b *v1alpha1.Bot, ws tenancy.Workspace, deleted bool) (controller.Result, error) {
	c := s.config
	result := controller.Result{Message: "the bot is being removed", Stop: true}
	if !controller.HasFinalizer(b) {
		return result, nil
	}
	if ws.ClusterID != "" && !ws.Terminating {
		if deleted {
			// kcp takes no writes in an inactive Workspace. The Bot goes when the Workspace is
			// undeleted or removed.
			result.Message = "the bot is removed together with its workspace, or when that is undeleted"
			return result, nil
		}
		if a, ok, err := c.Accounts.Find(ctx, ws.ClusterID, b.Name); err != nil {
			return result, err
		} else if ok && tenancy.OfBot(a, b.Name) {
			if err := c.Accounts.Delete(ctx, ws.ClusterID, a); err != nil {
				return result, err
			}
		}
		for _, binding := range c.Cache.Bindings(ws.ClusterID, b.Name) {
			if err := c.Bindings.Delete(ctx, ws.ClusterID, binding); err != nil {
				return result, err
			}
		}
		for _, secret := range c.Cache.Secrets(ws.ClusterID, b.Name) {
			if err := c.Secrets.Delete(ctx, ws.ClusterID, secret); err != nil {
				return result, err
			}
		}
	}
	controller.RemoveFinalizer(b)
	return result, nil
}
