package bots

import (
	"maps"
	"time"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// maxRefusals is the number of Bots whose refusals wait to be written. Those of others are
	// dropped.
	maxRefusals = 1024
	// refusalsEvery is the interval at which they are written.
	refusalsEvery = time.Second
)

// Refusals writes the refusals of jobs into the status of Bots off the path of requests, at most once a
// second for each Bot.
type Refusals struct{ later[refusal] }

// refusal is the last refusal of jobs by each rule of a Bot that refused some.
type refusal struct {
	claims map[string]string
	at     time.Time
}

// NewRefusals returns Refusals that write to bots.
func NewRefusals(bots Changer, k clock.WithTicker) *Refusals {
	return &Refusals{later[refusal]{
		bots: bots, clock: k, every: refusalsEvery, most: maxRefusals, what: "the refusal of a job",
		apply: func(b *v1alpha1.Bot, r refusal) { tenancy.RecordRefusal(b, r.claims, r.at) },
		// Rules of two issuers can refuse jobs within one second.
		merge: func(older, newer refusal) refusal {
			claims := maps.Clone(older.claims)
			maps.Copy(claims, newer.claims)
			return refusal{claims: claims, at: newer.at}
		},
	}}
}

// Record has a refusal written. It does not block.
func (f *Refusals) Record(b *v1alpha1.Bot, claims map[string]string) {
	f.record(b, refusal{claims: claims, at: f.clock.Now()})
}
