package api

import (
	"context"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Match is the precondition of a write: its error refuses a resource version of the object. nil
// accepts every version.
type Match = func(version string) error

// Store is the part of store.Store that changes objects by compare-and-swap. edit changes a copy of
// what kcp has, and is called again with the newer object after a conflict. held may be out of date.
type Store interface {
	ChangeUser(ctx context.Context, held *v1alpha1.User, match Match, edit func(context.Context, *v1alpha1.User) error) (*v1alpha1.User, error)
	ChangeOrganization(ctx context.Context, held *v1alpha1.Organization, match Match, edit func(context.Context, *v1alpha1.Organization) error) (*v1alpha1.Organization, error)
	// ChangeWorkspace changes the annotations of a Workspace.
	ChangeWorkspace(ctx context.Context, orgCluster string, w tenancy.Workspace, match Match, edit func(w tenancy.Workspace, annotations map[string]string) error) (tenancy.Workspace, error)
	ChangeBot(ctx context.Context, held *v1alpha1.Bot, match Match, edit func(context.Context, *v1alpha1.Bot) error) (*v1alpha1.Bot, error)
	ChangeCatalogEntry(ctx context.Context, held *v1alpha1.CatalogEntry, match Match, edit func(context.Context, *v1alpha1.CatalogEntry) error) (*v1alpha1.CatalogEntry, error)
}
