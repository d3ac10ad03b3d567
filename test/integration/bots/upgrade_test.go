package bots

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// An older hub has no permission claims for bots and another admission policy. At its start, a
// newer hub adds the claims and replaces the policy, in each Workspace for itself: all Workspaces
// stay Ready, and no write of a tenant fails but with a 503 to repeat.
func TestBot_worksInWorkspacesOfAnOlderHub(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	s := newScene(t, hub)
	clusters := []string{s.cluster, hub.CreateWorkspace(t, "alice", s.org, "Test").Text("clusterID")}
	s.enforced(t)
	hub.Stop(t)
	s.becomesOlder(t, clusters)

	phases := s.watchPhases(t)
	writes := &tenant{clusters: clusters}
	hub = framework.StartHub(t, kcp, root, func(o *server.Options) { writes.begin(t, o) })
	s.hub = hub
	for i, cluster := range clusters {
		// Bindings are guarded by the policy. kubectl repeats what is answered with 503.
		_, errOut, err := hub.Kubectl(t, "alice", cluster, "create", "rolebinding", fmt.Sprint("robots-", i), "--clusterrole=kedge:workspace:viewer", "--serviceaccount=default:default")
		require.NoError(t, err, errOut)
		framework.Eventually(t, framework.Long, func() error { return s.upToDate(t, cluster) })
	}
	secret := s.token(t, s.bot(t, "member")).secret
	s.works(t, hub, secret)
	require.Equal(t, http.StatusCreated, s.as(t, hub, secret, http.MethodPost, configMaps, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "built"},
	}).Code)
	s.enforced(t)
	writes.end(t)
	phases.end(t, len(clusters))
}

// newClaims are the permission claims that the older hub does not have.
var newClaims = []string{"serviceaccounts", "secrets"}

// becomesOlder leaves the platform as a hub without bots left it. No hub runs.
func (s scene) becomesOlder(t testing.TB, clusters []string) {
	t.Helper()
	providers := s.Root + ":providers"
	for _, cluster := range append([]string{providers}, clusters...) {
		b := s.accessBinding(t, cluster)
		b.Spec.PermissionClaims = slices.DeleteFunc(b.Spec.PermissionClaims, func(c kcpapisv1alpha2.AcceptablePermissionClaim) bool {
			return slices.Contains(newClaims, c.Resource)
		})
		require.Len(t, b.Spec.PermissionClaims, 8)
		_, err := s.APIBindings(cluster).Update(t.Context(), b, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	export, err := s.APIExports(providers).Get(t.Context(), tenancy.ExportAccess, getOptions())
	require.NoError(t, err)
	export.Spec.PermissionClaims = slices.DeleteFunc(export.Spec.PermissionClaims, func(c kcpapisv1alpha2.PermissionClaim) bool {
		return slices.Contains(newClaims, c.Resource)
	})
	_, err = s.APIExports(providers).Update(t.Context(), export, metav1.UpdateOptions{})
	require.NoError(t, err)
	for _, cluster := range clusters {
		policy, err := s.Policies(cluster).Get(t.Context(), tenancy.PolicyName, getOptions())
		require.NoError(t, err)
		policy.Spec.Validations = policy.Spec.Validations[:3]
		_, err = s.Policies(cluster).Update(t.Context(), policy, metav1.UpdateOptions{})
		require.NoError(t, err)
		framework.Eventually(t, framework.Long, func() error {
			applied := s.accessBinding(t, cluster).Status.AppliedPermissionClaims
			return framework.Check(len(applied) == 8, "%d claims are applied", len(applied))
		})
	}
}

// accessBinding is the binding of the hub's export without APIs in a logical cluster.
func (s scene) accessBinding(t testing.TB, cluster string) *kcpapisv1alpha2.APIBinding {
	t.Helper()
	var list kcpapisv1alpha2.APIBindingList
	require.NoError(t, s.APIBindings(cluster).GetClient().Get().Resource("apibindings").Do(t.Context()).Into(&list))
	at := slices.IndexFunc(list.Items, func(b kcpapisv1alpha2.APIBinding) bool {
		return b.Spec.Reference.Export != nil && b.Spec.Reference.Export.Name == tenancy.ExportAccess
	})
	require.GreaterOrEqual(t, at, 0, cluster)
	return &list.Items[at]
}

// enforced waits until kcp enforces the policy in each Workspace, by the hub's own look.
func (s scene) enforced(t testing.TB) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		for name, ws := range s.WorkspacesOf(t, s.org) {
			if !tenancy.WorkspaceOf(s.org, &ws).PolicyEnforced() {
				return errors.New("kcp does not enforce the policy in " + name)
			}
		}
		return nil
	})
}

