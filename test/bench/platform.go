package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	conditionsv1alpha1 "github.com/kcp-dev/sdk/apis/third_party/conditions/apis/conditions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// platform generates the objects of a large installation. Each object is computed from its
// number and looks like one that a hub and a kcp created.
type platform struct {
	orgs, workspaces, people int
	tree                     tenancy.Tree
}

// memberships is the number of Memberships of each person.
const memberships = 5

// The IDs of the logical clusters of the hub.
const (
	usersCluster = "users0cluster000"
	orgsCluster  = "orgs00cluster000"
)

var created = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

func identifier(kind string, i int) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "%s/%d", kind, i)).String()
}

func orgUUID(i int) string               { return identifier("org", i) }
func orgCluster(i int) string            { return fmt.Sprintf("o%015d", i) }
func workspaceUUID(i int) string         { return identifier("workspace", i) }
func workspaceCluster(i int) string      { return fmt.Sprintf("w%015d", i) }
func personName(i int) string            { return fmt.Sprintf("person-%06d", i) }
func displayName(s string, i int) string { return fmt.Sprintf("%s number %d", s, i) }

// orgOf is the Organization of a Workspace. The first ten Workspaces belong to the first
// person, two in each Organization, whatever the size, so that answers have the same content.
func (p platform) orgOf(workspace int) int {
	if workspace < 2*memberships {
		return workspace % memberships
	}
	return memberships + (workspace-2*memberships)%(p.orgs-memberships)
}

// membershipRow is one Membership: of an Organization, or of a Workspace if workspace is not
// negative.
type membershipRow struct {
	org, workspace int
	role           v1alpha1.Role
}

// rows are the Memberships of a person. The first person is an admin of five Organizations;
// each other person is a member of two Organizations and three Workspaces.
func (p platform) rows(person int) []membershipRow {
	var rows []membershipRow
	if person == 0 {
		for org := range memberships {
			rows = append(rows, membershipRow{org, -1, v1alpha1.RoleAdmin})
		}
		return rows
	}
	for k := range 3 {
		ws := (person*3 + k) % p.workspaces
		if k < 2 {
			rows = append(rows, membershipRow{p.orgOf(ws), -1, v1alpha1.RoleMember})
		}
		rows = append(rows, membershipRow{p.orgOf(ws), ws, v1alpha1.RoleMember})
	}
	return rows
}

// target is a Workspace that a person can access.
func (p platform) target(person int) (org, workspace int) {
	if person == 0 {
		return 0, 0
	}
	workspace = person * 3 % p.workspaces
	return p.orgOf(workspace), workspace
}

// from adds the metadata that every object from kcp has.
func from[T kcp.Object](cluster, kind string, i int, o T) T {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["kcp.io/cluster"] = cluster
	o.SetAnnotations(annotations)
	o.SetUID(types.UID(identifier(kind+"/uid", i)))
	o.SetResourceVersion(fmt.Sprint(1000 + i))
	o.SetGeneration(1)
	o.SetCreationTimestamp(created)
	return o
}

func ready(conditions ...string) v1alpha1.CommonStatus {
	status := v1alpha1.CommonStatus{ObservedGeneration: 1, Phase: v1alpha1.PhaseReady}
	for _, c := range conditions {
		status.Conditions = append(status.Conditions, metav1.Condition{
			Type: c, Status: metav1.ConditionTrue, ObservedGeneration: 1, LastTransitionTime: created, Reason: v1alpha1.ReasonAsDesired,
		})
	}
	return status
}

func (p platform) organization(i int) *v1alpha1.Organization {
	o := tenancy.NewOrganization(orgUUID(i), displayName("Organization", i), personName(i))
	o.Status.CommonStatus = ready("WorkspaceBound", "Ready", "FirstAdmin", "WorkspaceReady")
	o.Status.WorkspacePath = p.tree.Org(o.Name)
	return from(orgsCluster, "organization", i, o)
}

// workspaceStatus is the hub's status of every Workspace.
var workspaceStatus = func() string {
	// Marshalling strings and numbers cannot fail.
	raw, _ := json.Marshal(ready("FirstAdmin", "WorkspaceReady", "Ready", "Watched", "ContentReady", "AccessReady"))
	return string(raw)
}()

