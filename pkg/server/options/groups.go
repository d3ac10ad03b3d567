package options

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// GroupOptions are about the groups of people, in ID tokens or in the token file.
type GroupOptions struct {
	// GroupMaxAge (--group-max-age) is for how long the groups of a person count after the issue of the
	// credential that says them. Default 24h.
	GroupMaxAge time.Duration
}

func (o *GroupOptions) addFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.GroupMaxAge, "group-max-age", o.GroupMaxAge,
		"Time for which the groups of a person let them into organizations after the identity provider issued the newest token with them. "+
			"A person without a newer token for that long is out until they log in again. At least 1m.")
}

func (o *GroupOptions) complete(fail func(flag, format string, args ...any)) {
	if o.GroupMaxAge < tenancy.MinGroupMaxAge {
		fail("group-max-age", "%s is shorter than %s", o.GroupMaxAge, tenancy.MinGroupMaxAge)
	}
}

// KnowsGroups reports whether credentials say the groups of people.
func (c Config) KnowsGroups() bool {
	return c.TokenFile != "" || c.Issuer != nil && c.Issuer.GroupsClaim != ""
}
