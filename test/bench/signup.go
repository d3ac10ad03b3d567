package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/test/framework"
)

// signUps is the number of new people in measureSignUp.
const signUps = 9

func newcomer(i int) string { return fmt.Sprintf("newcomer-%d", i) }

// measureSignUp compares the time from the first request of a new person until kubectl works
// in their default Workspace with the time that kcp alone takes for two workspaces. It runs
// after measureCreates, which creates the WorkspaceTypes of the baseline.
func measureSignUp(h *hubProcess) ([]row, error) {
	config, _, err := kcpOf(h)
	if err != nil {
		return nil, err
	}
	clients, err := kcp.NewClients(config, prometheus.NewRegistry())
	if err != nil {
		return nil, err
	}
	var baseline, hub []time.Duration
	for i := range signUps {
		began := time.Now()
		for _, kind := range []string{"baseline-organization", "baseline-workspace"} {
			if err := bareWorkspace(clients, "root:kedge", kind); err != nil {
				return nil, err
			}
		}
		baseline = append(baseline, time.Since(began))
		began = time.Now()
		if err := signUp(h, newcomer(i)); err != nil {
			return nil, err
		}
		hub = append(hub, time.Since(began))
	}
	return []row{{"sign-up, kubectl works", seconds(median(baseline)), seconds(median(hub)), ratio(median(hub).Seconds(), median(baseline).Seconds()), ""}}, nil
}

func signUp(h *hubProcess, as string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < framework.Long; <-tick.C {
		cluster, err := defaultCluster(h, as)
		if err != nil {
			return err
		}
		if cluster == "" {
			continue
		}
		a, err := h.Try(framework.Call{As: as, Method: http.MethodGet, Path: "/clusters/" + cluster + "/api/v1/namespaces/default"})
		if err != nil || a.Code == http.StatusOK {
			return err
		}
	}
	return fmt.Errorf("%s has no Workspace that works after %s", as, framework.Long)
}

// defaultCluster is the logical cluster of the person's default Workspace, or empty until it
// is known.
func defaultCluster(h *hubProcess, as string) (string, error) {
	me, err := expect(h, framework.Call{As: as, Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
	if err != nil || me.Text("defaultWorkspace") == "" {
		return "", err
	}
	a, err := expect(h, framework.Call{As: as, Method: http.MethodGet, Path: "/api/users/me/memberships"}, http.StatusOK)
	if err != nil {
		return "", err
	}
	var rows struct {
		Items []v1alpha1.MembershipIndexEntry `json:"items"`
	}
	if err := json.Unmarshal(a.Raw, &rows); err != nil {
		return "", err
	}
	for _, row := range rows.Items {
		if row.WorkspaceUUID == me.Text("defaultWorkspace") {
			return row.ClusterID, nil
		}
	}
	return "", nil
}
