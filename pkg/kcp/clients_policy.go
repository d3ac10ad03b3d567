package kcp

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// Policies are the ValidatingAdmissionPolicies of the cluster.
func (c *Clients) Policies(cluster string) *Client[*admissionv1.ValidatingAdmissionPolicy] {
	return clientFor(c, c.ClusterURL(cluster), admissionv1.SchemeGroupVersion, "validatingadmissionpolicies", func() *admissionv1.ValidatingAdmissionPolicy { return &admissionv1.ValidatingAdmissionPolicy{} })
}

// PolicyBindings are the ValidatingAdmissionPolicyBindings of the cluster.
func (c *Clients) PolicyBindings(cluster string) *Client[*admissionv1.ValidatingAdmissionPolicyBinding] {
	return clientFor(c, c.ClusterURL(cluster), admissionv1.SchemeGroupVersion, "validatingadmissionpolicybindings", func() *admissionv1.ValidatingAdmissionPolicyBinding {
		return &admissionv1.ValidatingAdmissionPolicyBinding{}
	})
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
