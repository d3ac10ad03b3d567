package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/orgs"
	"github.com/faroshq/kedge-hub/pkg/api/users"
	"github.com/faroshq/kedge-hub/pkg/api/workspaces"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/metrics"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
	"github.com/faroshq/kedge-hub/test/framework"
)

// scaledToken is the token of the first person.
const scaledToken = "token-of-the-first-person"

// figures are the measurements that a scaled hub makes itself.
type figures struct {
	BytesPerPerson int64
	// Decision is the duration of one decision of the gate, averaged over all people.
	Decision time.Duration
	// Costs are the allocations of one request, by path.
	Costs map[string]cost
}

type cost struct{ Allocations, Bytes uint64 }

// scaled is the part of the hub that serves reads. The hub's informers fill its caches from a
// generated platform.
type scaled struct {
	platform platform
	views    *views.Views
	registry *prometheus.Registry
	gate     tenancy.Gate
	router   http.Handler
	figures  figures
	// idle stands for the memory that a hub uses beside its caches. Without it the garbage
	// collector would run far more often with small caches than it does in a hub.
	idle []byte
}

// idleHeap is the approximate heap of an empty hub with its kcp.
const idleHeap = 100 << 20

// serveScaled is the program that startScaled starts: a separate process for each size, so
// that the heap of one does not slow down the other.
func serveScaled(dir, address string, sizes []string) error {
	var p platform
	var err error
	for i, into := range []*int{&p.orgs, &p.workspaces, &p.people} {
		if *into, err = strconv.Atoi(sizes[i]); err != nil {
			return err
		}
	}
	if p.tree, err = tenancy.NewTree("root:kedge"); err != nil {
		return err
	}
	s := &scaled{platform: p, registry: metrics.NewRegistry(), idle: make([]byte, idleHeap)}
	if err := s.fill(); err != nil {
		return err
	}
	if err := s.mount(dir); err != nil {
		return err
	}
	err = serveOverTLS(dir, address, s.router)
	runtime.KeepAlive(s.idle)
	return err
}

// fill starts the informers of the topology and then those of people, so that the memory of
// the second group can be measured.
func (s *scaled) fill() error {
	config, _ := newVirtualWorkspace(s.platform).start()
	clients, err := kcp.NewClients(config, s.registry)
	if err != nil {
		return err
	}
	s.views, err = views.New(views.Config{
		Clusters: views.Clusters{Users: usersCluster, Orgs: orgsCluster, Hub: []string{"root", usersCluster, orgsCluster}},
		Clients:  clients, Admin: clients, Metrics: s.registry,
	})
	if err != nil {
		return err
	}
	s.gate = tenancy.Gate{Tree: s.platform.tree, Cluster: s.views.Cluster, Index: s.views.Index, Org: s.views.Org, Workspace: s.views.Workspace, User: s.views.ByName, Sudo: s.views.Sudo}
	endpoint := []string{config.Host}
	go informer.Watch(context.Background(), endpoint, s.views.Organizations, s.views.ChildWorkspaces)
	if err := s.holds(map[string]int{"organizations": s.platform.orgs, "workspaces": s.platform.workspaces}); err != nil {
		return err
	}
	before := live()
	go informer.Watch(context.Background(), endpoint, s.views.Users, s.views.Indexes, s.views.Memberships)
	if err := s.holds(map[string]int{"users": s.platform.people, "indexes": s.platform.people, "memberships": s.platform.people * memberships}); err != nil {
		return err
	}
	// Each person makes one request, which fills what the caches compute on demand.
	for person := range s.platform.people {
		_ = s.views.Index(personName(person))
	}
	s.figures.BytesPerPerson = (live() - before) / int64(s.platform.people)
	return nil
}

// holds waits until the caches have all objects.
func (s *scaled) holds(want map[string]int) error {
	deadline := time.After(framework.Long)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		held, err := s.held()
		if err != nil {
			return err
		}
		missing := ""
		for view, n := range want {
			if held[view] != n {
				missing = fmt.Sprintf("the view of %s holds %d objects of %d", view, held[view], n)
			}
		}
		if missing == "" {
			return nil
		}
		select {
		case <-deadline:
			return errors.New(missing)
		case <-tick.C:
		}
	}
}

func (s *scaled) held() (map[string]int, error) {
	families, err := s.registry.Gather()
	if err != nil {
		return nil, err
	}
	held := map[string]int{}
	for _, family := range families {
		if family.GetName() != "kedge_views_objects" {
			continue
		}
		for _, m := range family.GetMetric() {
			held[m.GetLabel()[0].GetValue()] = int(m.GetGauge().GetValue())
		}
	}
	return held, nil
}

