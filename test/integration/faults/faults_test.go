package faults

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

const (
	// soon is when a caller must have been told that kcp is gone: the hub notices within
	// 1.75 s, the interval and silence of transport.Health, and a later caller waits for
	// transport.MaxWait. A machine with many tests on it is late itself.
	soon, late = 2 * time.Second, 8 * time.Second
	// healed is when all must be well again after kcp has come back: in ten seconds, and
	// the rest is for such a machine.
	healed = 30 * time.Second
)

// outage is the duration of the outage, or that in $KEDGE_TEST_OUTAGE.
func outage(t *testing.T) time.Duration {
	t.Helper()
	s := os.Getenv("KEDGE_TEST_OUTAGE")
	if s == "" {
		return 15 * time.Second
	}
	d, err := time.ParseDuration(s)
	require.NoError(t, err)
	return d
}

// refusedFor returns an error if the hub does not report properly that kcp is unavailable.
func refusedFor(a framework.Answer, took time.Duration, err error) error {
	switch {
	case err != nil:
		return err
	case a.Code == http.StatusInternalServerError:
		return fmt.Errorf("it is a bug of ours, request %s", a.Header.Get("X-Request-Id"))
	case a.Code != http.StatusServiceUnavailable:
		return fmt.Errorf("it is %d: %s", a.Code, a.Raw)
	case a.Header.Get("Retry-After") == "":
		return fmt.Errorf("Retry-After is missing: %s", a.Raw)
	case a.Header.Get("X-Request-Id") == "":
		return fmt.Errorf("X-Request-Id is missing: %s", a.Raw)
	case took > soon+late:
		return fmt.Errorf("it took %s", took)
	}
	return nil
}

// scene is a person with an Organization, a Workspace in it, and another member.
type scene struct {
	hub                *framework.Hub
	org, ws, cluster   string
	mu                 sync.Mutex
	acknowledged       []string
	slowest, afterward time.Duration
}

func newScene(t *testing.T, hub *framework.Hub) *scene {
	t.Helper()
	s := &scene{hub: hub, org: hub.CreateOrg(t, "alice", "ACME")}
	ws := hub.CreateWorkspace(t, "alice", s.org, "dev")
	s.ws, s.cluster = ws.Text("uuid"), ws.Text("clusterID")
	hub.Do(t, framework.Call{As: "bob", Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
	return s
}

// calls are requests of every kind, also by people without access. The first ones name the objects
// that they create.
func (s *scene) calls() map[string]framework.Call {
	org, ws := "/api/orgs/"+s.org, "/api/orgs/"+s.org+"/workspaces/"+s.ws
	forward := "/clusters/" + s.cluster + "/api/v1/namespaces/default/configmaps"
	return map[string]framework.Call{
		"create an Org":          {As: "alice", Method: http.MethodPost, Path: "/api/orgs", Body: map[string]string{"displayName": "another"}},
		"create a Workspace":     {As: "alice", Method: http.MethodPost, Path: org + "/workspaces", Org: s.org, Body: map[string]string{"displayName": "another"}},
		"add a member":           {As: "alice", Method: http.MethodPost, Path: org + "/members", Org: s.org, Body: map[string]any{"userRef": map[string]string{"name": "bob"}, "role": "member"}},
		"rename the Org":         {As: "alice", Method: http.MethodPatch, Path: org, Org: s.org, Body: map[string]string{"displayName": "renamed"}},
		"rename the Workspace":   {As: "alice", Method: http.MethodPatch, Path: ws, Org: s.org, Workspace: s.ws, Body: map[string]string{"displayName": "renamed"}},
		"sign up":                {As: "carol", Method: http.MethodGet, Path: "/api/users/me"},
		"list Orgs":              {As: "alice", Method: http.MethodGet, Path: "/api/orgs"},
		"read of the proxy":      {As: "alice", Method: http.MethodGet, Path: forward},
		"write of the proxy":     {As: "alice", Method: http.MethodPost, Path: forward, Body: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]string{"generateName": "by-"}}},
		"stranger in the proxy":  {As: "dave", Method: http.MethodGet, Path: forward},
		"stranger in the Org":    {As: "dave", Method: http.MethodGet, Path: org, Org: s.org},
		"unknown to everybody":   {As: "nobody", Method: http.MethodGet, Path: "/api/orgs"},
		"watch through the hub":  {As: "alice", Method: http.MethodGet, Path: forward + "?watch=true&timeoutSeconds=1"},
		"credentials to the hub": {As: "alice", Method: http.MethodGet, Path: ws + "/kubeconfig", Org: s.org, Workspace: s.ws},
	}
}

// remember records the objects whose creation was acknowledged.
func (s *scene) remember(a framework.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.Code == http.StatusCreated || a.Code == http.StatusAccepted {
		s.acknowledged = append(s.acknowledged, a.Text("uuid"))
	}
}

