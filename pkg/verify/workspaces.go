package verify

import (
	"fmt"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// workspaces compares the child Workspaces and what the hub keeps in them.
func (c *comparison) workspaces() {
	for _, key := range c.Views.ChildWorkspaces.Keys() {
		ws, ok := c.Views.ChildWorkspaces.Get(key.Cluster, key.Name)
		if !ok || !ws.DeletionTimestamp.IsZero() || c.Views.Cluster(key.Cluster).Kind == tenancy.ClusterHub {
			continue
		}
		c.compared++
		org, ok := c.Views.OrgByCluster(key.Cluster)
		if !ok {
			c.add(Difference{
				Kind: KindWorkspace, Place: c.place(key.Cluster), Name: key.Name, Wanted: Nothing, Found: "a Workspace of no Organization",
				ToDo: "it goes with the workspace that it is in; if that is gone, restore it from a backup",
			})
			continue
		}
		if org.Organization != nil && org.DeletionTimestamp.IsZero() {
			c.workspace(org, ws, controller.Key(key))
		}
	}
}

func (c *comparison) workspace(org tenancy.Org, ws *kcptenancyv1alpha1.Workspace, key controller.Key) {
	decoded := tenancy.WorkspaceOf(org.UUID(), ws)
	d := Difference{Kind: KindWorkspace, Place: c.place(key.Cluster), Name: ws.Name}.healedBy("workspace", key)
	deleted := org.Deleted() || decoded.Deleted()
	if decoded.KCPReady {
		c.active(d, ws.Spec.Cluster, deleted)
	}
	if deleted || !decoded.KCPReady || !c.isMade(decoded.CreatedAt, decoded.Status.Phase) {
		return
	}
	c.apis(d, c.childAPIs, ws.Spec.Cluster)
	d.Place = c.place(ws.Spec.Cluster)
	c.content(d, ws)
	c.rbac(d.healedBy("access", key), ws.Spec.Cluster, c.access.Changes(key))
	c.compared += len(c.Views.ClusterRoleBindings.InCluster(ws.Spec.Cluster)) + len(c.Views.RoleBindings.InCluster(ws.Spec.Cluster))
}

// content compares what every child Workspace has, spares too.
func (c *comparison) content(d Difference, ws *kcptenancyv1alpha1.Workspace) {
	cluster := ws.Spec.Cluster
	c.compared += 2
	if !c.policy(cluster) {
		policy := d
		_, found := c.Views.Policies.Get(cluster, tenancy.PolicyName)
		_, bound := c.Views.PolicyBindings.Get(cluster, tenancy.PolicyName)
		policy.Kind, policy.Name = KindPolicy, tenancy.PolicyName
		policy.Wanted, policy.Found = "the policy "+c.Clusters.WorkspacePolicy.Hash+" and its binding", "another policy or binding"
		switch {
		case !found && !bound:
			policy.Found = Nothing
		case !bound:
			policy.Found = "no binding"
		case !found:
			policy.Found = "no policy"
		}
		c.add(policy)
	}
	if n, ok := c.Views.Namespaces.Get(cluster, tenancy.DefaultNamespace); !ok || !tenancy.ManagedByHub(n) {
		namespace := d
		namespace.Kind, namespace.Name = KindNamespace, tenancy.DefaultNamespace
		namespace.Wanted, namespace.Found = "a namespace with the hub's label", Nothing
		if ok {
			namespace.Found = "a namespace without the label"
		}
		c.add(namespace)
	}
	c.rbac(d, cluster, c.roles(ws))
}

// rbac adds the differences of roles and bindings in a logical cluster.
func (c *comparison) rbac(d Difference, cluster string, changes tenancy.RBACChanges) {
	for _, want := range changes.Write {
		d.Kind, d.Name, d.Wanted, d.Found = kindOf(want), nameOf(want), text(want), Nothing
		if have, ok := c.held(cluster, want); ok {
			if d.Found = text(have); d.Found == d.Wanted {
				d.Found += ", with other labels, owners or rules"
			}
		}
		c.add(d)
	}
	for _, have := range changes.Remove {
		d.Kind, d.Name, d.Wanted, d.Found = kindOf(have), nameOf(have), Nothing, text(have)
		c.add(d)
	}
}

func (c *comparison) held(cluster string, o tenancy.RBAC) (tenancy.RBAC, bool) {
	switch o.(type) {
	case *rbacv1.ClusterRole:
		return c.Views.ClusterRoles.Get(cluster, o.GetName())
	case *rbacv1.ClusterRoleBinding:
		return c.Views.ClusterRoleBindings.Get(cluster, o.GetName())
	}
	return c.Views.RoleBindings.Get(cluster, nameOf(o))
}

func kindOf(o tenancy.RBAC) string {
	if _, ok := o.(*rbacv1.ClusterRole); ok {
		return KindRole
	}
	return KindBinding
}

func nameOf(o tenancy.RBAC) string { return tenancy.NamespacedName(o.GetNamespace(), o.GetName()) }

func text(o tenancy.RBAC) string {
	switch o := o.(type) {
	case *rbacv1.ClusterRole:
		return fmt.Sprintf("%d rules", len(o.Rules))
	case *rbacv1.ClusterRoleBinding:
		return boundText(o.RoleRef, o.Subjects)
	case *rbacv1.RoleBinding:
		return boundText(o.RoleRef, o.Subjects)
	}
	return ""
}

func boundText(role rbacv1.RoleRef, subjects []rbacv1.Subject) string {
	names := make([]string, 0, len(subjects))
	for _, s := range subjects {
		names = append(names, s.Kind+" "+s.Name)
	}
	return role.Kind + " " + role.Name + " for " + texts(names)
}

// spareWorkspaces compares the spares. How many there are is not compared: they are taken and made all the
// time.
func (c *comparison) spareWorkspaces() {
	for _, parent := range c.Views.SpareParents() {
		place, unwanted := c.place(parent), c.spares.Unwanted(parent)
		_, ofOrg := c.Views.OrgByCluster(parent)
		_, ofSpare := c.Views.SpareKeyOf(parent)
		for _, s := range c.Views.SparesIn(parent) {
			c.compared++
			d := Difference{Kind: KindSpare, Place: place, Name: s.Name, Wanted: Nothing}.healedBy("spare", controller.Key{Cluster: parent})
			switch reason := unwanted[s.Name]; {
			case s.Terminating:
			case parent != c.Clusters.Orgs && !ofOrg && !ofSpare:
				d.Heals, d.Key = "", controller.Key{}
				d.Found, d.ToDo = "a spare in a workspace that does not exist", "it is lost with that workspace; restore it from a backup, or leave it"
				c.add(d)
			case reason != "":
				d.Found = "a spare that is " + reason
				c.add(d)
			case s.Reserved != nil && c.now.Sub(s.Reserved.At.Time) > 2*tenancy.ReservationTTL && !c.claimed(parent, s):
				d.Found = "a spare that was reserved at " + tenancy.ExpiryText(&s.Reserved.At) + " for a claim that did not come"
				c.add(d)
			case s.Whole && s.ClusterID != "" && parent != c.Clusters.Orgs:
				if ws, ok := c.Views.ChildWorkspaces.Get(parent, s.Name); ok {
					c.content(Difference{Place: place + ":" + s.Name}.healedBy("workspace", controller.Key{Cluster: parent, Name: s.Name}), ws)
				}
			}
		}
	}
}

// claimed reports whether there is the claim for which a spare is reserved.
func (c *comparison) claimed(parent string, s tenancy.Spare) bool {
	if parent != c.Clusters.Orgs {
		org, ok := c.Views.OrgByCluster(parent)
		return ok && org.Organization != nil && tenancy.ClaimsWorkspace(org.Organization, s.Name)
	}
	for u := range c.Views.Users.All() {
		if s.Reserved.IsFor(u) && tenancy.ClaimsOrg(u, s.Name) {
			return true
		}
	}
	_, made := c.Views.Org(s.Name)
	return made
}
