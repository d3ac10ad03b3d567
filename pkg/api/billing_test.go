package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/api"
)

func TestCostCenters_areReplacedWhileTheyAreAsked(t *testing.T) {
	t.Parallel()
	var centers api.CostCenters
	require.True(t, centers.Has("4711"))
	centers.Replace(map[string]bool{"12": true})
	require.False(t, centers.Has("4711"))
	require.True(t, centers.Has("12"))
	centers.Replace(nil)
	require.True(t, centers.Has("4711"))
}
