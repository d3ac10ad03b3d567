package kcptest

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/controller"
)

// ErrDown is how calls fail.
var ErrDown = errors.New("kcp cannot be reached")

// Calls are those of a hub. The one with the number Fails fails; none where that is
// zero.
type Calls struct {
	Did         []string
	Made, Fails int
	// Late says that the failing call has happened all the same: its answer got lost.
	Late bool
}

// Call makes one.
func (c *Calls) Call(what string, do func()) error {
	if c.Made++; c.Made != c.Fails {
		c.Did = append(c.Did, what)
		do()
		return nil
	}
	if c.Late {
		do()
	}
	return ErrDown
}

// Converge runs passes until state stays the same or a pass fails. It returns the time
// after which the last pass wants to be repeated.
func (c *Calls) Converge(t testing.TB, pass func() (controller.Result, error), state func() any) (time.Duration, error) {
	t.Helper()
	for range 50 {
		before := state()
		result, err := pass()
		if err != nil || state() == before {
			return result.RequeueAfter, err
		}
	}
	require.Fail(t, "it never comes to an end", "%v", c.Did)
	return 0, nil
}

// Patched is an object to which a JSON merge patch was applied.
func Patched[T any](t testing.TB, held *T, patch []byte) *T {
	t.Helper()
	before, err := json.Marshal(held)
	require.NoError(t, err)
	after, err := jsonpatch.MergePatch(before, patch)
	require.NoError(t, err)
	changed := new(T)
	require.NoError(t, json.Unmarshal(after, changed))
	return changed
}

// Gone reports whether nothing holds a deleted object any more.
func Gone(o metav1.Object) bool {
	return o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0
}
