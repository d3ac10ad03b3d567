package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/framework"
)

const (
	// roundsVariable is the environment variable with the number of kills under load.
	roundsVariable = "KEDGE_TEST_ROUNDS"
	defaultRounds  = 3
	// workers each have their own Organization, with a limited number of Workspaces.
	workers, maxWorkspaces = 8, 5
)

// facts are the possible states of a worker's Organization: one value of each if every request
// was answered, two if a request got no answer.
type facts struct {
	// role is the role of b in the Organization.
	role []v1alpha1.Role
	// deleted holds whether each Workspace is soft-deleted.
	deleted map[string][]bool
	// asked is the Idempotency-Key of a Workspace whose create got no answer.
	asked string
}

// worker changes the Organization of its scene, one request at a time.
type worker struct {
	*scene
	facts
	hub   *framework.CrashHub
	keys  int
	count int
}

// kill -9 at random times under load: answered requests hold, unanswered ones happened
// completely or not at all, and everything is consistent within a minute.
func TestKill_underLoadLosesNoAnsweredRequest(t *testing.T) {
	t.Parallel()
	rounds := defaultRounds
	if n, err := strconv.Atoi(os.Getenv(roundsVariable)); err == nil {
		rounds = n
	}
	k, err := framework.StartKCP(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(k.Kill)
	l := newLane(t, k, "--personal-orgs=false")
	var all []*worker
	for _, s := range l.scenes(t, operation{setup: steps(asked(signUp), asked(otherSignsUp), org)}, workers) {
		all = append(all, &worker{scene: s, hub: l.hub, facts: facts{role: []v1alpha1.Role{""}, deleted: map[string][]bool{}}})
	}
	answered, open := 0, 0
	var longest time.Duration
	for range rounds {
		var working sync.WaitGroup
		failures := make(chan error, workers)
		for _, w := range all {
			working.Go(func() { failures <- w.work() })
		}
		// Some workers always have a request in progress.
		moment, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(2*time.Second))))
		<-moment.Done()
		cancel()
		l.hub.Kill()
		working.Wait()
		close(failures)
		for err := range failures {
			require.NoError(t, err)
		}
		l.hub.Restart(t)
		began := time.Now()
		require.NoError(t, framework.Wait(healed, func() error { return l.sound(t.Context()) }), "%s", l.hub.Log())
		longest = max(longest, time.Since(began))
		truth, err := framework.ReadTruth(t.Context(), l.clients, l.root)
		require.NoError(t, err)
		for _, w := range all {
			open += w.open()
			require.NoError(t, w.agree(truth.Orgs[w.org]), "the Org of %s", w.a)
			answered, w.count = answered+w.count, 0
			// A worker without an answer repeats the request and gets the same object.
			if w.asked != "" {
				require.NoError(t, framework.Wait(healed, func() error { return w.create() }))
			}
		}
		require.NoError(t, framework.Wait(healed, func() error { return l.sound(t.Context()) }))
	}
	t.Logf("%d rounds of kill -9 under load (%s): %d requests had been answered and hold, %d got no answer and are whole or have left nothing; half-made: 0; sound at most %s after the hub was back",
		rounds, roundsVariable, answered, open, longest.Round(time.Millisecond))
}

// work runs until the hub is gone.
func (w *worker) work() error {
	for w.hub.Runs() {
		done, err := w.step()
		if err != nil {
			return err
		}
		if !done {
			return nil
		}
		w.count++
	}
	return nil
}

// step sends one request. done is false if it got no answer.
func (w *worker) step() (done bool, err error) {
	role := w.role[0]
	switch n := rand.IntN(4); {
	case n == 0 && len(w.deleted) < maxWorkspaces:
		err := w.create()
		return err == nil, nil
	case n == 1 && len(w.deleted) > 0:
		return w.flip()
	case role == "":
		want := []v1alpha1.Role{v1alpha1.RoleAdmin, v1alpha1.RoleMember}[rand.IntN(2)]
		return w.become(want, addTo(inOrg, string(want), false))
	case n == 2:
		return w.become("", remove(inOrg, "?cascade=true"))
	case role == v1alpha1.RoleAdmin:
		return w.become(v1alpha1.RoleMember, change(inOrg, "member"))
	}
	return w.become(v1alpha1.RoleAdmin, change(inOrg, "admin"))
}

