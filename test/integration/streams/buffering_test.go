package streams

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

func TestWatch_isNotBuffered(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	org := hub.CreateOrg(t, "alice", "ACME")
	cluster := hub.CreateWorkspace(t, "alice", org, "platform").Text("clusterID")
	request, err := http.NewRequest(http.MethodGet, hub.URL+"/clusters/"+cluster+"/api/v1/namespaces/default/configmaps?watch=true", http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+framework.Token("alice"))
	response, err := hub.HTTP.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	seen := make(chan string)
	go func() {
		defer close(seen)
		scanner := bufio.NewScanner(response.Body)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			seen <- scanner.Text()
		}
	}()
	for i := range 3 {
		name := fmt.Sprintf("event-%d", i)
		hub.Do(t, call{
			As: "alice", Method: http.MethodPost, Path: "/clusters/" + cluster + "/api/v1/namespaces/default/configmaps",
			Body: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]string{"name": name}},
		}, http.StatusCreated)
		// Each event arrives before the next one is caused, so nothing is buffered.
		deadline := time.After(30 * time.Second)
		for arrived := false; !arrived; {
			select {
			case line := <-seen:
				arrived = strings.Contains(line, `"`+name+`"`)
			case <-deadline:
				require.Fail(t, "the event did not arrive", name)
			}
		}
	}
}
