package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/test/framework"
)

type tenant struct {
	UUID      string `json:"uuid"`
	ClusterID string `json:"clusterID"`
}

func create(h *hubProcess, as, path, org string) (tenant, error) {
	var made tenant
	a, err := h.Try(framework.Call{As: as, Method: http.MethodPost, Path: path, Org: org, Body: map[string]string{"displayName": "bench"}})
	if err == nil && a.Code != http.StatusCreated {
		err = fmt.Errorf("POST %s: %d %s", path, a.Code, a.Raw)
	}
	if err == nil {
		err = json.Unmarshal(a.Raw, &made)
	}
	return made, err
}

func bearer(as string) http.Header {
	return http.Header{"Authorization": {"Bearer " + framework.Token(as)}}
}

// measureReads compares REST reads with a bare handler that writes the same bytes.
func measureReads(h *hubProcess) ([]row, error) {
	var org, ws tenant
	var err error
	for range 5 {
		if org, err = create(h, "alice", "/api/orgs", ""); err != nil {
			return nil, err
		}
	}
	if ws, err = create(h, "alice", "/api/orgs/"+org.UUID+"/workspaces", org.UUID); err != nil {
		return nil, err
	}
	ca, err := caOf(h)
	if err != nil {
		return nil, err
	}
	var rows []row
	for name, path := range map[string]string{
		"GET 5 orgs": "/api/orgs", "GET memberships": "/api/users/me/memberships",
		"GET a workspace": "/api/orgs/" + org.UUID + "/workspaces/" + ws.UUID,
	} {
		header := bearer("alice")
		header.Set("X-Kedge-Org", org.UUID)
		header.Set("X-Kedge-Workspace", ws.UUID)
		a, err := h.Try(framework.Call{As: "alice", Method: http.MethodGet, Path: path, Org: org.UUID, Workspace: ws.UUID})
		if err != nil {
			return nil, err
		}
		floor, err := startBare(filepath.Join(h.dir, "bare", filepath.Base(path)), a.Raw)
		if err != nil {
			return nil, err
		}
		for _, connections := range []int{8, 64} {
			bare, err := load(floor.http, floor.URL+"/bare", header, connections, loadTime)
			if err != nil {
				return nil, err
			}
			hub, err := load(clientFor(ca), h.URL+path, header, connections, loadTime)
			if err != nil {
				return nil, err
			}
			what := fmt.Sprintf("%s, %d connections", name, connections)
			rows = append(rows,
				row{what, perSecond(bare), perSecond(hub), ratio(hub.perSecond, bare.perSecond), "≥ 0.50"},
				row{what + ", p99", bare.p99.String(), hub.p99.String(), ratio(hub.p99.Seconds(), bare.p99.Seconds()), "≤ 2.00"})
		}
		floor.Kill()
	}
	slices.SortStableFunc(rows, func(a, b row) int { return compare(a.what, b.what) })
	return rows, nil
}

