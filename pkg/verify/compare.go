package verify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/kcp-dev/sdk/apis/core"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/freeze"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/access"
	"github.com/faroshq/kedge-hub/pkg/reconciler/spare"
	"github.com/faroshq/kedge-hub/pkg/reconciler/workspace"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// State is what kcp has: the views of Deps, and its logical clusters.
type State struct {
	reconciler.Deps
	// LogicalClusters are all of kcp. They, and whether one is deactivated, are only compared if SeesClusters
	// is true: kcp shows them to its shard admin alone.
	LogicalClusters []*kcpcorev1alpha1.LogicalCluster
	SeesClusters    bool
}

// listed returns the logical clusters of a list as those of a view.
func listed(all []*kcpcorev1alpha1.LogicalCluster) clusters {
	by := clusters{}
	for _, lc := range all {
		by[kcp.ClusterOf(lc)] = lc
	}
	return by
}

type clusters map[string]*kcpcorev1alpha1.LogicalCluster

// Get implements freeze.Lister.
func (c clusters) Get(cluster, _ string) (*kcpcorev1alpha1.LogicalCluster, bool) {
	lc, ok := c[cluster]
	return lc, ok
}

// comparison is one comparison.
type comparison struct {
	State
	found    []Difference
	compared int
	now      time.Time

	// These compare as the controllers do.
	access      *access.Reconciler
	roles       func(*kcptenancyv1alpha1.Workspace) tenancy.RBACChanges
	policy      func(cluster string) bool
	orgAPIs     tenancy.Bindings
	childAPIs   tenancy.Bindings
	spares      spare.Config
	deactivated func(cluster string) bool
}

// Compare returns all differences, in order, and the number of objects that were looked at.
func Compare(s State) (found []Difference, compared int) {
	v := s.Views
	c := &comparison{
		State: s, now: s.Settings.RightsClock.Now(),
		access: access.NewReconciler(s.Deps), roles: workspace.RoleChanges(v), policy: workspace.PolicyInPlace(s.Clusters.WorkspacePolicy, v),
		orgAPIs:   tenancy.Bindings{Wanted: s.Clusters.OrgBindings, Held: v.OrgBindings.InCluster},
		childAPIs: tenancy.Bindings{Wanted: s.Clusters.WorkspaceBindings, Held: v.Bindings.InCluster},
		spares:    spare.ConfigOf(s.Deps), deactivated: freeze.New(nil, nil, listed(s.LogicalClusters), "").Deactivated,
	}
	c.people()
	c.organizations()
	c.workspaces()
	c.bots()
	c.spareWorkspaces()
	if s.SeesClusters {
		c.logicalClusters()
	}
	slices.SortFunc(c.found, Difference.compare)
	return c.found, c.compared
}

// making is the time in which what is new may still be incomplete.
const making = time.Minute

// isMade reports whether something is complete, or should be by now.
func (c *comparison) isMade(created metav1.Time, phase v1alpha1.Phase) bool {
	return phase == v1alpha1.PhaseReady || c.now.Sub(created.Time) > making
}

func (c *comparison) add(d Difference) { c.found = append(c.found, d) }

// place is the path of a logical cluster in the tree, or its ID if it is none of the tree's.
func (c *comparison) place(cluster string) string {
	tree := c.Settings.Tree
	switch cluster {
	case c.Clusters.Users:
		return tree.Users()
	case c.Clusters.Orgs:
		return tree.Orgs()
	}
	switch at := c.Views.Cluster(cluster); at.Kind {
	case tenancy.ClusterOrg:
		return tree.Org(at.OrgUUID)
	case tenancy.ClusterWorkspace:
		return tree.Workspace(at.OrgUUID, at.WorkspaceUUID)
	}
	return cluster
}

// organizations compares the Organizations with their workspaces and claims.
func (c *comparison) organizations() {
	orgs := c.Clusters.Orgs
	for _, key := range c.Views.OrgWorkspaces.Keys() {
		c.compared++
		if _, ok := c.Views.Org(key.Name); !ok && c.stays(key.Cluster, key.Name) {
			c.add(Difference{
				Kind: KindWorkspace, Place: c.place(orgs), Name: key.Name, Wanted: Nothing, Found: "a workspace of no Organization",
				ToDo: "if nobody needs its content: kubectl delete workspaces.tenancy.kcp.io " + key.Name,
			})
		}
	}
	for _, org := range c.Views.Orgs() {
		c.compared++
		if !org.DeletionTimestamp.IsZero() || !c.isMade(org.CreationTimestamp, org.Status.Phase) {
			continue
		}
		key := c.Organization(org.UUID())
		d := Difference{Kind: KindOrganization, Place: c.place(orgs), Name: org.UUID()}.healedBy("organization", key)
		if _, ok := c.Views.OrgWorkspaces.Get(orgs, org.UUID()); !ok {
			d.Wanted, d.Found = "a workspace", Nothing
			c.add(d)
			continue
		}
		c.active(d, org.ClusterID, org.Deleted())
		if org.ClusterID == "" || org.Deleted() {
			continue
		}
		c.apis(d, c.orgAPIs, org.ClusterID)
		c.admins(org)
		c.groups(org)
		var existing []string
		for _, ws := range c.Views.Workspaces(org.UUID()) {
			existing = append(existing, ws.UUID)
		}
		c.claims(d, "Workspaces", org.Spec.WorkspaceClaims, existing)
	}
}

