package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

const (
	// signUpsAtOnce is the number of new people who come at the same time, and createsAtOnce that of Workspaces
	// that are created at the same time.
	signUpsAtOnce  = 10
	createsAtOnce  = 50
	sparesInBursts = 2
	// sparesCounted is the number of spare Organizations of which the mean is taken.
	sparesCounted = 8
	// idleTime is the time over which an idle process is measured, after settleTime.
	idleTime   = 40 * time.Second
	settleTime = 15 * time.Second
)

// burst are the times of requests that begin at the same time.
type burst struct{ median, last time.Duration }

// atOnce runs a function n times at once.
func atOnce(n int, f func(i int) error) (burst, error) {
	took, failed := make([]time.Duration, n), make([]error, n)
	var running sync.WaitGroup
	began := time.Now()
	for i := range n {
		running.Go(func() {
			failed[i] = f(i)
			took[i] = time.Since(began)
		})
	}
	running.Wait()
	for _, err := range failed {
		if err != nil {
			return burst{}, err
		}
	}
	return burst{median(took), slices.Max(took)}, nil
}

// measureBursts compares bursts of sign-ups and creates on a hub that keeps few spares with the same on one that keeps
// none, and says what a spare costs.
func measureBursts(dir string) ([]row, error) {
	var signUps, creates [2]burst
	for i, spares := range []int{0, sparesInBursts} {
		var err error
		if signUps[i], creates[i], err = burstsWith(filepath.Join(dir, fmt.Sprint("burst-", spares)), spares); err != nil {
			return nil, err
		}
	}
	var rows []row
	for _, b := range []struct {
		what  string
		times [2]burst
	}{{fmt.Sprint(signUpsAtOnce, " sign-ups"), signUps}, {fmt.Sprint(createsAtOnce, " creates of a Workspace"), creates}} {
		what := fmt.Sprintf("%s at once, with %d spares instead of none: ", b.what, sparesInBursts)
		none, some := b.times[0], b.times[1]
		rows = append(rows,
			row{what + "p50", seconds(none.median), seconds(some.median), ratio(some.median.Seconds(), none.median.Seconds()), "≤ 1"},
			row{what + "the last", seconds(none.last), seconds(some.last), ratio(some.last.Seconds(), none.last.Seconds()), "≤ 1"})
	}
	cost, err := costOfSpares(dir)
	return append(rows, cost...), err
}

func burstsWith(dir string, spares int) (signUps, creates burst, err error) {
	h, err := startHub(dir, "--spare-organizations", fmt.Sprint(spares), "--spare-workspaces", fmt.Sprint(spares), "--create-timeout", "5m",
		"--max-writes-in-flight-per-person", fmt.Sprint(createsAtOnce))
	if err != nil {
		return burst{}, burst{}, err
	}
	defer h.Kill()
	org, err := create(h, "carol", "/api/orgs", "")
	if err != nil {
		return burst{}, burst{}, err
	}
	if err := awaitSpares(h, spares, "root:kedge:orgs"); err != nil {
		return burst{}, burst{}, err
	}
	if signUps, err = atOnce(signUpsAtOnce, func(i int) error { return signUp(h, newcomer(i)) }); err != nil {
		return burst{}, burst{}, err
	}
	for _, parent := range []string{"root:kedge:orgs", "root:kedge:orgs:" + org.UUID} {
		if err := awaitSpares(h, spares, parent); err != nil {
			return burst{}, burst{}, err
		}
	}
	creates, err = atOnce(createsAtOnce, func(int) error {
		_, err := create(h, "carol", "/api/orgs/"+org.UUID+"/workspaces", org.UUID)
		return err
	})
	return signUps, creates, err
}

// costOfSpares compares the idle memory and CPU of a hub with many spares with that of one without.
func costOfSpares(dir string) ([]row, error) {
	var memory [2]int
	var busy [2]float64
	for i, spares := range []int{0, sparesCounted} {
		h, err := startHub(filepath.Join(dir, fmt.Sprint("cost-", spares)), "--spare-organizations", fmt.Sprint(spares))
		if err != nil {
			return nil, err
		}
		err = awaitSpares(h, spares, "root:kedge:orgs")
		if err == nil {
			memory[i], busy[i], err = idle(h.PID())
		}
		h.Kill()
		if err != nil {
			return nil, err
		}
	}
	return []row{{
		"a spare Org with its Workspace, idle", fmt.Sprintf("%d MiB, %.1f %% of a CPU without", memory[0], 100*busy[0]),
		fmt.Sprintf("%d MiB, %.1f %% with %d", memory[1], 100*busy[1], sparesCounted),
		fmt.Sprintf("%+.1f MiB, %+.2f %% each", float64(memory[1]-memory[0])/sparesCounted, 100*(busy[1]-busy[0])/sparesCounted), "",
	}}, nil
}

// awaitSpares waits until a workspace has at least so many spares, all ready.
func awaitSpares(h *hubProcess, n int, parent string) error {
	if n == 0 {
		return nil
	}
	config, _, err := kcpOf(h)
	if err != nil {
		return err
	}
	clients, err := kcp.NewClients(config, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	defer clients.Close()
	return awaitReady(clients, parent, n)
}

// settled returns the memory of a process after its start, in MiB.
func settled(pid int) (int, error) {
	<-time.After(settleTime)
	return rss(pid)
}

// idle returns the memory of a process that has become idle in MiB, and the share of a CPU that it uses.
func idle(pid int) (memory int, busy float64, err error) {
	if _, err := settled(pid); err != nil {
		return 0, 0, err
	}
	before, err := cpuOf(pid)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	<-time.After(idleTime)
	after, err := cpuOf(pid)
	if err != nil {
		return 0, 0, err
	}
	busy = (after - before).Seconds() / time.Since(began).Seconds()
	memory, err = rss(pid)
	return memory, busy, err
}
