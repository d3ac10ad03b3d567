package fairqueue_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/fairqueue"
)

// order returns the items of a queue in the order in which they are taken. The owner of an item is
// its first letter; items of owners in upper case are urgent.
func order(items string) string {
	var q fairqueue.Queue[byte, string]
	for item := range strings.FieldsSeq(items) {
		q.Push(item, item[0], item[0] < 'a')
	}
	var taken []string
	for q.Len() > 0 {
		item, urgent, ok := q.Pop()
		if !ok || urgent != (item[0] < 'a') {
			panic(item)
		}
		taken = append(taken, item)
	}
	return strings.Join(taken, " ")
}

func TestQueue_order(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ items, want string }{
		"nothing":                              {"", ""},
		"one owner":                            {"a1 a2 a3", "a1 a2 a3"},
		"owners take turns":                    {"a1 a2 a3 a4 b1 b2 c1", "a1 b1 c1 a2 b2 a3 a4"},
		"urgent items are first":               {"a1 a2 b1 C1", "C1 a1 b1 a2"},
		"owners of urgent items take turns":    {"a1 M1 M2 M3 A1", "M1 A1 M2 M3 a1"},
		"urgent items do not starve the rest":  {"a1 b1 M1 M2 M3 M4 M5 M6 M7 M8 M9", "M1 M2 M3 M4 M5 M6 M7 a1 M8 M9 b1"},
		"the rest is not preferred afterwards": {"M1 M2 M3 M4 M5 M6 M7 M8 a1 a2", "M1 M2 M3 M4 M5 M6 M7 a1 M8 a2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, order(c.items))
		})
	}
}

// Urgent items that nobody waited for do not count.
func TestQueue_prefersAnUrgentItemAfterMany(t *testing.T) {
	t.Parallel()
	var q fairqueue.Queue[string, int]
	_, _, ok := q.Pop()
	require.False(t, ok)
	for i := range 100 {
		q.Push(i, "mallory", true)
		item, urgent, ok := q.Pop()
		require.True(t, ok && urgent)
		require.Equal(t, i, item)
	}
	q.Push(1, "bob", false)
	q.Push(2, "alice", true)
	item, urgent, _ := q.Pop()
	require.True(t, urgent)
	require.Equal(t, 2, item)
}
