// Command bench measures the hub against its baselines, in one run on one machine, and prints
// one table. With an argument it prints the rows about that alone: "logins", "reads", "proxied", "creates", "revocation",
// "starts", "bursts" or "many". The last two, which take some minutes, are not in the table of a run without an argument.
// It needs the programs that make bench builds. It starts itself as "bench bare-server", the floor of reads, and as
// "bench scaled-hub" to serve reads from caches of a given size. With the argument "walls" it measures the walls between
// tenants instead: see "bench walls --help". With the argument "backup" it measures what a neighbour notices of backups
// of a store of 1 GiB, or of --size MiB.
//
// One run on 2 cores, against the baselines, with the targets. Starts and idle memory are the medians of five runs:
//
//	GET 5 orgs, a workspace, memberships; 8 connections   0.74, 0.61, 0.66 of the requests/s (≥ 0.5),
//	                                                      p99 1.4, 2.2, 1.9 × (≤ 2 ×)
//	the same with 100 000 people and 50 000 Workspaces
//	instead of 10 people                                  0.93, 0.94, 0.92 (≥ 0.9)
//	proxied GET, 1 and 8 connections                      0.97, 0.83 (≥ 0.7); p50 + 0.20, + 0.84 ms (≤ 0.5 ms)
//	proxied GET of a bot, 8 connections                   0.68 (≥ 0.7)
//	a watched event                                       p50 + 0.06 ms (≤ 1 ms)
//	revocation: watch closed and next request refused     p50 26 ms, p99 70 ms; of a bot's token 14 ms (≤ 1 s)
//	create an Organization; a Workspace, until kubectl
//	works; sign-up                                        1.27, 1.25, 1.62 × (≤ 1.4, 1.25 ×, stated)
//	the same from spares: to the answer; to a
//	ClusterRole; to a kubectl that works                  57, 98, 136 ms: 0.08, 0.18, 0.10 × (≤ 0.15, 0.2, 0.2 ×)
//	both, the Workspace in the new Organization           117 ms (≤ 150 ms)
//	login to first kubectl, without the provider          123 ms, of which kubectl alone takes 60 (≤ 300 ms)
//	20 kubectl at once that need a newer token            1 refresh (1)
//	p99 of a person beside floods of 900/s                4.4 ms, alone 3.5 ms
//	start, cold and warm                                  1.30 (1.13 to 1.60), 1.18 × (0.99 to 1.36) (≤ 1.15 ×)
//	memory: idle; a person with 5 memberships             - 21 (- 50 to + 30) MiB; 3.4 KiB (≤ 80 MiB, ≤ 4 KiB)
//
// One run of "many", kcp and hub with 300 Workspaces in use each. Those of a hub have a policy and roles beside what the
// others have:
//
//	memory, idle; after a start                           1957, 3763 MiB; 834, 1550 MiB (≤ 1.15 ×)
//	CPU, idle                                             3.8, 3.9 % of a core (≤ 1.15 ×)
//	warm start                                            8.5, 14.6 s (≤ 1.15 ×)
//
// Much of the memory is what the garbage collector gives back late. A heap profile of a hub
// with an embedded kcp and 276 Workspaces in use has 1.3 GiB, by holder (some is counted twice):
//
//	objects that watches decode for kcp's caches          23 %
//	compiled admission policies, one in each Workspace    11 %
//	etcd                                                  9 %
//	OpenAPI                                               9 %
//	handlers of custom resources                          9 %
//	the hub                                               6 %, 4 of which was a buffer that is gone
//	kcp's controllers                                     4 %
//
// Runs of "walls" on 2 cores, with a hub with an embedded kcp: what the p99 of a neighbour's GET of its Organization,
// GET in a Workspace and removal of a member was without and with a flood, in ms (≤ 2 ×). The neighbour keeps the cores
// 68 to 82 % busy itself, and with a flood they are 72 to 99 % busy, which is partly the process that sends it:
//
//	objects, bytes: 64 creates at once                    5.3 → 6.9; 19 → 22; 154 → 225. 5.0 → 8.3; 21 → 44; 180 → 264
//	definitions, bindings: 32 creates at once             9.3 → 6.9; 43 → 34; 171 → 304. 5.3 → 6.0; 23 → 50; 168 → 281
//	lists, watches: 300 at once of 20 MB                  5.9 → 7.6; 17 → 23; 151 → 136. 5.6 → 5.8; 18 → 29; 158 → 159
//	leaving: 64 refused DELETEs at once, 10 000/s         5.8 → 18; 21 → 31; 144 → 203
//	patches of one object; toggles of a setting           5.6 → 11; 20 → 44; 156 → 230. 5.5 → 7.6; 18 → 31; 153 → 211
//	roles: 64 creates at once                             7.1 → 4.4; 19 → 17; 143 → 176
//	proxied writes that change nothing                    5.8 → 11; 21 → 52; 160 → 245
//	logins of strangers from 40 networks, 1800/s          4.6 → 14; 17 → 43; 149 → 222
//
// With two hubs before one kcp, all on the same 2 cores:
//
//	objects, bytes                                        3.8 → 3.7; 19 → 32; 153 → 284. 3.8 → 5.2; 22 → 45; 165 → 247
//	definitions, bindings                                 6.2 → 4.3; 28 → 30; 189 → 265. 4.0 → 5.2; 17 → 39; 173 → 372
//	lists, watches                                        3.6 → 4.6; 17 → 30; 162 → 187. 4.0 → 4.5; 17 → 31; 169 → 348
//	leaving                                               4.0 → 8.5; 22 → 30; 172 → 178
//	patches, toggles                                      3.4 → 4.3; 21 → 56; 185 → 360. 3.5 → 4.0; 16 → 31; 177 → 236
//	roles                                                 3.3 → 3.6; 17 → 18; 164 → 176
//	proxied writes that change nothing; logins            3.7 → 5.7; 17 → 41; 149 → 279. 3.0 → 7.3; 19 → 31; 176 → 219
//
// One run of "bursts" and one of "backup", on 2 cores:
//
//	10 sign-ups at once, with 2 spares instead of none    p50 18 s, 0.80; the last 0.81 (≤ 1)
//	50 creates of a Workspace at once, likewise           p50 41 s, 0.96; the last 0.93 (≤ 1)
//	a spare Organization with its Workspace, idle         30 MiB of the process, 0.07 % of a core
//	p99 beside a backup of 1.1 GiB at 4 MiB/s             GET ORG 1.1, proxied GET 1.1, removal 0.7 (≤ 1.2)
//	the same at 8 MiB/s                                   1.1, 1.3, 0.7
//	the same without a bound of its rate, in 54 s         GET ORG 1.7, proxied GET 1.9, removal 1.4
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
	parts := map[string]func(dir string) ([]row, error){
		"logins": measureLogins, "creates": measureCreation, "bursts": measureBursts, "many": measureMany,
		"revocation": onHub(measureRevocation), "starts": measureStarts, "reads": onHub(measureReads), "proxied": onHub(measureProxy),
	}
	if len(os.Args) == 2 && parts[os.Args[1]] != nil {
		do = func() error { return run(inTemp(parts[os.Args[1]])) }
	}
	if len(os.Args) >= 2 && os.Args[1] == wallsArgument {
		do = func() error { return measureWalls(os.Args[2:]) }
	}
	if len(os.Args) >= 2 && os.Args[1] == backupArgument {
		do = func() error { return measureBackup(os.Args[2:]) }
	}
	if len(os.Args) == 2 && os.Args[1] == floodArgument {
		do = func() error { return serveFlood(os.Stdin, os.Stdout) }
	}
	if len(os.Args) == 3 && os.Args[1] == "trips" {
		do = func() error { return measureTrips(os.Args[2]) }
	}
	if len(os.Args) == 4 && os.Args[1] == bareArgument {
		do = func() error { return serveBare(os.Args[2], os.Args[3]) }
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

// onHub gives a measurement a hub.
func onHub(measure func(*hubProcess) ([]row, error)) func(dir string) ([]row, error) {
	return func(dir string) ([]row, error) {
		hub, err := startHub(filepath.Join(dir, "hub"))
		if err != nil {
			return nil, err
		}
		defer hub.Kill()
		return measure(hub)
	}
}

func measure(add func(...row)) error {
	dir, err := os.MkdirTemp("", "kedge-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	starts, err := measureStarts(dir)
	add(starts...)
	if err != nil {
		return err
	}
	hub, err := startHub(filepath.Join(dir, "hub"))
	if err != nil {
		return err
	}
	defer hub.Kill()
	for _, measure := range []func(*hubProcess) ([]row, error){measureReads, measureProxy, measureWatch, measureRevocation, measureBots} {
		measured, err := measure(hub)
		if err != nil {
			return err
		}
		add(measured...)
	}
	hub.Kill()
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
