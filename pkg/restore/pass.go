package restore

import (
	"context"
	"errors"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// pass is one look at the Steps that are left. What several of them need is read, activated and found missing once in it:
// tenants decide how many Steps there are, and everybody waits for all of them.
type pass struct {
	*Applier
	// places are Organizations, by UUID.
	places map[string]*place
	// missing says why the caches do not have an Organization. coming has those that people have yet to get, by UUID, and
	// is nil until somebody asks.
	missing map[string]error
	coming  map[string]*v1alpha1.User
	// bindings are those of Workspaces, by logical cluster.
	bindings map[string][]*kcpapisv1alpha2.APIBinding
	// awake is what is activated for a batch, or nil.
	awake *awake
	// gone has where the Report lists the Steps in Organizations that the backup does not have.
	gone map[goneKey]int
}

func (a *Applier) begin() *pass {
	return &pass{
		Applier: a, places: map[string]*place{}, missing: map[string]error{}, bindings: map[string][]*kcpapisv1alpha2.APIBinding{},
		gone: map[goneKey]int{},
	}
}

// errBehind means that another Step of the same Membership comes first.
var errBehind = errors.New("what lowered the role before is not carried out yet")

// run tries Steps, and adds to the Report those that are over. It returns the others, and why one of them is left.
func (p *pass) run(ctx context.Context, left []Step, r *Report, tried *trials) (kept []Step, why error) {
	results, stays, waits := make([]error, len(left)), make([]bool, len(left)), map[aim]bool{}
	try := func(i int) {
		s := left[i]
		if s.Kind == LimitMember && waits[aimOf(s)] {
			results[i] = errBehind
			return
		}
		results[i] = p.step(ctx, s)
		if s.Kind == LimitMember && results[i] != nil {
			waits[aimOf(s)] = true
		}
	}
	early := false
	for _, b := range p.batches(left) {
		// Deletions begin when all else is done: nothing is written in what is deactivated.
		tooEarly := early && left[b.steps[0]].Kind.last()
		if !tooEarly {
			p.carryOut(ctx, b, results, try)
		}
		for _, i := range b.steps {
			if stays[i] = tooEarly || !p.over(ctx, left[i], results[i], r, tried); stays[i] && results[i] != nil {
				why, early = results[i], true
			}
		}
	}
	for i, s := range left {
		if stays[i] {
			kept = append(kept, s)
		}
	}
	p.warnOfGone(ctx, r)
	return kept, why
}

// over reports whether a Step needs no further try, after one with this result. The Report then has it.
func (p *pass) over(ctx context.Context, s Step, err error, r *Report, tried *trials) bool {
	var never impossible
	switch {
	case err == nil:
		r.Done = append(r.Done, s)
		tried.moved(p.Clock.Now())
	case errors.As(err, &never):
		p.impossible(ctx, s, never, r)
	case errors.Is(err, errBehind):
		return false
	case tried.over(s, err, p.Clock.Now()):
		r.Impossible = append(r.Impossible, GiveUp(ctx, s, err, p.Patience))
	default:
		return false
	}
	return true
}

// step carries out a Step. The error is errNotYet, impossible, or one that passes.
func (p *pass) step(ctx context.Context, s Step) error {
	switch s.Kind {
	case RemoveMember, LimitMember:
		return p.member(ctx, s)
	case DeleteBot, LimitBot, RevokeToken, RevokeTokens, RemoveTrust:
		return p.bot(ctx, s)
	case AnswerInvitation, BindInvitation:
		return p.invitation(ctx, s)
	case RejectPerson, SuspendPerson, DeletePerson:
		return p.person(ctx, s)
	case EndSession, EndSessions, AdvanceSession:
		return p.session(ctx, s)
	case UnmapGroup:
		return p.mapping(ctx, s)
	case DeleteOrg, LimitOrg:
		return p.org(ctx, s)
	case DeleteWorkspace, EndWorkspace:
		return p.workspace(ctx, s)
	case UseJobToken:
		return p.jobToken(ctx, s)
	case DeleteEntry:
		return p.entry(ctx, s)
	case DisableProvider, LimitProvider:
		return p.provider(ctx, s)
	}
	return impossible{reason: "this version of the hub does not know the step"}
}
