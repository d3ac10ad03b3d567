package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// wallsArgument is the argument that measures the walls between tenants.
const wallsArgument = "walls"

// wallsOptions are the flags of the walls.
type wallsOptions struct {
	only     []string
	lasting  time.Duration
	replicas []int
	limits   []string
}

// wallsLimits are the flags of the hubs that a flood of some seconds reaches. The writes of one person are as many as
// two cores take with room for others: the default of the hub is for a larger machine. CustomResourceDefinitions and
// APIBindings have the limits of the hub: near a limit of a few a create waits for a measurement, and is no flood.
const wallsLimits = "--workspace-objects=1000 --workspace-bytes=48Mi --writes-per-person=50"

// warmUp is the time for which the neighbour uses new hubs before anything is measured.
const warmUp = 15 * time.Second

const wallsUsage = `usage: bench walls [--only FLOOD,...] [--seconds N] [--replicas 1|2] [--limits "--flag=value ..."]

Measures what a tenant notices of another one who floods the hub: the p99 of a neighbour's GET of its Organization, of its
GET in a Workspace and of its removals of a member, without and with each flood, on the same hubs in the same run. Ends
with 1 if one of them is more than twice as long beside a flood, or if a request of the neighbour fails.

The flood comes from a process of low priority (nice), because on one machine it would take the processors of the hub.

Floods:
%s
Flags:
`

// parseWalls reads the flags. It writes help and mistakes to out.
func parseWalls(args []string, out io.Writer) (wallsOptions, error) {
	var o wallsOptions
	fs := flag.NewFlagSet(wallsArgument, flag.ContinueOnError)
	fs.SetOutput(out)
	only := fs.String("only", "", "floods to measure, separated by commas; all without it")
	length := fs.Int("seconds", 10, "length of each measurement in seconds: one without and one with each flood")
	replicas := fs.Int("replicas", 0, "1 measures a hub with an embedded kcp, 2 measures two hubs before one kcp; both without it")
	limits := fs.String("limits", wallsLimits, "flags of the hubs, so that a flood reaches a limit within its seconds")
	fs.Usage = func() {
		var floods strings.Builder
		for _, f := range wallFloods() {
			fmt.Fprintf(&floods, "  %-10s %s\n", f.name, f.about)
		}
		fmt.Fprintf(out, wallsUsage, floods.String())
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if rest := fs.Args(); len(rest) > 0 {
		return o, fmt.Errorf("unexpected argument %q; name floods with --only", rest[0])
	}
	if *length < 1 {
		return o, fmt.Errorf("--seconds %d: give at least 1", *length)
	}
	if *replicas < 0 || *replicas > 2 {
		return o, fmt.Errorf("--replicas %d: give 1 or 2, or leave it out for both", *replicas)
	}
	o.lasting, o.limits, o.replicas = time.Duration(*length)*time.Second, strings.Fields(*limits), []int{1, 2}
	if *replicas > 0 {
		o.replicas = []int{*replicas}
	}
	names := floodNames()
	if *only == "" {
		o.only = names
		return o, nil
	}
	o.only = strings.Split(*only, ",")
	for _, name := range o.only {
		if !slices.Contains(names, name) {
			return o, fmt.Errorf("--only: there is no flood %q; there are %s", name, strings.Join(names, ", "))
		}
	}
	return o, nil
}

// measureWalls measures all floods and prints a table. It returns an error if a wall does not hold.
func measureWalls(args []string) error {
	o, err := parseWalls(args, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kedge-walls-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var rows []wallRow
	var failed error
	for _, replicas := range o.replicas {
		measured, err := measureStage(filepath.Join(dir, fmt.Sprint(replicas)), replicas, o)
		rows = append(rows, measured...)
		if failed = errors.Join(failed, err); err != nil {
			break
		}
	}
	return errors.Join(failed, printWalls(os.Stdout, rows), judge(rows))
}

// measureStage starts the hubs and measures all floods on them, one after the other.
func measureStage(dir string, replicas int, o wallsOptions) (rows []wallRow, err error) {
	s, err := startStage(dir, replicas, o.limits)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	n, err := newNeighbour(s)
	if err != nil {
		return nil, fmt.Errorf("prepare the neighbour: %w", err)
	}
	// A kcp is slow in its first seconds. The first requests fill caches and open connections.
	n.measure(warmUp)
	for _, name := range o.only {
		row, err := s.measureFlood(n, name, o.lasting)
		if err != nil {
			return rows, fmt.Errorf("flood of %s with %d hubs: %w", name, replicas, err)
		}
		rows = append(rows, row)
		fmt.Fprintf(os.Stderr, "%s\n", strings.Join(row.cells(), "  "))
	}
	return rows, nil
}

// measureFlood measures the neighbour without and with a flood.
func (s *stage) measureFlood(n *neighbour, name string, lasting time.Duration) (wallRow, error) {
	row := wallRow{replicas: len(s.hubs), flood: name}
	f, err := s.startFlood(name, lasting)
	if err != nil {
		return row, err
	}
	defer f.kill()
	row.alone = n.measure(lasting)
	if row.before, err = s.footprint(); err != nil {
		return row, err
	}
	if err := s.resetPeaks(); err != nil {
		return row, err
	}
	if err := f.begin(); err != nil {
		return row, err
	}
	row.beside = n.measure(lasting)
	if row.sent, err = f.result(); err != nil {
		return row, err
	}
	row.after, err = s.footprint()
	return row, err
}
