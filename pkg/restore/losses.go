package restore

import (
	"encoding/json"
	"slices"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

// maxFacts is the number of different things that Plan.Lost says of one object.
const maxFacts = 16

// losses make few Losses of many events. What somebody gives over and over again is listed once, with the last event and
// the number of them. Of an object to which more different things were given than maxFacts, one Loss stands for the rest.
type losses struct {
	known map[lossKey]*Loss
	order []*Loss
	// different is the number of different things of an object, by a key without facts.
	different map[lossKey]int
}

type lossKey struct{ what, org, workspace, object, facts string }

func (l *losses) add(one Loss) {
	if l.known == nil {
		l.known, l.different = map[lossKey]*Loss{}, map[lossKey]int{}
	}
	object := lossKey{what: one.What, org: one.Org, workspace: one.Workspace, object: one.Object}
	key := object
	key.facts = given(one.Facts)
	if _, ok := l.known[key]; !ok {
		if l.different[object]++; l.different[object] >= maxFacts {
			key = object
		}
	}
	before, ok := l.known[key]
	if !ok {
		l.known[key], l.order = &one, append(l.order, &one)
		return
	}
	one.Events = max(1, before.Events) + 1
	*before = one
}

// given is what an event gave, as a text that is never empty. How far it came is none of that.
func given(f *audit.Facts) string {
	var g audit.Facts
	if f != nil {
		g = *f
	}
	g.Receipt = nil
	raw, err := json.Marshal(g)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// all returns the Losses, by the time of their last events.
func (l *losses) all() (all []Loss) {
	for _, one := range l.order {
		all = append(all, *one)
	}
	slices.SortStableFunc(all, func(a, b Loss) int { return a.At.Compare(b.At) })
	return all
}
