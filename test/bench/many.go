package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/test/framework"
)

const (
	// manyWorkspaces is the number of Workspaces that measureMany uses, in manyParents Organizations.
	manyWorkspaces = 300
	manyParents    = 10
	// madeAtOnce is the number that is made at the same time.
	madeAtOnce = 4
)

// held is what a process with many workspaces costs.
type held struct {
	made, start          time.Duration
	empty, idle, started int
	busy                 float64
}

// measureMany compares a hub with many Workspaces in use with a kcp alone with as many.
func measureMany(dir string) ([]row, error) {
	bare, err := manyInKCP(filepath.Join(dir, "many-kcp"))
	if err != nil {
		return nil, err
	}
	hub, err := manyInHub(filepath.Join(dir, "many-hub"))
	if err != nil {
		return nil, err
	}
	mib := func(n int) string { return fmt.Sprintf("%d MiB", n) }
	percent := func(share float64) string { return fmt.Sprintf("%.1f %% of a CPU", 100*share) }
	each := func(h held) string { return fmt.Sprintf("%.2f MiB", float64(h.idle-h.empty)/manyWorkspaces) }
	what := fmt.Sprintf("%d Workspaces in use in %d Orgs: ", manyWorkspaces, manyParents)
	return []row{
		{what + "made in", seconds(bare.made), seconds(hub.made), ratio(hub.made.Seconds(), bare.made.Seconds()), ""},
		{what + "memory, idle", mib(bare.idle), mib(hub.idle), ratio(float64(hub.idle), float64(bare.idle)), "≤ 1.15"},
		{what + "memory of each", each(bare), each(hub), "", ""},
		{what + "CPU, idle", percent(bare.busy), percent(hub.busy), ratio(hub.busy, bare.busy), "≤ 1.15"},
		{what + "start, warm", seconds(bare.start), seconds(hub.start), ratio(hub.start.Seconds(), bare.start.Seconds()), "≤ 1.15"},
		{what + "memory after a start", mib(bare.started), mib(hub.started), ratio(float64(hub.started), float64(bare.started)), "≤ 1.15"},
	}, nil
}

// inParents runs a function for each workspace, some at once.
func inParents(parents []string, f func(parent string) error) error {
	var making errgroup.Group
	making.SetLimit(madeAtOnce)
	for i := range manyWorkspaces {
		making.Go(func() error { return f(parents[i%len(parents)]) })
	}
	return making.Wait()
}

func manyInKCP(dir string) (h held, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return h, err
	}
	k, err := framework.StartKCP(dir)
	if err != nil {
		return h, err
	}
	defer func() { k.Kill() }()
	config, _, err := adminOf(k.Kubeconfig)
	if err != nil {
		return h, err
	}
	clients, err := kcp.NewClients(config, prometheus.NewRegistry())
	if err != nil {
		return h, err
	}
	defer clients.Close()
	if h.empty, err = rss(k.PID()); err != nil {
		return h, err
	}
	universal := kcptenancyv1alpha1.WorkspaceTypeReference{Name: "universal", Path: "root"}
	began := time.Now()
	parents := make([]string, manyParents)
	for i := range parents {
		if parents[i], err = workspaceOf(clients, "root", universal); err != nil {
			return h, err
		}
	}
	err = inParents(parents, func(parent string) error {
		cluster, err := workspaceOf(clients, parent, universal)
		if err != nil {
			return err
		}
		_, err = clients.ClusterRoles(cluster).Create(context.Background(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "first"}}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return h, err
	}
	h.made = time.Since(began)
	if h.idle, h.busy, err = idle(k.PID()); err != nil {
		return h, err
	}
	if err := k.Stop(); err != nil {
		return h, err
	}
	began = time.Now()
	if err := k.Start(); err != nil {
		return h, err
	}
	h.start = time.Since(began)
	h.started, err = settled(k.PID())
	return h, err
}

func manyInHub(dir string) (h held, err error) {
	hub, err := startHub(dir)
	if err != nil {
		return h, err
	}
	defer func() { hub.Kill() }()
	if h.empty, err = rss(hub.PID()); err != nil {
		return h, err
	}
	// The first request of a person makes a User: that is not measured.
	if _, err := expect(hub, framework.Call{As: "carol", Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK); err != nil {
		return h, err
	}
	began := time.Now()
	orgs := make([]string, manyParents)
	for i := range orgs {
		org, err := create(hub, "carol", "/api/orgs", "")
		if err != nil {
			return h, err
		}
		orgs[i] = org.UUID
	}
	if err := inParents(orgs, func(org string) error { return firstWrite(hub, org, hub.Try) }); err != nil {
		return h, err
	}
	h.made = time.Since(began)
	if h.idle, h.busy, err = idle(hub.PID()); err != nil {
		return h, err
	}
	if err := hub.Stop(); err != nil {
		return h, err
	}
	if hub, err = startHub(dir); err != nil {
		return h, err
	}
	h.start = hub.took
	h.started, err = settled(hub.PID())
	return h, err
}
