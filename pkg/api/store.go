package api

import (
	"context"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Match is the precondition of a write: its error refuses a resource version of the object. nil
// accepts every version.
type Match = func(version string) error

// Edit changes a copy of an object, or refuses the change.
type Edit[T any] = func(context.Context, T) error

// Store is the part of store.Store that changes objects by compare-and-swap. edit changes a copy of
// what kcp has, and is called again with the newer object after a conflict. held may be out of date.
type Store interface {
	ChangeUser(ctx context.Context, held *v1alpha1.User, match Match, edit Edit[*v1alpha1.User]) (*v1alpha1.User, error)
	ChangeOrganization(ctx context.Context, held *v1alpha1.Organization, match Match, edit Edit[*v1alpha1.Organization]) (*v1alpha1.Organization, error)
	// ChangeWorkspace changes the annotations of a Workspace.
	ChangeWorkspace(ctx context.Context, orgCluster string, w tenancy.Workspace, match Match,
		edit func(w tenancy.Workspace, annotations map[string]string) error) (tenancy.Workspace, error)
	ChangeBot(ctx context.Context, held *v1alpha1.Bot, match Match, edit Edit[*v1alpha1.Bot]) (*v1alpha1.Bot, error)
	ChangeCatalogEntry(ctx context.Context, held *v1alpha1.CatalogEntry, match Match, edit Edit[*v1alpha1.CatalogEntry]) (*v1alpha1.CatalogEntry, error)
}
