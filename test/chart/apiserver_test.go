package chart

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// apiServer is a kube-apiserver with an etcd, both in processes of their own.
type apiServer struct {
	url    string
	client *http.Client
}

// startAPIServer starts the programs in KEDGE_TEST_KUBERNETES, which test/kubernetes pins.
func startAPIServer(t *testing.T) *apiServer {
	t.Helper()
	programs := os.Getenv("KEDGE_TEST_KUBERNETES")
	require.NotEmpty(t, programs, "KEDGE_TEST_KUBERNETES is not set: run make test-deploy")
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	signing := file("accounts.key", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
	tokens := file("tokens.csv", "admin,admin,admin,system:masters\n")
	clients, peers, secure := freePort(t), freePort(t), freePort(t)
	etcd := "http://127.0.0.1:" + clients
	run(t, filepath.Join(programs, "etcd"), "--data-dir", filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--log-level", "error",
		"--listen-client-urls", etcd, "--advertise-client-urls", etcd, "--listen-peer-urls", "http://127.0.0.1:"+peers)
	certificates := filepath.Join(dir, "certs")
	output := run(t, filepath.Join(programs, "kube-apiserver"), "--etcd-servers", etcd, "--bind-address", "127.0.0.1", "--secure-port", secure,
		"--cert-dir", certificates, "--token-auth-file", tokens, "--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.0.0.0/24",
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", signing, "--service-account-signing-key-file", signing)
	s := &apiServer{url: "https://127.0.0.1:" + secure}
	require.Eventually(t, func() bool {
		if s.client == nil {
			// The certificate is signed by a CA that is in the same file.
			bundle, err := os.ReadFile(filepath.Join(certificates, "apiserver.crt"))
			if err != nil {
				return false
			}
			pool := x509.NewCertPool()
			require.True(t, pool.AppendCertsFromPEM(bundle))
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
			t.Cleanup(transport.CloseIdleConnections)
			s.client = &http.Client{Transport: transport, Timeout: time.Minute}
		}
		code, _ := s.send(t, http.MethodGet, "/readyz", nil)
		return code == http.StatusOK
	}, 2*time.Minute, 100*time.Millisecond, "%s", output)
	return s
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// run runs a program until the end of the test.
func run(t *testing.T, program string, args ...string) fmt.Stringer {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...)
	out, err := os.Create(filepath.Join(t.TempDir(), "output"))
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait()
		_ = out.Close()
	})
	return content(out.Name())
}

// content is the content of a file at the time at which it is printed.
type content string

func (c content) String() string {
	raw, err := os.ReadFile(string(c))
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// send sends a request of the admin. code is 0 if there is no answer.
func (s *apiServer) send(t *testing.T, method, path string, body []byte) (code int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, bytes.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer admin")
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	response, err := s.client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(raw)
}

// install creates the CustomResourceDefinitions of the files in a directory.
func (s *apiServer) install(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files, dir)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var crd apiextensionsv1.CustomResourceDefinition
		require.NoError(t, yaml.Unmarshal(raw, &crd), file)
		body, err := yaml.YAMLToJSON(raw)
		require.NoError(t, err)
		code, answer := s.send(t, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
		require.Equal(t, http.StatusCreated, code, "%s: %s", file, answer)
		for _, version := range crd.Spec.Versions {
			if version.Served {
				require.Eventually(t, func() bool {
					code, answer = s.send(t, http.MethodGet, "/apis/"+crd.Spec.Group+"/"+version.Name+"/"+crd.Spec.Names.Plural, nil)
					return code == http.StatusOK
				}, time.Minute, 50*time.Millisecond, "%s: %s", file, answer)
			}
		}
	}
}

// plural is the name of a kind in paths.
func plural(kind string) string {
	switch kind {
	case "NetworkPolicy", "BackendTLSPolicy":
		return strings.ToLower(strings.TrimSuffix(kind, "y")) + "ies"
	case "Ingress":
		return "ingresses"
	}
	return strings.ToLower(kind) + "s"
}

