package server

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/clock"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/bots"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/storage/meter"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// limitedUse returns what objects of a resource, as "group/resource", count as beside objects. kcp holds a
// CustomResourceDefinition or an APIBinding for as long as it exists, and each replica of the hub holds Roles,
// ClusterRoles and Namespaces.
func limitedUse(resource string, objects int64) meter.Use {
	switch resource {
	case kcp.Definitions:
		return meter.Use{Definitions: objects}
	case kcp.Bindings:
		return meter.Use{Bindings: objects}
	case rbacv1.GroupName + "/roles", rbacv1.GroupName + "/clusterroles", "/namespaces":
		return meter.Use{Roles: objects}
	}
	return meter.Use{}
}

// newMeter returns the meter of what Workspaces store. It reads kcp as the hub.
func (a *assembly) newMeter() (*meter.Meter, error) {
	return meter.New(meter.Config{
		Limits: a.storageLimits,
		Clock:  clock.RealClock{}, Metrics: a.hub.registry,
		Measure: func(ctx context.Context, cluster string) (meter.Reading, error) {
			return readingOf(a.clients.Usage(ctx, cluster, tenancy.HubObject))
		},
		Workspaces: func(org string) []meter.Workspace {
			all := a.views.Workspaces(org)
			metered := make([]meter.Workspace, 0, len(all))
			for _, w := range all {
				metered = append(metered, meteredOf(w))
			}
			return metered
		},
	})
}

// storageLimits returns the limits of an Organization: those that platform admins gave it, else those of the flags.
func (a *assembly) storageLimits(org string) meter.Limits {
	l := a.hub.config.StorageLimits()
	if o, ok := a.views.Org(org); ok {
		l = tenancy.StorageLimits(o.Spec.Storage, l)
	}
	return meter.Limits{
		OrgBytes: l.Bytes,
		Workspace: meter.Use{
			Objects: l.WorkspaceObjects, Bytes: l.WorkspaceBytes,
			Definitions: l.WorkspaceCRDs, Bindings: l.WorkspaceAPIBindings, Roles: l.WorkspaceRoles,
		},
	}
}

func meteredOf(w tenancy.Workspace) meter.Workspace {
	return meter.Workspace{Org: w.OrgUUID, UUID: w.UUID, Cluster: w.ClusterID}
}

func readingOf(u kcp.Usage, err error) (meter.Reading, error) {
	r := meter.Reading{ByResource: make(map[string]meter.Use, len(u.ByResource)), Unread: u.Unread, Owned: u.Owned, Bound: u.Bound}
	for resource, stored := range u.ByResource {
		use := limitedUse(resource, stored.Objects)
		use.Objects, use.Bytes = stored.Objects, stored.Bytes
		r.ByResource[resource] = use
	}
	return r, err
}

// grow counts what a proxied request may add to a Workspace. Its error refuses growth.
func (a *assembly) grow(ctx context.Context, e tenancy.Entry, g proxy.Growth) (settle func(proxy.Outcome), err error) {
	more := meter.Growth{Update: g.Update, Resource: g.Group + "/" + g.Resource}
	more.Mends = !g.Created && more.Resource == kcp.Definitions
	if g.Created {
		more.Use = limitedUse(more.Resource, 1)
		more.Objects = 1
	}
	more.Bytes = g.Bytes
	settled, err := a.meter.Admit(ctx, meteredOf(e.Workspace), more)
	if err != nil {
		return nil, err
	}
	return func(o proxy.Outcome) { settled(outcomeOf(o)) }, nil
}

// outcomeOf is the outcome of a proxied request as the meter has it.
func outcomeOf(o proxy.Outcome) meter.Outcome {
	switch o {
	case proxy.Refused:
		return meter.Refused
	case proxy.Changed:
		return meter.Changed
	case proxy.Created:
		return meter.Created
	}
	return meter.Unknown
}

// storedIn returns what a Workspace stores. known is false until it was measured, which this causes.
func (a *assembly) storedIn(w tenancy.Workspace) (objects, bytes int64, known bool) {
	return a.meter.Weigh(meteredOf(w))
}

// largerIn tells the meter how much was seen of a Workspace.
func (a *assembly) largerIn(w tenancy.Workspace, bytes int64) { a.meter.Larger(meteredOf(w), bytes) }

// servedIn returns the numbers of CustomResourceDefinitions and APIBindings in a Workspace, as they were
// measured.
func (a *assembly) servedIn(w tenancy.Workspace) (definitions, bindings int64) {
	use, _, _ := a.meter.Read(meteredOf(w))
	return use.Definitions, use.Bindings
}

// storedInOrg returns what an Organization stores, if that is known.
func (a *assembly) storedInOrg(o tenancy.Org) (bytes rest.Amount, known bool) {
	used, ok := a.meter.OrgBytes(o.UUID())
	return rest.Amount{Used: used, Limit: a.storageLimits(o.UUID()).OrgBytes}, ok
}

// stored adds to the view of a Workspace what it stores, if that is known.
func (a *assembly) stored(w tenancy.Workspace, to *rest.Workspace) {
	use, orgBytes, ok := a.meter.Read(meteredOf(w))
	if !ok {
		return
	}
	limits := a.storageLimits(w.OrgUUID)
	to.Objects = &rest.Amount{Used: use.Objects, Limit: limits.Workspace.Objects}
	to.Bytes = &rest.Amount{Used: use.Bytes, Limit: limits.Workspace.Bytes}
	to.Definitions = &rest.Amount{Used: use.Definitions, Limit: limits.Workspace.Definitions}
	to.Bindings = &rest.Amount{Used: use.Bindings, Limit: limits.Workspace.Bindings}
	to.Roles = &rest.Amount{Used: use.Roles, Limit: limits.Workspace.Roles}
	to.OrgBytes = &rest.Amount{Used: orgBytes, Limit: limits.OrgBytes}
}

// sparing changes Bots while more than endings is written. It is for what nobody asked for.
func (a *assembly) sparing(s *store.Store) bots.Changer {
	return sparingBots{s, a.hub.storage.AdmitCreation}
}

type sparingBots struct {
	*store.Store
	room func() error
}

// ChangeBot implements bots.Changer.
func (s sparingBots) ChangeBot(ctx context.Context, held *v1alpha1.Bot, match api.Match, edit api.Edit[*v1alpha1.Bot]) (*v1alpha1.Bot, error) {
	if err := s.room(); err != nil {
		return nil, err
	}
	return s.Store.ChangeBot(ctx, held, match, edit)
}

// sparingDevices changes logins of the device flow while more than endings is written.
type sparingDevices struct {
	*store.Store
	room func() error
}

// ChangeDevice implements session.Devices.
func (s sparingDevices) ChangeDevice(ctx context.Context, id string, edit func(tenancy.DeviceLogin) (tenancy.DeviceLogin, error)) (tenancy.DeviceLogin, error) {
	if err := s.room(); err != nil {
		return tenancy.DeviceLogin{}, err
	}
	return s.Store.ChangeDevice(ctx, id, edit)
}
