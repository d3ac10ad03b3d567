package views

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// endsEvery is the interval in which ends that have come are published.
	endsEvery = 200 * time.Millisecond
	// endsKept is the number of ends that nothing has any more below which the queue is left as it is.
	endsKept = 1024
)

// expiry has the ends of Memberships, or of child Workspaces, by time. Each answer about one compares its
// end with the clock, so that it gives nothing from that second on. The queue is for subscribers: they are
// told of the end of a Membership as of a removal, and of that of a Workspace as of a soft deletion.
type expiry struct {
	clock clock.WithTicker

	mu    sync.RWMutex
	queue ends
	// of has the ends that something has, and live is their number. The queue also has others, up to as many again.
	of   map[Key][]int64
	live int
	// over has the ends that were published, in Unix time. They stay over if the clock is set back.
	over map[Key][]int64
}

type end struct {
	key Key
	at  int64
}

func newExpiry(c clock.WithTicker) *expiry {
	if c == nil {
		c = clock.RealClock{}
	}
	return &expiry{clock: c, of: map[Key][]int64{}, over: map[Key][]int64{}}
}

// endsOf returns the ends of the parts of a Membership in Unix time, which is positive.
func endsOf(m *v1alpha1.Membership) (ends []int64) {
	if m == nil {
		return nil
	}
	for _, at := range tenancy.Ends(m) {
		ends = append(ends, unixEnd(at))
	}
	return ends
}

// firstEnd is the soonest one of endsOf, or zero.
func firstEnd(m *v1alpha1.Membership) int64 {
	if ends := endsOf(m); len(ends) > 0 {
		return slices.Min(ends)
	}
	return 0
}

// endsOfWorkspace is endsOf for a child Workspace.
func endsOfWorkspace(ws *kcptenancyv1alpha1.Workspace) []int64 {
	if ws == nil || ws.Annotations[v1alpha1.ExpiresAtAnnotation] == "" {
		return nil
	}
	if at := tenancy.WorkspaceOf("", ws).ExpiresAt; at != nil {
		return []int64{unixEnd(at)}
	}
	return nil
}

func unixEnd(at *metav1.Time) int64 {
	if at == nil {
		return 0
	}
	return max(1, at.Unix())
}

// change follows a change of ends in Unix time.
func (e *expiry) change(key Key, was, is []int64) {
	if slices.Equal(was, is) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	over := slices.DeleteFunc(e.over[key], func(at int64) bool { return !slices.Contains(is, at) })
	if e.over[key] = over; len(over) == 0 {
		delete(e.over, key)
	}
	e.live += len(is) - len(e.of[key])
	if e.of[key] = is; len(is) == 0 {
		delete(e.of, key)
	}
	for _, at := range is {
		if !slices.Contains(was, at) {
			heap.Push(&e.queue, end{key, at})
		}
	}
	if len(e.queue) > 2*e.live+endsKept {
		e.compact()
	}
}

// compact drops what nothing has any more from the queue: somebody can give a Membership another end again and again,
// each of them many years ahead. e.mu is locked.
func (e *expiry) compact() {
	seen := map[end]bool{}
	e.queue = slices.DeleteFunc(e.queue, func(q end) bool {
		gone := seen[q] || !slices.Contains(e.of[q.key], q.at)
		seen[q] = true
		return gone
	})
	e.queue = slices.Clone(e.queue)
	heap.Init(&e.queue)
}

// ended reports whether what has this end gives nothing any more.
func (e *expiry) ended(key Key, at int64) bool {
	if at == 0 {
		return false
	}
	if e.clock.Now().Unix() >= at {
		return true
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	return slices.Contains(e.over[key], at)
}

// effective returns what a Membership gives now, or nil if that is nothing.
func (e *expiry) effective(m *v1alpha1.Membership, key Key) *v1alpha1.Membership {
	if len(m.Spec.Extra) == 0 {
		if e.ended(key, unixEnd(m.Spec.ExpiresAt)) {
			return nil
		}
		return m
	}
	return tenancy.Effective(m, func(at *metav1.Time) bool { return e.ended(key, unixEnd(at)) })
}

// partEnded reports whether a part of a Membership has ended.
func (e *expiry) partEnded(m *v1alpha1.Membership, key Key) bool {
	return slices.ContainsFunc(endsOf(m), func(at int64) bool { return e.ended(key, at) })
}

// due takes what is over by now from the queue. Some of it may have another end by now.
func (e *expiry) due() (over []end) {
	now := e.clock.Now().Unix()
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queue) > 0 && e.queue[0].at <= now {
		over = append(over, heap.Pop(&e.queue).(end)) //nolint:forcetypeassert // the queue has nothing else
	}
	return over
}

