package organization

import (
	"context"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Groups reads who has which group, from the views.
type Groups struct {
	// With returns the Users with a group, according to their newest credentials.
	With func(hash v1alpha1.GroupHash) []*v1alpha1.User
	// Count returns the number of Memberships of a User.
	Count func(user string) int
	// Full reports whether the store has no room for anything new.
	Full func() bool
	// MaxAge is for how long groups count after the issue of the credential that says them.
	MaxAge time.Duration
}

// moreEvery is the interval in which the step looks whether there is room for more changes.
const moreEvery = 5 * time.Second

// groups accepts the changes of Memberships that follow from spec.groups. The members step carries them out in the
// next pass, in one order with what people decide.
type groups struct {
	Groups
	cluster     clusterFunc
	memberships func(cluster string) []*v1alpha1.Membership
	children    func(org string) []tenancy.Workspace
	user        func(name string) (*v1alpha1.User, bool)
	// clock is the time by which rights end.
	clock clock.PassiveClock
}

func (*groups) Condition() string { return v1alpha1.ConditionGroupsApplied }

func (s *groups) Reconcile(_ context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	cluster, ok := s.cluster(org.Name)
	if !ok {
		return controller.Result{}, nil
	}
	children := map[string]bool{}
	for _, ws := range s.children(org.Name) {
		children[ws.UUID] = true
	}
	changes, problems, more := tenancy.Grouped{
		Organization: org, Memberships: s.memberships(cluster), With: s.With, User: s.user, Count: s.Count, MaxAge: s.MaxAge, Now: s.clock.Now(),
		Full: s.Full, Workspace: func(uuid string) bool { return children[uuid] },
	}.Decide()
	org.Spec.MembershipChanges = changes
	result := controller.Result{Message: strings.Join(problems, "; ")}
	if more {
		result.RequeueAfter = moreEvery
	}
	return result, nil
}