// send reports whether a request succeeded. A temporary refusal is neither a success nor a
// failure.
func (w *worker) send(c framework.Call) (a framework.Answer, done bool, err error) {
	a, err = w.hub.Try(c)
	switch {
	case err != nil:
		return a, false, nil
	case a.Code/100 == 2:
		return a, true, nil
	case a.Code >= http.StatusInternalServerError || a.Code == http.StatusConflict:
		return a, false, nil
	}
	return a, false, fmt.Errorf("%s %s as %s: %d %s", c.Method, c.Path, c.As, a.Code, a.Raw)
}

func (w *worker) become(role v1alpha1.Role, call func(*scene) framework.Call) (bool, error) {
	was := w.role
	w.role = append(slices.Clone(was), role)
	a, done, err := w.send(call(w.scene))
	switch {
	case done:
		w.role = []v1alpha1.Role{role}
	case a.Code == http.StatusConflict:
		// An earlier request is still in progress.
		w.role, done = was, true
		w.count--
	}
	return done, err
}

// create requests a Workspace, again if there was no answer.
func (w *worker) create() error {
	if w.asked == "" {
		w.keys++
		w.asked = fmt.Sprintf("%s-%d", w.key, w.keys)
	}
	c := createWorkspace(w.scene)
	c.Header = http.Header{"Idempotency-Key": {w.asked}}
	a, done, err := w.send(c)
	if err != nil || !done {
		return fmt.Errorf("no answer: %d %s %w", a.Code, a.Raw, err)
	}
	w.asked = ""
	w.deleted[a.Text("uuid")] = []bool{false}
	return nil
}

// flip deletes or undeletes a Workspace.
func (w *worker) flip() (bool, error) {
	for uuid, deleted := range w.deleted {
		s := *w.scene
		s.ws = uuid
		c := inWorkspace(&s, http.MethodDelete, "", nil)
		if deleted[0] {
			c = inWorkspace(&s, http.MethodPost, "/undelete", nil)
		}
		w.deleted[uuid] = []bool{deleted[0], !deleted[0]}
		_, done, err := w.send(c)
		if done {
			w.deleted[uuid] = []bool{!deleted[0]}
		}
		return done, err
	}
	return true, nil
}

// open counts the requests without an answer.
func (w *worker) open() (n int) {
	if len(w.role) > 1 {
		n++
	}
	if w.asked != "" {
		n++
	}
	for _, deleted := range w.deleted {
		n += len(deleted) - 1
	}
	return n
}

// agree compares the answers with the state in kcp, and adopts that state for requests without
// an answer.
func (w *worker) agree(org *framework.TruthOrg) error {
	var role v1alpha1.Role
	if m := org.Memberships[w.b]; m != nil {
		role = m.Spec.Role
	}
	if !slices.Contains(w.role, role) {
		return fmt.Errorf("%s is %q, and was to be one of %q", w.b, role, w.role)
	}
	w.role = []v1alpha1.Role{role}
	for uuid, ws := range org.Workspaces {
		_, deleted := ws.Annotations[v1alpha1.DeletionRequestedAtAnnotation]
		may, known := w.deleted[uuid]
		if !known && w.asked == "" || known && !slices.Contains(may, deleted) {
			return fmt.Errorf("the Workspace %s is deleted: %t, and was to be one of %t", uuid, deleted, may)
		}
		if known {
			w.deleted[uuid] = []bool{deleted}
		}
	}
	for uuid := range w.deleted {
		if org.Workspaces[uuid] == nil {
			return fmt.Errorf("the Workspace %s is lost", uuid)
		}
	}
	if extra := len(org.Workspaces) - len(w.deleted); extra > 1 {
		return fmt.Errorf("there are %d Workspaces more than were asked for", extra)
	}
	return nil
}
