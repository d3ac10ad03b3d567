package catalogentry

import (
	"context"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// identityDelay is the time after which an export is read again that kcp has given no identity
// yet.
const identityDelay = time.Second

// export reads the APIExport of an entry into its status. Nothing reports changes of an export,
// so it is read every minute.
type export struct {
	leftovers
	exports objects.Repository[*kcpapisv1alpha2.APIExport]
}

// absence says why there is no APIExport. It is empty if there is one.
type absence string

const (
	exportGone        absence = "its workspace has no APIExport of that name any more"
	workspaceGone     absence = "its workspace does not exist any more"
	workspaceInactive absence = "kcp does not serve its workspace, which is deactivated or being deleted"
)

func (*export) Condition() string { return v1alpha1.ConditionExportFound }

func (s *export) Reconcile(ctx context.Context, e *v1alpha1.CatalogEntry) (controller.Result, error) {
	result := controller.Result{RequeueAfter: jittered()}
	org, err := s.organization(e)
	if err != nil {
		return controller.Result{}, err
	}
	at := s.where(org, e)
	if at.problem != "" {
		result.Message = about(e, at.problem)
		return result, nil
	}
	found, none, err := s.find(ctx, at.at, e.Spec.APIExport.Name)
	if err != nil {
		return result, err
	}
	known := e.Status.Export
	switch {
	case none != "":
		result.Message = about(e, string(none))
	case !found.DeletionTimestamp.IsZero():
		result.Message = about(e, "it is being deleted")
	case found.Status.IdentityHash == "":
		result.Message, result.RequeueAfter = about(e, "kcp is giving it an identity"), identityDelay
	case known != nil && known.IdentityHash != "" && known.IdentityHash != found.Status.IdentityHash:
		result.Message = about(e, "it was replaced by another APIExport of the same name, with another identity; delete this entry and publish the new one")
	case tenancy.ExportTooLarge(found):
		result.Message = about(e, "it has more resources and permission claims than the catalog stores; split it into several")
	default:
		read := tenancy.CatalogExportOf(found)
		e.Status.Export = &read
		// The export is found for the first time, or again.
		if at.workspace == "" && !meta.IsStatusConditionTrue(e.Status.Conditions, s.Condition()) {
			return result, s.tidy(ctx, at.at)
		}
	}
	return result, nil
}

// find reads an APIExport from kcp. at is the path or the logical cluster of its workspace.
func (s *export) find(ctx context.Context, at, name string) (*kcpapisv1alpha2.APIExport, absence, error) {
	found, err := s.exports.Read(ctx, at, name)
	switch {
	case err == nil:
		return found, "", nil
	case apierrors.IsForbidden(err):
		return nil, workspaceInactive, nil
	case !apierrors.IsNotFound(err):
		return nil, "", err
	}
	gone, err := s.gone(ctx, at, err)
	switch {
	case err != nil:
		return nil, "", err
	case gone:
		return nil, workspaceGone, nil
	}
	return nil, exportGone, nil
}

// about is a sentence about the export of an entry.
func about(e *v1alpha1.CatalogEntry, problem string) string {
	return "APIExport " + e.Spec.APIExport.Name + " in " + e.Spec.APIExport.Path + ": " + problem
}
