package views

import (
	"reflect"
	"testing"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// moves maps a field to alterations of an object that change only this field.
type moves[T any] map[Fields][]func(T)

func testMoved[T interface {
	metav1.Object
	DeepCopy() T
}](t *testing.T, moved func(old, new T) Fields, object T, cases moves[T]) {
	t.Helper()
	object.SetAnnotations(map[string]string{"kcp.io/cluster": "c"})
	require.Zero(t, moved(object, object.DeepCopy()))
	versioned := object.DeepCopy()
	versioned.SetResourceVersion("2")
	versioned.SetGeneration(2)
	require.Zero(t, moved(object, versioned), "a version alone says nothing")
	now := metav1.Now()
	for field, alterations := range map[Fields][]func(T){
		Metadata: {
			func(o T) { o.SetLabels(map[string]string{"a": "b"}) },
			func(o T) { o.SetFinalizers([]string{"f"}) },
			func(o T) { o.SetAnnotations(map[string]string{"kcp.io/cluster": "c", "a": "b"}) },
		},
		Terminating: {func(o T) { o.SetDeletionTimestamp(&now) }},
	} {
		cases[field] = append(cases[field], alterations...)
	}
	for field, alterations := range cases {
		for i, alter := range alterations {
			altered := object.DeepCopy()
			alter(altered)
			require.Equalf(t, field, moved(object, altered), "field %b, alteration %d", field, i)
			require.Equalf(t, field, moved(altered, object), "field %b, alteration %d, back", field, i)
		}
	}
}

func note[T metav1.Object](name string) func(T) {
	return func(o T) {
		all := map[string]string{name: "x"}
		for k, v := range o.GetAnnotations() {
			all[k] = v
		}
		o.SetAnnotations(all)
	}
}

func TestMoved_ofEveryKind(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	claims := []v1alpha1.Claim{{UUID: orgUUID}}
	condition := []metav1.Condition{{Type: "Ready"}}
	testMoved(t, userMoved, &v1alpha1.User{}, moves[*v1alpha1.User]{
		DisplayName: {func(u *v1alpha1.User) { u.Spec.DisplayName = "x" }},
		Identity: {
			func(u *v1alpha1.User) { u.Spec.Issuer = "x" }, func(u *v1alpha1.User) { u.Spec.Subject = "x" },
			func(u *v1alpha1.User) { u.Spec.RBACIdentity = "x" },
		},
		Registration:    {func(u *v1alpha1.User) { u.Spec.Registration = v1alpha1.RegistrationPending }},
		SignOut:         {func(u *v1alpha1.User) { u.Spec.TokensValidAfter = &now }},
		Quota:           {func(u *v1alpha1.User) { u.Spec.OrgQuota = 1 }},
		Claims:          {func(u *v1alpha1.User) { u.Spec.OrgClaims = claims }},
		Spec:            {func(u *v1alpha1.User) { u.Spec.Email = "x" }, func(u *v1alpha1.User) { u.Spec.DefaultCluster = "x" }},
		DeletionRequest: {func(u *v1alpha1.User) { u.Status.DeletionRequestedAt = &now }},
		Status: {
			func(u *v1alpha1.User) { u.Status.PersonalOrg = "x" }, func(u *v1alpha1.User) { u.Status.DefaultWorkspace = "x" },
			func(u *v1alpha1.User) { u.Status.Conditions = condition }, func(u *v1alpha1.User) { u.Status.Phase = v1alpha1.PhaseReady },
		},
	})
	testMoved(t, sessionMoved, &v1alpha1.Session{}, moves[*v1alpha1.Session]{
		Ended: {func(s *v1alpha1.Session) { s.Spec.EndedAt = &now }},
		Spec: {
			func(s *v1alpha1.Session) { s.Spec.LastUsedAt = now }, func(s *v1alpha1.Session) { s.Spec.ExpiresAt = now },
			func(s *v1alpha1.Session) { s.Spec.Tokens = []v1alpha1.SessionToken{{Hash: "x"}} },
			func(s *v1alpha1.Session) { s.Spec.Code = &v1alpha1.SessionCode{Hash: "x"} },
		},
	})
	testMoved(t, organizationMoved, &v1alpha1.Organization{}, moves[*v1alpha1.Organization]{
		DisplayName:   {func(o *v1alpha1.Organization) { o.Spec.DisplayName = "x" }},
		DefaultAccess: {func(o *v1alpha1.Organization) { o.Spec.DefaultAccess = v1alpha1.DefaultAccessView }},
		MembershipChanges: {func(o *v1alpha1.Organization) {
			o.Spec.MembershipChanges = []v1alpha1.MembershipChange{{User: "bob"}}
		}},
		Quota:  {func(o *v1alpha1.Organization) { o.Spec.WorkspaceQuota = 1 }},
		Claims: {func(o *v1alpha1.Organization) { o.Spec.WorkspaceClaims = claims }},
		Spec: {
			func(o *v1alpha1.Organization) { o.Spec.WorkspaceCreation = v1alpha1.WhoAdmin },
			func(o *v1alpha1.Organization) { o.Spec.CatalogEntryCreation = v1alpha1.WhoAdmin },
			func(o *v1alpha1.Organization) { o.Spec.Billing = &v1alpha1.Billing{CostCenter: "x"} },
			func(o *v1alpha1.Organization) { o.Spec.Personal = true },
		},
		DeletionRequest: {func(o *v1alpha1.Organization) { o.Status.DeletionRequestedAt = &now }},
		Status: {
			func(o *v1alpha1.Organization) { o.Status.WorkspacePath = "x" },
			func(o *v1alpha1.Organization) { o.Status.ObservedGeneration = 1 },
		},
	})
	testMoved(t, membershipMoved, &v1alpha1.Membership{}, moves[*v1alpha1.Membership]{
		Role:   {func(m *v1alpha1.Membership) { m.Spec.Role = v1alpha1.RoleAdmin }},
		Sudo:   {func(m *v1alpha1.Membership) { m.Spec.Sudo = true }},
		Roles:  {func(m *v1alpha1.Membership) { m.Spec.Roles = []v1alpha1.RoleRef{{Name: "r"}} }},
		Spec:   {func(m *v1alpha1.Membership) { m.Spec.WorkspaceRef = &v1alpha1.NamedRef{Name: wsUUID} }},
		Status: {func(m *v1alpha1.Membership) { m.Status.AppliedRoles = []string{"r"} }},
	})
	testMoved(t, indexMoved, &v1alpha1.UserMembershipIndex{}, moves[*v1alpha1.UserMembershipIndex]{
		Spec: {func(i *v1alpha1.UserMembershipIndex) {
			i.Spec.Entries = []v1alpha1.MembershipIndexEntry{{OrgUUID: orgUUID}}
		}},
	})
	testMoved(t, workspaceMoved, &kcptenancyv1alpha1.Workspace{}, moves[*kcptenancyv1alpha1.Workspace]{
		DisplayName:     {note[*kcptenancyv1alpha1.Workspace](v1alpha1.DisplayNameAnnotation)},
		DeletionRequest: {note[*kcptenancyv1alpha1.Workspace](v1alpha1.DeletionRequestedAtAnnotation)},
		Status:          {note[*kcptenancyv1alpha1.Workspace](v1alpha1.StatusAnnotation)},
		CustomResources: {note[*kcptenancyv1alpha1.Workspace](tenancy.CustomResourcesAnnotation)},
		LogicalCluster:  {func(w *kcptenancyv1alpha1.Workspace) { w.Spec.Cluster = "c2" }},
		Phase:           {func(w *kcptenancyv1alpha1.Workspace) { w.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseReady }},
		Spec:            {func(w *kcptenancyv1alpha1.Workspace) { w.Spec.URL = "https://x" }},
		KCPStatus: {func(w *kcptenancyv1alpha1.Workspace) {
			w.Status.Initializers = []kcpcorev1alpha1.LogicalClusterInitializer{"i"}
		}},
	})
	testMoved(t, logicalClusterMoved, &kcpcorev1alpha1.LogicalCluster{}, moves[*kcpcorev1alpha1.LogicalCluster]{
		Phase: {func(l *kcpcorev1alpha1.LogicalCluster) { l.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseReady }},
		Spec:  {func(l *kcpcorev1alpha1.LogicalCluster) { l.Spec.DirectlyDeletable = true }},
		Status: {func(l *kcpcorev1alpha1.LogicalCluster) {
			l.Status.Initializers = []kcpcorev1alpha1.LogicalClusterInitializer{"i"}
		}},
	})
	testMoved(t, apiBindingMoved, &kcpapisv1alpha2.APIBinding{}, moves[*kcpapisv1alpha2.APIBinding]{
		Spec: {func(b *kcpapisv1alpha2.APIBinding) {
			b.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Name: "x"}
		}},
		Status: {func(b *kcpapisv1alpha2.APIBinding) { b.Status.APIExportClusterName = "x" }},
	})
	testMoved(t, namespaceMoved, &corev1.Namespace{}, moves[*corev1.Namespace]{
		Spec:   {func(n *corev1.Namespace) { n.Spec.Finalizers = []corev1.FinalizerName{"x"} }},
		Status: {func(n *corev1.Namespace) { n.Status.Phase = corev1.NamespaceTerminating }},
	})
	testMoved(t, policyMoved, &admissionv1.ValidatingAdmissionPolicy{}, moves[*admissionv1.ValidatingAdmissionPolicy]{
		Metadata: {note[*admissionv1.ValidatingAdmissionPolicy](tenancy.SpecHashAnnotation)},
		Spec:     {func(p *admissionv1.ValidatingAdmissionPolicy) { p.Spec.Variables = []admissionv1.Variable{{Name: "x"}} }},
	})
	testMoved(t, policyBindingMoved, &admissionv1.ValidatingAdmissionPolicyBinding{}, moves[*admissionv1.ValidatingAdmissionPolicyBinding]{
		Metadata: {note[*admissionv1.ValidatingAdmissionPolicyBinding](tenancy.SpecHashAnnotation)},
		Spec:     {func(b *admissionv1.ValidatingAdmissionPolicyBinding) { b.Spec.PolicyName = "x" }},
	})
	testMoved(t, clusterRoleMoved, &rbacv1.ClusterRole{}, moves[*rbacv1.ClusterRole]{
		Spec: {
			func(r *rbacv1.ClusterRole) { r.Rules = []rbacv1.PolicyRule{{Verbs: []string{"get"}}} },
			func(r *rbacv1.ClusterRole) { r.AggregationRule = &rbacv1.AggregationRule{} },
		},
	})
	testMoved(t, clusterRoleBindingMoved, &rbacv1.ClusterRoleBinding{}, moves[*rbacv1.ClusterRoleBinding]{
		Spec: {
			func(b *rbacv1.ClusterRoleBinding) { b.RoleRef.Name = "x" },
			func(b *rbacv1.ClusterRoleBinding) { b.Subjects = []rbacv1.Subject{{Name: "x"}} },
		},
	})
	testMoved(t, roleMoved, &rbacv1.Role{}, moves[*rbacv1.Role]{
		Spec: {func(r *rbacv1.Role) { r.Rules = []rbacv1.PolicyRule{{Verbs: []string{"get"}}} }},
	})
	testMoved(t, roleBindingMoved, &rbacv1.RoleBinding{}, moves[*rbacv1.RoleBinding]{
		Spec: {
			func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "x" },
			func(b *rbacv1.RoleBinding) { b.Subjects = []rbacv1.Subject{{Name: "x"}} },
		},
	})
}

