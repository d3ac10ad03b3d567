package server

import (
	"context"
	"time"

	"github.com/faroshq/kedge-hub/pkg/usage"
)

// maxMeasureUsage is the longest time between two looks at what Workspaces store.
const maxMeasureUsage = 30 * time.Second

// runUsage counts, and writes the counts into the records database, until below ends.
func (a *assembly) runUsage(below context.Context) {
	if a.hub.usage == nil {
		return
	}
	a.running.Go(func() { a.hub.usage.Run(below) })
	a.running.Go(func() { a.hub.usageWriter.Run(below) })
}

// measureUsage records on the leader what Workspaces store and what Organizations have, until ctx ends.
func (a *assembly) measureUsage(ctx context.Context) {
	every := min(maxMeasureUsage, a.hub.config.Records.UsageInterval/2)
	for ctx.Err() == nil {
		a.hub.usage.Measured(a.measured())
		select {
		case <-ctx.Done():
		case <-a.hub.config.Clock.After(every):
		}
	}
}

// measured returns what all Workspaces store, as far as they were measured, and what all Organizations have.
func (a *assembly) measured() (map[usage.Workspace]usage.Stored, map[string]usage.Size) {
	stored, sizes := map[usage.Workspace]usage.Stored{}, map[string]usage.Size{}
	for _, o := range a.views.Orgs() {
		sizes[o.UUID()] = usage.Size{
			Members:    int64(len(a.views.MembershipsAt(o.ClusterID, ""))),
			Workspaces: int64(a.views.UsedWorkspaces(o.UUID(), nil)),
			Entries:    int64(len(a.views.CatalogEntriesOf(o.UUID()))),
		}
		for workspace, use := range a.meter.ReadOrg(o.UUID()) {
			stored[usage.Workspace{Org: o.UUID(), UUID: workspace}] = usage.Stored{Objects: use.Objects, Bytes: use.Bytes}
		}
	}
	return stored, sizes
}