func TestOutage_isReportedAndLosesNothing(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]func(*framework.Faults){
		"connections are refused": (*framework.Faults).Refuse,
		"nothing comes back":      (*framework.Faults).Swallow,
	} {
		t.Run(name, func(t *testing.T) {
			framework.Sample(t, 2)
			t.Parallel()
			faults := framework.NewFaults(t, kcp)
			hub := framework.StartHub(t, faults.KCP, framework.NewRoot(), func(o *server.Options) { o.DefaultOrgQuota = 1000 })
			s := newScene(t, hub)
			ended := watching(t, hub, s.cluster)
			// Some creates are in progress when the outage begins.
			var creating sync.WaitGroup
			for range 4 {
				creating.Go(func() {
					for {
						began := time.Now()
						a, err := hub.Try(s.calls()["create an Org"])
						s.remember(a)
						if err == nil && a.Code < http.StatusBadRequest && time.Since(began) < framework.Long {
							continue
						}
						return
					}
				})
			}
			framework.Eventually(t, framework.Long, func() error {
				s.mu.Lock()
				defer s.mu.Unlock()
				if len(s.acknowledged) < 3 {
					return fmt.Errorf("%d Orgs are made", len(s.acknowledged))
				}
				return nil
			})
			gone(faults)
			began := time.Now()
			s.endure(t, began)
			creating.Wait()
			select {
			case <-ended:
			case <-time.After(framework.Long):
				require.Fail(t, "the watch is still open")
			}
			faults.Restore(t)
			s.recovered(t)
			t.Logf("gone for %s: the slowest answer took %s; all well %s after; %d Orgs acknowledged",
				outage(t), s.slowest.Round(time.Millisecond), s.afterward.Round(time.Millisecond), len(s.acknowledged))
		})
	}
}

// watching opens a watch through the hub and reports its end.
func watching(t *testing.T, hub *framework.Hub, cluster string) <-chan struct{} {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, hub.URL+"/clusters/"+cluster+"/api/v1/configmaps?watch=true", http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+framework.Token("alice"))
	watch, err := hub.HTTP.Do(request)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, watch.StatusCode)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, watch.Body)
		_ = watch.Body.Close()
	}()
	return ended
}

// endure sends requests during the outage, which started at began.
func (s *scene) endure(t *testing.T, began time.Time) {
	t.Helper()
	known := make(chan struct{})
	var calling sync.WaitGroup
	for name, call := range s.calls() {
		calling.Go(func() {
			for n := 0; time.Since(began) < outage(t); n++ {
				sent, remembers := time.Now(), true
				select {
				case <-known:
					remembers = false
				default:
				}
				a, err := s.hub.Try(call)
				took := time.Since(sent)
				s.mu.Lock()
				s.slowest = max(s.slowest, took)
				s.mu.Unlock()
				if remembers && a.Code < http.StatusInternalServerError && took < soon+late {
					// The cache answered before the outage was noticed.
					continue
				}
				if err := refusedFor(a, took, err); err != nil {
					t.Errorf("%s, %s after kcp has gone: %v\n%s", name, sent.Sub(began), err, logged(s.hub, a))
					return
				}
			}
		})
	}
	err := framework.Wait(soon+late, func() error {
		a, err := framework.Readiness(s.hub.Metrics)
		if err == nil && (a.Code != http.StatusServiceUnavailable || !strings.Contains(string(a.Raw), "[-]kcp not ready: it does not answer")) {
			err = fmt.Errorf("%d: %s", a.Code, a.Raw)
		}
		return err
	})
	t.Logf("the hub says that kcp is gone after %s", time.Since(began).Round(time.Millisecond))
	close(known)
	calling.Wait()
	require.NoError(t, err)
}

// recovered requires that the hub works again soon after kcp is back.
func (s *scene) recovered(t *testing.T) {
	t.Helper()
	began := time.Now()
	want := map[string]int{"stranger in the proxy": http.StatusForbidden, "stranger in the Org": http.StatusForbidden, "unknown to everybody": http.StatusUnauthorized}
	calls := s.calls()
	delete(calls, "add a member")
	framework.Eventually(t, healed, func() error {
		for name, call := range calls {
			a, err := s.hub.Try(call)
			if err != nil {
				return err
			}
			s.remember(a)
			if code := want[name]; code == 0 && a.Code >= http.StatusBadRequest || code != 0 && a.Code != code {
				return fmt.Errorf("%s: %d %s", name, a.Code, a.Raw)
			}
			delete(calls, name)
		}
		return nil
	})
	s.afterward = time.Since(began)
	s.hub.Do(t, s.calls()["add a member"], http.StatusCreated, http.StatusOK)
	s.hub.Do(t, framework.Call{As: "bob", Method: http.MethodGet, Path: "/api/orgs/" + s.org, Org: s.org}, http.StatusOK)
	framework.Eventually(t, framework.Long, func() error {
		a := s.hub.Do(t, framework.Call{As: "alice", Method: http.MethodGet, Path: "/api/users/me/memberships"}, http.StatusOK)
		for _, uuid := range s.acknowledged {
			if !strings.Contains(string(a.Raw), uuid) {
				return fmt.Errorf("%s was acknowledged and is not there", uuid)
			}
		}
		return nil
	})
	a := s.hub.Do(t, framework.Call{Method: http.MethodGet, Path: "/readyz"}, http.StatusOK)
	require.Equal(t, "ok", string(a.Raw))
}

// logged returns the log lines of a request.
func logged(hub *framework.Hub, a framework.Answer) string {
	var lines []string
	for line := range strings.Lines(hub.Log.String()) {
		if strings.Contains(line, a.Header.Get("X-Request-Id")) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}
