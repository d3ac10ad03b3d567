package server

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// inAcme is everything that is derived from acme.
	inAcme = "access acme|w1, access acme|w2, membership acme|alice, membership acme|bob, membership acme|w1.bob, membershipindex users|alice, membershipindex users|bob, workspace acme|w1, workspace acme|w2"
	// ofBob is everything that is derived from bob.
	ofBob = "access acme|w1, access acme|w2, access home|w3, membership acme|bob, membership acme|w1.bob, membership home|bob, membershipindex users|bob, workspace acme|w1, workspace acme|w2, workspace home|w3"
	// rightsOfBob is the rights in all Workspaces that bob is or can be in.
	rightsOfBob = "access acme|w1, access acme|w2, access home|w3, workspace acme|w1, workspace acme|w2, workspace home|w3"
	// rowsOfAcme is the indexes of those who are in acme.
	rowsOfAcme = "membershipindex users|alice, membershipindex users|bob"
	// rightsInAcme is the rights in the Workspaces of acme.
	rightsInAcme = "access acme|w1, access acme|w2, workspace acme|w1, workspace acme|w2"
	// rightsInW1 is the rights in w1.
	rightsInW1 = "access acme|w1, workspace acme|w1"
)

// change is one that kcp tells the hub of.
type change struct {
	name    string
	cluster string
	object  kcp.Object
	removed bool
	// want are the controllers' keys that it enqueues.
	want string
}

