package faults

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// fault is a fault that is injected into requests to kcp.
type fault = func(w http.ResponseWriter, r *http.Request, forward http.Handler)

func isWatch(r *http.Request) bool { return r.URL.Query().Has("watch") }

// refuses answers with a Status as kcp does.
func refuses(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: string(reason),
	})
}

// torn sends half of an answer and resets the connection.
type torn struct{ http.ResponseWriter }

func (t torn) Write(p []byte) (int, error) {
	_, _ = t.ResponseWriter.Write(p[:len(p)/2])
	_ = http.NewResponseController(t.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

func (t torn) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// oneIn injects a fault into one in n of the requests that are not watches, pseudo-randomly and
// the same in every run. With every n-th request, a retry after n others would always be hit.
func oneIn(n uint32, hit fault) fault {
	var mu sync.Mutex
	lots := rand.New(rand.NewPCG(1, uint64(n)))
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		mu.Lock()
		drawn := lots.Uint32N(n) == 0
		mu.Unlock()
		if !isWatch(r) && drawn {
			hit(w, r, forward)
			return
		}
		forward.ServeHTTP(w, r)
	}
}

// lateAnswers is the fault with the longest waits.
const lateAnswers = "each answer is two seconds late"

// faults are the faults of a kcp that is reachable.
func answersOf() map[string]fault {
	return map[string]fault{
		lateAnswers: func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
			if !isWatch(r) {
				select {
				case <-time.After(2 * time.Second):
				case <-r.Context().Done():
				}
			}
			forward.ServeHTTP(w, r)
		},
		"one in three answers is torn": oneIn(3, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
			forward.ServeHTTP(torn{w}, r)
		}),
		"one in three is too many": oneIn(3, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			refuses(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
		}),
		"two of three writes conflict": conflicting(),
		"no watch lasts half a second": func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
			if !isWatch(r) {
				forward.ServeHTTP(w, r)
				return
			}
			short := &cutShort{ResponseWriter: w, after: 500 * time.Millisecond}
			defer short.stop()
			forward.ServeHTTP(short, r)
		},
		"every watch is gone at first": func() fault {
			var mu sync.Mutex
			seen := map[string]int{}
			return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
				if isWatch(r) {
					mu.Lock()
					seen[r.URL.Path]++
					first := seen[r.URL.Path] <= 2
					mu.Unlock()
					if first {
						refuses(w, http.StatusGone, metav1.StatusReasonExpired)
						return
					}
				}
				forward.ServeHTTP(w, r)
			}
		}(),
	}
}

// cutShort ends an answer some time after it began. A kcp on a busy machine takes longer than that to begin one, and
// one that never does cannot be reached.
type cutShort struct {
	http.ResponseWriter
	after time.Duration
	cut   *time.Timer
}

// WriteHeader implements http.ResponseWriter.
func (c *cutShort) WriteHeader(code int) {
	c.cut = time.AfterFunc(c.after, func() { _ = http.NewResponseController(c.ResponseWriter).SetWriteDeadline(time.Now()) })
	c.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (c *cutShort) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutShort) stop() {
	if c.cut != nil {
		c.cut.Stop()
	}
}

// conflicting answers two of three updates and patches with a conflict: at random, because
// every third write could always be that of another controller.
func conflicting() fault {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if (r.Method == http.MethodPut || r.Method == http.MethodPatch) && !strings.Contains(r.URL.Path, "/leases/") && rand.N(3) != 0 {
			refuses(w, http.StatusConflict, metav1.StatusReasonConflict)
			return
		}
		forward.ServeHTTP(w, r)
	}
}

// Clients get no error that a retry of the hub could have avoided.
func TestFaults_ofAnswersAreNoErrorsOfClients(t *testing.T) {
	t.Parallel()
	for name, fault := range answersOf() {
		t.Run(name, func(t *testing.T) {
			framework.Sample(t, 3)
			t.Parallel()
			faults := framework.NewFaults(t, kcp)
			// A slow create is answered 202, which live accepts.
			lives, patience := 2, time.Minute
			if name == lateAnswers {
				// Each run waits for minutes, and a second one finds nothing new.
				lives, patience = 1, 15*time.Second
			}
			hub := framework.StartHub(t, faults.KCP, framework.NewRoot(), func(o *server.Options) { o.CreateTimeout = patience })
			s := newScene(t, hub)
			faults.Intercept(fault)
			if strings.Contains(name, "watch") {
				// Open connections do not notice it.
				faults.Cut()
			}
			began := time.Now()
			for range lives {
				s.live(t)
			}
			took := time.Since(began)
			faults.Intercept(nil)
			s.settled(t)
			ready := hub.Do(t, framework.Call{Method: http.MethodGet, Path: "/readyz"}, http.StatusOK)
			require.Equal(t, "ok", string(ready.Raw))
			require.NotContains(t, hub.Log.String(), `"status": 500`)
			t.Logf("%s: %d lives took %s", name, lives, took.Round(time.Millisecond))
		})
	}
}

