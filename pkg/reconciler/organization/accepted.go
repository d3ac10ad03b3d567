package organization

import (
	"context"
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// accepted carries out the changes of objects of one kind that the Organization has accepted. It can be interrupted
// anywhere: a change that was carried out is carried out again without effect.
type accepted[C any] struct {
	// condition is that of the step, and noun names the objects.
	condition, noun string
	// of returns the changes that an Organization lists, and same reports whether two are one.
	of      func(*v1alpha1.Organization) *[]C
	same    func(a, b C) bool
	cluster clusterFunc
	orgs    organizations
	objects changer[C]
}

// changer carries out accepted changes of objects. A change that does not apply any more is no error.
type changer[C any] interface {
	Change(ctx context.Context, cluster string, c C) error
}

// invitations carries out spec.invitationChanges.
func invitations(
	cluster clusterFunc, orgs organizations, objects changer[v1alpha1.InvitationChange],
) *accepted[v1alpha1.InvitationChange] {
	return &accepted[v1alpha1.InvitationChange]{
		condition: v1alpha1.ConditionInvitationsChanged, noun: "invitations",
		of:   func(o *v1alpha1.Organization) *[]v1alpha1.InvitationChange { return &o.Spec.InvitationChanges },
		same: tenancy.SameInvitationChange, cluster: cluster, orgs: orgs, objects: objects,
	}
}

// requests carries out spec.requestChanges.
func requests(
	cluster clusterFunc, orgs organizations, objects changer[v1alpha1.RequestChange],
) *accepted[v1alpha1.RequestChange] {
	return &accepted[v1alpha1.RequestChange]{
		condition: v1alpha1.ConditionRequestsChanged, noun: "requests",
		of:   func(o *v1alpha1.Organization) *[]v1alpha1.RequestChange { return &o.Spec.RequestChanges },
		same: tenancy.SameRequestChange, cluster: cluster, orgs: orgs, objects: objects,
	}
}

func (s *accepted[C]) Condition() string { return s.condition }

func (s *accepted[C]) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	changes := *s.of(org)
	if len(changes) == 0 {
		return controller.Result{}, nil
	}
	cluster, ok := s.cluster(org.Name)
	if !ok {
		return controller.Result{Message: s.noun + " are made once the organization's workspace exists"}, nil
	}
	// A cache that is behind can show a change that was carried out, and an object that was removed since.
	now, err := s.orgs.current(ctx, org)
	if err != nil {
		return controller.Result{}, err
	}
	var left []C
	var failed error
	for _, c := range changes {
		if !slices.ContainsFunc(*s.of(now), func(o C) bool { return s.same(o, c) }) {
			continue
		}
		if err := s.objects.Change(ctx, cluster, c); err != nil {
			left, failed = append(left, c), err
		}
	}
	*s.of(org) = left
	return controller.Result{}, failed
}
