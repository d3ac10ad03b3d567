// Package user makes what a User asked for: the Orgs that they claimed (O-5).
package user

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

// Config is what the reconciler reads from memory and writes to kcp.
type Config struct {
	Clock clock.PassiveClock
	Get   func(controller.Key) (*v1alpha1.User, bool)
	// OrgsCreatedBy are the UUIDs of the Orgs that count against a User.
	OrgsCreatedBy func(user string) []string

	Patch func(ctx context.Context, key controller.Key, patch []byte, subresource string) error
	// CreateOrganization makes an Organization that may be there already.
	CreateOrganization func(ctx context.Context, o *v1alpha1.Organization) error
	// OrganizationExists asks kcp itself.
	OrganizationExists func(ctx context.Context, uuid string) (bool, error)
}

// New returns the reconciler.
func New(c Config) controller.Func {
	return controller.Reconcile(controller.Kind[*v1alpha1.User]{
		Get:    c.Get,
		Copy:   (*v1alpha1.User).DeepCopy,
		Status: func(u *v1alpha1.User) *v1alpha1.CommonStatus { return &u.Status.CommonStatus },
		Patch:  c.Patch,
		Clock:  c.Clock,
	},
		&claims{existing: c.OrgsCreatedBy, create: c.CreateOrganization, exists: c.OrganizationExists},
	)
}
