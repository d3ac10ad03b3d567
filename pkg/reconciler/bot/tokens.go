package bot

import (
	"context"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// tokens removes tokens that cannot work any more from the Bot, and Secrets of tokens that
// the Bot does not list.
type tokens struct {
	find    findFunc
	bots    objects.Bots
	secrets objects.Repository[*corev1.Secret]
	clock   clock.PassiveClock
	// issuers are those whose jobs Bots may trust.
	issuers []string
}

func (*tokens) Condition() string { return v1alpha1.ConditionTokensReady }

func (s *tokens) Reconcile(ctx context.Context, b *v1alpha1.Bot) (controller.Result, error) {
	ws, _, _ := s.find(b)
	secrets, now := ofBot(s.secrets, ws.ClusterID, b.Name), s.clock.Now()
	uids, err := s.uids(ctx, ws.ClusterID, b, secrets)
	if err != nil {
		return controller.Result{}, err
	}
	if kept := tenancy.KeptTokens(b, now, s.issuers, func(id string) string { return uids[id] }); len(kept) < len(b.Spec.Tokens) {
		b.Spec.Tokens = kept
	}
	b.Status.LastTokenIssuedAt = tenancy.LastIssued(b.Spec.Tokens, b.Status.LastTokenIssuedAt)
	b.Status.Trust, b.Status.Tokens = tenancy.TrustStatusOf(b), tenancy.TokenStatusOf(b)
	return controller.Result{RequeueAfter: tenancy.NextTokenChange(b.Spec.Tokens, now)}, s.removeSecrets(ctx, ws.ClusterID, b, secrets)
}

// uids returns the UIDs of the Secrets by the ID of the token. It asks kcp for those that the
// cache does not have.
func (s *tokens) uids(ctx context.Context, cluster string, b *v1alpha1.Bot, secrets []*corev1.Secret) (map[string]string, error) {
	uids := map[string]string{}
	for _, secret := range secrets {
		if id, ok := tenancy.TokenOfSecret(secret); ok {
			uids[id] = string(secret.UID)
		}
	}
	for _, t := range b.Spec.Tokens {
		if t.SecretUID == "" || uids[t.ID] == t.SecretUID {
			continue
		}
		secret, ok, err := s.secrets.Find(ctx, cluster, tenancy.BotTokenSecret(b, t.ID).Name)
		if err != nil {
			return nil, err
		}
		delete(uids, t.ID)
		if ok {
			uids[t.ID] = string(secret.UID)
		}
	}
	return uids, nil
}

// removeSecrets deletes the Secrets of tokens that neither the Bot here nor the one in kcp
// lists: the cached Bot may be older than the Secret of a token that is being issued.
func (s *tokens) removeSecrets(ctx context.Context, cluster string, b *v1alpha1.Bot, secrets []*corev1.Secret) error {
	var inKCP *v1alpha1.Bot
	for _, secret := range secrets {
		id, ok := tenancy.TokenOfSecret(secret)
		if ok && listed(b, id) {
			continue
		}
		if inKCP == nil {
			var err error
			if inKCP, err = s.bots.Read(ctx, string(logicalcluster.From(b)), b.Name); err != nil {
				return err
			}
		}
		if ok && listed(inKCP, id) {
			continue
		}
		if err := s.secrets.Delete(ctx, cluster, secret); err != nil {
			return err
		}
	}
	return nil
}

func listed(b *v1alpha1.Bot, id string) bool {
	_, ok := tenancy.FindToken(b.Spec.Tokens, id)
	return ok
}
