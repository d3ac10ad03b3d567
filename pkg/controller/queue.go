package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/fairqueue"
)

// queue is the queue of one run. Urgent keys come first, and the logical clusters of keys take turns:
// no tenant delays the keys of others by many of its own.
type queue struct {
	workqueue.TypedDelayingInterface[Key]
	keys *keys
}

func newQueue(c clock.WithTicker) *queue {
	k := &keys{marked: sets.New[Key](), urgent: sets.New[Key](), taken: sets.New[Key](), moved: map[Key]int{}}
	return &queue{workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[Key]{
		Clock: c, Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[Key]{Clock: c, Queue: k}),
	}), k}
}

// keys are the keys that wait for a worker. The workqueue calls it under its own lock.
type keys struct {
	mu    sync.Mutex
	queue fairqueue.Queue[string, Key]
	// marked has the keys that are urgent when they are pushed or touched next, urgent those that wait as
	// urgent ones, and taken those that a worker has taken as urgent ones.
	marked, urgent, taken sets.Set[Key]
	// moved counts the items of a key that are void, because it was pushed again as urgent. voided is
	// their sum.
	moved  map[Key]int
	voided int
}

// mark makes a key urgent when it is added next.
func (k *keys) mark(key Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.marked.Insert(key)
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
	if k.marked.Has(key) {
		k.pushUrgent(key)
		return
	}
	k.queue.Push(key, key.Cluster, false)
}

func (k *keys) pushUrgent(key Key) {
	k.marked.Delete(key)
	k.urgent.Insert(key)
	k.queue.Push(key, key.Cluster, true)
}

// Touch implements workqueue.Queue. A waiting key that became urgent waits as such.
func (k *keys) Touch(key Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.marked.Has(key) || k.urgent.Has(key) {
		k.marked.Delete(key)
		return
	}
	k.moved[key]++
	k.voided++
	k.pushUrgent(key)
}

// Pop implements workqueue.Queue.
func (k *keys) Pop() Key {
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		key, urgent, _ := k.queue.Pop()
		switch {
		case urgent:
			k.urgent.Delete(key)
			k.taken.Insert(key)
			return key
		case k.moved[key] == 0:
			return key
		}
		k.voided--
		if k.moved[key]--; k.moved[key] == 0 {
			delete(k.moved, key)
		}
	}
}

// Len implements workqueue.Queue.
func (k *keys) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.queue.Len() - k.voided
}
