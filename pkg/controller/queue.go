package controller

import (
	"cmp"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/fairqueue"
)

// queue is the queue of one run. Urgent keys come first, and the owners of keys take turns: no tenant
// delays the keys of others by many of its own.
type queue struct {
	workqueue.TypedDelayingInterface[Key]
	keys *keys
}

func newQueue(c clock.WithTicker) *queue {
	k := &keys{marked: map[Key]mark{}, waiting: sets.New[Key](), urgent: sets.New[Key](), taken: sets.New[Key](), queued: sets.New[place]()}
	return &queue{workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[Key]{
		Clock: c, Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[Key]{Clock: c, Queue: k}),
	}), k}
}

// keys are the keys that wait for a worker. The workqueue calls it under its own lock.
type keys struct {
	mu    sync.Mutex
	queue fairqueue.Queue[string, place]
	// queued are the places in the queue. A key that waits has one for each of those that have enqueued it,
	// and is taken at the first of them; the others are void until it waits again.
	queued  sets.Set[place]
	waiting sets.Set[Key]
	// marked says how keys wait when they are pushed or touched next.
	marked map[Key]mark
	// urgent has the keys that wait as urgent ones, and taken those that a worker has taken as such.
	urgent, taken sets.Set[Key]
}

// place is the place of a key in the line of an owner.
type place struct {
	key    Key
	owner  string
	urgent bool
}

// mark says in which line a key waits. The owner of a key without one is its logical cluster.
type mark struct {
	owner  string
	urgent bool
}

// mark has a key wait in a line when it is added next.
func (k *keys) mark(key Key, m mark) {
	k.mu.Lock()
	defer k.mu.Unlock()
	held := k.marked[key]
	k.marked[key] = mark{cmp.Or(m.owner, held.owner), held.urgent || m.urgent}
}

// tookUrgent reports, once, whether a key was taken as an urgent one.
func (k *keys) tookUrgent(key Key) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.taken.Delete(key)
	return k.taken.Has(key)
}

// Push implements workqueue.Queue.
func (k *keys) Push(key Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.line(key)
}

// Touch implements workqueue.Queue. A waiting key waits in a further line if it became urgent, or somebody
// else enqueued it.
func (k *keys) Touch(key Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, marked := k.marked[key]; marked {
		k.line(key)
	}
}

// line puts a key into the line that it is marked for. k.mu is locked.
func (k *keys) line(key Key) {
	m := k.marked[key]
	delete(k.marked, key)
	k.waiting.Insert(key)
	if m.urgent {
		k.urgent.Insert(key)
	}
	p := place{key, cmp.Or(m.owner, key.Cluster), m.urgent}
	if !k.queued.Has(p) {
		k.queued.Insert(p)
		k.queue.Push(p, p.owner, p.urgent)
	}
}

// Pop implements workqueue.Queue.
func (k *keys) Pop() Key {
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		p, _, _ := k.queue.Pop()
		k.queued.Delete(p)
		if !k.waiting.Has(p.key) {
			continue
		}
		k.waiting.Delete(p.key)
		if k.urgent.Has(p.key) {
			k.urgent.Delete(p.key)
			k.taken.Insert(p.key)
		}
		return p.key
	}
}

// Len implements workqueue.Queue.
func (k *keys) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.waiting.Len()
}
