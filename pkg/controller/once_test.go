package controller_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/pkg/controller"
)

func TestOnceIsOncePerObject(t *testing.T) {
	t.Parallel()
	var once controller.Once
	times := map[types.UID]int{}
	do := func(uid types.UID) { once.Do(uid, func() { times[uid]++ }) }
	do("a")
	do("b")
	do("a")
	require.Equal(t, map[types.UID]int{"a": 1, "b": 1}, times)
	// Its memory has an end, and then it is rather twice than never.
	for i := range 5000 {
		do(types.UID(strconv.Itoa(i)))
		do(types.UID(strconv.Itoa(i)))
	}
	require.Len(t, times, 5002)
	for uid, n := range times {
		require.Equal(t, 1, n, uid)
	}
	do("a")
	require.Equal(t, 2, times["a"])
}
