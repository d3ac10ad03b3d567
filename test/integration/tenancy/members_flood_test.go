package tenancy

import (
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// flood sends requests of a person over many streams until stop is called.
type flood struct {
	running sync.WaitGroup
	stopped chan struct{}

	mu sync.Mutex
	// codes has the number of answers by code, and in unanswered that of requests whose connection ended before.
	codes map[int]int
}

// unanswered counts where answers have their code. A refusal ends its connection, so a flood is one of TLS handshakes,
// too. On a machine that is busy enough some of them reach the time limit of the hub.
const unanswered = 0

// startFlood sends each of the calls over so many streams.
func startFlood(hub *framework.Hub, streams int, calls ...call) *flood {
	f := &flood{stopped: make(chan struct{}), codes: map[int]int{}}
	for _, c := range calls {
		for range streams {
			f.running.Go(func() {
				for {
					select {
					case <-f.stopped:
						return
					default:
					}
					f.count(hub.Try(c))
				}
			})
		}
	}
	return f
}

func (f *flood) count(a framework.Answer, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		a.Code = unanswered
	}
	f.codes[a.Code]++
}

// answered waits for so many further answers with the code.
func (f *flood) answered(t *testing.T, code, more int) {
	t.Helper()
	number := func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.codes[code]
	}
	before := number()
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(number() >= before+more, "%d answers with %d", number()-before, code)
	})
}

// stop ends the flood and returns the number of answers by code.
func (f *flood) stop(t *testing.T) map[int]int {
	t.Helper()
	close(f.stopped)
	f.running.Wait()
	return f.codes
}

// A member with a row in a Workspace may not leave the Org. Erin asks for it, and for a role that she
// cannot have, as often as the hub answers.
func TestLeaving_aFloodDoesNotHoldUpTheRemoval(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	p := newPlatform(t, root)
	org := hub.CreateOrg(t, "alice", "ACME")
	ws := hub.CreateWorkspace(t, "alice", org, "platform").Text("uuid")
	people := []string{"bob", "carol", "erin"}
	framework.SignUp(t, hub, people...)
	for _, user := range people {
		hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding(user, "member")), http.StatusCreated)
		hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding(user, "member")), http.StatusCreated)
	}
	remove := func(user string) call {
		return framework.InOrg("alice", http.MethodDelete, org, "/members/"+user+"?cascade=true", nil)
	}
	// Without a flood.
	hub.Do(t, remove("bob"), http.StatusNoContent)
	leave := framework.InOrg("erin", http.MethodDelete, org, "/memberships/me", nil)
	hub.Do(t, leave, http.StatusConflict)

	f := startFlood(hub, 40, leave, framework.InOrg("erin", http.MethodPatch, org, "/members/erin", framework.WithRole("admin")))
	f.answered(t, http.StatusConflict, 50)
	// Neither her own removal nor that of others waits for the flood, and other changes go on, too.
	hub.Do(t, remove("carol"), http.StatusNoContent)
	hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "", map[string]string{"displayName": "ACME Inc."}), http.StatusOK)
	f.answered(t, http.StatusConflict, 20)
	hub.Do(t, remove("erin"), http.StatusNoContent)
	f.answered(t, http.StatusForbidden, 50)
	codes := f.stop(t)
	t.Logf("the answers to the flood: %v", codes)
	require.Less(t, codes[unanswered], 40, "a part of so many streams")
	for code := range codes {
		// For a moment she is no member any more and her index still has the row: 404.
		require.Contains(t, []int{http.StatusConflict, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests, unanswered}, code)
	}
	held, err := p.MembershipsOf(t, org)
	require.NoError(t, err)
	require.Len(t, held, 2, "those of alice: the Organization and the Workspace that she made")
}
