package store

import (
	"context"
	"errors"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// CreateBot creates a Bot in the logical cluster of an Organization. If one of that name
// exists, it returns that one and made is false.
func (s *Store) CreateBot(ctx context.Context, orgCluster string, b *v1alpha1.Bot) (held *v1alpha1.Bot, made bool, err error) {
	client := s.clients.Bots(orgCluster)
	err = retry(ctx, func(ctx context.Context) error {
		held, err = client.Create(ctx, b, metav1.CreateOptions{FieldManager: kcp.FieldManager})
		if made = err == nil; !apierrors.IsAlreadyExists(err) {
			return err
		}
		held, err = client.Get(ctx, b.Name, metav1.GetOptions{})
		return err
	})
	return held, made, convert(err, "bot")
}

// AmendBot is AmendOrganization for a Bot, in the logical cluster that held came from.
func (s *Store) AmendBot(ctx context.Context, held *v1alpha1.Bot, change func(context.Context, *v1alpha1.Bot) (map[string]any, error), match func(version string) error) (*v1alpha1.Bot, error) {
	client := s.clients.Bots(kcp.ClusterOf(held))
	held, err := present(ctx, client, held, match, "bot")
	if err != nil {
		return nil, err
	}
	return amend(ctx, s.turns, client, held, within("spec", change), match, "bot")
}

// DeleteBot deletes the Bot with the UID of held. match is the precondition described at
// PatchUser. The error is NotFound if it does not exist any more.
func (s *Store) DeleteBot(ctx context.Context, held *v1alpha1.Bot, match func(version string) error) error {
	client := s.clients.Bots(kcp.ClusterOf(held))
	if match != nil {
		return deleteIf(ctx, client, held.Name, match, "bot")
	}
	tries := 0
	err := retry(ctx, func(ctx context.Context) error {
		tries++
		err := client.Delete(ctx, held.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &held.UID}})
		if apierrors.IsNotFound(err) && tries > 1 {
			// The first attempt deleted it and its answer was lost.
			return nil
		}
		return err
	})
	return convert(err, "bot")
}

// BotToken is a token that kcp issued.
type BotToken struct {
	// Token is a secret. It is stored nowhere.
	Token string
	// SecretUID is the UID of the Secret that it is bound to.
	SecretUID string
}

// IssueBotToken creates the Secret of a token in the Workspace and has kcp issue a token that
// is bound to it and to the ServiceAccount of the Bot. The token must be in the spec of the
// Bot already, without the Secret: so that no token exists that is in no list.
func (s *Store) IssueBotToken(ctx context.Context, cluster string, b *v1alpha1.Bot, id string, life time.Duration, audiences []string) (BotToken, error) {
	secret, err := create(ctx, s.clients.Secrets(cluster, tenancy.DefaultNamespace), tenancy.BotTokenSecret(b, id), "token")
	if err != nil {
		return BotToken{}, err
	}
	request := &authenticationv1.TokenRequest{
		// kcp refuses if the account was replaced meanwhile.
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(b.Status.ServiceAccountUID)},
		Spec: authenticationv1.TokenRequestSpec{
			Audiences: audiences, ExpirationSeconds: ptr.To(int64(life / time.Second)),
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID},
		},
	}
	var issued *authenticationv1.TokenRequest
	err = retry(ctx, func(ctx context.Context) (err error) {
		issued, err = s.clients.RequestToken(ctx, cluster, tenancy.DefaultNamespace, b.Name, request)
		return err
	})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return BotToken{}, errs.Wrap(errs.Conflict, err, "the account of the bot is being created again; repeat the request when its phase is Ready")
	case err == nil && issued.Status.Token == "":
		return BotToken{}, errs.Wrap(errs.Unavailable, errors.New("kcp issued an empty token"), "kcp issued no token; try again")
	}
	return BotToken{Token: issued.Status.Token, SecretUID: string(secret.UID)}, convert(err, "token")
}

// DiscardBotToken deletes the Secret of a token, which ends the token in kcp. It succeeds if
// there is none.
func (s *Store) DiscardBotToken(ctx context.Context, cluster string, b *v1alpha1.Bot, id string) error {
	err := retry(ctx, func(ctx context.Context) error {
		return s.clients.Secrets(cluster, tenancy.DefaultNamespace).Delete(ctx, tenancy.BotTokenSecret(b, id).Name, metav1.DeleteOptions{})
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return convert(err, "token")
}
