package streams

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// stream is an open stream of a person through a hub, with all the data it delivered.
type stream struct {
	name, cluster string
	hub           *framework.Hub
	text          func() string
	ended         chan struct{}
	// at is the time of the end, valid after ended is closed.
	at time.Time
}

func (s *stream) isOpen() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// streamKinds are the kinds of open watches. The upgraded one is a WebSocket, over which kcp
// serves watches too; kcp has no pods for exec.
var streamKinds = []string{"h1", "h2", "websocket", "kubectl"}

// open opens a watch of path and closes it at the end of the test.
func open(t testing.TB, hub *framework.Hub, kind, as, cluster, path string, header http.Header) *stream {
	t.Helper()
	s := &stream{name: fmt.Sprintf("%s's %s at %s", as, kind, hub.URL), cluster: cluster, hub: hub, ended: make(chan struct{})}
	if kind == "kubectl" {
		s.kubectl(t, hub, as, cluster, path[strings.LastIndex(path, "/")+1:], header)
		return s
	}
	ctx, cancel := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, hub.URL+"/clusters/"+cluster+path+"?watch=true", http.NoBody)
	require.NoError(t, err)
	for name, values := range header {
		request.Header[name] = values
	}
	request.Header.Set("Authorization", "Bearer "+framework.Token(as))
	var from io.ReadCloser
	if kind == "websocket" {
		from = upgrade(t, hub, request)
	} else {
		response, err := watchClient(t, hub, kind == "h2").Do(request)
		require.NoError(t, err, s.name)
		require.Equal(t, http.StatusOK, response.StatusCode, s.name)
		require.Equal(t, kind == "h2", response.ProtoMajor == 2)
		from = response.Body
	}
	out := &framework.Output{}
	s.text = out.String
	go func() {
		defer close(s.ended)
		// The stream has ended, with or without an error.
		_, _ = io.Copy(out, from)
		s.at = time.Now()
	}()
	t.Cleanup(func() {
		cancel()
		_ = from.Close()
		<-s.ended
	})
	return s
}

// kubectl runs kubectl get --watch.
func (s *stream) kubectl(t testing.TB, hub *framework.Hub, as, cluster, kind string, header http.Header) {
	t.Helper()
	program, err := framework.Bin("kubectl")
	require.NoError(t, err)
	args := []string{
		"--kubeconfig", os.DevNull, "--cache-dir", t.TempDir(), "--server", hub.URL + "/clusters/" + cluster,
		"--certificate-authority", hub.CA, "--token", framework.Token(as), "get", kind, "--watch", "-o", "name",
	}
	for _, user := range header["Impersonate-User"] {
		args = append(args, "--as", user)
	}
	for _, group := range header["Impersonate-Group"] {
		args = append(args, "--as-group", group)
	}
	process, err := framework.StartProcess(program, args...)
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	s.text = process.Output.String
	go func() {
		defer close(s.ended)
		<-process.Ended()
		s.at = time.Now()
	}()
}

func watchClient(t testing.TB, hub *framework.Hub, http2 bool) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: tlsOf(t, hub), ForceAttemptHTTP2: http2}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func tlsOf(t testing.TB, hub *framework.Hub) *tls.Config {
	t.Helper()
	pem, err := os.ReadFile(hub.CA)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(pem))
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// upgrade upgrades the request to a WebSocket and returns the raw frames. Frames of a server are
// not masked, so their content can be read.
func upgrade(t testing.TB, hub *framework.Hub, request *http.Request) io.ReadCloser {
	t.Helper()
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "websocket")
	request.Header.Set("Sec-Websocket-Version", "13")
	request.Header.Set("Sec-Websocket-Key", "a2VkZ2UgaW50ZWdyYXRpbw==")
	request.Header.Set("Origin", hub.URL)
	response, err := watchClient(t, hub, false).Do(request)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
	return response.Body
}

// source creates ConfigMaps in a logical cluster in sequence, directly in kcp as its admin, until
// kcp refuses or it is stopped.
type source struct {
	id, cluster string

	stop context.CancelFunc
	done chan struct{}

	mu    sync.Mutex
	begun []time.Time
	// made are the ConfigMaps that kcp acknowledged.
	made []bool
}

// event is the name of an object. All names have the same length, so that none is a prefix of
// another.
func (s *source) event(i int) string { return fmt.Sprintf("event-%s-%06d", s.id, i) }

const configMaps = "/api/v1/namespaces/default/configmaps"

func newSource(t testing.TB, cluster string) *source {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s := &source{id: strings.ToLower(rand.Text()[:8]), cluster: cluster, stop: stop, done: make(chan struct{})}
	client, base := kcp.Clients(t).HTTP()
	go func() {
		defer close(s.done)
		for i := 0; ctx.Err() == nil; i++ {
			s.mu.Lock()
			s.begun, s.made = append(s.begun, time.Now()), append(s.made, false)
			s.mu.Unlock()
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/clusters/"+cluster+configMaps,
				strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`+s.event(i)+`"}}`))
			if err != nil {
				return
			}
			request.Header.Set("Content-Type", "application/json")
			response, err := client.Do(request)
			if err != nil {
				continue
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			s.mu.Lock()
			s.made[i] = response.StatusCode == http.StatusCreated
			s.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { stop(); <-s.done })
	return s
}

// first returns the first event caused after a time, and the number of events begun.
func (s *source) first(after time.Time) (first, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for first < len(s.begun) && !s.begun[first].After(after) {
		first++
	}
	return first, len(s.begun)
}

// last returns the last acknowledged event, or -1.
func (s *source) last() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.made) - 1; i >= 0; i-- {
		if s.made[i] {
			return i
		}
	}
	return -1
}

// goesOn waits until kcp has acknowledged an event caused after a time.
func (s *source) goesOn(t testing.TB, after time.Time) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		first, _ := s.first(after)
		return framework.Check(s.last() >= first, "nothing happens in %s", s.cluster)
	})
}

// follows waits until a stream delivers an event caused from now on.
func (s *source) follows(t testing.TB, open *stream) {
	t.Helper()
	_, from := s.first(time.Now())
	framework.Eventually(t, framework.Long, func() error {
		text := open.text()
		for i := from; i <= s.last(); i++ {
			if strings.Contains(text, s.event(i)) {
				return nil
			}
		}
		if !open.isOpen() {
			return errors.New(open.name + " has ended: " + open.text())
		}
		return errors.New(open.name + " delivers nothing")
	})
}

// metric returns the sum of a hub's metric over its labels.
func metric(t testing.TB, hub *framework.Hub, name string) float64 {
	t.Helper()
	response, err := http.Get(hub.Metrics)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	sum, found := 0.0, false
	for line := range bytes.Lines(raw) {
		var value float64
		if rest, ok := bytes.CutPrefix(line, []byte(name+" ")); ok {
			_, err := fmt.Sscan(string(rest), &value)
			require.NoError(t, err)
			sum, found = sum+value, true
		}
	}
	require.True(t, found, "%s is there", name)
	return sum
}
