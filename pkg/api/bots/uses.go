package bots

import (
	"time"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// maxUses is the number of Bots with uses of tokens that wait to be written. Those of others are
	// dropped: their next request records them again.
	maxUses = 4096
	// usesEvery is the interval at which they are written: the first use of a token is shown within 15
	// seconds.
	usesEvery = 10 * time.Second
)

// Uses writes the last uses of tokens into the status of Bots off the path of requests: all of a Bot in one
// write, and of a token at most one in an hour.
type Uses struct{ later[map[string]time.Time] }

// NewUses returns Uses that write to bots.
func NewUses(bots Changer, k clock.WithTicker) *Uses {
	return &Uses{later[map[string]time.Time]{
		bots: bots, clock: k, every: usesEvery, most: maxUses, what: "the uses of tokens", apply: tenancy.RecordTokenUses,
		// The first use in an interval is the one that is written.
		merge: func(older, newer map[string]time.Time) map[string]time.Time {
			for token, at := range newer {
				if _, ok := older[token]; !ok {
					older[token] = at
				}
			}
			return older
		},
	}}
}

// Record has the use of a token written. It does not block.
func (u *Uses) Record(b *v1alpha1.Bot, token string) {
	u.record(b, map[string]time.Time{token: u.clock.Now()})
}
