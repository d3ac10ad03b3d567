// Command bench measures the hub against its baselines, in one run on one machine, and prints
// one table, or with the argument "logins" or "creates" the rows about these alone. It needs the programs that
// make bench builds. It starts itself as "bench scaled-hub" to serve reads from caches of a given
// size.
//
// One run on 2 cores, against the baselines, with the targets:
//
//	GET 5 orgs, a workspace, memberships; 8 connections   0.47, 0.60, 0.65 of the requests/s (≥ 0.5),
//	                                                      p99 2.1, 2.3, 1.8 × (≤ 2 ×)
//	the same with 100 000 people and 50 000 Workspaces
//	instead of 10 people                                  0.97, 0.89, 0.94 (≥ 0.9)
//	proxied GET, 1 and 8 connections                      0.83, 0.93 (≥ 0.7); p50 + 0.16, + 0.49 ms (≤ 0.5 ms)
//	proxied GET of a bot, 8 connections                   0.83 (≥ 0.7)
//	a watched event                                       p50 + 0.04 ms (≤ 1 ms)
//	revocation: watch closed and next request refused     p50 10 ms, p99 24 ms; of a bot's token 10 ms (≤ 1 s)
//	create an Organization; a Workspace, until kubectl
//	works; sign-up                                        1.52, 1.22, 1.47 × (≤ 1.4, 1.25 ×, stated)
//	login to first kubectl, without the provider          113 ms, of which kubectl alone takes 57 (≤ 300 ms)
//	20 kubectl at once that need a newer token            1 refresh (1)
//	p99 of a person beside floods of 900/s                2.6 ms, alone 2.0 ms
//	start, cold and warm                                  1.28, 1.28 × (≤ 1.15 ×)
//	memory: idle; a person with 5 memberships             + 110 MiB; 3.3 KiB (≤ 80 MiB, ≤ 4 KiB)
//
// With the arguments "trips" and a source tree it builds a hub from that tree and prints what
// requests make it enter and send to kcp, on average, until it is quiet. Commit 0f4487c, which is
// older than bots, sessions, the catalog, limits and the audit log, against its state with them:
//
//	packages, functions: a POST of members                16, 184; 23, 238
//	a kubectl GET                                         9, 111; 13, 158
//	a demotion in a Workspace with all that follows       23, 419; 36, 504
//	its reads, writes and SubjectAccessReviews in kcp     5.0, 10.2, 0; 0, 5.2, 3.5
//	its passes through reconcilers                        10.2; 7.2
//	a demotion in an Organization: reads, writes, passes  7.5, 12.0, 28.5; 2.8, 8.2, 30.2
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
)

func main() {
	do := func() error { return run(measure) }
	if len(os.Args) == 2 && os.Args[1] == "logins" {
		do = func() error { return run(inTemp(measureLogins)) }
	}
	if len(os.Args) == 2 && os.Args[1] == "creates" {
		do = func() error { return run(inTemp(measureCreation)) }
	}
	if len(os.Args) == 3 && os.Args[1] == "trips" {
		do = func() error { return measureTrips(os.Args[2]) }
	}
	if len(os.Args) == 7 && os.Args[1] == scaledArgument {
		do = func() error { return serveScaled(os.Args[2], os.Args[3], os.Args[4:]) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// row is one line of the table. ratio is the measured value divided by its baseline.
type row struct{ what, baseline, measured, ratio, want string }

// run measures everything and prints the rows. After a failure it prints those that it has.
func run(measure func(add func(...row)) error) error {
	var rows []row
	failed := measure(func(r ...row) { rows = append(rows, r...) })
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tBASELINE\tHUB\tRATIO\tTARGET")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.what, r.baseline, r.measured, r.ratio, r.want)
	}
	return errors.Join(failed, w.Flush())
}

// inTemp gives a measurement a temporary directory.
func inTemp(measure func(dir string) ([]row, error)) func(func(...row)) error {
	return func(add func(...row)) error {
		dir, err := os.MkdirTemp("", "kedge-bench-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		rows, err := measure(dir)
		add(rows...)
		return err
	}
}

func measure(add func(...row)) error {
	dir, err := os.MkdirTemp("", "kedge-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	starts, kcp, err := measureStarts(dir)
	if err != nil {
		return err
	}
	add(starts...)
	defer kcp.Kill()

	hub, err := startHub(filepath.Join(dir, "hub"))
	if err != nil {
		return err
	}
	defer hub.Kill()
	for _, measure := range []func(*hubProcess) ([]row, error){measureMemory(kcp), measureReads, measureProxy, measureWatch, measureRevocation, measureBots} {
		measured, err := measure(hub)
		if err != nil {
			return err
		}
		add(measured...)
	}
	hub.Kill()
	kcp.Kill()
	creation, err := measureCreation(dir)
	add(creation...)
	if err != nil {
		return err
	}
	logins, err := measureLogins(dir)
	add(logins...)
	if err != nil {
		return err
	}
	scaled, err := measureScale(dir)
	add(scaled...)
	return err
}
