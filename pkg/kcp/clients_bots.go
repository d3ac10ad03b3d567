package kcp

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/gentype"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// Bots of the cluster.
func (c *Clients) Bots(cluster string) *Client[*v1alpha1.Bot] {
	return clientFor(c, c.ClusterURL(cluster), v1alpha1.SchemeGroupVersion, "bots", func() *v1alpha1.Bot { return &v1alpha1.Bot{} })
}

// ServiceAccounts of a namespace of the cluster.
func (c *Clients) ServiceAccounts(cluster, namespace string) *Client[*corev1.ServiceAccount] {
	return gentype.NewClient[*corev1.ServiceAccount]("serviceaccounts", c.REST(c.ClusterURL(cluster), corev1.SchemeGroupVersion), c.params, namespace, func() *corev1.ServiceAccount { return &corev1.ServiceAccount{} })
}

// Secrets of a namespace of the cluster.
func (c *Clients) Secrets(cluster, namespace string) *Client[*corev1.Secret] {
	return gentype.NewClient[*corev1.Secret]("secrets", c.REST(c.ClusterURL(cluster), corev1.SchemeGroupVersion), c.params, namespace, func() *corev1.Secret { return &corev1.Secret{} })
}

// RequestToken asks kcp for a token of a ServiceAccount. Its error never has the token.
func (c *Clients) RequestToken(ctx context.Context, cluster, namespace, account string, r *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	var issued authenticationv1.TokenRequest
	err := c.REST(c.ClusterURL(cluster), corev1.SchemeGroupVersion).Post().
		Namespace(namespace).Resource("serviceaccounts").Name(account).SubResource("token").Body(r).Do(ctx).Into(&issued)
	return &issued, err
}
