package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/faroshq/kedge-hub/test/framework"
)

const (
	revocations = 50
	// patience is the time limit of a revocation.
	patience = 10 * time.Second
)

// measureRevocation adds a person to a Workspace and removes them again while they have an
// open watch. Time starts before the removal is requested, so that the work of the hub before
// its answer counts.
func measureRevocation(h *hubProcess) ([]row, error) {
	org, err := create(h, "alice", "/api/orgs", "")
	if err != nil {
		return nil, err
	}
	ws, err := create(h, "alice", "/api/orgs/"+org.UUID+"/workspaces", org.UUID)
	if err != nil {
		return nil, err
	}
	// Only people who have signed up can be added.
	if _, err := expect(h, framework.Call{As: "bob", Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK); err != nil {
		return nil, err
	}
	ca, err := caOf(h)
	if err != nil {
		return nil, err
	}
	r := revocation{hub: h, client: clientFor(ca), org: org.UUID, workspace: ws, members: "/api/orgs/" + org.UUID + "/workspaces/" + ws.UUID + "/members"}
	what := "revocation, watch closed and request refused"
	var took []time.Duration
	for range revocations {
		d, missing, err := r.round()
		if err != nil {
			return nil, err
		}
		if missing != "" {
			return []row{{what + ", p99", "", missing + " within " + patience.String(), "", "≤ 1s"}}, nil
		}
		took = append(took, d)
	}
	slices.Sort(took)
	return []row{
		{what + ", p50", "", seconds(took[len(took)/2]), "", ""},
		{what + ", p99", "", seconds(took[len(took)*99/100]), "", "≤ 1s"},
	}, nil
}

type revocation struct {
	hub       *hubProcess
	client    *http.Client
	org       string
	workspace tenant
	members   string
}

// round returns the duration of one revocation, or what had not happened after patience.
func (r revocation) round() (took time.Duration, missing string, err error) {
	call := framework.Call{As: "alice", Method: http.MethodPost, Path: r.members, Org: r.org, Workspace: r.workspace.UUID}
	call.Body = map[string]any{"userRef": map[string]string{"name": "bob"}, "role": "member"}
	if _, err := expect(r.hub, call, http.StatusCreated); err != nil {
		return 0, "", err
	}
	maps := "/clusters/" + r.workspace.ClusterID + "/api/v1/namespaces/default/configmaps"
	get := framework.Call{As: "bob", Method: http.MethodGet, Path: maps}
	if _, ok, err := until(r.hub, get, http.StatusOK); err != nil {
		return 0, "", err
	} else if !ok {
		return 0, "", fmt.Errorf("who was added cannot work after %s", patience)
	}
	watch, err := openWatch(r.client, r.hub.URL+maps+"?watch=true", bearer("bob"))
	if err != nil {
		return 0, "", err
	}
	defer watch.close()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		// The watch has ended, with or without an error.
		_, _ = io.Copy(io.Discard, watch.in)
	}()
	call.Method, call.Path, call.Body = http.MethodDelete, r.members+"/bob", nil
	began := time.Now()
	if _, err := expect(r.hub, call, http.StatusOK, http.StatusNoContent); err != nil {
		return 0, "", err
	}
	select {
	case <-closed:
	case <-time.After(patience):
		return 0, "not closed", nil
	}
	refused, ok, err := until(r.hub, get, http.StatusForbidden)
	if err == nil && !ok {
		missing = "not refused"
	}
	return refused.Sub(began), missing, err
}

// until repeats the request until the answer has the code and returns the time of that.
func until(h *hubProcess, c framework.Call, code int) (at time.Time, ok bool, err error) {
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		a, err := h.Try(c)
		if err != nil {
			return time.Time{}, false, err
		}
		if a.Code == code {
			return time.Now(), true, nil
		}
	}
	return time.Time{}, false, nil
}

// expect sends a request whose answer must have one of the codes.
func expect(h *hubProcess, c framework.Call, codes ...int) (framework.Answer, error) {
	a, err := h.Try(c)
	if err == nil && !slices.Contains(codes, a.Code) {
		err = fmt.Errorf("%s %s: %d %s", c.Method, c.Path, a.Code, a.Raw)
	}
	return a, err
}
