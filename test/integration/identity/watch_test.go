package identity

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// watch is an open watch of namespaces through a hub.
type watch struct{ end chan struct{} }

// openWatch opens a watch as soon as the token's person is let into the cluster.
func openWatch(t *testing.T, hub *framework.Hub, token, cluster string) *watch {
	t.Helper()
	var response *http.Response
	framework.Eventually(t, framework.Long, func() error {
		request, err := http.NewRequest(http.MethodGet, hub.URL+"/clusters/"+cluster+"/api/v1/namespaces?watch=true", http.NoBody)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+token)
		if response, err = hub.HTTP.Do(request); err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			_ = response.Body.Close()
			return fmt.Errorf("the watch got %d", response.StatusCode)
		}
		return nil
	})
	w := &watch{end: make(chan struct{})}
	t.Cleanup(func() { _ = response.Body.Close() })
	go func() {
		defer close(w.end)
		_, _ = io.Copy(io.Discard, response.Body)
	}()
	return w
}

// ended waits until the watch has ended.
func (w *watch) ended(t *testing.T) {
	t.Helper()
	select {
	case <-w.end:
	case <-time.After(framework.Long):
		require.Fail(t, "the watch is still open")
	}
}

// open requires that the watch has not ended.
func (w *watch) open(t *testing.T) {
	t.Helper()
	select {
	case <-w.end:
		require.Fail(t, "the watch has ended")
	default:
	}
}
