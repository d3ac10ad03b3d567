package options

import (
	"time"

	"github.com/spf13/pflag"
)

// maxEnforcementWindow is far more than any kcp needs.
const maxEnforcementWindow = time.Minute

// PolicyOptions are the flags of the admission policy of Workspaces.
type PolicyOptions struct {
	// EnforcementWindow (--policy-enforcement-window) is the time for which dry runs, each on a
	// connection of its own, have to show that an external kcp enforces the policy of a
	// Workspace. Until then the hub refuses the writes that the policy is about with 503. Default
	// 2s: kcp reads policies each second, every process for itself. 0 is for shards of one
	// process, where one dry run is enough. Ignored with an embedded kcp, which is one process.
	EnforcementWindow time.Duration
}

func newPolicyOptions() PolicyOptions { return PolicyOptions{EnforcementWindow: 2 * time.Second} }

func (o *PolicyOptions) addFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.EnforcementWindow, "policy-enforcement-window", o.EnforcementWindow, "Time for which dry runs, each on a connection of its own, have to show that an external kcp enforces the admission policy of a Workspace; the hub answers writes of RBAC, Secrets, ServiceAccounts and API definitions there with 503 until then. 0 is for shards of one process, where one dry run is enough. Ignored with an embedded kcp.")
}

func (o *PolicyOptions) complete(fail func(flag, format string, args ...any)) {
	if o.EnforcementWindow < 0 || o.EnforcementWindow > maxEnforcementWindow {
		fail("policy-enforcement-window", "%s is not a duration from 0s to %s", o.EnforcementWindow, maxEnforcementWindow)
	}
}
