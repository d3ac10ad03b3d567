package views

import (
	"cmp"

	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
)

// Exports are the endpoints without which no request is answered.
func (v *Views) Exports() []*informer.Endpoints { return []*informer.Endpoints{v.Tenancy, v.Access} }

// Reachable returns an error while a shard of kcp does not answer that has objects of the Org, or of
// one of the logical clusters: the caches do not follow their changes then.
func (v *Views) Reachable(org string, clusters ...string) error {
	if o, ok := v.Org(org); ok {
		clusters = append(clusters, o.ClusterID)
	}
	var err error
	for _, e := range v.Exports() {
		err = cmp.Or(err, e.Err(clusters...))
	}
	return err
}

// Outage is nil while all shards answer, and tells operators which do not otherwise.
func (v *Views) Outage() error {
	var err error
	for _, e := range v.Exports() {
		err = cmp.Or(err, e.Outage())
	}
	return err
}

// OnOutage has f called whenever a shard ceases to answer; f must not block. It is called while the
// process is wired.
func (v *Views) OnOutage(f func()) {
	for _, e := range v.Exports() {
		e.OnOutage(f)
	}
}

// Ready reports whether the views have all objects that existed when they started.
func (v *Views) Ready() bool { return v.Tenancy.Synced() && v.Access.Synced() }
