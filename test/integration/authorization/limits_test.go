package authorization

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// withToken returns a call with a token of the test's choice.
func withToken(token, method, path string) call {
	return call{Method: method, Path: path, Header: http.Header{"Authorization": {"Bearer " + token}}}
}

// metrics returns the metrics of a hub as text.
func metrics(t *testing.T, hub *framework.Hub) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hub.Metrics, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(raw)
}

// A flood of bad tokens comes from the address behind which alice works.
func TestLimits_keepAFloodOfBadTokensFromNeighbours(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), func(o *server.Options) { o.Limits.FailedAuthenticationsPerPeer = 0.001 })
	org := hub.CreateOrg(t, "alice", "ACME")
	cluster := hub.CreateWorkspace(t, "alice", org, "work").Text("clusterID")
	hub.Do(t, withToken("forged-0", http.MethodGet, "/api/users/me"), http.StatusUnauthorized)
	for i := range 100 {
		for _, path := range []string{"/api/users/me", "/clusters/" + cluster + "/api/v1/namespaces"} {
			a := hub.Do(t, withToken(fmt.Sprintf("forged-%d", i), http.MethodGet, path), http.StatusTooManyRequests)
			require.NotEmpty(t, a.Header.Get("Retry-After"))
			require.EqualValues(t, "TooManyRequests", framework.StatusOf(t, a).Reason)
		}
		hub.Do(t, call{As: "alice", Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
		hub.Enters(t, "alice", cluster)
	}
	require.Contains(t, metrics(t, hub), `kedge_limited_total{limit="failed_authentications_per_peer"} 200`)
}

func TestLimits_boundTheStreamsOfAPerson(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), func(o *server.Options) { o.Limits.MaxStreamsPerPerson = 2 })
	org := hub.CreateOrg(t, "alice", "ACME")
	cluster := hub.CreateWorkspace(t, "alice", org, "work").Text("clusterID")
	watch := func() (code int, stop func()) {
		ctx, cancel := context.WithTimeout(t.Context(), framework.Long)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, hub.URL+"/clusters/"+cluster+"/api/v1/namespaces?watch=true", http.NoBody)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+framework.Token("alice"))
		response, err := hub.HTTP.Do(r)
		require.NoError(t, err)
		return response.StatusCode, func() { cancel(); _ = response.Body.Close() }
	}
	code, end := watch()
	require.Equal(t, http.StatusOK, code)
	code, other := watch()
	require.Equal(t, http.StatusOK, code)
	defer other()
	code, stop := watch()
	stop()
	require.Equal(t, http.StatusTooManyRequests, code)
	hub.Enters(t, "alice", cluster)
	end()
	framework.Eventually(t, framework.Long, func() error {
		code, stop := watch()
		stop()
		return framework.Check(code == http.StatusOK, "the watch that ended is still counted")
	})
}

// A member lists large objects in parallel, without a limit. One list at a time is in progress, and a
// neighbour does not notice.
func TestLimits_boundWhatListsHoldInMemory(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), func(o *server.Options) { o.Limits.MaxBytesInFlight = "64Mi" })
	framework.SignUp(t, hub, "alice", "bob")
	org := hub.CreateOrg(t, "alice", "ACME")
	ws := hub.CreateWorkspace(t, "alice", org, "work")
	neighbour := hub.CreateWorkspace(t, "bob", hub.CreateOrg(t, "bob", "Bobs"), "work").Text("clusterID")
	secrets := func(as, cluster, below string) call {
		return call{As: as, Method: http.MethodGet, Path: "/clusters/" + cluster + "/api/v1/namespaces/default/secrets" + below}
	}
	for i := range 20 {
		create := secrets("alice", ws.Text("clusterID"), "")
		create.Method = http.MethodPost
		create.Body = map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": fmt.Sprintf("large-%d", i)},
			"stringData": map[string]string{"x": strings.Repeat("x", 900<<10)},
		}
		// While the Workspace is measured a create is answered 503 with Retry-After, which kubectl repeats.
		framework.Eventually(t, framework.Long, func() error {
			a, err := hub.Try(create)
			return framework.Check(err == nil && a.Code == http.StatusCreated, "%d %v", a.Code, err)
		})
	}
	framework.Eventually(t, framework.Long, func() error {
		a := hub.Do(t, framework.InWorkspace("alice", http.MethodGet, org, ws.Text("uuid"), "", nil), http.StatusOK)
		bytes, _ := a.JSON["bytes"].(map[string]any)
		used, _ := bytes["used"].(float64)
		return framework.Check(used > 16<<20, "measured are %v", a.JSON["bytes"])
	})

	const lists = 12
	codes := make(chan int, lists)
	for range lists {
		go func() {
			list := secrets("alice", ws.Text("clusterID"), "")
			// A client of these decodes no JSON, which takes it longer than the hub.
			list.Header = http.Header{"Accept": {"application/vnd.kubernetes.protobuf"}}
			a, err := hub.Try(list)
			if err != nil {
				t.Error(err)
			}
			codes <- a.Code
		}()
	}
	counted := map[int]int{}
	for range lists {
		// Lists and reads of the neighbour, and reads of the flooded Workspace, pass at once.
		hub.Do(t, secrets("bob", neighbour, ""), http.StatusOK)
		hub.Do(t, secrets("alice", ws.Text("clusterID"), "/none"), http.StatusNotFound)
		require.Regexp(t, `kedge_proxy_in_flight_bytes (0|1\.[0-9]*e\+07)\n`, metrics(t, hub), "at most a quarter of 64Mi")
		counted[<-codes]++
	}
	require.Equal(t, lists, counted[http.StatusOK]+counted[http.StatusTooManyRequests], "%v", counted)
	require.Positive(t, counted[http.StatusOK])
	hub.Do(t, secrets("alice", ws.Text("clusterID"), "?limit=5"), http.StatusOK)
}

