package kcp

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
)

// WithToken returns the same clients with a bearer token. It is for clients that Anonymous
// returned, which have no other credential: kcp then sees the owner of the token and nobody
// else. The connections are shared, so it is cheap enough for one request. No error and no
// metric has the token.
func (c *Clients) WithToken(token string) *Clients {
	return c.altered(func(o *transport.Options) { o.Config.BearerToken = token })
}

// RequestToken asks kcp for a token of a ServiceAccount. Its error never has the token.
func (c *Clients) RequestToken(ctx context.Context, cluster, namespace, account string, r *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	var issued authenticationv1.TokenRequest
	err := c.REST(c.ClusterURL(cluster), corev1.SchemeGroupVersion).Post().
		Namespace(namespace).Resource("serviceaccounts").Name(account).SubResource("token").Body(r).Do(ctx).Into(&issued)
	return &issued, err
}

// Username asks kcp for the name under which it knows these clients.
func (c *Clients) Username(ctx context.Context, cluster string) (string, error) {
	var review authenticationv1.SelfSubjectReview
	err := c.REST(c.ClusterURL(cluster), authenticationv1.SchemeGroupVersion).Post().
		Resource("selfsubjectreviews").Body(&authenticationv1.SelfSubjectReview{}).Do(ctx).Into(&review)
	if err != nil {
		return "", fmt.Errorf("ask kcp who the hub is: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}

// UserOf asks kcp which username and groups it derives from a token, and sends the request like
// those of the person. The clients have no credential of their own. The error has the code
// errs.Unauthenticated if kcp does not accept the token.
func (c *Clients) UserOf(ctx context.Context, cluster, token string) (username string, groups []string, err error) {
	var review authenticationv1.SelfSubjectReview
	err = c.REST(c.ClusterURL(cluster), authenticationv1.SchemeGroupVersion).Post().SetHeader("Authorization", "Bearer "+token).
		Resource("selfsubjectreviews").Body(&authenticationv1.SelfSubjectReview{}).Do(ctx).Into(&review)
	switch {
	case apierrors.IsUnauthorized(err):
		return "", nil, errs.Wrap(errs.Unauthenticated, err, "kcp does not accept the token")
	case err != nil:
		return "", nil, fmt.Errorf("ask kcp for the username of a token: %w", err)
	}
	return review.Status.UserInfo.Username, review.Status.UserInfo.Groups, nil
}
