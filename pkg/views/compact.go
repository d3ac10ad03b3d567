package views

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/google/uuid"
	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// maxConditions is the number of conditions of a Membership.
const maxConditions = 3

// compactMembership is the compact encoding of a Membership: there are more Memberships
// than other objects together. User and Workspace are parsed from the object's name, and
// the fields that many Memberships have in common are stored once.
type compactMembership struct {
	common  unique.Handle[commonMembership]
	uid     uuid.UUID
	version uint64
	// created is a Unix time in seconds, as precise as JSON. turned has the seconds from
	// there to each condition's lastTransitionTime.
	created int64
	turned  [maxConditions]int32
}

// commonMembership has the fields that many Memberships have in common.
type commonMembership struct {
	kind                 metav1.TypeMeta
	generation, observed int64
	role                 v1alpha1.Role
	sudo, manager        bool
	phase                v1alpha1.Phase
	// conditions have no times. One without a type is absent.
	conditions [maxConditions]metav1.Condition
}

// encodeMembership returns nil for a Membership that would not decode to the same object.
func encodeMembership(m *v1alpha1.Membership) informer.Compact[*v1alpha1.Membership] {
	uid, err := uuid.Parse(string(m.UID))
	if err != nil || len(m.Status.Conditions) > maxConditions {
		return nil
	}
	version, err := strconv.ParseUint(m.ResourceVersion, 10, 64)
	if err != nil {
		return nil
	}
	p := &compactMembership{uid: uid, version: version, created: m.CreationTimestamp.Unix()}
	common := commonMembership{
		kind: m.TypeMeta, generation: m.Generation, observed: m.Status.ObservedGeneration,
		role: m.Spec.Role, sudo: m.Spec.Sudo, manager: m.Spec.Manager, phase: m.Status.Phase,
	}
	for i, c := range m.Status.Conditions {
		p.turned[i] = int32(c.LastTransitionTime.Unix() - p.created) //nolint:gosec // a difference that does not fit is found below
		c.LastTransitionTime = metav1.Time{}
		common.conditions[i] = c
	}
	p.common = unique.Make(common)
	if !reflect.DeepEqual(p.Decode(kcp.ClusterOf(m), m.Name), m) {
		return nil
	}
	return p
}

// Decode implements informer.Compact.
func (p *compactMembership) Decode(cluster, name string) *v1alpha1.Membership {
	common := p.common.Value()
	user, workspace := name, ""
	if in, who, ok := strings.Cut(name, "."); ok {
		user, workspace = who, in
	}
	m := tenancy.NewWorkspaceMembership(user, workspace, common.role, nil, common.sudo)
	m.Spec.Manager = common.manager
	m.TypeMeta, m.Generation = common.kind, common.generation
	m.Annotations = map[string]string{logicalcluster.AnnotationKey: cluster}
	m.UID, m.ResourceVersion = types.UID(p.uid.String()), strconv.FormatUint(p.version, 10)
	m.CreationTimestamp = metav1.Unix(p.created, 0)
	m.Status.ObservedGeneration, m.Status.Phase = common.observed, common.phase
	n := slices.IndexFunc(common.conditions[:], func(c metav1.Condition) bool { return c.Type == "" })
	if n < 0 {
		n = maxConditions
	}
	if n > 0 {
		m.Status.Conditions = slices.Clone(common.conditions[:n])
	}
	for i := range m.Status.Conditions {
		m.Status.Conditions[i].LastTransitionTime = metav1.Unix(p.created+int64(p.turned[i]), 0)
	}
	return m
}
