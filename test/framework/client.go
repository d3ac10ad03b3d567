package framework

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Client talks to a hub over HTTPS, verified with the hub's own CA.
type Client struct {
	URL  string
	CA   string
	HTTP *http.Client
}

// NewClient returns a client for the hub at url with the CA in the file. In tests it compares
// every call with the OpenAPI document.
func NewClient(url, caFile string) (*Client, error) {
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", caFile)
	}
	return &Client{URL: url, CA: caFile, HTTP: &http.Client{
		Timeout:   Long,
		Transport: documented(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 64}),
	}}, nil
}

// Call is one request as a person; non-empty tenant headers are set.
type Call struct {
	As, Method, Path string
	// Token is sent in place of the static token of As.
	Token          string
	Org, Workspace string
	Body           any
	Header         http.Header
}

// Answer is the response to a Call.
type Answer struct {
	Code   int
	Header http.Header
	Raw    []byte
	JSON   map[string]any
}

// Text is a field of the answer, as text.
func (a Answer) Text(field string) string {
	v, ok := a.JSON[field]
	if !ok || v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// Try sends a request and returns the answer, whatever its code. It repeats a write that
// waits for the admission policy of a new Workspace, as clients of Kubernetes do.
func (c *Client) Try(r Call) (a Answer, err error) {
	_ = Wait(Long, func() error {
		a, err = c.send(r)
		return Check(a.Code != http.StatusServiceUnavailable || !strings.Contains(a.Text("message"), "admission policy"), "kcp does not enforce the policy")
	})
	return a, err
}

// TryOnce is Try without a repetition.
func (c *Client) TryOnce(r Call) (Answer, error) { return c.send(r) }

func (c *Client) send(r Call) (Answer, error) {
	var body io.Reader = http.NoBody
	switch b := r.Body.(type) {
	case nil:
	case string:
		body = bytes.NewReader([]byte(b))
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return Answer{}, err
		}
		body = bytes.NewReader(raw)
	}
	request, err := http.NewRequest(r.Method, c.URL+r.Path, body)
	if err != nil {
		return Answer{}, err
	}
	for name, values := range r.Header {
		request.Header[name] = values
	}
	switch {
	case r.Token != "":
		request.Header.Set("Authorization", "Bearer "+r.Token)
	case r.As != "":
		request.Header.Set("Authorization", "Bearer "+Token(r.As))
	}
	if r.Body != nil && request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if r.Org != "" {
		request.Header.Set("X-Kedge-Org", r.Org)
	}
	if r.Workspace != "" {
		request.Header.Set("X-Kedge-Workspace", r.Workspace)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Code: response.StatusCode, Header: response.Header, Raw: raw}
	_ = json.Unmarshal(raw, &a.JSON)
	return a, nil
}

// Do sends a request and requires one of the codes.
func (c *Client) Do(t testing.TB, r Call, codes ...int) Answer {
	t.Helper()
	a, err := c.Try(r)
	require.NoError(t, err)
	require.Contains(t, codes, a.Code, "%s %s as %s: %s", r.Method, r.Path, r.As, a.Raw)
	return a
}

// Made sends a request that makes an Org or a Workspace and returns the object when it is ready.
func (c *Client) Made(t testing.TB, r Call) Answer {
	t.Helper()
	a, err := c.TryMade(r)
	require.NoError(t, err)
	return a
}

// TryMade is Made for goroutines, which must not end a test. A hub on a loaded machine may answer 202
// before the object is ready.
func (c *Client) TryMade(r Call) (Answer, error) {
	a, err := c.Try(r)
	switch {
	case err != nil || a.Code == http.StatusCreated:
		return a, err
	case a.Code != http.StatusAccepted:
		return a, fmt.Errorf("%s %s as %s: %d %s", r.Method, r.Path, r.As, a.Code, a.Raw)
	}
	r.Method, r.Path, r.Body, r.Workspace = http.MethodGet, r.Path+"/"+a.Text("uuid"), nil, a.Text("uuid")
	if r.Org == "" {
		r.Org, r.Workspace = r.Workspace, ""
	}
	err = Wait(Long, func() (err error) {
		if a, err = c.Try(r); err != nil {
			return err
		}
		return Check(a.Code == http.StatusOK && a.Text("phase") == "Ready", "%s is not ready: %d %s", r.Path, a.Code, a.Raw)
	})
	return a, err
}

// CreateOrg creates an Org and returns its UUID.
func (c *Client) CreateOrg(t testing.TB, as, name string) string {
	t.Helper()
	return c.Made(t, Call{As: as, Method: http.MethodPost, Path: "/api/orgs", Body: map[string]string{"displayName": name}}).Text("uuid")
}

// CreateWorkspace creates a Workspace, waits until its creator can work in it and returns
// the answer.
func (c *Client) CreateWorkspace(t testing.TB, as, org, name string) Answer {
	t.Helper()
	a := c.Made(t, Call{As: as, Method: http.MethodPost, Path: "/api/orgs/" + org + "/workspaces", Org: org, Body: map[string]string{"displayName": name}})
	c.Enters(t, as, a.Text("clusterID"))
	return a
}

// Enters waits until a person has access to a cluster, by ID or path. kcp's caches of
// bindings and of inactive clusters can lag behind the hub.
func (c *Client) Enters(t testing.TB, as, cluster string) {
	t.Helper()
	Eventually(t, Long, func() error {
		a, err := c.Try(Call{As: as, Method: http.MethodGet, Path: "/clusters/" + cluster + "/api/v1/namespaces/default/configmaps?limit=1"})
		if err == nil && a.Code != http.StatusOK {
			err = fmt.Errorf("%s is not let into %s: %d %s", as, cluster, a.Code, a.Raw)
		}
		return err
	})
}

// Kubectl runs the real kubectl as a person against a cluster of the hub, by ID or path,
// and returns both outputs.
func (c *Client) Kubectl(t testing.TB, as, cluster string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return c.KubectlWith(t, Token(as), cluster, args...)
}

// KubectlWith is Kubectl with any bearer token.
func (c *Client) KubectlWith(t testing.TB, token, cluster string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return Kubectl(t, "", append([]string{
		"--server", c.URL + "/clusters/" + cluster, "--certificate-authority", c.CA, "--token", token,
	}, args...)...)
}

// Kubectl runs the real kubectl with the given standard input, and stops it once it has printed nothing
// for Long: kubectl delete, for example, waits for a week. Each test has its own kubectl caches, because the
// cached discovery of another test would be wrong.
func Kubectl(t testing.TB, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	program, err := Bin("kubectl")
	require.NoError(t, err)
	home := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	silence := time.AfterFunc(Long, cancel)
	defer silence.Stop()
	cmd := exec.CommandContext(ctx, program, append([]string{"--cache-dir", filepath.Join(home, "cache"), "--request-timeout", "30s"}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+home, "KUBECONFIG=")
	cmd.WaitDelay = 10 * time.Second
	cmd.Stdin = bytes.NewReader([]byte(stdin))
	out, errOut := output{said: silence}, output{said: silence}
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	if ctx.Err() != nil {
		said := out.text.String()
		err = fmt.Errorf("kubectl was stopped: %w; it had printed %d bytes, which end with %q", err, len(said), said[max(0, len(said)-200):])
	}
	return out.text.String(), errOut.text.String(), err
}

// output is what a program prints. A write puts the end of its silence off.
type output struct {
	said *time.Timer
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.said.Reset(Long)
	return o.text.Write(p)
}
