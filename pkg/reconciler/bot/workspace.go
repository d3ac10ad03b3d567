package bot

import (
	"context"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// workspace waits for the Workspace of the Bot, removes what a deleted Bot has in it, and
// deletes a Bot without a Workspace.
type workspace struct {
	find       findFunc
	workspaces objects.Workspaces
	bots       objects.Bots
	accounts   objects.Repository[*corev1.ServiceAccount]
	secrets    objects.Repository[*corev1.Secret]
	rbac       objects.RBAC
}

func (*workspace) Condition() string { return v1alpha1.ConditionWorkspaceReady }

func (s *workspace) Reconcile(ctx context.Context, b *v1alpha1.Bot) (controller.Result, error) {
	orgCluster := string(logicalcluster.From(b))
	ws, deleted, ok := s.find(b)
	if !ok {
		exists, err := s.workspaces.Exists(ctx, orgCluster, b.Spec.WorkspaceRef.Name)
		switch {
		case err != nil:
			return controller.Result{}, err
		case exists:
			return controller.Result{Message: "the workspace is not in the cache yet", Stop: true}, nil
		case b.DeletionTimestamp.IsZero():
			return controller.Result{Message: "the workspace does not exist any more", Stop: true}, s.bots.DeleteUnchanged(ctx, orgCluster, b)
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
		if a, ok, err := s.accounts.Find(ctx, ws.ClusterID, b.Name); err != nil {
			return result, err
		} else if ok && tenancy.OfBot(a, b.Name) {
			if err := s.accounts.Delete(ctx, ws.ClusterID, a); err != nil {
				return result, err
			}
		}
		if err := s.rbac.Keep(ctx, ws.ClusterID, tenancy.AllRBAC(ofBot(s.rbac.Bindings, ws.ClusterID, b.Name)), nil); err != nil {
			return result, err
		}
		for _, secret := range ofBot(s.secrets, ws.ClusterID, b.Name) {
			if err := s.secrets.Delete(ctx, ws.ClusterID, secret); err != nil {
				return result, err
			}
		}
	}
	controller.RemoveFinalizer(b)
	return result, nil
}
