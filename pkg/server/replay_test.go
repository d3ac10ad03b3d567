package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/faroshq/kedge-hub/pkg/restore"
)

// A restore replays what took rights away. It refuses a history with an action that it does not know, so a new
// route needs a line in the table of pkg/restore.
func TestRoutes_areKnownToARestore(t *testing.T) {
	t.Parallel()
	for _, r := range Routes() {
		// Nothing is served below /api/v1: it is a path of Kubernetes.
		if r.Method == http.MethodGet || r.Method == http.MethodHead || !strings.HasPrefix(r.Pattern, "/api/") || strings.HasPrefix(r.Pattern, "/api/v1") {
			continue
		}
		assert.True(t, restore.Known(r.Method+" "+r.Pattern), "%s %s", r.Method, r.Pattern)
	}
}
