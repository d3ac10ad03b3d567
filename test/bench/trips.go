package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/faroshq/kedge-hub/test/framework"
)

// tripRounds is how often each trip is made, first without and then with a record of functions.
const tripRounds = 4

// trip is a request with all that follows from it.
type trip struct {
	name       string
	before, do func(h *hubProcess) error
}

// measureTrips prints what requests cost: the functions of this module that the hub enters and
// its requests to kcp, until it sends nothing more. source is a tree of this repository, which
// may be at another commit.
func measureTrips(source string) error {
	dir, err := os.MkdirTemp("", "kedge-trips-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	hub, err := trace(source, dir)
	if err != nil {
		return err
	}
	kcp, err := framework.StartKCP(dir)
	if err != nil {
		return err
	}
	defer kcp.Kill()
	kubeconfig := filepath.Join(dir, "counted.kubeconfig")
	requests, err := countRequests(kcp.Kubeconfig, kubeconfig)
	if err != nil {
		return err
	}
	port, err := framework.FreePort()
	if err != nil {
		return err
	}
	h, err := startProgram(hub.program, filepath.Join(dir, "hub"), port, "--kcp-kubeconfig", kubeconfig, "--policy-enforcement-window", "0s")
	if err != nil {
		return err
	}
	defer h.Kill()
	trips, err := tripsOf(h)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "TRIP\tPACKAGES\tFUNCTIONS\tLINES OF THESE\tCALLS BACK UP\tLINES OF THE PACKAGES\tOF THEIR TESTS\tPASSES\tREADS\tWRITES\tREVIEWS")
	var details strings.Builder
	for _, t := range trips {
		calls, sent := map[call]int{}, map[string]int{}
		for i := range 2 * tripRounds {
			if err := t.before(h); err != nil {
				return err
			}
			requests.quiet()
			recorded := func(do func() error) (map[call]int, error) {
				if i < tripRounds {
					return nil, do()
				}
				return hub.record(do)
			}
			rest, err := recorded(func() error { requests.quiet(); return nil })
			if err != nil {
				return err
			}
			requests.take()
			entered, err := recorded(func() error { defer requests.quiet(); return t.do(h) })
			if err != nil {
				return err
			}
			for c, n := range entered {
				calls[c] += n
			}
			for c, n := range rest {
				calls[c] -= n
			}
			for what, n := range requests.take() {
				if i < tripRounds {
					sent[what] += n
				}
			}
		}
		hub.print(w, &details, t.name, calls, sent)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Print(details.String())
	return nil
}

// print writes the figures of a trip: of the goroutine that serves the request, and of all.
func (t *traced) print(w, details io.Writer, name string, calls map[call]int, sent map[string]int) {
	var reads, writes, reviews int
	var requests []string
	for what, n := range sent {
		requests = append(requests, each(n)+" "+what)
		switch verb, resource, _ := strings.Cut(what, " "); {
		case strings.HasSuffix(resource, "reviews"), verb == "try":
			reviews += n
		case verb == "get" || verb == "list":
			reads += n
		default:
			writes += n
		}
	}
	slices.Sort(requests)
	fmt.Fprintf(details, "\n%s: %s\n", name, strings.Join(requests, ", "))
	for _, request := range []bool{true, false} {
		packages, functions, up, passes := map[string]bool{}, map[int]bool{}, map[string]bool{}, 0
		for c, n := range calls {
			// What a hub does at rest was subtracted, except for what happened to vary.
			if n < tripRounds || request && !c.Request {
				continue
			}
			pkg := t.functions[c.ID].pkg
			packages[pkg], functions[c.ID] = true, true
			if slices.Contains(t.deps[pkg], packageOf(c.Caller)) {
				up[strings.ReplaceAll(c.Caller+" → "+c.Callee, module, "")] = true
			}
			if strings.HasSuffix(c.Callee, "controller.(*Controller).pass") {
				passes += n
			}
		}
		lines, production, tests := 0, 0, 0
		for id := range functions {
			lines += t.functions[id].lines
		}
		for pkg := range packages {
			production, tests = production+t.lines[pkg].production, tests+t.lines[pkg].tests
		}
		title, sums := name, each(passes)+"\t"+each(reads)+"\t"+each(writes)+"\t"+each(reviews)
		if request {
			title, sums = name+", the request", "\t\t\t"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", title, len(packages), len(functions), lines, len(up), production, tests, sums)
		fmt.Fprintf(details, "%s: %s\n  %s\n", title, strings.Join(slices.Sorted(maps.Keys(packages)), " "), strings.Join(slices.Sorted(maps.Keys(up)), "\n  "))
	}
}

// each is the mean of a number over the rounds.
func each(n int) string { return fmt.Sprintf("%.1f", float64(n)/tripRounds) }

// tripsOf makes an Organization of alice with a Workspace in which bob and carol are members.
func tripsOf(h *hubProcess) ([]trip, error) {
	org, err := create(h, "alice", "/api/orgs", "")
	if err != nil {
		return nil, err
	}
	ws, err := create(h, "alice", "/api/orgs/"+org.UUID+"/workspaces", org.UUID)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"bob", "carol"} {
		if err := signedUp(h, name); err != nil {
			return nil, err
		}
	}
	inOrg := "/api/orgs/" + org.UUID + "/members"
	inWorkspace := "/api/orgs/" + org.UUID + "/workspaces/" + ws.UUID + "/members"
	send := func(method, path string, body any, codes ...int) func(*hubProcess) error {
		c := framework.Call{As: "alice", Method: method, Path: path, Org: org.UUID, Body: body}
		if strings.HasPrefix(path, inWorkspace) {
			c.Workspace = ws.UUID
		}
		return func(h *hubProcess) error {
			_, err := expect(h, c, codes...)
			return err
		}
	}
	role := func(path, role string) func(*hubProcess) error {
		return send(http.MethodPatch, path, map[string]string{"role": role}, http.StatusOK)
	}
	adding := func(name string) map[string]any {
		return map[string]any{"userRef": map[string]string{"name": name}, "role": "member"}
	}
	named := map[string]string{"displayName": "trip"}
	nothing := func(*hubProcess) error { return nil }
	newcomers := 0
	return []trip{
		{"POST members", send(http.MethodDelete, inWorkspace+"/bob", nil, http.StatusNoContent, http.StatusNotFound), send(http.MethodPost, inWorkspace, adding("bob"), http.StatusCreated)},
		{"kubectl GET", nothing, send(http.MethodGet, "/clusters/"+ws.ClusterID+"/api/v1/namespaces/default/configmaps", nil, http.StatusOK)},
		{"demotion in a Workspace", role(inWorkspace+"/bob", "admin"), role(inWorkspace+"/bob", "member")},
		{"demotion in an Organization", role(inOrg+"/carol", "admin"), role(inOrg+"/carol", "member")},
		{"create an Organization", nothing, send(http.MethodPost, "/api/orgs", named, http.StatusCreated)},
		{"create a Workspace", nothing, send(http.MethodPost, "/api/orgs/"+org.UUID+"/workspaces", named, http.StatusCreated)},
		{"sign-up", nothing, func(h *hubProcess) error {
			newcomers++
			return signedUp(h, newcomer(newcomers-1))
		}},
	}, send(http.MethodPost, inOrg, adding("carol"), http.StatusCreated)(h)
}

// signedUp signs a person up and waits until they have a default Workspace.
func signedUp(h *hubProcess, as string) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < framework.Long; <-tick.C {
		if cluster, err := defaultCluster(h, as); err != nil || cluster != "" {
			return err
		}
	}
	return fmt.Errorf("%s has no Workspace after %s", as, framework.Long)
}
