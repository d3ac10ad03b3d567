// Package v1alpha1 holds the objects of the tenancy model: User, Organization,
// Membership, UserMembershipIndex and CatalogEntry, all cluster-scoped, and the
// names of the annotations, labels, conditions and reasons that go with them.
// It holds types and constants only; the rules about them live in pkg/tenancy.
//
// +k8s:deepcopy-gen=package
// +groupName=tenancy.kedge.faros.sh
package v1alpha1
