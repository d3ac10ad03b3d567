// Package fairqueue implements a queue in which no owner of items can delay those of others, and
// urgent items come first.
//
// # Decisions
//
//   - The owners of items take turns, so that an item waits for at most one item of each other owner
//     that waits, however many items an owner has.
//   - Urgent items come before the others. After maxInARow of them one of the others is taken, so that a
//     steady flow of urgent items does not starve them.
package fairqueue

import "container/list"

// maxInARow is the number of urgent items that are taken in a row while other items wait.
const maxInARow = 7

// Queue holds items of owners. The zero value is an empty Queue. It is not safe for concurrent use.
type Queue[O comparable, T any] struct {
	urgent, rest lane[O, T]
	// inARow is the number of urgent items that were taken since one of the rest was taken or none
	// was left.
	inARow int
}

// Push adds an item of an owner.
func (q *Queue[O, T]) Push(item T, owner O, urgent bool) {
	if urgent {
		q.urgent.push(item, owner)
		return
	}
	q.rest.push(item, owner)
}

// Pop takes the next item and reports whether it was pushed as urgent. ok is false if there is none.
func (q *Queue[O, T]) Pop() (item T, urgent, ok bool) {
	if q.Len() == 0 {
		return item, false, false
	}
	if q.rest.n == 0 {
		q.inARow = 0
	}
	if q.urgent.n == 0 || q.inARow == maxInARow {
		q.inARow = 0
		return q.rest.pop(), false, true
	}
	q.inARow++
	return q.urgent.pop(), true, true
}

// Len returns the number of items.
func (q *Queue[O, T]) Len() int { return q.urgent.n + q.rest.n }

// lane has equally urgent items.
type lane[O comparable, T any] struct {
	n int
	// items has the items of each owner, oldest first, and turns the owners in the order in which
	// they take turns.
	items map[O][]T
	turns list.List
}

func (l *lane[O, T]) push(item T, owner O) {
	if l.items == nil {
		l.items = map[O][]T{}
	}
	of, waits := l.items[owner]
	if !waits {
		l.turns.PushBack(owner)
	}
	l.items[owner] = append(of, item)
	l.n++
}

// pop takes an item of a lane that has one.
func (l *lane[O, T]) pop() (item T) {
	turn := l.turns.Front()
	owner := turn.Value.(O)
	of := l.items[owner]
	var none T
	item, of[0] = of[0], none
	if len(of) == 1 {
		l.turns.Remove(turn)
		delete(l.items, owner)
	} else {
		l.turns.MoveToBack(turn)
		l.items[owner] = of[1:]
	}
	l.n--
	return item
}
