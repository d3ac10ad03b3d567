package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/test/framework"
)

// spareRounds is the number of creates of each kind in measureSpares.
const spareRounds = 9

// measureCreation measures creates and sign-up with no spares, and then with spares, on a hub of its own
// for each.
func measureCreation(dir string) ([]row, error) {
	none, err := startHub(filepath.Join(dir, "no-spares"))
	if err != nil {
		return nil, err
	}
	rows, err := measureCreates(none)
	if err == nil {
		var more []row
		more, err = measureSignUp(none)
		rows = append(rows, more...)
	}
	none.Kill()
	if err != nil {
		return rows, err
	}
	some, err := startHub(filepath.Join(dir, "spares"), "--spare-organizations", "2", "--spare-workspaces", "1")
	if err != nil {
		return rows, err
	}
	defer some.Kill()
	more, err := measureSpares(some)
	return append(rows, more...), err
}

// measureSpares compares creates and sign-ups that find a spare with the creation of workspaces in kcp
// alone. It waits for the next spare before each.
func measureSpares(h *hubProcess) ([]row, error) {
	config, _, err := kcpOf(h)
	if err != nil {
		return nil, err
	}
	clients, err := kcp.NewClients(config, prometheus.NewRegistry())
	if err != nil {
		return nil, err
	}
	if err := baselineTypes(clients); err != nil {
		return nil, err
	}
	home, err := create(h, "carol", "/api/orgs", "")
	if err != nil {
		return nil, err
	}
	var orgBaseline, orgHub, wsBaseline, wsHub, both, personBaseline, personHub, refill []time.Duration
	people := 0
	for range spareRounds {
		for _, m := range []struct {
			// parent is the workspace in which a spare has to be ready first; empty for none.
			parent string
			into   *[]time.Duration
			f      func() error
		}{
			{"", &orgBaseline, func() error { return bareWorkspace(clients, "root:kedge", "baseline-organization") }},
			{"root:kedge:orgs", &orgHub, func() error { _, err := create(h, "carol", "/api/orgs", ""); return err }},
			{"", &wsBaseline, func() error { return bareWorkspace(clients, "root:kedge", "baseline-workspace") }},
			{"root:kedge:orgs:" + home.UUID, &wsHub, func() error { return guardedWrite(h, home.UUID) }},
			{"root:kedge:orgs:" + home.UUID, &refill, func() error { return nil }},
			{"root:kedge:orgs", &both, func() error {
				org, err := create(h, "carol", "/api/orgs", "")
				if err != nil {
					return err
				}
				return guardedWrite(h, org.UUID)
			}},
			{"", &personBaseline, func() error {
				if err := bareWorkspace(clients, "root:kedge", "baseline-organization"); err != nil {
					return err
				}
				return bareWorkspace(clients, "root:kedge", "baseline-workspace")
			}},
			{"root:kedge:orgs", &personHub, func() error { people++; return signUp(h, newcomer(people-1)) }},
		} {
			began := time.Now()
			if m.parent != "" {
				if err := awaitSpare(clients, m.parent); err != nil {
					return nil, err
				}
			}
			if m.into != &refill {
				began = time.Now()
			}
			if err := m.f(); err != nil {
				return nil, err
			}
			*m.into = append(*m.into, time.Since(began))
		}
	}
	compare := func(what string, hub, baseline []time.Duration, want string) row {
		return row{what, seconds(median(baseline)), seconds(median(hub)), ratio(median(hub).Seconds(), median(baseline).Seconds()), want}
	}
	return []row{
		compare("create an Org from a spare", orgHub, orgBaseline, "≤ 0.15"),
		compare("create a Workspace from a spare, until a ClusterRole", wsHub, wsBaseline, "≤ 0.2"),
		{"both, the Workspace in the new Org", "", seconds(median(both)), "", "≤ 150 ms"},
		compare("sign-up with a spare, kubectl works", personHub, personBaseline, "≤ 0.2"),
		{"the next spare Workspace is ready after", "", seconds(median(refill)), "", ""},
	}, nil
}

// guardedWrite creates a Workspace, and in it a ClusterRole, which kcp's admission policy is about. That
// request is sent once.
func guardedWrite(h *hubProcess, org string) error { return firstWrite(h, org, h.TryOnce) }

// firstWrite creates a Workspace, and in it a ClusterRole with send.
func firstWrite(h *hubProcess, org string, send func(framework.Call) (framework.Answer, error)) error {
	ws, err := create(h, "carol", "/api/orgs/"+org+"/workspaces", org)
	if err != nil {
		return err
	}
	a, err := send(framework.Call{
		As: "carol", Method: http.MethodPost, Path: "/clusters/" + ws.ClusterID + "/apis/rbac.authorization.k8s.io/v1/clusterroles",
		Body: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "first"}},
	})
	if err == nil && a.Code != http.StatusCreated {
		err = fmt.Errorf("a new Workspace takes no guarded write: %d %s", a.Code, a.Raw)
	}
	return err
}

// awaitSpare waits until every spare in a workspace is ready, and there is one.
func awaitSpare(clients *kcp.Clients, parent string) error { return awaitReady(clients, parent, 1) }

// awaitReady waits until every spare in a workspace is ready, and there are at least n.
func awaitReady(clients *kcp.Clients, parent string, n int) error {
	return framework.Wait(framework.Long, func() error {
		spares, err := framework.SparesIn(context.Background(), clients, parent)
		if err != nil {
			return err
		}
		for _, s := range spares {
			if parent == "root:kedge:orgs" && s.ClusterID != "" {
				inside, err := framework.SparesIn(context.Background(), clients, s.ClusterID)
				if err != nil {
					return err
				}
				s.Whole = len(inside) == 1 && inside[0].Whole
			}
			if !s.Takeable(s.Hash) {
				return fmt.Errorf("the spare %s is not ready", s.Name)
			}
		}
		return framework.Check(len(spares) >= n, "%s has %d spares", parent, len(spares))
	})
}
