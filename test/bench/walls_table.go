package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// mostRatio is how much longer the p99 of a neighbour may be beside a flood.
const mostRatio = 2.0

// The requests of the neighbour that are measured.
const (
	getOrg = iota
	getProxied
	removeMember
	neighbourRequests
)

// neighbourColumns are the names of these requests.
var neighbourColumns = [neighbourRequests]string{"GET ORG", "PROXIED GET", "REMOVAL"}

// observed is what a neighbour saw for some time.
type observed struct {
	took [neighbourRequests][]time.Duration
	// failures are requests that were not answered as they should be.
	failures []string
	// busy is the share of the machine's processors that was in use, by whatever ran.
	busy float64
}

// footprint is what the hubs use.
type footprint struct {
	// rss and peak are the memory of the processes of the hubs in MiB.
	rss, peak int
	// used is the part of etcd's database that is in use, and file its size, in bytes.
	used, file int64
}

// sent counts the requests of a flood by the code of their answers. 0 is no answer.
type sent map[int]int

// wallRow is what a flood did.
type wallRow struct {
	replicas      int
	flood         string
	sent          sent
	alone, beside observed
	before, after footprint
}

// percentile returns the p-th percentile: the smallest value that is not below p % of all. It sorts all.
func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[max((len(all)*p+99)/100-1, 0)]
}

// p99 returns the p99 of a request without and with the flood, and their ratio.
func (r wallRow) p99(request int) (alone, beside time.Duration, ratio float64) {
	alone, beside = percentile(r.alone.took[request], 99), percentile(r.beside.took[request], 99)
	return alone, beside, beside.Seconds() / alone.Seconds()
}

// total is the number of requests, and refused lists the answers from 400 on, by code.
func (s sent) total() (n int) {
	for _, count := range s {
		n += count
	}
	return n
}

func (s sent) refused() string {
	var out []string
	for _, code := range slices.Sorted(maps.Keys(s)) {
		switch {
		case code == 0:
			out = append(out, fmt.Sprintf("none:%d", s[code]))
		case code >= 400:
			out = append(out, fmt.Sprintf("%d:%d", code, s[code]))
		}
	}
	return strings.Join(out, " ")
}

// cells are the columns of a row.
func (r wallRow) cells() []string {
	cells := []string{fmt.Sprint(r.replicas), r.flood, fmt.Sprint(r.sent.total()), r.sent.refused()}
	for request := range neighbourRequests {
		alone, beside, ratio := r.p99(request)
		cells = append(cells, fmt.Sprintf("%s → %s = %.2f", millis(alone), millis(beside), ratio))
	}
	return append(cells, fmt.Sprintf("%.0f → %.0f", 100*r.alone.busy, 100*r.beside.busy),
		fmt.Sprintf("%d → %d (%d)", r.before.rss, r.after.rss, r.after.peak),
		fmt.Sprintf("%.1f → %.1f (%.0f)", mebibytes(r.before.used), mebibytes(r.after.used), mebibytes(r.after.file)))
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()*1000) }

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// printWalls prints the table.
func printWalls(out io.Writer, rows []wallRow) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	header := []string{"HUBS", "FLOOD", "SENT", "REFUSED"}
	for _, column := range neighbourColumns {
		header = append(header, column+" p99 ms")
	}
	fmt.Fprintln(w, strings.Join(append(header, "CPU %", "RSS MiB (PEAK)", "STORE MiB (FILE)"), "\t"))
	for _, r := range rows {
		fmt.Fprintln(w, strings.Join(r.cells(), "\t"))
	}
	return w.Flush()
}

// judge returns an error for every wall that does not hold.
func judge(rows []wallRow) error {
	var all []error
	for _, r := range rows {
		what := fmt.Sprintf("beside the flood of %s with %d hubs", r.flood, r.replicas)
		for request, column := range neighbourColumns {
			switch _, beside, ratio := r.p99(request); {
			case len(r.alone.took[request]) == 0 || len(r.beside.took[request]) == 0:
				all = append(all, fmt.Errorf("%s: the neighbour had no answer (%s)", what, column))
			case ratio > mostRatio:
				all = append(all, fmt.Errorf(
					"%s: %s takes %s ms, %.2f times as long as alone, when %.0f %% of the processors were busy; it may take %.0f times as long",
					what, column, millis(beside), ratio, 100*r.alone.busy, mostRatio))
			}
		}
		for when, o := range map[string]observed{"without it": r.alone, "with it": r.beside} {
			if n := len(o.failures); n > 0 {
				all = append(all, fmt.Errorf("%s: %d requests of the neighbour failed %s, the first: %s", what, n, when, o.failures[0]))
			}
		}
	}
	return errors.Join(all...)
}
