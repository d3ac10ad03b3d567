package store

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// CreateSession creates a Session under a name that nobody else uses.
func (s *Store) CreateSession(ctx context.Context, o *v1alpha1.Session) (*v1alpha1.Session, error) {
	return create(ctx, s.clients.Sessions(s.users), o, "session")
}

// GetSession gets a Session from kcp, because a cache may be behind a login on another
// replica.
func (s *Store) GetSession(ctx context.Context, name string) (*v1alpha1.Session, error) {
	return read(ctx, s.clients.Sessions(s.users), name, "session")
}

// sessionsPage is the number of Sessions that one request to kcp lists.
const sessionsPage = 500

// ListSessions lists the Sessions of a User in kcp, in pages. It is for ending all of them, where
// none that a cache has not seen yet may be left.
func (s *Store) ListSessions(ctx context.Context, user string) ([]v1alpha1.Session, error) {
	var all []v1alpha1.Session
	options := metav1.ListOptions{LabelSelector: v1alpha1.UserLabel + "=" + user, Limit: sessionsPage}
	for {
		var list v1alpha1.SessionList
		err := retry(ctx, func(ctx context.Context) error {
			list = v1alpha1.SessionList{}
			return s.clients.Sessions(s.users).GetClient().Get().Resource("sessions").
				VersionedParams(&options, s.clients.Parameters()).Do(ctx).Into(&list)
		})
		switch {
		case apierrors.IsResourceExpired(err) && options.Continue != "":
			// kcp has forgotten the state that the first page was of.
			all, options.Continue = nil, ""
			continue
		case err != nil:
			return nil, convert(err, "sessions")
		}
		all = append(all, list.Items...)
		if options.Continue = list.Continue; options.Continue == "" {
			return all, nil
		}
	}
}