// A new field of the hub's kinds must be reported as moved, too.
func TestMoved_knowsEveryFieldOfTheHubsKinds(t *testing.T) {
	t.Parallel()
	user, organization, membership := &v1alpha1.User{}, &v1alpha1.Organization{}, &v1alpha1.Membership{}
	for part, moved := range map[any]func() Fields{
		&user.Spec:           func() Fields { return userMoved(&v1alpha1.User{}, user) },
		&user.Status:         func() Fields { return userMoved(&v1alpha1.User{}, user) },
		&organization.Spec:   func() Fields { return organizationMoved(&v1alpha1.Organization{}, organization) },
		&organization.Status: func() Fields { return organizationMoved(&v1alpha1.Organization{}, organization) },
		&membership.Spec:     func() Fields { return membershipMoved(&v1alpha1.Membership{}, membership) },
	} {
		fields := reflect.ValueOf(part).Elem()
		for i := range fields.NumField() {
			fields.Field(i).Set(filled(fields.Field(i).Type()))
			require.NotZerof(t, moved(), "%s.%s", fields.Type(), fields.Type().Field(i).Name)
			fields.Field(i).SetZero()
			require.Zero(t, moved())
		}
	}
}

// filled returns a non-zero value of the type.
func filled(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		if _, ok := v.Interface().(*metav1.Time); ok {
			now := metav1.Now()
			v.Set(reflect.ValueOf(&now))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, 1, 1))
	case reflect.Struct:
		v.Field(0).Set(filled(t.Field(0).Type))
	}
	return v
}