// live is a typical use of an Organization. No request of it may fail, but one that had to wait may
// be answered 202.
func (s *scene) live(t *testing.T) {
	t.Helper()
	members := func(method, user string, body any) framework.Call {
		return framework.Call{As: "alice", Method: method, Path: strings.TrimSuffix("/api/orgs/"+s.org+"/members/"+user, "/"), Org: s.org, Body: body}
	}
	do := func(c framework.Call, codes ...int) framework.Answer {
		t.Helper()
		var a framework.Answer
		framework.Eventually(t, framework.Long, func() (err error) {
			// A connection that broke before the request may be reported.
			a, err = s.hub.Try(c)
			return err
		})
		if a.Code == http.StatusInternalServerError {
			require.Fail(t, "a bug of ours", "%s", logged(s.hub, a))
		}
		require.Contains(t, append(codes, http.StatusAccepted), a.Code, "%s %s: %s", c.Method, c.Path, a.Raw)
		return a
	}
	do(members(http.MethodPost, "", map[string]any{"userRef": map[string]string{"name": "bob"}, "role": "member"}), http.StatusCreated, http.StatusOK)
	do(members(http.MethodPatch, "bob", map[string]string{"role": "admin"}), http.StatusOK)
	for i := range 3 {
		do(framework.Call{As: "alice", Method: http.MethodPatch, Path: "/api/orgs/" + s.org, Org: s.org, Body: map[string]string{"displayName": fmt.Sprintf("renamed %d", i)}}, http.StatusOK)
	}
	made := do(framework.Call{As: "alice", Method: http.MethodPost, Path: "/api/orgs/" + s.org + "/workspaces", Org: s.org, Body: map[string]string{"displayName": "another"}}, http.StatusCreated)
	s.remember(made)
	s.remember(do(framework.Call{As: "alice", Method: http.MethodPost, Path: "/api/orgs", Body: map[string]string{"displayName": "another"}}, http.StatusCreated))
	workspace := framework.Call{As: "alice", Path: "/api/orgs/" + s.org + "/workspaces/" + s.ws, Org: s.org, Workspace: s.ws}
	remove, undelete := workspace, workspace
	remove.Method, undelete.Method = http.MethodDelete, http.MethodPost
	undelete.Path += "/undelete"
	do(remove, http.StatusOK)
	do(undelete, http.StatusOK)
	do(members(http.MethodDelete, "bob", nil), http.StatusNoContent)
	// Accepted requests complete later.
	framework.Eventually(t, framework.Long, func() error {
		if a := do(members(http.MethodGet, "", nil), http.StatusOK); strings.Contains(string(a.Raw), "bob") {
			return fmt.Errorf("bob is still in it: %s", a.Raw)
		}
		return nil
	})
}

// settled requires that the state is as the last answers said.
func (s *scene) settled(t *testing.T) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		mine := s.hub.Do(t, framework.Call{As: "alice", Method: http.MethodGet, Path: "/api/users/me/memberships"}, http.StatusOK)
		theirs := s.hub.Do(t, framework.Call{As: "bob", Method: http.MethodGet, Path: "/api/users/me/memberships"}, http.StatusOK)
		org := s.hub.Do(t, framework.Call{As: "alice", Method: http.MethodGet, Path: "/api/orgs/" + s.org, Org: s.org}, http.StatusOK)
		workspaces := s.hub.Do(t, framework.Call{As: "alice", Method: http.MethodGet, Path: "/api/orgs/" + s.org + "/workspaces", Org: s.org}, http.StatusOK)
		for _, uuid := range s.acknowledged {
			if !strings.Contains(string(mine.Raw)+string(workspaces.Raw), uuid) {
				return fmt.Errorf("%s was acknowledged and is not there", uuid)
			}
		}
		switch {
		case strings.Contains(string(theirs.Raw), s.org):
			return fmt.Errorf("bob is still in it: %s", theirs.Raw)
		case org.Text("displayName") != "renamed 2" || org.Text("phase") != "Ready":
			return fmt.Errorf("the Org is %s", org.Raw)
		case strings.Contains(string(workspaces.Raw), `"phase":"Progressing"`) || !strings.Contains(string(workspaces.Raw), s.ws):
			return fmt.Errorf("the Workspaces are %s", workspaces.Raw)
		}
		return nil
	})
	framework.Eventually(t, framework.Long, func() error {
		_, errOut, err := s.hub.Kubectl(t, "alice", s.cluster, "get", "namespaces")
		if err != nil {
			err = fmt.Errorf("%w: %s", err, errOut)
		}
		return err
	})
}
