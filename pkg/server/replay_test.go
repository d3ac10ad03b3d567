package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/faroshq/kedge-hub/pkg/restore"
)

// A restore replays what took rights away. It refuses a history with an action that it does not know, so a new
// route needs a line in the table of pkg/restore.
func TestRoutes_areKnownToARestore(t *testing.T) {
	t.Parallel()
	for _, r := range Routes() {
		// Nothing is served below /api/v1: it is a path of Kubernetes.
		if r.Method == http.MethodGet || r.Method == http.MethodHead || !strings.HasPrefix(r.Pattern, "/api/") || strings.HasPrefix(r.Pattern, "/api/v1") {
			continue
		}
		assert.True(t, restore.Known(r.Method+" "+r.Pattern), "%s %s", r.Method, r.Pattern)
	}
}

// boundIn are bindings of which some do not follow, by Organization, person and Workspace. It counts the questions.
type boundIn struct {
	behind map[string]map[string][]string
	asked  map[string]int
}

func (b *boundIn) Behind(org string) map[string][]string {
	b.asked[org]++
	return b.behind[org]
}

func (b *boundIn) FollowedEverywhere(user string) bool {
	b.asked[user]++
	for _, people := range b.behind {
		if len(people[user]) > 0 {
			return false
		}
	}
	return true
}

// How many people lose something in an Organization is for its tenants to decide, and all others wait.
func TestLagging_asksOnceForAnOrg(t *testing.T) {
	t.Parallel()
	step := func(kind restore.Kind, org, workspace, person string) restore.Step {
		return restore.Step{Kind: kind, Org: org, Workspace: workspace, Object: person}
	}
	steps := []restore.Step{
		step(restore.RemoveMember, "o1", "", "bob"), step(restore.LimitMember, "o1", "w1", "bob"),
		step(restore.LimitMember, "o1", "w2", "bob"), step(restore.LimitMember, "o1", "w1", "carol"),
		step(restore.RemoveMember, "o2", "", "bob"), step(restore.DeletePerson, "", "", "bob"),
		step(restore.SuspendPerson, "", "", "dave"), step(restore.DeleteBot, "o1", "w1", "bot"),
		step(restore.LimitMember, "o1", "w1", "bob"), step(restore.RejectPerson, "", "", "dave"),
	}
	left := bindingsOf(steps)
	assert.Equal(t, steps[:7], left, "one for each person in each place")
	kcp := &boundIn{behind: map[string]map[string][]string{"o1": {"bob": {"w2"}}}, asked: map[string]int{}}
	left = lagging(kcp, left)
	assert.Equal(t, []restore.Step{steps[0], steps[2], steps[5]}, left)
	assert.Equal(t, map[string]int{"o1": 1, "o2": 1, "bob": 1, "dave": 1}, kcp.asked)
	kcp.behind = nil
	assert.Empty(t, lagging(kcp, left))
}
