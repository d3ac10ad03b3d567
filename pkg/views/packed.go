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
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// packedConditions is how many conditions the hub gives a Membership.
const packedConditions = 3

// packedMembership is a Membership like most: of nothing but what the hub and kcp
// give every one. There are more of them than of everything else together. Its user
// and Workspace are in its name, and what many have in common they share.
type packedMembership struct {
	common  unique.Handle[commonMembership]
	uid     uuid.UUID
	version uint64
	// created is in seconds, as in JSON; turned are how many later the conditions did.
	created int64
	turned  [packedConditions]int32
}

// commonMembership is what many Memberships have in common.
type commonMembership struct {
	kind                 metav1.TypeMeta
	generation, observed int64
	role                 v1alpha1.Role
	sudo                 bool
	phase                v1alpha1.Phase
	// conditions are without their times; those without a type are none.
	conditions [packedConditions]metav1.Condition
}

// packMembership returns nil for a Membership that would not be the same again.
func packMembership(m *v1alpha1.Membership) kcp.Packed[*v1alpha1.Membership] {
	uid, err := uuid.Parse(string(m.UID))
	if err != nil || len(m.Status.Conditions) > packedConditions {
		return nil
	}
	version, err := strconv.ParseUint(m.ResourceVersion, 10, 64)
	if err != nil {
		return nil
	}
	p := &packedMembership{uid: uid, version: version, created: m.CreationTimestamp.Unix()}
	common := commonMembership{
		kind: m.TypeMeta, generation: m.Generation, observed: m.Status.ObservedGeneration,
		role: m.Spec.Role, sudo: m.Spec.Sudo, phase: m.Status.Phase,
	}
	for i, c := range m.Status.Conditions {
		p.turned[i] = int32(c.LastTransitionTime.Unix() - p.created) //nolint:gosec // what does not fit is not packed
		c.LastTransitionTime = metav1.Time{}
		common.conditions[i] = c
	}
	p.common = unique.Make(common)
	if !reflect.DeepEqual(p.Unpack(kcp.ClusterOf(m), m.Name), m) {
		return nil
	}
	return p
}

// Unpack implements kcp.Packed.
func (p *packedMembership) Unpack(cluster, name string) *v1alpha1.Membership {
	common := p.common.Value()
	user, workspace := name, ""
	if in, who, ok := strings.Cut(name, "."); ok {
		user, workspace = who, in
	}
	m := tenancy.NewWorkspaceMembership(user, workspace, common.role, nil, common.sudo)
	m.TypeMeta, m.Generation = common.kind, common.generation
	m.Annotations = map[string]string{logicalcluster.AnnotationKey: cluster}
	m.UID, m.ResourceVersion = types.UID(p.uid.String()), strconv.FormatUint(p.version, 10)
	m.CreationTimestamp = metav1.Unix(p.created, 0)
	m.Status.ObservedGeneration, m.Status.Phase = common.observed, common.phase
	n := slices.IndexFunc(common.conditions[:], func(c metav1.Condition) bool { return c.Type == "" })
	if n < 0 {
		n = packedConditions
	}
	if n > 0 {
		m.Status.Conditions = slices.Clone(common.conditions[:n])
	}
	for i := range m.Status.Conditions {
		m.Status.Conditions[i].LastTransitionTime = metav1.Unix(p.created+int64(p.turned[i]), 0)
	}
	return m
}
