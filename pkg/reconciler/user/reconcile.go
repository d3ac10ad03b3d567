// Package user makes what a new User gets, their own Org and a Workspace in it,
// and what they asked for, the Orgs that they claimed (O-5); and it takes those who
// are deleted out of everything (O-8).
package user

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Config is what the reconciler reads from memory and writes to kcp.
type Config struct {
	Clock clock.PassiveClock
	// Grace is how long who was deleted can be undeleted.
	Grace time.Duration
	// PersonalOrgs says whether people get an Org of their own.
	PersonalOrgs bool
	Get          func(controller.Key) (*v1alpha1.User, bool)
	// OrgsCreatedBy are the UUIDs of the Orgs that count against a User.
	OrgsCreatedBy func(user string) []string
	Org           func(uuid string) (tenancy.Org, bool)
	OrgIn         func(cluster string) (tenancy.Org, bool)
	Workspace     func(org, workspace string) (tenancy.Workspace, bool)
	// Places are the logical clusters of the Orgs in which a User has Memberships.
	Places func(user string) []string
	Active func(user string) bool

	Patch func(ctx context.Context, key controller.Key, patch []byte, subresource string) error
	// CreateOrganization makes an Organization that may be there already.
	CreateOrganization func(ctx context.Context, o *v1alpha1.Organization) error
	// Read and OrganizationExists ask kcp itself; Read fails with controller.ErrRetry
	// where the User is gone.
	Read               func(ctx context.Context, user string) (*v1alpha1.User, error)
	OrganizationExists func(ctx context.Context, uuid string) (bool, error)
	// CreateWorkspace makes a Workspace that may be there already.
	CreateWorkspace func(ctx context.Context, orgCluster string, w tenancy.Workspace) error
	// Remove removes the very User that it is given.
	Remove func(ctx context.Context, u *v1alpha1.User) error
	// ListMemberships asks kcp itself.
	ListMemberships  func(ctx context.Context, orgCluster string) ([]v1alpha1.Membership, error)
	SetRole          func(ctx context.Context, orgCluster string, m *v1alpha1.Membership, role v1alpha1.Role) error
	RemoveMembership func(ctx context.Context, orgCluster string, m *v1alpha1.Membership) error
	// DeleteOrg soft-deletes an Org; RemoveOrg removes one, and gone tells when it is.
	DeleteOrg func(ctx context.Context, org tenancy.Org) error
	RemoveOrg func(ctx context.Context, uuid string) (gone bool, err error)
	// Purged tells of a User who is gone, with what they had.
	Purged func(ctx context.Context, u *v1alpha1.User, counts map[string]int)
}

// New returns the reconciler.
func New(c Config) controller.Func {
	return controller.Reconcile(controller.Kind[*v1alpha1.User]{
		Get:     c.Get,
		Copy:    (*v1alpha1.User).DeepCopy,
		Status:  func(u *v1alpha1.User) *v1alpha1.CommonStatus { return &u.Status.CommonStatus },
		Patch:   c.Patch,
		Clock:   c.Clock,
		Leaving: func(u *v1alpha1.User) bool { return u.Status.DeletionRequestedAt != nil },
	},
		&lifecycle{grace: c.Grace, clock: c.Clock, remove: c.Remove, cascade: &cascade{
			places: c.Places, orgIn: c.OrgIn, active: c.Active,
			memberships: c.ListMemberships, promote: c.SetRole, remove: c.RemoveMembership,
			deleteOrg: c.DeleteOrg, removeOrg: c.RemoveOrg, purged: c.Purged,
		}},
		&personalOrg{enabled: c.PersonalOrgs, org: c.Org, now: c.now, create: c.CreateOrganization},
		&defaultWorkspace{enabled: c.PersonalOrgs, org: c.Org, workspace: c.Workspace, exists: c.OrganizationExists, now: c.now, create: c.CreateWorkspace},
		&claims{existing: c.OrgsCreatedBy, read: c.Read, create: c.CreateOrganization, exists: c.OrganizationExists},
	)
}

func (c Config) now(ctx context.Context, u *v1alpha1.User) (*v1alpha1.User, error) {
	held, err := c.Read(ctx, u.Name)
	if err == nil && (held.UID != u.UID || !held.DeletionTimestamp.IsZero()) {
		err = fmt.Errorf("%w: the user is gone", controller.ErrRetry)
	}
	return held, err
}
