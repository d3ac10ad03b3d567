package providers_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// kcp judges the caller by its cache. What it let through after the removal is taken back.
func TestEnable_takesBackABindingOfARemovedAdmin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.author = func() bool { return true }
	w.enable(apitest.WSAdmin).Refused(t, http.StatusForbidden)
	require.Empty(t, w.bindings)
	w.author = nil
	require.Less(t, w.enable(apitest.WSAdmin).Code, http.StatusMultipleChoices)
	require.Len(t, w.bindings, 1)
}