// apply applies an object as a server-side dry run: it is defaulted, validated and admitted, and
// unknown fields are errors.
func (s *apiServer) apply(t *testing.T, raw []byte) (code int, answer string) {
	t.Helper()
	var o struct {
		metav1.TypeMeta
		Metadata metav1.ObjectMeta
	}
	require.NoError(t, yaml.Unmarshal(raw, &o))
	prefix := "/apis/" + o.APIVersion
	if !strings.Contains(o.APIVersion, "/") {
		prefix = "/api/" + o.APIVersion
	}
	path := prefix + "/namespaces/" + o.Metadata.Namespace + "/" + plural(o.Kind) + "/" + o.Metadata.Name
	return s.send(t, http.MethodPatch, path+"?dryRun=All&fieldManager=helm&fieldValidation=Strict", raw)
}

func TestChart_isAcceptedByAKubeAPIServer(t *testing.T) {
	t.Parallel()
	s := startAPIServer(t)
	s.install(t, filepath.Join(os.Getenv("KEDGE_TEST_KUBERNETES"), "crds"))
	// The strictest level of the Pod Security Standards holds for the Pods of the chart: a workload
	// that does not meet it gets a warning.
	code, answer := s.send(t, http.MethodPost, "/api/v1/namespaces", []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kedge","labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`))
	require.Equal(t, http.StatusCreated, code, answer)
	// The controller manager, which there is not, makes it in a cluster.
	code, answer = s.send(t, http.MethodPost, "/api/v1/namespaces/kedge/serviceaccounts", []byte(`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}`))
	require.Equal(t, http.StatusCreated, code, answer)
	kinds := map[string]bool{}
	for name, values := range valueSets() {
		objects, _, err := render(values.values)
		require.NoError(t, err)
		for id, raw := range objects {
			code, answer := s.apply(t, raw)
			require.Equal(t, http.StatusCreated, code, "%s: %s: %s", name, id, answer)
			kind, _, _ := strings.Cut(id, "/")
			kinds[kind] = true
			if kind != "Deployment" && kind != "StatefulSet" {
				continue
			}
			// The Pod itself is admitted, too.
			var w struct {
				Spec struct{ Template map[string]any }
			}
			require.NoError(t, yaml.Unmarshal(raw, &w))
			w.Spec.Template["apiVersion"], w.Spec.Template["kind"] = "v1", "Pod"
			meta, ok := w.Spec.Template["metadata"].(map[string]any)
			require.True(t, ok)
			meta["name"], meta["namespace"] = "pod", "kedge"
			spec, ok := w.Spec.Template["spec"].(map[string]any)
			require.True(t, ok)
			// Only objects that were dry runs are missing.
			spec["serviceAccountName"], spec["priorityClassName"] = "default", ""
			if kind == "StatefulSet" {
				volumes, _ := spec["volumes"].([]any)
				spec["volumes"] = append(volumes, map[string]any{"name": "data", "emptyDir": map[string]any{}})
			}
			pod, err := yaml.Marshal(w.Spec.Template)
			require.NoError(t, err)
			code, answer = s.apply(t, pod)
			require.Equal(t, http.StatusCreated, code, "%s: the Pod of %s: %s", name, id, answer)
		}
	}
	require.Len(t, kinds, 15, "%v", kinds)

	objects, _, err := render(embedded)
	require.NoError(t, err)
	for name, c := range map[string]struct{ id, old, new, want string }{
		"an unknown field":    {"StatefulSet/prod-kedge-hub", `"replicas":`, `"replica":1,"replicas":`, "replica"},
		"an impossible value": {"Service/prod-kedge-hub", `"port":443`, `"port":443443`, "443443"},
	} {
		raw := bytes.Replace(objects[c.id], []byte(c.old), []byte(c.new), 1)
		require.NotEqual(t, string(objects[c.id]), string(raw), name)
		code, answer := s.apply(t, raw)
		require.GreaterOrEqual(t, code, http.StatusBadRequest, "the control: %s: %s", name, answer)
		require.Contains(t, answer, c.want, name)
	}
}