// upToDate reports whether a Workspace has all claims and the policy of this hub.
func (s scene) upToDate(t testing.TB, cluster string) error {
	t.Helper()
	b := s.accessBinding(t, cluster)
	policy, err := s.Policies(cluster).Get(t.Context(), tenancy.PolicyName, getOptions())
	require.NoError(t, err)
	return framework.Check(len(b.Status.AppliedPermissionClaims) == 10 && len(policy.Spec.Validations) > 3,
		"%d claims, %d validations", len(b.Status.AppliedPermissionClaims), len(policy.Spec.Validations))
}

// phases follows the Workspaces of an Org, and notes those that were not Ready.
type phases struct {
	watch    watch.Interface
	done     chan struct{}
	stopped  atomic.Bool
	notReady []string
	// enforced has the values of PolicyEnforced of each Workspace, one after the other.
	enforced map[string][]bool
}

// watchPhases watches the Workspaces of the Org in kcp.
func (s scene) watchPhases(t testing.TB) *phases {
	t.Helper()
	w, err := s.Workspaces(s.OrgPath(s.org)).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	p := &phases{watch: w, done: make(chan struct{}), enforced: map[string][]bool{}}
	go func() {
		defer close(p.done)
		for e := range w.ResultChan() {
			ws, ok := e.Object.(*kcptenancyv1alpha1.Workspace)
			if !ok && p.stopped.Load() {
				return
			}
			if !ok {
				p.notReady = append(p.notReady, fmt.Sprintf("%s %v", e.Type, e.Object))
				return
			}
			now := tenancy.WorkspaceOf(s.org, ws)
			if !now.Ready() {
				p.notReady = append(p.notReady, fmt.Sprintf("%s: %+v", now.DisplayName, now.Status))
			}
			if seen := p.enforced[ws.Name]; len(seen) == 0 || seen[len(seen)-1] != now.PolicyEnforced() {
				p.enforced[ws.Name] = append(seen, now.PolicyEnforced())
			}
		}
	}()
	return p
}

func (p *phases) end(t testing.TB, workspaces int) {
	t.Helper()
	p.stopped.Store(true)
	p.watch.Stop()
	<-p.done
	require.Empty(t, p.notReady)
	require.Len(t, p.enforced, workspaces, "the control")
	t.Logf("the policy is enforced: %v", p.enforced)
}

// tenant writes ConfigMaps to Workspaces from the first answer of a hub on.
type tenant struct {
	clusters []string
	stop     chan struct{}
	running  sync.WaitGroup
	written  atomic.Int64
	repeated atomic.Int64
	failures chan string
}

func (w *tenant) begin(t testing.TB, o *server.Options) {
	w.stop, w.failures = make(chan struct{}), make(chan string, len(w.clusters))
	for _, cluster := range w.clusters {
		w.running.Go(func() {
			client, err := w.connect(o)
			if err != nil {
				w.failures <- err.Error()
				return
			}
			defer client.HTTP.CloseIdleConnections()
			pace := time.NewTicker(20 * time.Millisecond)
			defer pace.Stop()
			for i := 0; ; i++ {
				select {
				case <-w.stop:
					return
				case <-pace.C:
				}
				if failure := w.write(client, cluster, i); failure != "" {
					w.failures <- failure
					return
				}
			}
		})
	}
	t.Cleanup(w.close)
}

func (w *tenant) write(client *framework.Client, cluster string, i int) (failure string) {
	a, err := client.Try(call{As: "alice", Method: http.MethodPost, Path: "/clusters/" + cluster + configMaps, Body: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprint("written-", i)},
	}})
	switch {
	case err == nil && a.Code == http.StatusCreated:
		w.written.Add(1)
	case err == nil && a.Code == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != "":
		w.repeated.Add(1)
	default:
		return fmt.Sprintf("write %d: %d %s %v", i, a.Code, a.Raw, err)
	}
	return ""
}

// connect returns a client of the hub as soon as the hub answers anything.
func (w *tenant) connect(o *server.Options) (client *framework.Client, err error) {
	err = framework.Wait(framework.Long, func() (err error) {
		if client == nil {
			if client, err = framework.NewClient("https://"+o.ListenAddress, filepath.Join(o.DataDir, "tls", "ca.crt")); err != nil {
				return err
			}
		}
		_, err = client.Try(call{Method: http.MethodGet, Path: "/livez"})
		return err
	})
	return client, err
}

func (w *tenant) close() {
	select {
	case <-w.stop:
	default:
		close(w.stop)
	}
	w.running.Wait()
}

func (w *tenant) end(t testing.TB) {
	t.Helper()
	w.close()
	close(w.failures)
	for failure := range w.failures {
		require.Fail(t, failure)
	}
	t.Logf("%d writes, %d to be repeated", w.written.Load(), w.repeated.Load())
	require.Positive(t, w.written.Load())
}
