// Package v1alpha1 holds the API types of the group tenancy.kedge.faros.sh: User,
// Organization, Membership, UserMembershipIndex, Bot, Session and CatalogEntry, all
// cluster-scoped. It also names the annotations, labels, finalizers, condition types and
// reasons that belong to them. It has no logic; the rules are in pkg/tenancy.
//
// Validation is in the schemas (patterns, enums, CEL rules), so that it holds for kubectl
// as it does for the REST API.
//
// +k8s:deepcopy-gen=package
// +groupName=tenancy.kedge.faros.sh
package v1alpha1