// kcpWorkspace returns the i-th Workspace object of kcp: those of the Organizations come
// first, then the child Workspaces.
func (p platform) kcpWorkspace(i int) *kcptenancyv1alpha1.Workspace {
	ws := &kcptenancyv1alpha1.Workspace{}
	parent, cluster, kind := orgsCluster, "", tenancy.TypeOrganization
	var path string
	if i < p.orgs {
		ws.Name, cluster, path = orgUUID(i), orgCluster(i), p.tree.Org(orgUUID(i))
		ws.Annotations = map[string]string{v1alpha1.InitializedAnnotation: "true"}
	} else {
		n := i - p.orgs
		org := p.orgOf(n)
		parent, cluster, kind = orgCluster(org), workspaceCluster(n), tenancy.TypeWorkspace
		ws.Name, path = workspaceUUID(n), p.tree.Workspace(orgUUID(org), workspaceUUID(n))
		ws.Annotations = map[string]string{
			v1alpha1.DisplayNameAnnotation: displayName("Workspace", n), v1alpha1.CreatedByAnnotation: personName(org),
			v1alpha1.StatusAnnotation: workspaceStatus,
		}
	}
	ws.Annotations["core.kcp.io/shard"] = "root"
	ws.Annotations["experimental.tenancy.kcp.io/owner"] = `{"username":"kcp-admin"}`
	ws.Annotations["internal.tenancy.kcp.io/cluster"] = cluster
	ws.Annotations["internal.tenancy.kcp.io/shard"] = "1pfxsevk"
	ws.Labels = map[string]string{
		"claimed.internal.apis.kcp.io/1CcTcrLirXYXmZVazC94Vif7x0U90726ImQCcB": "3zuOaqxxJ4PSD0Sngohx2TfBDJYxpSIbEvBmCu",
		"tenancy.kcp.io/phase": "Ready",
	}
	ws.Finalizers = []string{"core.kcp.io/logicalcluster"}
	ws.Spec.Cluster, ws.Spec.URL = cluster, "https://127.0.0.1:6443/clusters/"+path
	ws.Spec.Type = &kcptenancyv1alpha1.WorkspaceTypeReference{Name: kcptenancyv1alpha1.WorkspaceTypeName(kind), Path: p.tree.Root()}
	ws.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseReady
	for _, c := range []conditionsv1alpha1.ConditionType{"WorkspaceInitialized", "WorkspaceScheduled"} {
		ws.Status.Conditions = append(ws.Status.Conditions, conditionsv1alpha1.Condition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: created})
	}
	return from(parent, "workspace", i, ws)
}

func (p platform) user(i int) *v1alpha1.User {
	u := &v1alpha1.User{Spec: tenancy.NewUserSpec(auth.StaticIssuer, personName(i), personName(i), displayName("Person", i), personName(i)+"@example.org")}
	u.Name = personName(i)
	u.Labels = map[string]string{v1alpha1.IdentityLabel: tenancy.IdentityHash(u.Spec.Issuer, u.Spec.Subject)}
	u.Status.CommonStatus = ready("ClaimsHandled", "Ready")
	return from(usersCluster, "user", i, u)
}

func (p platform) index(i int) *v1alpha1.UserMembershipIndex {
	var places []tenancy.IndexedMembership
	for _, row := range p.rows(i) {
		place := tenancy.IndexedMembership{Org: tenancy.Org{Organization: p.organization(row.org)}, FirstAdmin: personName(row.org), Role: row.role}
		if row.workspace >= 0 {
			ws := tenancy.WorkspaceOf(orgUUID(row.org), p.kcpWorkspace(p.orgs+row.workspace))
			place.Workspace = &ws
		}
		places = append(places, place)
	}
	x := &v1alpha1.UserMembershipIndex{Spec: v1alpha1.UserMembershipIndexSpec{Entries: tenancy.IndexEntries(places)}}
	x.Name = personName(i)
	return from(usersCluster, "index", i, x)
}

func (p platform) membership(i int) *v1alpha1.Membership {
	person := i / memberships
	row := p.rows(person)[i%memberships]
	workspace := ""
	if row.workspace >= 0 {
		workspace = workspaceUUID(row.workspace)
	}
	m := tenancy.NewMembership(personName(person), workspace, row.role)
	m.Status.CommonStatus = ready("UserFound", "RolesApplied", "Ready")
	return from(orgCluster(row.org), "membership", i, m)
}
