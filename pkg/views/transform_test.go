package views_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// laden sets metadata that other clients may set.
func laden[T kcp.Object](o T) T {
	at := metav1.NewTime(epoch.Add(1000))
	annotations := o.GetAnnotations()
	annotations["kubectl.kubernetes.io/last-applied-configuration"] = `{"spec": {}}`
	annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationIgnore
	annotations["example.com/by-hand"] = "kept"
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["example.com/team"] = "a"
	o.SetLabels(labels)
	o.SetFinalizers([]string{v1alpha1.CascadeFinalizer, "example.com/another"})
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "u"}})
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kedge", Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{}`)}})
	o.SetDeletionTimestamp(&at)
	return o
}

// A reconciler compares the cached object with the desired one. If the transform dropped
// a compared field, the reconciler would write it on every pass.
func TestTransform_keepsWhatReconcilersCompare(t *testing.T) {
	t.Parallel()
	w := world{orgs: 1, people: 1, rows: 1}
	at := epoch
	user, index := laden(w.user(0)), laden(w.index(0))
	user.Spec.OrgQuota, user.Spec.Registration, user.Spec.DefaultCluster = 7, v1alpha1.RegistrationApproved, "abc"
	user.Spec.OrgClaims = []v1alpha1.Claim{tenancy.NewClaim(orgUUID(1), "Claimed", user.Name, "hash", at)}
	user.Status.PersonalOrg, user.Status.DefaultWorkspace, user.Status.DeletionRequestedAt = orgUUID(0), workspaceUUID(0), &at
	user.Status.Conditions[0].Message = "somebody's own words"
	index.Spec.Entries = append(index.Spec.Entries, v1alpha1.MembershipIndexEntry{
		OrgUUID: orgUUID(9), OrgDisplayName: "unknown to the topology", OrgCreatedAt: at, WorkspaceUUID: workspaceUUID(9),
		WorkspaceDisplayName: "W", ClusterID: "c", Role: v1alpha1.RoleMember, Personal: true, SoftDeletedAt: &at,
	})
	inOrg := laden(w.membership(0, 0))
	inWorkspace := laden(from(orgCluster(0), 3, tenancy.NewWorkspaceMembership("bob", workspaceUUID(0), v1alpha1.RoleMember, []v1alpha1.RoleRef{{Name: "editor"}}, true)))
	inWorkspace.Status.CommonStatus, inWorkspace.Status.AppliedRoles = ready(3, "UserFound"), []string{"editor"}
	byHand := from(orgCluster(0), 4, tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin))
	byHand.Name = "a-name-that-tells-nothing"

	objects := w.objects()
	objects["users"] = []kcp.Object{user}
	objects["usermembershipindexes"] = []kcp.Object{index}
	objects["memberships"] = []kcp.Object{inOrg, inWorkspace, byHand}
	v := watching(t, objects, nil)

	dropped := func(o kcp.Object, applied bool) {
		o.SetManagedFields(nil)
		if applied {
			delete(o.GetAnnotations(), "kubectl.kubernetes.io/last-applied-configuration")
		}
		delete(o.GetLabels(), v1alpha1.IdentityLabel)
	}
	same := func(want, have kcp.Object, ok bool) {
		require.True(t, ok)
		wanted, err := json.Marshal(want)
		require.NoError(t, err)
		got, err := json.Marshal(have)
		require.NoError(t, err)
		require.JSONEq(t, string(wanted), string(got))
	}
	dropped(user, true)
	heldUser, ok := v.Users.Get(usersCluster, user.Name)
	same(user, heldUser, ok)
	// An index is replaced as a whole, so the transform must keep all of it.
	dropped(index, false)
	heldIndex, ok := v.Indexes.Get(usersCluster, index.Name)
	same(index, heldIndex, ok)
	for _, m := range []*v1alpha1.Membership{inOrg, inWorkspace, byHand} {
		dropped(m, true)
		held, ok := v.Memberships.Get(orgCluster(0), m.Name)
		same(m, held, ok)
	}
}

func TestTransform_sharesOnlyEqualStrings(t *testing.T) {
	t.Parallel()
	w := world{orgs: 2, people: 4, rows: 2}
	objects := w.objects()
	odd := w.user(3)
	odd.Name, odd.Annotations["example.com/odd"] = "odd", "yes"
	objects["users"] = append(objects["users"], odd)
	v := watching(t, objects, nil)
	get := func(name string) *v1alpha1.User {
		u, ok := v.Users.Get(usersCluster, name)
		require.True(t, ok)
		return u
	}
	annotations := func(u *v1alpha1.User) uintptr { return reflect.ValueOf(u.Annotations).Pointer() }
	first, second := get(personName(0)), get(personName(2))
	require.Equal(t, annotations(first), annotations(second))
	require.Equal(t, map[string]string{"kcp.io/cluster": usersCluster}, first.Annotations)
	require.Equal(t, map[string]string{"kcp.io/cluster": usersCluster, "example.com/odd": "yes"}, get("odd").Annotations)
	require.Len(t, first.Status.Conditions, cap(first.Status.Conditions))

	org, ok := v.Org(orgUUID(0))
	require.True(t, ok)
	row := v.Index(personName(0))[0]
	require.Equal(t, orgUUID(0), row.OrgUUID)
	require.Same(t, unsafe.StringData(org.Name), unsafe.StringData(row.OrgUUID), "the topology has it already")
	require.Same(t, unsafe.StringData(org.Spec.DisplayName), unsafe.StringData(row.OrgDisplayName))
}

func TestTransform_deepCopySharesNothingMutable(t *testing.T) {
	t.Parallel()
	w := world{orgs: 1, people: 2, rows: 1}
	v := watching(t, w.objects(), nil)
	one, _ := v.Memberships.Get(orgCluster(0), personName(0))
	mine := one.DeepCopy()
	mine.Annotations["example.com/mine"] = "yes"
	mine.Status.Conditions[0].Reason = "Changed"
	mine.Spec.UserRef.Name = "somebody else"
	other, _ := v.Memberships.Get(orgCluster(0), personName(1))
	require.Equal(t, map[string]string{"kcp.io/cluster": orgCluster(0)}, other.Annotations)
	require.Equal(t, v1alpha1.ReasonAsDesired, one.Status.Conditions[0].Reason)
	require.Equal(t, personName(0), one.Spec.UserRef.Name)
}
