package store

import (
	"context"
	"errors"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// pollAccepted is the interval at which kcp is asked whether it accepts a new token, and
// waitAccepted how long it is asked.
const (
	pollAccepted = 25 * time.Millisecond
	waitAccepted = 5 * time.Second
)

// BotTokens has kcp issue the tokens of Bots.
type BotTokens struct {
	store *Store
	// anonymous has no credential of its own.
	anonymous *kcp.Clients
	audiences func() ([]string, error)
}

// NewBotTokens returns BotTokens that write to store, for the audiences that kcp accepts.
// anonymous has no credential of its own: new tokens are tried with it.
func NewBotTokens(store *Store, anonymous *kcp.Clients, audiences func() ([]string, error)) BotTokens {
	return BotTokens{store, anonymous, audiences}
}

// Issue returns a token of a Bot and the UID of the Secret that it is bound to. It waits until kcp
// accepts the token, whose own caches get the account, the Secret and the binding a moment later.
func (t BotTokens) Issue(ctx context.Context, cluster string, b *v1alpha1.Bot, id string, life time.Duration) (token, secretUID string, err error) {
	audiences, err := t.audiences()
	if err != nil {
		return "", "", err
	}
	issued, err := t.store.IssueBotToken(ctx, cluster, b, id, life, audiences)
	if err != nil {
		return "", "", err
	}
	_ = wait.PollUntilContextTimeout(ctx, pollAccepted, waitAccepted, true, func(ctx context.Context) (bool, error) {
		_, _, err := t.anonymous.UserOf(ctx, cluster, issued.Token)
		return err == nil, nil
	})
	return issued.Token, issued.SecretUID, nil
}

// Discard is DiscardBotToken.
func (t BotTokens) Discard(ctx context.Context, cluster string, b *v1alpha1.Bot, id string) error {
	return t.store.DiscardBotToken(ctx, cluster, b, id)
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
