package proxy

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/inflight"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// waitingPerObject is the number of changes of one object by one person or bot that wait.
const waitingPerObject = 256

// waitingPerPayer is the number of writes of roles and bindings of one payer that wait.
const waitingPerPayer = 256

// newObjects makes the room for the changes of each object by each caller: one.
//
// kcp makes a change of what it has read and stores that if nobody was faster; else it begins again. Of n changes at
// once n - 1 are made in vain for each that is stored, and the work of n grows with its square: 64 patches at once of an
// object of 100 KiB keep two cores busy for a minute. One after the other they cost what they are worth. The room is the
// caller's own, so that nobody keeps another one from an object by sending a body slowly.
func newObjects() *inflight.Rooms {
	return &inflight.Rooms{Most: 1, Pieces: 1 + waitingPerObject, Wait: loadWait}
}

// objectDoors are those of a change of an object. A deletion waits for none.
func (l *load) objectDoors(caller string, w tenancy.Workspace, info *request.RequestInfo) []door {
	if l.objects == nil || info.Name == "" || info.Verb != "update" && info.Verb != "patch" {
		return nil
	}
	key := strings.Join([]string{caller, w.ClusterID, info.APIGroup, info.Resource, info.Namespace, info.Name}, "\n")
	return []door{{
		"changes_in_flight_per_object", "too many of your changes of this object are in progress; wait until one ends",
		func(ctx context.Context) (func(), bool, error) { return l.objects.Enter(ctx, key, "", 1) },
	}}
}

// newComparisons makes the room for the writes of roles and bindings of each payer: so many at once.
//
// kcp compares each action that a role permits with each rule of its author, before it stores the role or a binding to it.
// That takes seconds where a Workspace has a thousand API groups, and it goes on when the request has ended. So a turn
// ends with the answer of kcp and not with the client, and it begins when the hub has the body, so that nobody holds one by
// sending slowly.
func newComparisons(parallel int) *inflight.Rooms {
	return &inflight.Rooms{Most: int64(parallel), Pieces: parallel + waitingPerPayer, Wait: loadWait}
}

// compares reports whether kcp compares rules for a request.
func compares(method string, info *request.RequestInfo) bool {
	return info.APIGroup == rbacv1.GroupName && writes(method) && method != http.MethodDelete
}

// longestComparison is longer than kcp takes to end a request by itself.
const longestComparison = 70 * time.Second

// lasting returns the context of a request to kcp, which does not end with the client where kcp would go on.
func lasting(r *http.Request, info *request.RequestInfo) (context.Context, context.CancelFunc) {
	if compares(r.Method, info) {
		return context.WithTimeout(context.WithoutCancel(r.Context()), longestComparison)
	}
	return context.WithCancel(r.Context())
}

// comparison waits for the turn of a write of a role or a binding.
func (l *load) comparison(ctx context.Context, caller, payer string) (leave func(), err error) {
	if l.comparisons == nil {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, loadWait)
	defer cancel()
	if leave, _, err = l.comparisons.Enter(ctx, payer, caller, 1); err != nil {
		l.limits.Refused("role_writes_in_flight")
		return nil, errs.New(errs.TooManyRequests, "too many roles and bindings are written in your organization, "+
			"or in others of its creator; try again").After(loadRetryAfter)
	}
	return leave, nil
}

// waitingForTurn is the number of requests of an Organization that wait for a turn. The rooms of its Workspaces bound them,
// too.
const waitingForTurn = 4096

// longestTurn is how long a turn lasts at most. A request that takes longer waits for something else than a core, such as
// for a webhook or a client that sends slowly, and must not keep others from theirs.
const longestTurn = time.Second

// newTurns makes the room for the requests of each Organization that kcp has at once: so many.
//
// kcp shares its cores and its disk among the requests that it has, whose they are does not count. With sixty of one
// tenant each request of a neighbour waits for sixty, and with a few for each core the tenant gets as many answers in a
// second as with sixty. A turn ends when kcp begins to answer, so that nobody holds one by reading slowly. A request with
// a large body, or for much, has as many turns as that has quarters of a MiB.
func newTurns(turns int) *inflight.Rooms {
	return &inflight.Rooms{Most: int64(turns), Pieces: turns + waitingForTurn, Wait: loadWait}
}

// takesTurn reports whether a request has a turn. What takes something away does not wait for others. A write of a role or
// a binding has a turn of its payer: other Organizations wait for that, so it waits for nothing else.
func takesTurn(method string, info *request.RequestInfo) bool {
	return info.Verb != "delete" && !compares(method, info)
}

// turn waits until a request that counts for so many bytes may be sent to kcp. e.leave ends it.
func (l *load) turn(ctx context.Context, e *exchange, in tenancy.Workspace, bytes int64) error {
	if l.turns == nil || e.stream.longRunning {
		return nil
	}
	leave, _, err := l.turns.Enter(ctx, in.OrgUUID, e.stream.key.user, bytes/leastBytes)
	if err != nil {
		l.limits.Refused("turns_per_org")
		return errs.New(errs.TooManyRequests, "too many requests of your organization are in progress; wait until one ends").After(loadRetryAfter)
	}
	leave = sync.OnceFunc(leave)
	late := time.AfterFunc(longestTurn, leave)
	e.leave = func() {
		late.Stop()
		leave()
	}
	return nil
}