// stays reports whether kcp has a Workspace that is not being deleted.
func (c *comparison) stays(cluster, name string) bool {
	ws, ok := c.Views.ChildWorkspaces.Get(cluster, name)
	return ok && ws.DeletionTimestamp.IsZero()
}

// active compares whether kcp refuses requests to a logical cluster.
func (c *comparison) active(d Difference, cluster string, deleted bool) {
	if !c.SeesClusters || cluster == "" || c.deactivated(cluster) == deleted {
		return
	}
	d.Wanted, d.Found = state(deleted), state(!deleted)
	c.add(d)
}

func state(deactivated bool) string {
	if deactivated {
		return "deactivated in kcp"
	}
	return "active in kcp"
}

// apis compares the APIBindings of the hub in a logical cluster.
func (c *comparison) apis(d Difference, bindings tenancy.Bindings, cluster string) {
	c.compared += len(bindings.Wanted)
	if bindings.Complete(cluster) {
		return
	}
	d.Kind, d.Place, d.Name = KindAPIBinding, c.place(cluster), "of the hub"
	d.Wanted, d.Found = exports(bindings.Wanted), exports(bindings.Held(cluster))
	if d.Wanted == d.Found {
		d.Found += ", not with all claims accepted"
	}
	c.add(d)
}

func exports(bindings []*kcpapisv1alpha2.APIBinding) string {
	var names []string
	for _, b := range bindings {
		if b.Spec.Reference.Export != nil {
			names = append(names, b.Spec.Reference.Export.Name)
		}
	}
	return texts(names)
}

// claims compares claims with what they are for.
func (c *comparison) claims(d Difference, of string, claims []v1alpha1.Claim, existing []string) {
	c.compared += len(claims)
	// Claims that are being carried out, and what was made for them, are left out.
	coming := func(claim v1alpha1.Claim) bool {
		return claim.Request != nil && !c.isMade(claim.Request.RequestedAt, "")
	}
	existing = slices.DeleteFunc(slices.Clone(existing), func(uuid string) bool {
		claim, ok := tenancy.FindClaim(claims, uuid)
		return ok && coming(claim)
	})
	claims = slices.DeleteFunc(slices.Clone(claims), coming)
	settled, err := tenancy.SettleClaims(claims, existing, tenancy.Claimed{
		Claims: func() ([]v1alpha1.Claim, error) { return claims, nil },
		Make:   func(v1alpha1.Claim) error { return nil },
		Exists: func(string) (bool, error) { return false, nil },
	})
	wanted, found := claimTexts(settled), claimTexts(claims)
	if err != nil || wanted == found {
		return
	}
	d.Kind, d.Wanted, d.Found = KindClaim, of+" "+wanted, of+" "+found
	c.add(d)
}

func claimTexts(claims []v1alpha1.Claim) string {
	var found []string
	for _, c := range claims {
		text := c.UUID
		if c.Request != nil {
			text += " (requested)"
		}
		found = append(found, text)
	}
	return texts(found)
}

func texts(all []string) string {
	if len(all) == 0 {
		return Nothing
	}
	return strings.Join(slices.Sorted(slices.Values(all)), ", ")
}

// logicalClusters compares kcp's Workspaces with its logical clusters.
func (c *comparison) logicalClusters() {
	have := listed(c.LogicalClusters)
	for _, lc := range c.LogicalClusters {
		if !c.Settings.Tree.HoldsTenant(lc) || !lc.DeletionTimestamp.IsZero() {
			continue
		}
		c.compared++
		cluster, path := kcp.ClusterOf(lc), lc.Annotations[core.LogicalClusterPathAnnotationKey]
		if ws, ok := c.Views.ChildWorkspaces.Get(lc.Spec.Owner.Cluster, lc.Spec.Owner.Name); !ok || !tenancy.HasWorkspace(lc, ws) {
			c.add(Difference{
				Kind: KindLogicalCluster, Place: path, Name: cluster, Wanted: Nothing, Found: "a logical cluster without a Workspace",
				ToDo: "if nobody needs its content, as kcp's shard admin in /clusters/" + cluster + ": kubectl delete logicalclusters.core.kcp.io cluster",
			})
		}
	}
	for ws := range c.Views.ChildWorkspaces.All() {
		if ws.Spec.Cluster == "" || have[ws.Spec.Cluster] != nil || !ws.DeletionTimestamp.IsZero() {
			continue
		}
		parent := kcp.ClusterOf(ws)
		c.add(Difference{
			Kind: KindLogicalCluster, Place: c.place(parent), Name: ws.Name, Wanted: "the logical cluster " + ws.Spec.Cluster, Found: Nothing,
			ToDo: fmt.Sprintf("its content is lost: restore it from a backup, or kubectl delete workspaces.tenancy.kcp.io %s", ws.Name),
		})
	}
}
