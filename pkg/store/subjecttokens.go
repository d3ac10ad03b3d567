package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
)

const (
	// subjectTokenPrefix begins the names of the Leases of used ID tokens of jobs.
	subjectTokenPrefix = "kedge-ci-"
	// subjectTokensPage is the number of them that one request to kcp lists.
	subjectTokensPage = 500
)

func (s *Store) subjectTokens() *kcp.Client[*coordinationv1.Lease] {
	return s.clients.SubjectTokens(s.users, metav1.NamespaceDefault)
}

// UseSubjectToken records that the ID token of a job is used, until it expires: kcp creates one Lease of
// a name, whichever replica asks first. The error is Conflict if it was used before.
func (s *Store) UseSubjectToken(ctx context.Context, id string, until time.Time) error {
	use := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To(uuid.NewString()), RenewTime: ptr.To(metav1.NewMicroTime(until)),
	}}
	use.Name, use.Namespace = subjectTokenPrefix+id, metav1.NamespaceDefault
	use.Labels = map[string]string{v1alpha1.SubjectTokenLabel: "true"}
	used := false
	err := retry(ctx, func(ctx context.Context) error {
		_, err := s.subjectTokens().Create(ctx, use, metav1.CreateOptions{FieldManager: kcp.FieldManager})
		switch {
		case apierrors.IsNotFound(err):
			// kcp creates the namespace shortly after the workspace.
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault}}
			_, err = s.clients.Namespaces(s.users).Create(ctx, namespace, metav1.CreateOptions{FieldManager: kcp.FieldManager})
			if err == nil || apierrors.IsAlreadyExists(err) {
				_, err = s.subjectTokens().Create(ctx, use, metav1.CreateOptions{FieldManager: kcp.FieldManager})
			}
		case apierrors.IsAlreadyExists(err):
			// An attempt whose answer was lost has made it.
			var held *coordinationv1.Lease
			held, err = s.subjectTokens().Get(ctx, use.Name, metav1.GetOptions{})
			used = err == nil && ptr.Deref(held.Spec.HolderIdentity, "") != *use.Spec.HolderIdentity
		}
		return err
	})
	if used {
		return errs.New(errs.Conflict, "the ID token was used before")
	}
	return convert(err, "ID token of a job")
}

// ReleaseSubjectToken withdraws a use that led to no token.
func (s *Store) ReleaseSubjectToken(ctx context.Context, id string) error {
	err := retry(ctx, func(ctx context.Context) error {
		return s.subjectTokens().Delete(ctx, subjectTokenPrefix+id, metav1.DeleteOptions{})
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return convert(err, "ID token of a job")
}

// ForgetSubjectTokens removes the records of ID tokens that expired before a moment: nobody can use them
// again.
func (s *Store) ForgetSubjectTokens(ctx context.Context, before time.Time) error {
	options := metav1.ListOptions{LabelSelector: v1alpha1.SubjectTokenLabel + "=true", Limit: subjectTokensPage}
	for {
		var list coordinationv1.LeaseList
		err := retry(ctx, func(ctx context.Context) error {
			list = coordinationv1.LeaseList{}
			return s.subjectTokens().GetClient().Get().Namespace(metav1.NamespaceDefault).Resource("leases").
				VersionedParams(&options, s.clients.Parameters()).Do(ctx).Into(&list)
		})
		if err != nil {
			return convert(err, "ID tokens of jobs")
		}
		for i := range list.Items {
			use := &list.Items[i]
			if use.Spec.RenewTime != nil && !use.Spec.RenewTime.Time.Before(before) {
				continue
			}
			if err := s.subjectTokens().Delete(ctx, use.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return convert(err, "ID token of a job")
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}