func compare(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

func perSecond(m measurement) string { return fmt.Sprintf("%.0f/s", m.perSecond) }

// measureProxy compares a GET through the hub with the same GET sent to kcp.
func measureProxy(h *hubProcess) ([]row, error) {
	org, err := create(h, "bob", "/api/orgs", "")
	if err != nil {
		return nil, err
	}
	ws, err := create(h, "bob", "/api/orgs/"+org.UUID+"/workspaces", org.UUID)
	if err != nil {
		return nil, err
	}
	config, kcpCA, err := kcpOf(h)
	if err != nil {
		return nil, err
	}
	ca, err := caOf(h)
	if err != nil {
		return nil, err
	}
	path := "/clusters/" + ws.ClusterID + "/api/v1/namespaces"
	var rows []row
	for _, connections := range []int{1, 8} {
		bare, err := load(clientFor(kcpCA), config.Host+path, bearer("bob"), connections, loadTime)
		if err != nil {
			return nil, err
		}
		hub, err := load(clientFor(ca), h.URL+path, bearer("bob"), connections, loadTime)
		if err != nil {
			return nil, err
		}
		what := fmt.Sprintf("proxied GET, %d connections", connections)
		rows = append(rows,
			row{what, perSecond(bare), perSecond(hub), ratio(hub.perSecond, bare.perSecond), "≥ 0.70"},
			row{what + ", p50", bare.p50.String(), hub.p50.String(), fmt.Sprintf("%+v", hub.p50-bare.p50), "≤ +0.5ms"})
	}
	return rows, nil
}

// measureCreates compares the creation of an Organization and of a Workspace with the creation
// of a workspace in kcp alone. The baseline of an Organization is a workspace of a type that
// binds the same APIs and has no initializer.
func measureCreates(h *hubProcess) ([]row, error) {
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
	// The two are measured alternately, because the speed of the machine varies.
	var orgBaseline, orgHub, wsBaseline, wsHub []time.Duration
	home, err := create(h, "carol", "/api/orgs", "")
	if err != nil {
		return nil, err
	}
	for range rounds {
		for _, m := range []struct {
			into *[]time.Duration
			f    func() error
		}{
			{&orgBaseline, func() error { return bareWorkspace(clients, "root:kedge", "baseline-organization") }},
			{&orgHub, func() error { _, err := create(h, "carol", "/api/orgs", ""); return err }},
			{&wsBaseline, func() error { return bareWorkspace(clients, "root:kedge", "baseline-workspace") }},
			{&wsHub, func() error { return kubectlWorks(h, home.UUID) }},
		} {
			began := time.Now()
			if err := m.f(); err != nil {
				return nil, err
			}
			*m.into = append(*m.into, time.Since(began))
		}
	}
	return []row{
		{"create an Org", seconds(median(orgBaseline)), seconds(median(orgHub)), ratio(median(orgHub).Seconds(), median(orgBaseline).Seconds()), "≤ 1.4"},
		{"create a Workspace, kubectl works", seconds(median(wsBaseline)), seconds(median(wsHub)), ratio(median(wsHub).Seconds(), median(wsBaseline).Seconds()), "≤ 1.25"},
	}, nil
}

const rounds = 15

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func kubectlWorks(h *hubProcess, org string) error {
	ws, err := create(h, "carol", "/api/orgs/"+org+"/workspaces", org)
	if err != nil {
		return err
	}
	a, err := h.Try(framework.Call{As: "carol", Method: http.MethodGet, Path: "/clusters/" + ws.ClusterID + "/api/v1/namespaces/default"})
	if err == nil && a.Code != http.StatusOK {
		err = fmt.Errorf("a new Workspace does not work: %d %s", a.Code, a.Raw)
	}
	return err
}

func baselineTypes(clients *kcp.Clients) error {
	types := clients.WorkspaceTypes("root:kedge")
	for name, original := range map[string]string{"baseline-organization": "organization", "baseline-workspace": "workspace"} {
		t, err := types.Get(context.Background(), original, metav1.GetOptions{})
		if err != nil {
			return err
		}
		baseline := &kcptenancyv1alpha1.WorkspaceType{Spec: t.Spec}
		baseline.Name = name
		baseline.Spec.Initializer, baseline.Spec.LimitAllowedParents, baseline.Spec.LimitAllowedChildren = false, nil, nil
		if _, err := types.Create(context.Background(), baseline, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// bareWorkspace creates a workspace in kcp and watches until it is ready.
func bareWorkspace(clients *kcp.Clients, parent, kind string) error {
	_, err := workspaceOf(clients, parent, kcptenancyv1alpha1.WorkspaceTypeReference{Name: kcptenancyv1alpha1.WorkspaceTypeName(kind), Path: "root:kedge"})
	return err
}

// workspaceOf is bareWorkspace with any type. It returns the logical cluster.
func workspaceOf(clients *kcp.Clients, parent string, of kcptenancyv1alpha1.WorkspaceTypeReference) (cluster string, err error) {
	client := clients.Workspaces(parent)
	ws := &kcptenancyv1alpha1.Workspace{}
	ws.GenerateName = "baseline-"
	ws.Spec.Type = &of
	if ws, err = client.Create(context.Background(), ws, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	w, err := client.Watch(context.Background(), metav1.ListOptions{FieldSelector: "metadata.name=" + ws.Name, ResourceVersion: ws.ResourceVersion})
	if err != nil {
		return "", err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if o, ok := event.Object.(*kcptenancyv1alpha1.Workspace); ok && o.Status.Phase == kcpcorev1alpha1.LogicalClusterPhaseReady {
			return o.Spec.Cluster, nil
		}
	}
	return "", fmt.Errorf("the watch on workspace %s ended before it was ready", ws.Name)
}
