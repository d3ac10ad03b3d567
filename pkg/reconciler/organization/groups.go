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

// moreEvery is the interval in which the step looks whether there is room for more changes.
const moreEvery = 5 * time.Second

// groups accepts the changes of Memberships that follow from spec.groups. The members step carries them out in the
// next pass, in one order with what people decide.
type groups struct {
	cluster clusterFunc
	views   Views
	// maxAge is for how long groups count after the issue of the credential that says them.
	maxAge time.Duration
	// places is that of the Config.
	places func(o *v1alpha1.Organization, user string) tenancy.Places
	// full reports whether the store has no room for anything new.
	full func() bool
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
	for _, ws := range s.views.Workspaces(org.Name) {
		children[ws.UUID] = true
	}
	changes, problems, more := tenancy.Grouped{
		Organization: org, Memberships: s.views.MembershipsIn(cluster), With: s.views.WithGroup, User: s.views.ByName,
		Places: func(user string) tenancy.Places { return s.places(org, user) },
		MaxAge: s.maxAge, Now: s.clock.Now(), Full: s.full, Workspace: func(uuid string) bool { return children[uuid] },
	}.Decide()
	org.Spec.MembershipChanges = changes
	result := controller.Result{Message: strings.Join(problems, "; ")}
	if more {
		result.RequeueAfter = moreEvery
	}
	return result, nil
}
