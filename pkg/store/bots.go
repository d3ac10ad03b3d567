package store

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// GetBot reads a Bot of an Organization from kcp. It returns nil if there is none.
func (s *Store) GetBot(ctx context.Context, orgCluster, name string) (*v1alpha1.Bot, error) {
	b, err := read(ctx, s.clients.Bots(orgCluster), name, "bot")
	if errs.Is(err, errs.NotFound) {
		return nil, nil
	}
	return b, err
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
