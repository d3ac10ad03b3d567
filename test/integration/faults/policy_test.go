package faults

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// policyScene is a Workspace of alice on a hub that reaches kcp through faults.
type policyScene struct {
	framework.Platform
	hub              *framework.Hub
	faults           *framework.Faults
	org, ws, cluster string
}

func newPolicyScene(t *testing.T, change ...func(*server.Options)) policyScene {
	t.Helper()
	root := framework.NewRoot()
	s := policyScene{Platform: kcp.Platform(t, root), faults: framework.NewFaults(t, kcp)}
	s.hub = framework.StartHub(t, s.faults.KCP, root, change...)
	framework.SignUp(t, s.hub, "alice")
	s.org = s.hub.CreateOrg(t, "alice", "ACME")
	return s
}

func (s *policyScene) workspace(t *testing.T) {
	t.Helper()
	made := s.hub.CreateWorkspace(t, "alice", s.org, "dev")
	s.ws, s.cluster = made.Text("uuid"), made.Text("clusterID")
}

// writes is the answer to a write to a resource of the Workspace. Secrets are guarded.
func (s *policyScene) writes(t *testing.T, resource, kind string) framework.Answer {
	t.Helper()
	a, err := s.hub.TryOnce(framework.Call{
		As: "alice", Method: http.MethodPost, Path: "/clusters/" + s.cluster + "/api/v1/namespaces/default/" + resource,
		Body: `{"apiVersion":"v1","kind":"` + kind + `","metadata":{"generateName":"made-"}}`,
	})
	require.NoError(t, err)
	return a
}

// opens waits until a guarded write succeeds.
func (s *policyScene) opens(t *testing.T) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		a := s.writes(t, "secrets", "Secret")
		return framework.Check(a.Code == http.StatusCreated, "%d %s", a.Code, a.Raw)
	})
}

func (s *policyScene) enforced(t *testing.T) bool {
	t.Helper()
	ws, err := s.Workspaces(s.OrgPath(s.org)).Get(t.Context(), s.ws, metav1.GetOptions{})
	require.NoError(t, err)
	return tenancy.WorkspaceOf(s.org, ws).PolicyEnforced()
}

// becomesOlder replaces the policy by one of another version.
func (s *policyScene) becomesOlder(t *testing.T) {
	t.Helper()
	p, err := s.Policies(s.cluster).Get(t.Context(), tenancy.PolicyName, metav1.GetOptions{})
	require.NoError(t, err)
	p.Spec.Validations = p.Spec.Validations[:3]
	_, err = s.Policies(s.cluster).Update(t.Context(), p, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// validations is the number of rules of the policy in kcp.
func (s *policyScene) validations(t *testing.T) int {
	t.Helper()
	p, err := s.Policies(s.cluster).Get(t.Context(), tenancy.PolicyName, metav1.GetOptions{})
	require.NoError(t, err)
	return len(p.Spec.Validations)
}

// refusing answers writes to a resource as kcp answers objects that are too large.
func refusing(resource string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" && strings.Contains(r.URL.Path, "/"+resource) {
			refuses(w, http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge)
			return
		}
		forward.ServeHTTP(w, r)
	}
}

// A role that grew too large keeps no version of the policy out.
func TestPolicy_isWrittenWhereARoleIsTooLarge(t *testing.T) {
	t.Parallel()
	s := newPolicyScene(t)
	s.workspace(t)
	s.opens(t)
	whole := s.validations(t)
	s.faults.Intercept(refusing("clusterroles"))
	require.NoError(t, s.ClusterRoles(s.cluster).Delete(t.Context(), tenancy.ClusterRoleViewer, metav1.DeleteOptions{}))
	s.becomesOlder(t)
	framework.Eventually(t, framework.Long, func() error {
		n := s.validations(t)
		return framework.Check(n == whole, "%d validations of %d", n, whole)
	})
	s.opens(t)
	_, err := s.ClusterRoles(s.cluster).Get(t.Context(), tenancy.ClusterRoleViewer, metav1.GetOptions{})
	require.Error(t, err, "the control")
	s.faults.Intercept(nil)
	framework.Eventually(t, framework.Long, func() error {
		_, err := s.ClusterRoles(s.cluster).Get(t.Context(), tenancy.ClusterRoleViewer, metav1.GetOptions{})
		return err
	})
}

// While the hub cannot write its version of the policy, nobody writes what it guards.
func TestPolicy_thatCannotBeWrittenHoldsGuardedWritesBack(t *testing.T) {
	t.Parallel()
	s := newPolicyScene(t)
	s.workspace(t)
	s.opens(t)
	s.faults.Intercept(refusing("validatingadmissionpolicies"))
	s.becomesOlder(t)
	framework.Eventually(t, framework.Long, func() error {
		a := s.writes(t, "secrets", "Secret")
		return framework.Check(a.Code == http.StatusServiceUnavailable && a.Header.Get("Retry-After") == "1", "%d %s", a.Code, a.Raw)
	})
	require.False(t, s.enforced(t))
	require.Equal(t, http.StatusCreated, s.writes(t, "configmaps", "ConfigMap").Code, "what it does not guard goes on")
	s.faults.Intercept(nil)
	s.opens(t)
	require.True(t, s.enforced(t))
}

// A shard of two processes, one of which does not have the policy yet.
func TestPolicy_isEnforcedWhenEveryProcessSaysSo(t *testing.T) {
	t.Parallel()
	s := newPolicyScene(t, func(o *server.Options) { o.Policy.EnforcementWindow = 2 * time.Second })
	var mu sync.Mutex
	var probes int
	peers, lagging := map[string]bool{}, true
	s.faults.Intercept(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if r.Method != http.MethodPost || r.URL.Query().Get("dryRun") == "" {
			forward.ServeHTTP(w, r)
			return
		}
		mu.Lock()
		probes++
		peers[r.RemoteAddr] = true
		behind := lagging && probes%4 == 0
		mu.Unlock()
		if !behind {
			forward.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	})
	s.workspace(t)
	require.Equal(t, http.StatusServiceUnavailable, s.writes(t, "secrets", "Secret").Code, "the Workspace is Ready before that")
	asked := func(n int) {
		framework.Eventually(t, framework.Long, func() error {
			mu.Lock()
			defer mu.Unlock()
			return framework.Check(probes >= n, "%d dry runs", probes)
		})
	}
	asked(16)
	require.False(t, s.enforced(t), "one process of two admits what the other refuses")
	require.Equal(t, http.StatusServiceUnavailable, s.writes(t, "secrets", "Secret").Code)
	mu.Lock()
	lagging = false
	mu.Unlock()
	s.opens(t)
	mu.Lock()
	defer mu.Unlock()
	require.Greater(t, len(peers), probes*9/10, "each dry run has a connection of its own; a port can be used again")
}
