package tenancy

import (
	"reflect"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// RBAC is a ClusterRole, a ClusterRoleBinding or a RoleBinding that the hub derives from other objects.
type RBAC interface {
	runtime.Object
	metav1.Object
}

// RBACChanges are the writes that establish the desired objects.
type RBACChanges struct{ Write, Remove []RBAC }

// Count is the number of objects that are not as desired.
func (c RBACChanges) Count() int { return len(c.Write) + len(c.Remove) }

// OnlyOf returns the changes for one User.
func (c RBACChanges) OnlyOf(user string) RBACChanges {
	others := func(o RBAC) bool { return o.GetLabels()[v1alpha1.UserLabel] != user }
	return RBACChanges{Write: slices.DeleteFunc(c.Write, others), Remove: slices.DeleteFunc(c.Remove, others)}
}

// CompareRBAC compares the current with the desired objects. All desired ones are written if forced.
// They get the resource versions of those that they replace.
func CompareRBAC(held, wanted []RBAC, forced bool) (c RBACChanges) {
	type key struct {
		kind            reflect.Type
		namespace, name string
	}
	keyOf := func(o RBAC) key { return key{reflect.TypeOf(o), o.GetNamespace(), o.GetName()} }
	have := make(map[key]RBAC, len(held))
	for _, o := range held {
		have[keyOf(o)] = o
	}
	done := make(map[key]bool, len(wanted))
	for _, want := range wanted {
		if done[keyOf(want)] {
			continue
		}
		done[keyOf(want)] = true
		o, ok := have[keyOf(want)]
		if ok && !forced && SameRBAC(o, want) {
			continue
		}
		if ok {
			want.SetResourceVersion(o.GetResourceVersion())
		}
		c.Write = append(c.Write, want)
	}
	for _, o := range held {
		if !done[keyOf(o)] {
			c.Remove = append(c.Remove, o)
		}
	}
	return c
}

// SameRBAC reports whether an object is as desired. An object that is being deleted is not: kcp does
// not replicate writes to it while finalizers hold it.
func SameRBAC(have, want RBAC) bool {
	if !have.GetDeletionTimestamp().IsZero() || !covers(have.GetLabels(), want.GetLabels()) ||
		have.GetLabels()[v1alpha1.UserLabel] != want.GetLabels()[v1alpha1.UserLabel] ||
		!slices.EqualFunc(have.GetOwnerReferences(), want.GetOwnerReferences(), func(a, b metav1.OwnerReference) bool {
			return a.UID == b.UID && a.Kind == b.Kind && a.Name == b.Name
		}) {
		return false
	}
	switch want := want.(type) {
	case *rbacv1.ClusterRole:
		have, ok := have.(*rbacv1.ClusterRole)
		return ok && apiequality.Semantic.DeepEqual(have.Rules, want.Rules) && have.AggregationRule == nil
	case *rbacv1.ClusterRoleBinding:
		have, ok := have.(*rbacv1.ClusterRoleBinding)
		return ok && have.RoleRef == want.RoleRef && slices.Equal(have.Subjects, want.Subjects)
	case *rbacv1.RoleBinding:
		have, ok := have.(*rbacv1.RoleBinding)
		return ok && have.RoleRef == want.RoleRef && slices.Equal(have.Subjects, want.Subjects)
	}
	return false
}

// AccessChanges compares the RBAC in a Workspace with that of AccessOf. It considers only the objects of
// people: other ClusterRoles belong to the workspace controller, the bindings of Bots to the bot
// controller, and those for the exports of CatalogEntries to the catalogentry controller.
func AccessChanges(held, wanted []RBAC) RBACChanges {
	return CompareRBAC(slices.DeleteFunc(slices.Clone(held), func(o RBAC) bool {
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			return o.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedByHub || o.Labels[v1alpha1.UserLabel] == ""
		case *rbacv1.ClusterRoleBinding:
			_, _, ofEntry := ParseCatalogGrantName(o.Name)
			return ofEntry || o.Labels[v1alpha1.BotLabel] != ""
		}
		return false
	}), wanted, false)
}

// AllRBAC returns objects of one kind as RBAC.
func AllRBAC[T RBAC](objects []T) []RBAC {
	all := make([]RBAC, len(objects))
	for i, o := range objects {
		all[i] = o
	}
	return all
}
