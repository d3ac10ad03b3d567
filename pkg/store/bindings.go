package store

import (
	"context"
	"strings"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Bindings writes APIBindings in the logical clusters of Workspaces, with the credential of
// its clients: that of a caller, and never the hub's.
type Bindings struct{ clients *kcp.Clients }

// NewBindings returns Bindings that write with these clients.
func NewBindings(as *kcp.Clients) Bindings { return Bindings{as} }

// CreateBinding creates an APIBinding. dryRun has kcp check everything and store nothing.
// The error is AlreadyExists if the name is taken, and Forbidden if kcp refuses: the caller
// may not create it, or may not bind the export.
func (b Bindings) CreateBinding(ctx context.Context, cluster string, o *kcpapisv1alpha2.APIBinding, dryRun bool) (*kcpapisv1alpha2.APIBinding, error) {
	var made *kcpapisv1alpha2.APIBinding
	err := retry(ctx, func(ctx context.Context) (err error) {
		made, err = b.clients.APIBindings(cluster).Create(ctx, o, metav1.CreateOptions{FieldManager: kcp.FieldManager, DryRun: dry(dryRun)})
		return err
	})
	return made, refusal(err)
}

// MayBind returns an error if kcp does not let the caller bind an export: it creates an APIBinding by a
// dry run.
func (b Bindings) MayBind(ctx context.Context, cluster string, ref v1alpha1.APIExportRef) error {
	_, err := b.CreateBinding(ctx, cluster, tenancy.ProbeBinding(ref), true)
	return err
}

// UpdateBinding replaces the version of an APIBinding that o has. The error is Conflict if
// there is a newer one.
func (b Bindings) UpdateBinding(ctx context.Context, cluster string, o *kcpapisv1alpha2.APIBinding, dryRun bool) (*kcpapisv1alpha2.APIBinding, error) {
	var made *kcpapisv1alpha2.APIBinding
	err := retry(ctx, func(ctx context.Context) (err error) {
		made, err = b.clients.APIBindings(cluster).Update(ctx, o, metav1.UpdateOptions{FieldManager: kcp.FieldManager, DryRun: dry(dryRun)})
		return err
	})
	return made, refusal(err)
}

// DeleteBinding deletes the APIBinding with the UID of o. It succeeds if there is none any
// more.
func (b Bindings) DeleteBinding(ctx context.Context, cluster string, o *kcpapisv1alpha2.APIBinding) error {
	err := retry(ctx, func(ctx context.Context) error {
		return b.clients.APIBindings(cluster).Delete(ctx, o.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &o.UID}})
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return refusal(err)
}

func dry(run bool) []string {
	if run {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// refusal converts an error of kcp about the binding of a caller. kcp's text about a path that
// the caller may not know stays in the log.
func refusal(err error) error {
	switch {
	case apierrors.IsUnauthorized(err):
		return errs.Wrap(errs.Unauthenticated, err, "kcp does not accept this credential; log in again: kedge login")
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "no permission to bind"):
		return errs.Wrap(errs.Forbidden, err, "you may not bind this API, or its provider has removed it; ask who published it")
	case apierrors.IsForbidden(err):
		return errs.Wrap(errs.Forbidden, err, "kcp does not let you do this in the workspace; it is for its admins")
	}
	return convert(err, "binding")
}
