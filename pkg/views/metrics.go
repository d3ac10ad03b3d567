package views

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// usage is the part of an informer that metrics are made of.
type usage interface {
	Usage() (objects int, bytes float64)
	OnAge(f func(time.Duration))
}

// usages returns the informers by the names of their kinds, in metrics.
func usages(in *Informers) map[string]usage {
	return map[string]usage{
		"users": in.Users, "organizations": in.Organizations, "memberships": in.Memberships, "indexes": in.Indexes,
		"sessions": in.Sessions, "catalogentries": in.CatalogEntries, "workspaces": in.Workspaces, "bots": in.Bots,
		"orgbindings": in.OrgBindings, "apibindings": in.Bindings,
		"initializing": in.Initializing, "inactive": in.Inactive,
		"namespaces": in.Namespaces, "clusterroles": in.ClusterRoles, "clusterrolebindings": in.ClusterRoleBindings,
		"roles": in.Roles, "rolebindings": in.RoleBindings, "serviceaccounts": in.ServiceAccounts, "secrets": in.BotSecrets,
		"policies": in.Policies, "policybindings": in.PolicyBindings,
	}
}

// register registers the metrics of the caches. in must not have endpoints yet.
func (v *Views) register(in *Informers, metrics prometheus.Registerer) error {
	label := []string{"view"}
	c := &collector{
		of: usages(in),
		// These have indexes of their own, which leave out objects that do not belong to the hub.
		counted: map[string]func() int{
			"users": v.people.size, "organizations": v.topology.orgCount, "workspaces": v.topology.workspaceCount,
			"indexes": v.memberships.indexCount, "memberships": v.memberships.count,
			"bots": v.bots.count, "sessions": v.sessions.size, "catalogentries": v.catalog.count,
		},
		objects: prometheus.NewDesc("kedge_views_objects", "Objects in the caches, by view.", label, nil),
		bytes:   prometheus.NewDesc("kedge_views_bytes", "Estimate of the memory of the objects in the caches in bytes, by view.", label, nil),
	}
	lag := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "kedge_views_lag_seconds",
		Help:    "Time in seconds from a write in kcp to the moment that the cache has it, up to a second too long, by view.",
		Buckets: []float64{1, 2, 3, 5, 10, 30, 60},
	}, label)
	for name, u := range c.of {
		observer := lag.WithLabelValues(name)
		u.OnAge(func(age time.Duration) { observer.Observe(age.Seconds()) })
	}
	for _, one := range []prometheus.Collector{v.wait, lag, c} {
		if err := metrics.Register(one); err != nil {
			return err
		}
	}
	return nil
}

// collector reads the caches when they are asked for.
type collector struct {
	of             map[string]usage
	counted        map[string]func() int
	objects, bytes *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	to <- c.objects
	to <- c.bytes
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	for name, u := range c.of {
		objects, bytes := u.Usage()
		if count, ok := c.counted[name]; ok {
			objects = count()
		}
		to <- prometheus.MustNewConstMetric(c.objects, prometheus.GaugeValue, float64(objects), name)
		to <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, bytes, name)
	}
}
