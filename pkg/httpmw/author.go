package httpmw

import (
	"context"
	"net/http"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// RightsStore reads from kcp what decides about the author of a grant.
type RightsStore interface {
	// GetMembership returns nil if there is none of that name.
	GetMembership(ctx context.Context, orgCluster, name string) (*v1alpha1.Membership, error)
	GetOrganization(ctx context.Context, uuid string) (*v1alpha1.Organization, error)
}

// Rights judges grants at the moment they are written: the author of a grant must be entitled when
// kcp stores it, and not only when their request came in.
//
// Grants and removals have one order, that of the versions of the Organization. A grant is a change
// of the Organization, written for the version at which its author was found to be entitled; a
// removal or demotion is one, too. kcp refuses the write of a grant for a version that is not the
// latest, and the grant is judged again. What is no change of the Organization is judged after it was
// written and before it is answered: a token that nobody has received gives no rights, and it is
// thrown away. The Membership that entitles an author is compared by its UID: a person who was
// removed and added again does not complete requests from before.
//
// A right that ends by time ends without a write. What is carried out later has the end of its author's
// right, and is dropped from then on.
type Rights struct {
	// Membership finds a Membership by name in the logical cluster of an Organization, in the cache.
	Membership func(orgCluster, name string) (*v1alpha1.Membership, bool)
	Store      RightsStore
	// Clock is the time by which rights end.
	Clock clock.PassiveClock
}

// Author is the caller of a request that gives rights.
type Author struct {
	rights Rights
	caller *Caller
	scope  tenancy.Scope
	may    func(tenancy.Scope) error
	// org and workspace are the UIDs of the Memberships that entitle a person.
	org, workspace types.UID
}

// Begin applies the rule may to the scope of a request, and returns the caller as the author of
// what the request grants. The Memberships that the caller has now are the ones that count later.
func (r Rights) Begin(req *http.Request, may func(tenancy.Scope) error) (Author, error) {
	return r.BeginIn(req, *ScopeOf(req), may)
}

// BeginIn is Begin for a scope that the request is about, in place of that of its path.
func (r Rights) BeginIn(req *http.Request, scope tenancy.Scope, may func(tenancy.Scope) error) (Author, error) {
	a := Author{rights: r, caller: CallerOf(req), scope: scope, may: may}
	if err := may(a.scope); err != nil {
		return Author{}, err
	}
	if a.caller.Bot == nil {
		a.org = r.uid(a.scope, "")
		if a.scope.Workspace != nil {
			a.workspace = r.uid(a.scope, a.scope.Workspace.UUID)
		}
	}
	return a, nil
}

// Under returns the author under another rule, which decides from now on.
func (a Author) Under(may func(tenancy.Scope) error) (Author, error) {
	a.may = may
	return a, may(a.scope)
}

func (r Rights) uid(s tenancy.Scope, workspace string) types.UID {
	if m, ok := r.Membership(s.Org.ClusterID, tenancy.MembershipName(s.User, workspace)); ok {
		return m.UID
	}
	return ""
}

// EntitledBy is the UID of the Membership that entitles a person: that of the Organization if it suffices.
func (a Author) EntitledBy() types.UID {
	if a.scope.OrgRole.AtLeast(v1alpha1.RoleAdmin) {
		return a.org
	}
	return a.workspace
}

// Judge applies the rule again to what kcp has. o is the version of the Organization that the
// grant is written for, or that was read after the grant was written: the author is entitled at
// that version, or the error refuses the grant.
func (a Author) Judge(ctx context.Context, o *v1alpha1.Organization) error {
	_, err := a.JudgeUntil(ctx, o)
	return err
}

// JudgeUntil is Judge for a grant that is carried out later. It also returns the time at which the
// author's right ends, or nil: the grant must not be carried out from then on.
func (a Author) JudgeUntil(ctx context.Context, o *v1alpha1.Organization) (*metav1.Time, error) {
	s, err := a.JudgeStanding(ctx, o)
	return s.Until, err
}

// JudgeStanding is Judge for a grant that depends on what entitles the author. A bot's is empty.
func (a Author) JudgeStanding(ctx context.Context, o *v1alpha1.Organization) (s tenancy.Standing, err error) {
	if err := a.caller.Valid(); err != nil {
		return s, err
	}
	if a.caller.Bot != nil {
		// A bot grants with its own credential only, which kcp judges.
		return s, nil
	}
	var inOrg, inWorkspace *v1alpha1.Membership
	reads, ctx := errgroup.WithContext(ctx)
	reads.Go(func() (err error) {
		inOrg, err = a.held(ctx, "", a.org)
		return err
	})
	if a.scope.Workspace != nil {
		reads.Go(func() (err error) {
			inWorkspace, err = a.held(ctx, a.scope.Workspace.UUID, a.workspace)
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return s, err
	}
	now := a.rights.Clock.Now()
	if err := a.may(a.scope.At(o, inOrg, inWorkspace, now)); err != nil {
		return s, err
	}
	return a.scope.StandingOf(o, inOrg, inWorkspace, now, a.may), nil
}

// JudgeNow is Judge for the Organization as kcp has it.
func (a Author) JudgeNow(ctx context.Context) error {
	o, err := a.rights.Store.GetOrganization(ctx, a.scope.Org.UUID())
	if err != nil {
		return err
	}
	return a.Judge(ctx, o)
}

// held returns the author's Membership in kcp, or nil if it is not the one of that UID.
func (a Author) held(ctx context.Context, workspace string, uid types.UID) (*v1alpha1.Membership, error) {
	if uid == "" {
		return nil, nil
	}
	m, err := a.rights.Store.GetMembership(ctx, a.scope.Org.ClusterID, tenancy.MembershipName(a.scope.User, workspace))
	if err != nil || m == nil || m.UID != uid {
		return nil, err
	}
	return m, nil
}
