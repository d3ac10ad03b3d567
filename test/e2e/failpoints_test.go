package e2e

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// An environment variable kills the hub of the tests at a write. The hub that people get does not
// know it.
func TestFailPoints_areNotInTheReleasedProgram(t *testing.T) {
	t.Parallel()
	for name, there := range map[string]bool{"kedge-hub": false, framework.FailPoints: true} {
		program, err := framework.Bin(name)
		require.NoError(t, err)
		raw, err := os.ReadFile(program)
		require.NoError(t, err)
		require.Equal(t, there, bytes.Contains(raw, []byte("KEDGE_FAIL_POINT_FILE")), name)
	}
}
