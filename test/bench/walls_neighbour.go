package main

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/faroshq/kedge-hub/test/framework"
)

// The neighbour, and the members whom it adds and removes again.
const neighbourName = "alice"

func neighbourMembers() []string { return []string{"bob", "carol", "dave", "erin", "frank", "grace"} }

// neighbourPace is the time between two reads of the neighbour.
const neighbourPace = 5 * time.Millisecond

// neighbour is a tenant that uses the hubs as a person and a program of theirs do: some reads, one change after the
// other.
type neighbour struct {
	stage   *stage
	org, ws tenant
}

// newNeighbour makes the Organization and the Workspace of the neighbour.
func newNeighbour(s *stage) (*neighbour, error) {
	n := &neighbour{stage: s}
	for _, name := range neighbourMembers() {
		if err := s.signUp(name); err != nil {
			return nil, err
		}
	}
	var err error
	if n.org, n.ws, err = s.newTenant(neighbourName); err != nil {
		return nil, err
	}
	_, err = expect(s.hubs[0], framework.Call{
		As: neighbourName, Method: http.MethodPost, Path: configMaps(n.ws.ClusterID), Body: configMap("mine", "x"),
	}, http.StatusCreated)
	return n, err
}

// measure sends requests for some time and returns how long each took.
func (n *neighbour) measure(lasting time.Duration) observed {
	var reads, removals observed
	ends, before := time.Now().Add(lasting), readTicks()
	var running sync.WaitGroup
	running.Go(func() { n.read(ends, &reads) })
	running.Go(func() { n.change(ends, &removals) })
	running.Wait()
	reads.took[removeMember] = removals.took[removeMember]
	reads.failures = append(reads.failures, removals.failures...)
	reads.busy = readTicks().busySince(before)
	return reads
}

// read reads the Organization and an object in the Workspace in turn.
func (n *neighbour) read(ends time.Time, seen *observed) {
	calls := [...]framework.Call{
		getOrg:     {As: neighbourName, Method: http.MethodGet, Path: "/api/orgs/" + n.org.UUID, Org: n.org.UUID},
		getProxied: {As: neighbourName, Method: http.MethodGet, Path: configMaps(n.ws.ClusterID) + "/mine"},
	}
	tick := time.NewTicker(neighbourPace)
	defer tick.Stop()
	for turn := 0; time.Now().Before(ends); turn++ {
		request := turn % len(calls)
		n.send(turn/len(calls), calls[request], request, seen)
		<-tick.C
	}
}

// change adds and removes members, one after the other.
func (n *neighbour) change(ends time.Time, seen *observed) {
	members := neighbourMembers()
	for turn := 0; time.Now().Before(ends); turn++ {
		name := members[turn%len(members)]
		add := framework.InOrg(neighbourName, http.MethodPost, n.org.UUID, "/members", framework.Adding(name, "member"))
		remove := framework.InOrg(neighbourName, http.MethodDelete, n.org.UUID, "/members/"+name, nil)
		n.send(turn, add, -1, seen)
		n.send(turn, remove, removeMember, seen)
	}
}

// send sends a call to the hub whose turn it is, and records how long the answer took if the request is measured.
func (n *neighbour) send(turn int, c framework.Call, request int, seen *observed) {
	began := time.Now()
	a, err := n.stage.hubs[turn%len(n.stage.hubs)].TryOnce(c)
	took := time.Since(began)
	switch {
	case err != nil:
		seen.failures = append(seen.failures, fmt.Sprintf("%s %s: %v", c.Method, c.Path, err))
	case a.Code >= http.StatusMultipleChoices:
		seen.failures = append(seen.failures, fmt.Sprintf("%s %s: %d %s", c.Method, c.Path, a.Code, a.Raw))
	case request >= 0:
		seen.took[request] = append(seen.took[request], took)
	}
}