// live is the number of bytes of the heap in use.
func live() int64 {
	// A sync.Pool releases its objects at the second collection.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// mount mounts the handlers of reads as the hub does.
func (s *scaled) mount(dir string) error {
	file := filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(file, fmt.Appendf(nil, "%s,%s,%s\n", scaledToken, personName(0), personName(0)), 0o600); err != nil {
		return err
	}
	tokens, err := auth.LoadStaticTokens(file)
	if err != nil {
		return err
	}
	counted, err := httpmw.NewMetrics(s.registry)
	if err != nil {
		return err
	}
	logger, err := log.New("console", "info", os.Stderr)
	if err != nil {
		return err
	}
	authenticate := httpmw.Authenticate(httpmw.Authentication{Tokens: tokens, People: s.views, Sessions: s.views, Clock: clock.RealClock{}})
	creator := tenancy.Creator{Org: s.views.Org, Workspace: s.views.Workspace, Membership: s.views.Membership, MembershipsAt: s.views.MembershipsAt}
	d := api.Deps{
		Views: s.views, Scopes: httpmw.Scopes{Tenants: s.views, Creator: creator}, Tree: s.platform.tree,
		DefaultOrgQuota: 10, DefaultWorkspaceQuota: 50,
	}
	r := chi.NewRouter()
	r.Use(httpmw.Observe(logger, counted, nil))
	r.Get("/figures", httpapi.Handle(s.tell))
	r.Route("/api/", func(r chi.Router) {
		r.Use(authenticate)
		(&users.Handler{Deps: d, Search: s.views.SearchPeople, LimitSearch: func(next http.Handler) http.Handler { return next }}).Mount(r)
		(&orgs.Handler{Deps: d}).Mount(r)
		(&workspaces.Handler{Deps: d}).Mount(r)
	})
	// The proxy's part of a request before it is forwarded.
	r.With(authenticate).Get("/clusters/{cluster}", httpapi.Handle(func(w http.ResponseWriter, r *http.Request) error {
		entry, err := s.gate.Enter(httpmw.CallerOf(r).User.Name, chi.URLParam(r, "cluster"))
		if err != nil {
			return err
		}
		return httpapi.Write(w, http.StatusOK, entry.Role)
	}))
	s.router = r
	return nil
}

// decisions is the number of timed decisions of the gate.
const decisions = 200_000

// tell measures the allocations of requests and answers with all figures.
func (s *scaled) tell(w http.ResponseWriter, _ *http.Request) error {
	names, clusters := s.everybody()
	began := time.Now()
	for i := range decisions {
		n := i % len(names)
		if _, err := s.gate.Enter(names[n], clusters[n]); err != nil {
			return err
		}
	}
	s.figures.Decision = time.Since(began) / decisions
	s.figures.Costs = map[string]cost{}
	for _, read := range s.platform.reads() {
		c, err := s.costOf(read)
		if err != nil {
			return err
		}
		s.figures.Costs[read.name] = c
	}
	raw, err := json.Marshal(s.figures)
	if err != nil {
		return err
	}
	_, err = w.Write(raw)
	return err
}

// everybody returns the name of each person and a logical cluster that they can access.
func (s *scaled) everybody() (names, clusters []string) {
	for person := range s.platform.people {
		_, ws := s.platform.target(person)
		names, clusters = append(names, personName(person)), append(clusters, workspaceCluster(ws))
	}
	return names, clusters
}

func (s *scaled) costOf(read scaledRead) (cost, error) {
	r, err := http.NewRequest(http.MethodGet, read.path, http.NoBody)
	if err != nil {
		return cost{}, err
	}
	r.Header = read.header
	const requests = 5000
	var before, after runtime.MemStats
	for i := range 2 * requests {
		if i == requests {
			runtime.ReadMemStats(&before)
		}
		answer := &unread{header: http.Header{}}
		s.router.ServeHTTP(answer, r)
		if answer.code != http.StatusOK {
			return cost{}, fmt.Errorf("GET %s: %d", read.path, answer.code)
		}
	}
	runtime.ReadMemStats(&after)
	return cost{(after.Mallocs - before.Mallocs) / requests, (after.TotalAlloc - before.TotalAlloc) / requests}, nil
}

// unread is a response writer that discards the answer.
type unread struct {
	header http.Header
	code   int
}

func (u *unread) Header() http.Header         { return u.header }
func (u *unread) WriteHeader(code int)        { u.code = code }
func (u *unread) Write(p []byte) (int, error) { return len(p), nil }

// scaledRead is a request that is measured with both sizes.
type scaledRead struct {
	name, path string
	header     http.Header
}

func (p platform) reads() []scaledRead {
	org, ws := p.target(0)
	header := http.Header{
		"Authorization": {"Bearer " + scaledToken}, httpmw.OrgHeader: {orgUUID(org)}, httpmw.WorkspaceHeader: {workspaceUUID(ws)},
	}
	return []scaledRead{
		{"GET 5 orgs", "/api/orgs", header},
		{"GET a workspace", "/api/orgs/" + orgUUID(org) + "/workspaces/" + workspaceUUID(ws), header},
		{"GET memberships", "/api/users/me/memberships", header},
		{"the proxy's gate", "/clusters/" + workspaceCluster(ws), header},
	}
}
