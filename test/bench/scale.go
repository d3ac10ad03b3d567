package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/faroshq/kedge-hub/test/framework"
)

// The two sizes that are compared.
var (
	small = platform{orgs: 10, workspaces: 10, people: 10}
	large = platform{orgs: 10_000, workspaces: 50_000, people: 100_000}
)

// The number and duration of loads of each size. The sizes alternate, because the speed of the
// machine varies. The sum counts, so that the occasional work of the garbage collector is
// included.
const (
	scaledRounds = 10
	scaledTime   = time.Second
)

// scaledArgument is the argument that starts this program as a scaled hub.
const scaledArgument = "scaled-hub"

// startScaled starts a scaled hub and waits until its caches are full.
func startScaled(dir string, p platform) (*served, error) {
	own := filepath.Join(dir, fmt.Sprintf("scaled-%d", p.people))
	return startServed(scaledArgument, own, strconv.Itoa(p.orgs), strconv.Itoa(p.workspaces), strconv.Itoa(p.people))
}

// scaledFigures requests the figures of a scaled hub.
func scaledFigures(s *served) (figures, error) {
	var f figures
	a, err := s.Try(framework.Call{Method: http.MethodGet, Path: "/figures"})
	if err == nil && a.Code != http.StatusOK {
		err = fmt.Errorf("GET /figures: %d %s", a.Code, a.Raw)
	}
	if err == nil {
		err = json.Unmarshal(a.Raw, &f)
	}
	return f, err
}

// measureScale compares reads from small caches with the same reads from large ones, each in a
// separate process without a kcp.
func measureScale(dir string) ([]row, error) {
	few, err := startScaled(dir, small)
	if err != nil {
		return nil, err
	}
	defer few.Kill()
	many, err := startScaled(dir, large)
	if err != nil {
		return nil, err
	}
	defer many.Kill()
	fewFigures, err := scaledFigures(few)
	if err != nil {
		return nil, err
	}
	manyFigures, err := scaledFigures(many)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, read := range large.reads() {
		var speeds [2]float64
		for range scaledRounds {
			for i, hub := range []*served{few, many} {
				m, err := load(hub.http, hub.URL+read.path, read.header, 8, scaledTime)
				if err != nil {
					return nil, err
				}
				speeds[i] += m.perSecond / scaledRounds
			}
		}
		baseline, measured := speeds[0], speeds[1]
		fewCost, manyCost := fewFigures.Costs[read.name], manyFigures.Costs[read.name]
		rows = append(rows,
			row{read.name + ", caches of 10 → 100 000 people", perSecond(measurement{perSecond: baseline}), perSecond(measurement{perSecond: measured}), ratio(measured, baseline), "≥ 0.90"},
			row{read.name + ", allocated per request", fewCost.String(), manyCost.String(), ratio(float64(manyCost.Bytes), float64(fewCost.Bytes)), "≤ 1.00"})
	}
	return append(rows,
		row{"a gate's decision, everybody in turn", fewFigures.Decision.String(), manyFigures.Decision.String(), later(manyFigures.Decision - fewFigures.Decision), ""},
		row{"memory per person with 5 memberships", "", fmt.Sprintf("%.1f KiB", float64(manyFigures.BytesPerPerson)/1024), "", "≤ 4 KiB"}), nil
}

func (c cost) String() string { return fmt.Sprintf("%d in %d", c.Bytes, c.Allocations) }
