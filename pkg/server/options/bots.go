package options

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// BotOptions are the flags of bots.
type BotOptions struct {
	// TokenMaxTTL (--bot-token-max-ttl) is the longest life of a token of a bot. Default
	// 8784h, which is a leap year.
	TokenMaxTTL time.Duration
}

func newBotOptions() BotOptions { return BotOptions{TokenMaxTTL: 8784 * time.Hour} }

func (o *BotOptions) addFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.TokenMaxTTL, "bot-token-max-ttl", o.TokenMaxTTL, "Longest life of a token of a bot. Tokens live for a year if the request does not say how long.")
}

func (o *BotOptions) complete(fail func(flag, format string, args ...any)) {
	if o.TokenMaxTTL < tenancy.MinBotTokenTTL || o.TokenMaxTTL%time.Second != 0 {
		fail("bot-token-max-ttl", "%s is not a number of whole seconds of at least %s", o.TokenMaxTTL, tenancy.MinBotTokenTTL)
	}
}
