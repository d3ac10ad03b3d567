package streams

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/test/framework"
)

// halfSent is a create of a ConfigMap of which headers and first bytes have been sent.
type halfSent struct {
	rest   string
	body   *io.PipeWriter
	answer chan halfAnswer
}

type halfAnswer struct {
	code int
	raw  []byte
	err  error
}

func sendHalf(t testing.TB, hub *framework.Hub, as, cluster, name string, http2 bool) *halfSent {
	t.Helper()
	body, w := io.Pipe()
	whole := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"}}`
	s := &halfSent{rest: whole[10:], body: w, answer: make(chan halfAnswer, 1)}
	forwarded, done := make(chan struct{}, 1), make(chan struct{})
	ctx, cancel := context.WithTimeout(context.Background(), framework.Long)
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		Got100Continue: func() { forwarded <- struct{}{} },
	}), http.MethodPost, hub.URL+"/clusters/"+cluster+configMaps, body)
	require.NoError(t, err)
	request.ContentLength = int64(len(whole))
	request.Header.Set("Authorization", "Bearer "+framework.Token(as))
	request.Header.Set("Content-Type", "application/json")
	// The hub sends 100 Continue when it reads the body, which it does to forward it.
	request.Header.Set("Expect", "100-continue")
	client := watchClient(t, hub, http2)
	go func() {
		defer close(done)
		s.answer <- askHalf(client, request)
	}()
	t.Cleanup(func() { cancel(); _ = w.Close(); <-done })
	_, err = io.WriteString(w, whole[:10])
	require.NoError(t, err)
	select {
	case <-forwarded:
	case <-time.After(framework.Long):
		require.Fail(t, "the request is not on its way to kcp")
	}
	return s
}

func askHalf(client *http.Client, request *http.Request) (a halfAnswer) {
	response, err := client.Do(request)
	if err != nil {
		return halfAnswer{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	a.code = response.StatusCode
	a.raw, a.err = io.ReadAll(response.Body)
	return a
}

// finish sends the rest. A hub that has refused the request does not read it.
func (s *halfSent) finish(t testing.TB) halfAnswer {
	t.Helper()
	_, err := io.WriteString(s.body, s.rest)
	require.True(t, err == nil || errors.Is(err, io.ErrClosedPipe), err)
	require.NoError(t, s.body.Close())
	a := <-s.answer
	require.NoError(t, a.err)
	return a
}

// The attack: begin writes before the right to them ends and send the rest afterwards. kcp has
// authorized them by their headers.
func TestRevocation_cutsHalfSentWrites(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot())
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "dev")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	framework.SignUp(t, hub, "bob", "dave")
	list := func(as string) call {
		return call{As: as, Method: http.MethodGet, Path: "/clusters/" + cluster + configMaps + "?limit=1"}
	}
	for version, http2 := range map[string]bool{"h1": false, "h2": true} {
		for _, user := range []string{"bob", "dave"} {
			c := framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding(user, "member"))
			hub.Do(t, c, http.StatusCreated, http.StatusOK)
			framework.Eventually(t, framework.Long, func() error {
				a, err := hub.Try(list(user))
				return framework.Check(err == nil && a.Code == http.StatusOK, "%v %s", err, a.Raw)
			})
		}
		daves := sendHalf(t, hub, "dave", cluster, "daves-"+version, http2)
		bobs := sendHalf(t, hub, "bob", cluster, "bobs-"+version, http2)
		cut := metric(t, hub, "kedge_proxy_revocation_seconds_count")

		hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, org, ws, "/members/dave", nil), http.StatusNoContent)
		hub.Do(t, list("dave"), http.StatusForbidden)
		refused := daves.finish(t)
		require.Equal(t, http.StatusForbidden, refused.code, "%s: %s", version, refused.raw)
		var status metav1.Status
		require.NoError(t, json.Unmarshal(refused.raw, &status))
		require.Equal(t, metav1.StatusReasonForbidden, status.Reason)
		require.Contains(t, status.Message, "while the request was open")
		framework.Eventually(t, framework.Long, func() error {
			now := metric(t, hub, "kedge_proxy_revocation_seconds_count")
			return framework.Check(now == cut+1, "%v cuts, and one was to come to %v", now, cut)
		})
		done := bobs.finish(t)
		require.Equal(t, http.StatusCreated, done.code, "%s: the positive control: %s", version, done.raw)

		object := call{As: "alice", Method: http.MethodGet, Path: "/clusters/" + cluster + configMaps + "/daves-" + version}
		hub.Do(t, object, http.StatusNotFound)
		object.Path = "/clusters/" + cluster + configMaps + "/bobs-" + version
		hub.Do(t, object, http.StatusOK)
	}
}