func TestControllers_enqueueWhatAChangeTouches(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	undeactivated := []metav1.Condition{{Type: v1alpha1.ConditionActive, Status: "False", Reason: v1alpha1.ReasonDeactivationForbidden}}
	changes := []change{
		{name: "User added", cluster: usersCluster, object: person("carol"), want: "membershipindex users|carol, user users|carol"},
		{name: "User changed", cluster: usersCluster, object: changed(person("bob"), func(u *v1alpha1.User) { u.Spec.DisplayName = "Bob" }), want: "user users|bob"},
		{name: "User reported", cluster: usersCluster, object: reported(person("bob"), func(u *v1alpha1.User) { u.Status.Phase = v1alpha1.PhaseReady }), want: "user users|bob"},
		{name: "User deleted softly", cluster: usersCluster, object: reported(person("bob"), func(u *v1alpha1.User) { u.Status.DeletionRequestedAt = &now }), want: rightsOfBob + ", session users|s1, user users|bob"},
		{name: "User rejected", cluster: usersCluster, object: changed(person("bob"), func(u *v1alpha1.User) { u.Spec.Registration = v1alpha1.RegistrationRejected }), want: rightsOfBob + ", session users|s1, user users|bob"},
		{name: "User removed", cluster: usersCluster, object: person("bob"), removed: true, want: ofBob + ", session users|s1, user users|bob"},
		{name: "Groups of a User heard again", cluster: usersCluster, object: inGroups(time.Hour, "kedge:dev"), want: "user users|gail"},
		{
			name: "Groups of a User heard again that prolong a part", cluster: usersCluster,
			object: inGroups(4*time.Hour, "kedge:dev"), want: "organization orgs|guild, user users|gail",
		},
		{
			name: "Mapped group of a User gained", cluster: usersCluster,
			object: inGroups(time.Hour, "kedge:dev", "kedge:ops"), want: "organization orgs|guild, user users|gail",
		},
		{name: "Other group of a User gained", cluster: usersCluster, object: inGroups(time.Hour, "kedge:dev", "kedge:sales"), want: "user users|gail"},
		{name: "Group of a User lost", cluster: usersCluster, object: inGroups(time.Hour), want: "organization orgs|guild, user users|gail"},
		{name: "Session added", cluster: usersCluster, object: loginOf("s2", "alice"), want: "session users|s2"},
		{name: "Session ended", cluster: usersCluster, object: changed(loginOf("s1", "bob"), func(s *v1alpha1.Session) { s.Spec.EndedAt = &now }), want: "session users|s1"},
		{name: "Session removed", cluster: usersCluster, object: loginOf("s1", "bob"), removed: true, want: ""},
		{name: "Index changed", cluster: usersCluster, object: changed(index("bob"), func(i *v1alpha1.UserMembershipIndex) {
			i.Spec.Entries = []v1alpha1.MembershipIndexEntry{{OrgUUID: "forged"}}
		}), want: "membershipindex users|bob"},
		{name: "Index removed", cluster: usersCluster, object: index("bob"), removed: true, want: "membershipindex users|bob"},

		{name: "Organization added", cluster: orgsCluster, object: org("new", "alice"), want: "organization orgs|new, user users|alice"},
		{name: "Organization renamed", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Spec.DisplayName = "ACME" }), want: rowsOfAcme + ", organization orgs|acme"},
		{name: "Organization described", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) {
			o.Spec.Description = "ACME"
		}), want: "organization orgs|acme"},
		{name: "Organization made personal", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Spec.Personal = true }), want: rowsOfAcme + ", organization orgs|acme"},
		{name: "Organization without its creator", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) { delete(o.Annotations, v1alpha1.CreatedByAnnotation) }), want: rowsOfAcme + ", organization orgs|acme"},
		{name: "Organization opened to its members", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Spec.DefaultAccess = "view" }), want: rightsInAcme + ", organization orgs|acme"},
		{name: "Organization in which admins create Workspaces", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Spec.WorkspaceCreation = v1alpha1.WhoAdmin }), want: "organization orgs|acme"},
		{name: "Organization in which admins publish", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Spec.CatalogEntryCreation = v1alpha1.WhoAdmin }), want: "organization orgs|acme"},
		{name: "Organization with another quota", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Spec.WorkspaceQuota = 7 }), want: "organization orgs|acme"},
		{name: "Organization with limits of storage", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Spec.Storage = &v1alpha1.StorageLimits{Bytes: 7} }), want: "organization orgs|acme"},
		{name: "Organization that is billed", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Spec.Billing = &v1alpha1.Billing{} }), want: "organization orgs|acme"},
		{name: "Organization that gives all Workspaces its billing", cluster: orgsCluster, object: changed(org("acme", "alice"), tenancy.ApplyBilling), want: "organization orgs|acme"},
		{name: "Workspace claimed in an Organization", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Spec.WorkspaceClaims = []v1alpha1.Claim{{UUID: "w9"}} }), want: "organization orgs|acme"},
		{name: "Change of a Membership accepted", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Spec.MembershipChanges = []v1alpha1.MembershipChange{{User: "bob"}} }), want: "organization orgs|acme"},
		{name: "Change of a Bot accepted", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Spec.BotChanges = []v1alpha1.BotChange{{Name: "b1"}} }), want: "organization orgs|acme"},
		{name: "Change of an Invitation accepted", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) {
			o.Spec.InvitationChanges = []v1alpha1.InvitationChange{{Name: "i1"}}
		}), want: "organization orgs|acme"},
		{name: "Change of an AccessRequest accepted", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) {
			o.Spec.RequestChanges = []v1alpha1.RequestChange{{Name: "r1"}}
		}), want: "organization orgs|acme"},
		{name: "Group mapped", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) {
			o.Spec.Groups = []v1alpha1.GroupMapping{{ID: "g1", Group: "kedge:dev"}}
		}), want: "organization orgs|acme"},
		{name: "Organization annotated", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) {
			o.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationReconcile
		}), want: "organization orgs|acme"},
		{name: "Organization being removed", cluster: orgsCluster, object: changed(org("acme", "alice"), func(o *v1alpha1.Organization) {
			o.DeletionTimestamp, o.Finalizers = &now, []string{v1alpha1.CascadeFinalizer}
		}), want: inAcme + ", organization orgs|acme"},
		{name: "Organization reported", cluster: orgsCluster, object: reported(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Status.Phase = v1alpha1.PhaseReady }), want: "organization orgs|acme"},
		{name: "Organization observed", cluster: orgsCluster, object: reported(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Status.ObservedGeneration = 7 }), want: "organization orgs|acme"},
		{name: "Organization with a condition", cluster: orgsCluster, object: reported(org("acme", "alice"), func(o *v1alpha1.Organization) {
			o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWatched, Status: "False"}}
		}), want: "organization orgs|acme"},
		{name: "Organization that kcp does not deactivate", cluster: orgsCluster, object: reported(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Status.Conditions = undeactivated }), want: "access acme|w1, access acme|w2, organization orgs|acme"},
		{name: "Organization with a path", cluster: orgsCluster, object: reported(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Status.WorkspacePath = "root:kedge:orgs:acme" }), want: "organization orgs|acme"},
		{name: "Organization deleted softly", cluster: orgsCluster, object: reported(org("acme", "alice"), func(o *v1alpha1.Organization) { o.Status.DeletionRequestedAt = &now }), want: inAcme + ", organization orgs|acme"},
		{name: "Organization removed", cluster: orgsCluster, object: org("acme", "alice"), removed: true, want: "organization orgs|acme, user users|alice"},
		{name: "Personal Organization reported", cluster: orgsCluster, object: reported(personal("home", "bob"), func(o *v1alpha1.Organization) { o.Status.Phase = v1alpha1.PhaseReady }), want: "organization orgs|home, user users|bob"},
		{name: "Personal Organization removed", cluster: orgsCluster, object: personal("home", "bob"), removed: true, want: "organization orgs|home, user users|bob"},

		{name: "Own Workspace reported", cluster: orgsCluster, object: reported(own("acme", acmeCluster), func(ws *kcptenancyv1alpha1.Workspace) {
			ws.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseReady
		}), want: "organization orgs|acme"},
		{name: "Own Workspace moved", cluster: orgsCluster, object: changed(own("acme", acmeCluster), func(ws *kcptenancyv1alpha1.Workspace) { ws.Spec.Cluster = "c-other" }), want: "organization orgs|acme"},
		{name: "Own Workspace removed", cluster: orgsCluster, object: own("acme", acmeCluster), removed: true, want: "organization orgs|acme"},
		{
			name: "Spare of an Organization reserved", cluster: orgsCluster,
			object: annotated(spareOrg("ready"), v1alpha1.SpareReservedAnnotation, "{}"), want: "workspace orgs|ready",
		},
		{
			name: "Spare of an Organization removed", cluster: orgsCluster,
			object: spareOrg("ready"), removed: true, want: "organization orgs|ready, workspace orgs|ready",
		},

		{name: "Workspace added", cluster: acmeCluster, object: child("w8"), want: "access acme|w8, organization orgs|acme, workspace acme|w8"},
		{name: "Workspace renamed", cluster: acmeCluster, object: annotated(child("w1"), v1alpha1.DisplayNameAnnotation, "One"), want: "membershipindex users|bob, workspace acme|w1"},
		{name: "Workspace described", cluster: acmeCluster, object: annotated(child("w1"), v1alpha1.DescriptionAnnotation, "One"), want: "workspace acme|w1"},
		{name: "Workspace became Ready", cluster: acmeCluster, object: annotated(child("w1"), v1alpha1.StatusAnnotation, `{"phase":"Ready"}`), want: "customresources-sweep acme|w1, workspace acme|w1"},
		{name: "Workspace reported", cluster: acmeCluster, object: annotated(child("w1"), v1alpha1.StatusAnnotation, `{"phase":"Progressing"}`), want: "workspace acme|w1"},
		{name: "Workspace that is billed", cluster: acmeCluster, object: annotated(child("w1"), v1alpha1.BillingAnnotation, `{"costCenter":"4711"}`), want: "workspace acme|w1"},
		{name: "Workspace's definitions changed", cluster: acmeCluster, object: annotated(child("w1"), tenancy.CustomResourcesAnnotation, "things.example.com"), want: "workspace acme|w1"},
		{name: "Workspace deleted softly", cluster: acmeCluster, object: annotated(child("w1"), v1alpha1.DeletionRequestedAtAnnotation, now.Format(time.RFC3339)), want: rightsInW1 + ", membershipindex users|bob"},
		{name: "Workspace left by kcp", cluster: acmeCluster, object: reported(child("w1"), func(ws *kcptenancyv1alpha1.Workspace) {
			ws.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseUnavailable
		}), want: rightsInW1},
		{name: "Workspace moved", cluster: acmeCluster, object: changed(child("w1"), func(ws *kcptenancyv1alpha1.Workspace) { ws.Spec.Cluster = "c-other" }), want: rightsInW1 + ", membership acme|w1.bob, membershipindex users|bob"},
		{name: "Workspace of a personal Organization became Ready", cluster: homeCluster, object: annotated(child("w3"), v1alpha1.StatusAnnotation, `{"phase":"Ready"}`), want: "customresources-sweep home|w3, user users|bob, workspace home|w3"},
		{name: "Workspace removed", cluster: acmeCluster, object: child("w1"), removed: true, want: rightsInW1 + ", membership acme|w1.bob, membershipindex users|bob, organization orgs|acme"},
		{name: "Workspace of a personal Organization renamed", cluster: homeCluster, object: annotated(child("w3"), v1alpha1.DisplayNameAnnotation, "Three"), want: "workspace home|w3"},

		{name: "Membership of an Organization added", cluster: acmeCluster, object: tenancy.NewMembership("carol", "", v1alpha1.RoleMember), want: rightsInAcme + ", membership acme|carol, membershipindex users|carol, organization orgs|acme"},
		{name: "Membership of an Organization changed", cluster: acmeCluster, object: changed(tenancy.NewMembership("bob", "", v1alpha1.RoleMember), func(m *v1alpha1.Membership) { m.Spec.Role = v1alpha1.RoleAdmin }), want: rightsInAcme + ", membership acme|bob, membershipindex users|bob"},
		{name: "Membership of an Organization reported", cluster: acmeCluster, object: reported(tenancy.NewMembership("bob", "", v1alpha1.RoleMember), func(m *v1alpha1.Membership) { m.Status.Phase = v1alpha1.PhaseReady }), want: "membership acme|bob"},
		{name: "Membership of an Organization removed", cluster: acmeCluster, object: tenancy.NewMembership("bob", "", v1alpha1.RoleMember), removed: true, want: rightsInAcme + ", membership acme|bob, membershipindex users|bob, organization orgs|acme"},
		{name: "Admin of an Organization without a creator demoted", cluster: "c-old", object: changed(tenancy.NewMembership("erin", "", v1alpha1.RoleMember), func(*v1alpha1.Membership) {}), want: "membership old|erin, membershipindex users|erin, membershipindex users|frank"},
		{name: "Member of an Organization without a creator removed", cluster: "c-old", object: tenancy.NewMembership("frank", "", v1alpha1.RoleMember), removed: true, want: "membership old|frank, membershipindex users|erin, membershipindex users|frank, organization orgs|old"},
		{name: "Membership of a Workspace added", cluster: acmeCluster, object: tenancy.NewMembership("carol", "w2", v1alpha1.RoleMember), want: "access acme|w2, membership acme|w2.carol, membershipindex users|carol, workspace acme|w2"},
		{name: "Membership of a Workspace changed", cluster: acmeCluster, object: changed(withRoles(tenancy.NewMembership("bob", "w1", v1alpha1.RoleMember), "auditor", "dev/editor"), func(m *v1alpha1.Membership) { m.Spec.Sudo = true }), want: rightsInW1 + ", membership acme|w1.bob"},
		{name: "End of a Membership changed", cluster: acmeCluster, object: changed(withRoles(tenancy.NewMembership("bob", "w1", v1alpha1.RoleMember), "auditor", "dev/editor"), func(m *v1alpha1.Membership) { m.Spec.ExpiresAt = &metav1.Time{Time: time.Unix(4e9, 0)} }), want: rightsInW1 + ", membership acme|w1.bob, membershipindex users|bob"},
		{name: "Part of a Membership given on request", cluster: acmeCluster, object: changed(withRoles(tenancy.NewMembership("bob", "w1", v1alpha1.RoleMember), "auditor", "dev/editor"), func(m *v1alpha1.Membership) {
			m.Spec.Extra = []v1alpha1.MembershipExtra{{Source: "request:r", Sudo: true, ExpiresAt: &metav1.Time{Time: time.Unix(4e9, 0)}}}
		}), want: rightsInW1 + ", membership acme|w1.bob, membershipindex users|bob, organization orgs|acme"},
		{name: "Manager of a Workspace made", cluster: acmeCluster, object: changed(withRoles(tenancy.NewMembership("bob", "w1", v1alpha1.RoleMember), "auditor", "dev/editor"), func(m *v1alpha1.Membership) { m.Spec.Manager = true }), want: "membership acme|w1.bob, membershipindex users|bob"},
		{name: "Roles of a Membership changed", cluster: acmeCluster, object: changed(tenancy.NewMembership("bob", "w1", v1alpha1.RoleMember), func(*v1alpha1.Membership) {}), want: rightsInW1 + ", membership acme|w1.bob"},
		{name: "Membership of a Workspace demoted", cluster: homeCluster, object: changed(tenancy.NewMembership("bob", "", v1alpha1.RoleMember), func(*v1alpha1.Membership) {}), want: "access home|w3, membership home|bob, membershipindex users|bob, workspace home|w3"},
		{name: "Membership of an Organization annotated", cluster: acmeCluster, object: annotated(tenancy.NewMembership("bob", "", v1alpha1.RoleMember), "a", "b"), want: "membership acme|bob"},
		{name: "Membership of an Organization observed", cluster: acmeCluster, object: reported(tenancy.NewMembership("bob", "", v1alpha1.RoleMember), func(m *v1alpha1.Membership) { m.Status.ObservedGeneration = 7 }), want: "membership acme|bob"},
		{name: "Membership of an Organization with a condition", cluster: acmeCluster, object: reported(tenancy.NewMembership("bob", "", v1alpha1.RoleMember), func(m *v1alpha1.Membership) { m.Status.Conditions = undeactivated }), want: "membership acme|bob"},
		{name: "Membership of a Workspace with applied roles", cluster: acmeCluster, object: reported(withRoles(tenancy.NewMembership("bob", "w1", v1alpha1.RoleMember), "auditor", "dev/editor"), func(m *v1alpha1.Membership) { m.Status.AppliedRoles = []string{"auditor"} }), want: "membership acme|w1.bob"},
		{name: "Membership of a Workspace removed", cluster: acmeCluster, object: tenancy.NewMembership("bob", "w1", v1alpha1.RoleMember), removed: true, want: rightsInW1 + ", membership acme|w1.bob, membershipindex users|bob"},

		{name: "Namespace removed", cluster: "c-w1", object: managed(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}), removed: true, want: rightsInW1},
		{name: "Namespace that a Membership names added", cluster: "c-w1", object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "dev"}}, want: rightsInW1 + ", membership acme|w1.bob"},
		{name: "Namespace of a tenant added", cluster: "c-w1", object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, want: ""},
		{name: "Role that a Membership names added", cluster: "c-w1", object: &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "editor", Namespace: "dev"}}, want: rightsInW1 + ", membership acme|w1.bob"},
		{name: "Role of a tenant added", cluster: "c-w1", object: &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "editor", Namespace: "other"}}, want: ""},
		{name: "ClusterRole of a tenant added", cluster: "c-w1", object: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, want: ""},
		{name: "RoleBinding of a person added", cluster: "c-w1", object: namespacedBinding("b1", "bob"), want: rightsInW1 + ", membership acme|w1.bob"},
		{name: "RoleBinding of a tenant added", cluster: "c-w1", object: &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "own", Namespace: "dev"}}, want: ""},
		{name: "Namespace outside of Workspaces", cluster: acmeCluster, object: managed(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}), want: ""},
		{name: "ClusterRole that a Membership names removed", cluster: "c-w1", object: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "auditor"}}, removed: true, want: rightsInW1 + ", membership acme|w1.bob"},
		{name: "ClusterRole of the hub added", cluster: "c-w1", object: managed(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: tenancy.ClusterRoleMember}}), want: rightsInW1},
		{name: "ClusterRole of the hub that limits roles added", cluster: "c-w1", object: managed(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: tenancy.ClusterRoleAdmin}}), want: rightsInW1 + ", membership acme|w1.bob"},
		{name: "ClusterRoleBinding of a person removed", cluster: "c-w1", object: roleBinding("b1", "bob"), removed: true, want: rightsInW1 + ", membership acme|w1.bob"},
		{name: "ClusterRoleBinding of nobody added", cluster: "c-w1", object: managed(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "sudo"}}), want: rightsInW1},
		{name: "APIBinding of a Workspace removed", cluster: "c-w1", object: apiBinding("things"), removed: true, want: rightsInW1},
		{name: "APIBinding of an Organization removed", cluster: acmeCluster, object: orgBinding(), removed: true, want: "organization orgs|acme"},
		{name: "APIBinding of an Organization as wanted", cluster: acmeCluster, object: annotated(orgBinding(), "a", "b"), want: ""},

		{name: "Bot added", cluster: homeCluster, object: robot("b2"), want: "bot home|b2"},
		{name: "Bot changed", cluster: homeCluster, object: changed(robot("b1"), func(b *v1alpha1.Bot) { b.Spec.Role = v1alpha1.RoleAdmin }), want: "bot home|b1"},
		{name: "Bot removed", cluster: homeCluster, object: robot("b1"), removed: true, want: "bot home|b1"},
		{name: "ServiceAccount of a Bot removed", cluster: "c-w3", object: tenancy.BotAccount(robot("b1")), removed: true, want: "bot home|b1"},
		{name: "ServiceAccount of a tenant added", cluster: "c-w3", object: &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: "default"}}, want: ""},
		{name: "Secret of a Bot removed", cluster: "c-w3", object: tenancy.BotTokenSecret(robot("b1"), "t"), removed: true, want: "bot home|b1"},
		{name: "ClusterRoleBinding of a Bot added", cluster: "c-w3", object: tenancy.BotBinding(robot("b1"), "account"), want: "access home|w3, bot home|b1, workspace home|w3"},
		{name: "Bot claimed in a Workspace", cluster: homeCluster, object: annotated(child("w3"), v1alpha1.BotClaimsAnnotation, "{}"), want: "workspace home|w3"},

		{name: "Invitation added", cluster: homeCluster, object: &v1alpha1.Invitation{ObjectMeta: metav1.ObjectMeta{Name: "i1"}}, want: "invitation home|i1"},

		{name: "AccessRequest added", cluster: homeCluster, object: &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Name: "r1"}}, want: "accessrequest home|r1"},

		{name: "CatalogEntry added", cluster: shopCluster, object: entry("gadgets"), want: "catalogbackend shop|e-gadgets, catalogentry shop|e-gadgets"},
		{name: "CatalogEntry reported", cluster: shopCluster, object: reported(entry("widgets"), func(e *v1alpha1.CatalogEntry) { e.Status.Phase = v1alpha1.PhaseReady }), want: "catalogentry shop|e-widgets"},
		{name: "CatalogEntry with the slug of another one added", cluster: "providers", object: global("widgets"), want: "catalogbackend providers|g-widgets, catalogentry providers|g-widgets, catalogentry shop|e-widgets"},
		{name: "CatalogEntry removed", cluster: shopCluster, object: entry("widgets"), removed: true, want: "catalogbackend shop|e-widgets, catalogentry shop|e-widgets, organization orgs|shop"},
		{name: "Grant of a CatalogEntry removed", cluster: "c-w4", object: grantOf("widgets"), removed: true, want: "access shop|w4, catalogentry shop|e-widgets, workspace shop|w4"},
		{name: "Grant of a CatalogEntry that is gone added", cluster: "c-w4", object: grantOf("gone"), want: "access shop|w4, catalogentry shop|e-gone, workspace shop|w4"},
		{name: "Organization with a catalog deleted softly", cluster: orgsCluster, object: reported(org("shop", "dave"), func(o *v1alpha1.Organization) { o.Status.DeletionRequestedAt = &now }), want: "access shop|w4, catalogentry shop|e-widgets, organization orgs|shop, workspace shop|w4"},
		{name: "Organization with a catalog renamed", cluster: orgsCluster, object: changed(org("shop", "dave"), func(o *v1alpha1.Organization) { o.Spec.DisplayName = "Shop" }), want: "organization orgs|shop"},
		{name: "Organization with a catalog opened to its members", cluster: orgsCluster, object: changed(org("shop", "dave"), func(o *v1alpha1.Organization) { o.Spec.DefaultAccess = "view" }), want: "access shop|w4, organization orgs|shop, workspace shop|w4"},
		{name: "Organization with a catalog in which admins publish", cluster: orgsCluster, object: changed(org("shop", "dave"), func(o *v1alpha1.Organization) { o.Spec.CatalogEntryCreation = v1alpha1.WhoAdmin }), want: "catalogentry shop|e-widgets, organization orgs|shop"},
		{name: "Workspace beside a catalog deleted softly", cluster: shopCluster, object: annotated(child("w4"), v1alpha1.DeletionRequestedAtAnnotation, now.Format(time.RFC3339)), want: "access shop|w4, catalogentry shop|e-widgets, workspace shop|w4"},
		{name: "Admin of a catalog's Organization added", cluster: shopCluster, object: tenancy.NewMembership("dave", "w4", v1alpha1.RoleAdmin), want: "access shop|w4, catalogentry shop|e-widgets, membership shop|w4.dave, membershipindex users|dave, workspace shop|w4"},
		{name: "Member who published an entry added", cluster: shopCluster, object: tenancy.NewMembership("dave", "w4", v1alpha1.RoleMember), want: "access shop|w4, catalogentry shop|e-widgets, membership shop|w4.dave, membershipindex users|dave, workspace shop|w4"},
		{name: "Member of a catalog's Organization added", cluster: shopCluster, object: tenancy.NewMembership("carol", "w4", v1alpha1.RoleMember), want: "access shop|w4, membership shop|w4.carol, membershipindex users|carol, workspace shop|w4"},
		{name: "Bot beside a catalog added", cluster: shopCluster, object: robot("b9"), want: "bot shop|b9, catalogentry shop|e-widgets"},

		{name: "Logical cluster of an Organization waits for the hub", cluster: acmeCluster, object: initializing("acme"), want: "organization orgs|acme"},
		{name: "Logical cluster of an Organization deactivated", cluster: acmeCluster, object: logicalCluster(kcpcorev1alpha1.LogicalClusterPhaseUnavailable), want: "organization orgs|acme"},
		{name: "Logical cluster of a Workspace deactivated", cluster: "c-w1", object: logicalCluster(kcpcorev1alpha1.LogicalClusterPhaseUnavailable), want: "organization orgs|acme, workspace acme|w1"},
	}
	requireAllFields(t, changes)
	picture := "\n"
	for _, change := range changes {
		picture += change.name + " → " + change.want + "\n"
	}
	t.Log(picture)
	for _, change := range changes {
		t.Run(change.name, func(t *testing.T) {
			t.Parallel()
			p := newPlatform(t)
			if change.removed {
				require.True(t, p.Remove(change.cluster, change.object))
			} else {
				p.Put(change.cluster, change.object)
			}
			p.flush(t, change.object)
			want := slices.DeleteFunc(strings.Split(change.want, ", "), func(key string) bool { return key == "" })
			require.ElementsMatch(t, want, p.taken())
		})
	}
}

