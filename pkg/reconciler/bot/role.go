package bot

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// firstLook and lastLook bound the time between two questions to kcp. It grows with the time
	// for which kcp has not followed.
	firstLook = 50 * time.Millisecond
	lastLook  = 15 * time.Second
)

// role compares the role of a Bot with kcp after it was lowered (O-14). The gate refuses the
// tokens until status.authorizedRole says that kcp allows no more than the role.
type role struct {
	find   findFunc
	rights Rights
	clock  clock.PassiveClock
}

func (*role) Condition() string { return v1alpha1.ConditionRoleEnforced }

func (s *role) Reconcile(ctx context.Context, b *v1alpha1.Bot) (controller.Result, error) {
	if !tenancy.RoleLowered(b) {
		return controller.Result{}, nil
	}
	ws, _, _ := s.find(b)
	left := tenancy.Entry{Workspace: ws, Role: b.Spec.Role}
	more, err := s.rights.Excess(ctx, b.Name, left)
	if err != nil {
		return controller.Result{}, err
	}
	followed, err := s.rights.Followed(ctx, tenancy.BotKey(b.Status.ServiceAccountUID), tenancy.FormerBotRole(b), left)
	if err != nil {
		return controller.Result{}, err
	}
	if followed && len(more) == 0 {
		b.Status.AuthorizedRole = b.Spec.Role
		return controller.Result{}, nil
	}
	message := fmt.Sprintf("kcp still allows the bot more than its role %s; its tokens are refused until then", b.Spec.Role)
	if len(more) > 0 {
		message += "; delete these, or take the bot and its groups out of their subjects: " + strings.Join(more, ", ")
	}
	return controller.Result{Message: message, RequeueAfter: s.again(b)}, nil
}

// again returns the time until the next look.
func (s *role) again(b *v1alpha1.Bot) time.Duration {
	c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionRoleEnforced)
	if c == nil || c.Status != "False" {
		return firstLook
	}
	return min(max(s.clock.Since(c.LastTransitionTime.Time)/2, firstLook), lastLook)
}
