package meter

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// limit is a limit with what counts against it. since is what was added since the measurement.
type limit struct {
	name, unit                       string
	used, measured, since, add, most int64
}

// share is what one replica may add without a measurement that is fresh.
func (l limit) share() int64 { return max(l.most/allowance/replicas, 1) }

// within reports whether what this replica adds leaves the others their share. Behind a fresh measurement it
// may take a part of what is left: the parts of all replicas, which measure at most twice in that time, are
// no more than that.
func (l limit) within(fresh bool) bool {
	all := l.since + l.add
	return all <= l.share() || fresh && (l.since == 0 || all <= (l.most-l.measured)/(2*replicas))
}

// limits returns the limits of a Workspace to which something is added.
func (m *Meter) limits(c *counted, add Use) (limits []limit) {
	used, measured, since, most := c.use(), c.measured, c.since(), m.config.Limits(c.Org).Workspace
	for _, l := range []limit{
		{"workspace_objects", "objects", used.Objects, measured.Objects, since.Objects, add.Objects, most.Objects},
		{"workspace_bytes", "bytes", used.Bytes, measured.Bytes, since.Bytes, add.Bytes, most.Bytes},
		{"workspace_definitions", "CustomResourceDefinitions", used.Definitions, measured.Definitions, since.Definitions, add.Definitions, most.Definitions},
		{"workspace_bindings", "APIBindings", used.Bindings, measured.Bindings, since.Bindings, add.Bindings, most.Bindings},
		{"workspace_roles", "Roles, ClusterRoles and Namespaces", used.Roles, measured.Roles, since.Roles, add.Roles, most.Roles},
	} {
		if l.most > 0 {
			limits = append(limits, l)
		}
	}
	return limits
}

// judge returns the error for a request: an InsufficientStorage one at a limit, and an Unavailable one
// for one that must wait for a measurement. m.mu is locked.
func (m *Meter) judge(c *counted, g Growth) error {
	if _, stale := c.stale(g.Resource); stale && g.Update {
		// No measurement finds what it adds.
		return errs.New(errs.InsufficientStorage, "the change must be weighed, because "+inWords(g.Resource)+" cannot be read")
	}
	if len(c.hidden) > 0 && !g.Mends && g.Use != (Use{}) {
		return m.refuseHidden(c, g)
	}
	fresh, held := m.fresh(c), false
	for _, l := range m.limits(c, g.Use) {
		if l.add <= 0 {
			continue
		}
		if l.name == "workspace_bytes" && g.Update {
			// The updates before this one may have added all that they sent, as this one may.
			l.used += c.grown.updated + c.updating
		}
		if c.known && l.used+l.add > l.most {
			return m.refuse(l, "this workspace", c, g)
		}
		held = held || !l.within(fresh)
	}
	if most := m.config.Limits(c.Org).OrgBytes; g.Bytes > 0 && most > 0 {
		org := m.ofOrg(c.Org)
		l := limit{name: "org_bytes", unit: "bytes", used: org.used, since: org.since, add: g.Bytes, most: most}
		if g.Update {
			l.used += org.updated
		}
		if c.known && l.used+l.add > l.most {
			return m.refuse(l, "this organization", c, g)
		}
		// Below that the others find in time what this replica adds to other Workspaces.
		held = held || l.since > 0 && l.since+l.add > l.share() && l.used > l.most-l.most/4
	}
	if !held {
		return nil
	}
	return errs.New(errs.Unavailable, "what the workspace stores is being measured; try again in a moment").After(retryHeld)
}

// fresh reports whether the last measurement is younger than the time between two of another replica.
func (m *Meter) fresh(c *counted) bool {
	return c.known && m.config.Clock.Since(c.measuredAt) <= max(pause, dutyShort*c.took)
}

// orgUse are the bytes of all Workspaces of an Organization. updated are those of updates since the
// measurements, of which used has nothing, and since are all that were added since.
type orgUse struct{ used, updated, since int64 }

func (m *Meter) ofOrg(org string) (o orgUse) {
	for c := range m.orgs[org] {
		o.used += c.use().Bytes
		o.updated += c.grown.updated + c.updating
		o.since += c.since().Bytes
	}
	return o
}

// refuseHidden returns the error for what is added to a Workspace that hides what it stores.
func (m *Meter) refuseHidden(c *counted, g Growth) error {
	if !g.Update {
		m.refused.WithLabelValues("workspace_unread").Inc()
	}
	names := inWords(c.hidden...)
	return errs.New(errs.InsufficientStorage,
		"nothing is added to this workspace, because it is not known how much it stores: kcp cannot read "+names+" in any version. "+
			"Have the definition serve a version that can be read, or delete it; the workspace is measured again within two minutes",
		errs.Cause{Type: "QuotaExceeded", Message: "unread: " + names})
}

// named is the largest number of resources that a message names.
const named = 3

// inWords names resources as people know them.
func inWords(resources ...string) string {
	names := make([]string, 0, named+1)
	for i, r := range resources {
		if i == named {
			names = append(names, fmt.Sprintf("%d more", len(resources)-named))
			break
		}
		switch group, resource, _ := strings.Cut(r, "/"); resource {
		case "":
			names = append(names, "the group "+cmp.Or(group, "of the core"))
		default:
			names = append(names, strings.TrimSuffix(resource+"."+group, "."))
		}
	}
	return strings.Join(names, ", ")
}

func (m *Meter) refuse(l limit, who string, c *counted, g Growth) error {
	if !g.Update {
		m.refused.WithLabelValues(l.name).Inc()
	}
	used, most := fmt.Sprint(l.used), fmt.Sprint(l.most)
	if l.unit == "bytes" {
		used, most = inMebibytes(l.used), inMebibytes(l.most)
	}
	unread := ""
	if all := c.unread(); len(all) > 0 {
		unread = ". Of " + inWords(all...) + ", which kcp cannot read, what was known last counts, and all that was sent since"
	}
	return errs.New(errs.InsufficientStorage,
		fmt.Sprintf("%s stores %s of %s %s; delete what you do not need, or ask a platform admin. What is deleted counts as free within two minutes%s",
			who, used, most, l.unit, unread),
		errs.Cause{Type: "QuotaExceeded", Message: fmt.Sprintf("%s: used: %s, limit: %s", l.unit, used, most)})
}

// inMebibytes is a size as people read it.
func inMebibytes(bytes int64) string {
	return resource.NewQuantity((bytes+1<<20-1)>>20<<20, resource.BinarySI).String()
}