// requireAllFields requires a change of every field of an Organization and of a Membership that can
// change.
func requireAllFields(t *testing.T, changes []change) {
	t.Helper()
	held := map[string]kcp.Object{}
	for _, o := range (&platform{}).objects() {
		held[fmt.Sprintf("%T %s %s", o.Object, o.cluster, o.GetName())] = o.Object
	}
	immutable := []string{"Membership.userRef", "Membership.scope", "Membership.workspaceRef"}
	moved, all := map[string]bool{}, map[string]bool{}
	for _, c := range changes {
		old, ok := held[fmt.Sprintf("%T %s %s", c.object, c.cluster, c.object.GetName())]
		if !ok {
			continue
		}
		for _, part := range []string{"Spec", "Status"} {
			switch c.object.(type) {
			case *v1alpha1.Organization, *v1alpha1.Membership:
				kind := reflect.TypeOf(c.object).Elem().Name()
				fieldsOf(reflect.ValueOf(old).Elem().FieldByName(part), reflect.ValueOf(c.object).Elem().FieldByName(part), func(name string, same bool) {
					all[kind+"."+name] = true
					moved[kind+"."+name] = moved[kind+"."+name] || !same
				})
			}
		}
	}
	require.Greater(t, len(all), 20)
	for field := range all {
		require.True(t, moved[field] || slices.Contains(immutable, field), "no row changes %s: whom does it wake?", field)
	}
}

// fieldsOf calls f with the fields of two structs by their names in JSON.
func fieldsOf(a, b reflect.Value, f func(name string, same bool)) {
	for i := range a.NumField() {
		name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
		if name == "" {
			fieldsOf(a.Field(i), b.Field(i), f)
			continue
		}
		f(name, reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()))
	}
}