// A client keeps the bodies of its writes back: nine hold the slot and the places of those that wait.
func TestLimits_boundTheWritesOfAPersonInFlight(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), func(o *server.Options) { o.Limits.MaxWritesInFlightPerPerson = 1 })
	framework.SignUp(t, hub, "alice", "erin")
	create := call{As: "erin", Method: http.MethodPost, Path: "/api/orgs", Body: map[string]string{"displayName": "ACME"}}
	const most = 9
	codes := make(chan int, most)
	var held []*io.PipeWriter
	for range most {
		body, rest := io.Pipe()
		held = append(held, rest)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, hub.URL+create.Path, body)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+framework.Token("erin"))
		r.Header.Set("Content-Type", "application/json")
		go func() {
			response, err := hub.HTTP.Do(r)
			if err != nil {
				t.Error(err)
				codes <- 0
				return
			}
			_ = response.Body.Close()
			codes <- response.StatusCode
		}()
	}
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(strings.Contains(metrics(t, hub), fmt.Sprintf("kedge_http_requests_in_flight %d", most)), "the hub does not have all requests yet")
	})
	refused := hub.Do(t, create, http.StatusTooManyRequests)
	require.NotEmpty(t, refused.Header.Get("Retry-After"))
	require.Contains(t, metrics(t, hub), `kedge_limited_total{limit="writes_in_flight_per_person"} 1`)
	hub.Do(t, call{As: "erin", Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
	hub.Do(t, call{As: "alice", Method: http.MethodPost, Path: "/api/orgs", Body: `{"displayName":""}`}, http.StatusBadRequest)
	for _, rest := range held {
		_, err := io.WriteString(rest, `{"displayName":""}`)
		require.NoError(t, err)
		require.NoError(t, rest.Close())
	}
	for range held {
		require.Equal(t, http.StatusBadRequest, <-codes)
	}
	hub.Do(t, create, http.StatusCreated)
}

// A client without a credential announces a body and keeps it back.
func TestLimits_answerBeforeTheBodyOfAStranger(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	pem, err := os.ReadFile(hub.CA)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(pem))
	send := func(authorization, rest string) string {
		t.Helper()
		dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
		conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(hub.URL, "https://"))
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		// The server's own time-out for a body is a minute.
		require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
		_, err = io.WriteString(conn, "POST /api/orgs HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\n"+authorization+rest)
		require.NoError(t, err)
		raw, err := io.ReadAll(conn)
		var refused net.Error
		require.NotErrorAs(t, err, &refused, "the hub waits for the body")
		line, _, _ := strings.Cut(string(raw), "\r\n")
		return line
	}
	const body = `{"displayName":"ACME"}`
	whole, part := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body), "Content-Length: 65536\r\n\r\n{"
	require.Equal(t, "HTTP/1.1 401 Unauthorized", send("", part))
	require.Equal(t, "HTTP/1.1 401 Unauthorized", send("Authorization: Bearer forged\r\n", part))
	require.Equal(t, "HTTP/1.1 401 Unauthorized", send("", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"))
	require.Equal(t, "HTTP/1.1 201 Created", send("Authorization: Bearer "+framework.Token("alice")+"\r\nConnection: close\r\n", whole))
}
