// Command bench measures the hub against its baselines, in one run on one machine, and prints
// one table. It needs the programs that make bench builds. It starts itself as
// "bench scaled-hub" to serve reads from caches of a given size.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
)

func main() {
	do := run
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
func run() error {
	var rows []row
	failed := measure(func(r ...row) { rows = append(rows, r...) })
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tBASELINE\tHUB\tRATIO\tTARGET")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.what, r.baseline, r.measured, r.ratio, r.want)
	}
	return errors.Join(failed, w.Flush())
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
	for _, measure := range []func(*hubProcess) ([]row, error){measureMemory(kcp), measureReads, measureProxy, measureWatch, measureRevocation, measureBots, measureCreates, measureSignUp} {
		measured, err := measure(hub)
		if err != nil {
			return err
		}
		add(measured...)
	}
	hub.Kill()
	kcp.Kill()
	scaled, err := measureScale(dir)
	add(scaled...)
	return err
}
