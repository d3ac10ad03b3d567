package revocation

import (
	"errors"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// clusterNameKey is the extra key by which kcp knows the logical cluster of a ServiceAccount.
const clusterNameKey = "authentication.kcp.io/cluster-name"

// onBot learns of the end of a Bot, of a token, or of a role. After a lower role, the gate refuses
// the Bot until kcp has followed, so that no stream is left to close then.
func (r *Revocation) onBot(c views.Change[*v1alpha1.Bot]) {
	if c.Ends(func(b *v1alpha1.Bot) any {
		return []any{
			b.Spec.Role, b.Status.AuthorizedRole, b.Spec.Generation, b.Spec.Tokens, b.Spec.Trust,
			b.Status.ServiceAccountUID, b.Status.ServiceAccountGeneration,
		}
	}) {
		// The streams are those of the account that the Bot had.
		r.Recheck(tenancy.BotKey(c.Old.Status.ServiceAccountUID))
	}
}

// subject is a caller as kcp knows them.
func (k Reviews) subject(caller, cluster string) (authorizationv1.SubjectAccessReviewSpec, error) {
	if account, ok := tenancy.BotAccountOf(caller); ok {
		b, ok := k.Bot(account)
		if !ok {
			return authorizationv1.SubjectAccessReviewSpec{}, errors.New("the Bot is not in memory")
		}
		return authorizationv1.SubjectAccessReviewSpec{
			User:   tenancy.BotUsername(b.Name),
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + tenancy.DefaultNamespace, "system:authenticated"},
			Extra:  map[string]authorizationv1.ExtraValue{clusterNameKey: {cluster}},
		}, nil
	}
	u, ok := k.User(caller)
	if !ok {
		return authorizationv1.SubjectAccessReviewSpec{}, errors.New("the User is not in memory")
	}
	return authorizationv1.SubjectAccessReviewSpec{User: u.Spec.RBACIdentity, Groups: []string{"system:authenticated"}}, nil
}
