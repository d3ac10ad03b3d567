// Command bench measures the hub beside its floors, in one run on one machine,
// and prints one table. It needs the programs that make bench builds.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// row is one line of the table. ratio is what was measured against its floor.
type row struct{ what, floor, measured, ratio, want string }

func run() error {
	dir, err := os.MkdirTemp("", "kedge-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var rows []row
	add := func(r ...row) { rows = append(rows, r...) }

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
	for _, measure := range []func(*hubProcess) ([]row, error){measureMemory(kcp), measureReads, measureProxy, measureCreates} {
		measured, err := measure(hub)
		if err != nil {
			return err
		}
		add(measured...)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tFLOOR\tHUB\tRATIO\tASKED")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.what, r.floor, r.measured, r.ratio, r.want)
	}
	return w.Flush()
}
