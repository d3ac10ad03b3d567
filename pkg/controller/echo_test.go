package controller_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/controller"
)

func TestAnEchoIsTheControllersOwnWriteAndNobodyElses(t *testing.T) {
	t.Parallel()
	e := controller.NewEcho()
	key := controller.Key{Cluster: "c", Name: "n"}
	require.False(t, e.Is(key, "1"), "nothing was written")
	e.Wrote(key, "2")
	require.True(t, e.Is(key, "2"))
	require.False(t, e.Is(key, "3"), "somebody else wrote after it")
	require.False(t, e.Is(controller.Key{Cluster: "d", Name: "n"}, "2"), "another object")
	require.False(t, e.Is(key, ""))
	e.Forget(key)
	require.False(t, e.Is(key, "2"))
}