// setOver reports whether the end was not published before.
func (e *expiry) setOver(past end) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.Contains(e.over[past.key], past.at) {
		return false
	}
	e.over[past.key] = append(e.over[past.key], past.at)
	return true
}

// ends is a heap with the soonest end first.
type ends []end

func (q ends) Len() int           { return len(q) }
func (q ends) Less(i, j int) bool { return q[i].at < q[j].at }
func (q ends) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *ends) Push(x any)        { *q = append(*q, x.(end)) } //nolint:forcetypeassert // as above

func (q *ends) Pop() any {
	last := len(*q) - 1
	popped := (*q)[last]
	*q = (*q)[:last]
	return popped
}

// expire publishes the ends of Memberships and of Workspaces until ctx ends.
func (v *Views) expire(ctx context.Context) {
	ticker := v.memberships.expiry.clock.NewTicker(endsEvery)
	defer ticker.Stop()
	for {
		v.publishEnds()
		v.publishWorkspaceEnds()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

func (v *Views) publishEnds() {
	for _, past := range v.memberships.expiry.due() {
		m, ok := v.Memberships.Get(past.key.Cluster, past.key.Name)
		if !ok || !slices.Contains(endsOf(m), past.at) || !v.memberships.expiry.setOver(past) {
			continue
		}
		v.memberships.touch(m.Spec.UserRef.Name)
		v.metrics.expired.Inc()
		before := tenancy.Effective(m, func(at *metav1.Time) bool { return at != nil && unixEnd(at) < past.at })
		if before == nil {
			continue
		}
		v.Memberships.publish(past.key.Cluster, Change[*v1alpha1.Membership]{Old: before, New: v.memberships.expiry.effective(m, past.key)})
	}
}

func (v *Views) publishWorkspaceEnds() {
	e := v.topology.expiry
	for _, past := range e.due() {
		ws, ok := v.ChildWorkspaces.Get(past.key.Cluster, past.key.Name)
		if !ok || !slices.Contains(endsOfWorkspace(ws), past.at) || !e.setOver(past) {
			continue
		}
		ended := ws.DeepCopy()
		if tenancy.MarkEnded(tenancy.WorkspaceOf("", ws), ended.Annotations, time.Unix(past.at, 0)) {
			v.ChildWorkspaces.publish(past.key.Cluster, Change[*kcptenancyv1alpha1.Workspace]{Old: ws, New: ended})
		}
	}
}

// Expired returns the Memberships in an Organization that have ended by time, or of which a part has, and
// which is not removed yet, in no order.
func (v *Views) Expired(orgCluster string) (expired []*v1alpha1.Membership) {
	e := v.memberships.expiry
	e.mu.RLock()
	keys := make([]Key, 0, len(e.over))
	for key := range e.over {
		if key.Cluster == orgCluster {
			keys = append(keys, key)
		}
	}
	e.mu.RUnlock()
	for _, key := range keys {
		if m, ok := v.Memberships.Get(key.Cluster, key.Name); ok && e.partEnded(m, key) {
			expired = append(expired, m)
		}
	}
	return expired
}

// Ending reports whether a part of a Membership of the User in the Organization or its Workspace has ended by
// time and is not removed yet.
func (v *Views) Ending(user, org, workspace string) bool {
	o, ok := v.Org(org)
	return ok && (v.memberships.ending(user, Key{o.ClusterID, tenancy.MembershipName(user, "")}) ||
		v.memberships.ending(user, Key{o.ClusterID, tenancy.MembershipName(user, workspace)}))
}
