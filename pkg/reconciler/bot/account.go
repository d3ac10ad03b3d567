package bot

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// account keeps the ServiceAccount of a Bot and its binding.
type account struct {
	find     findFunc
	accounts objects.Repository[*corev1.ServiceAccount]
	rbac     objects.RBAC
}

func (*account) Condition() string { return v1alpha1.ConditionAccountReady }

func (s *account) Reconcile(ctx context.Context, b *v1alpha1.Bot) (controller.Result, error) {
	ws, _, _ := s.find(b)
	cluster := ws.ClusterID
	have, ok := s.accounts.Get(cluster, tenancy.NamespacedName(tenancy.DefaultNamespace, b.Name))
	if !ok || string(have.UID) != b.Status.ServiceAccountUID {
		// The cache may lack an account that exists, or have one that does not.
		var err error
		if have, ok, err = s.accounts.Find(ctx, cluster, b.Name); err != nil {
			return controller.Result{}, err
		}
	}
	known := b.Status.ServiceAccountUID
	switch {
	case b.Status.ServiceAccountGeneration != b.Spec.Generation && ok && string(have.UID) == known:
		// All tokens were revoked. Their account ends with them.
		if err := s.accounts.Delete(ctx, cluster, have); err != nil {
			return controller.Result{}, err
		}
		ok = false
	case b.Status.ServiceAccountGeneration == b.Spec.Generation && known != "" && (!ok || string(have.UID) != known):
		b.Spec.Generation++
		b.Spec.Tokens = nil
		return controller.Result{Message: "the account was deleted in the workspace; it is created again without its tokens", Stop: true}, nil
	}
	if ok && string(have.UID) != known && !tenancy.MadeForBot(have, b.Name) {
		// It may have tokens and bindings that nobody lists.
		return controller.Result{Message: "somebody made a ServiceAccount under the name of the bot, which the hub does not take over; delete it: kubectl delete serviceaccount " + b.Name +
			" --namespace " + tenancy.DefaultNamespace, RequeueAfter: lastLook, Stop: true}, nil
	}
	want := tenancy.BotAccount(b)
	if !ok {
		var err error
		if have, err = s.accounts.Make(ctx, cluster, want); err != nil {
			return controller.Result{}, err
		}
	} else if !tenancy.SameBotAccount(have, want) {
		if err := s.accounts.Merge(ctx, cluster, have, map[string]any{"metadata": map[string]any{"labels": want.Labels, "annotations": want.Annotations}}); err != nil {
			return controller.Result{}, err
		}
	}
	b.Status.ServiceAccountUID, b.Status.ServiceAccountGeneration = string(have.UID), b.Spec.Generation
	if role := tenancy.RoleToAuthorize(b); role != b.Status.AuthorizedRole {
		b.Status.AuthorizedRole = role
		if known != "" {
			// It is recorded before the binding, so that a role that is lowered again meanwhile is
			// compared with kcp. Tokens of a new account are accepted only after this status.
			return controller.Result{Message: "the role is being given", Stop: true}, nil
		}
	}
	return controller.Result{}, s.bind(ctx, cluster, b, have, ofBot(s.rbac.Bindings, cluster, b.Name))
}

// bind establishes the binding. A binding to another role is removed first.
func (s *account) bind(ctx context.Context, cluster string, b *v1alpha1.Bot, a *corev1.ServiceAccount, held []*rbacv1.ClusterRoleBinding) error {
	if tenancy.RoleLowered(b) {
		var err error
		if held, err = s.withHigher(ctx, cluster, b, held); err != nil {
			return err
		}
	}
	return s.rbac.Keep(ctx, cluster, tenancy.AllRBAC(held), []tenancy.RBAC{tenancy.BotBinding(b, string(a.UID))})
}

// withHigher adds bindings to higher roles that the cache does not have yet.
func (s *account) withHigher(ctx context.Context, cluster string, b *v1alpha1.Bot, held []*rbacv1.ClusterRoleBinding) ([]*rbacv1.ClusterRoleBinding, error) {
	held = slices.Clone(held)
	for _, name := range tenancy.HigherBindings(b) {
		if slices.ContainsFunc(held, func(h *rbacv1.ClusterRoleBinding) bool { return h.Name == name }) {
			continue
		}
		binding, ok, err := s.rbac.Bindings.Find(ctx, cluster, name)
		if err != nil {
			return nil, err
		}
		if ok {
			held = append(held, binding)
		}
	}
	return held, nil
}
