package proxy

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/inflight"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// leastBytes is what every request counts for.
	leastBytes = 256 << 10
	// light is what a request with the largest body and the answer of one object counts for. Light
	// requests never wait for room: the number of requests that a person has bounds them.
	light = maxBody + leastBytes
	// expansion is what each byte of a body in YAML counts for, and each of a definition: a MiB of YAML takes the parser a
	// hundred, and a MiB of empty schemas takes kcp five hundred.
	expansion = 64
	// held is what each byte of a role or a binding counts for: the hub has the body, and kcp has it decoded.
	held = 4
	// openAPI is the path of the OpenAPI documents, and boundSchemas what they count for with each
	// APIBinding: its schemas are stored elsewhere.
	openAPI      = "/openapi"
	boundSchemas = 128 << 10
	// largestObject is the size of the largest object that etcd takes.
	largestObject = 1536 << 10
	// page is the number of objects for which a list without a limit counts as one request more. It is
	// the limit that kubectl asks for.
	page = 500
	// beginning is the number of watches of a Workspace that begin at once, and waitingToBegin the number of those that wait:
	// more of a Workspace that has more than is known would take the cores from each other before that is seen.
	beginning, waitingToBegin = 16, 1024
	// share is the part of the bytes in progress that one Organization can have, and one person.
	share = 4
	// reserve is the part of the requests in progress, and of the open streams, that is for Organizations with little
	// of them, which is one in so many. That of the bytes in progress is for people with one share at most.
	reserve, little = 4, 16
	// unknownShare is the part of that share that a list counts for as long as nobody knows how much its
	// Workspace has.
	unknownShare = 4
	// waitingPerWorkspace is the number of requests of a Workspace that wait, for each one that does not.
	waitingPerWorkspace = 8
	// loadWait limits the time for which a request waits for its turn.
	loadWait = 10 * time.Second
	// loadRetryAfter is the Retry-After of a request that had no turn.
	loadRetryAfter = time.Second
)

// LoadLimits bound what the requests to kcp that are in progress hold in memory. Of the long-running ones
// only the beginning of a watch counts, in which kcp sends what exists. Zero means no limit.
type LoadLimits struct {
	// All is the number of requests, each of which has a connection to kcp. The last quarter is for Organizations
	// of people with less than a sixteenth of All, which take turns to send those that wait: clients that send or read slowly
	// hold up their own Organization alone.
	All int
	// Requests is the number of requests in a Workspace. A list without a limit counts for as many as
	// it has pages of 500 objects, up to half of them. A caller's changes of one object are sent one after
	// the other.
	Requests int
	// Bytes is the size of the bodies and the answers of all requests of more than a few MiB. An
	// Organization and a person have at most a quarter of it each. A list counts for what it may
	// answer at most, which is what its Workspace stores. The last quarter is for those of people who have no more
	// than a quarter with all their Organizations.
	Bytes int64
	// Parallel is the number of requests that count for Bytes that an Organization and a person have in progress
	// at once, and the number of writes of roles and bindings that the Organizations of a payer have. Where kcp has few
	// cores, more at once get no more answers in a second, and take the cores from others.
	Parallel int
	// Turns is the number of requests of an Organization that kcp has at once, until it begins to answer, or for a second,
	// and one that counts for more bytes than a small one has more of them. Others wait. It is no limit without Requests.
	Turns int
	// Time limits the time for which a client may read an answer. The default is a minute.
	Time time.Duration
	// Stored returns what a Workspace stores. known is false until it was measured.
	Stored func(tenancy.Workspace) (objects, bytes int64, known bool)
	// Larger is called with what was seen of a Workspace that has more than Stored returned. It may be nil.
	Larger func(w tenancy.Workspace, bytes int64)
	// Served returns the numbers of CustomResourceDefinitions and APIBindings of a Workspace, as far as they
	// are known.
	Served func(tenancy.Workspace) (definitions, bindings int64)
	// Refused is called with the name of the limit for every request that one refuses.
	Refused func(limit string)
}

// load admits requests to kcp by LoadLimits. A request waits for the share of its caller and of its
// Organization first. The callers of an Organization take turns, and the Organizations, or their payers, do.
type load struct {
	limits LoadLimits
	// The rooms of objects, comparisons, turns, watches that begin, compressed lists, workspaces, organizations and callers
	// are nil without a limit.
	objects, comparisons, turns, watches, compressed, workspace, org, caller *inflight.Rooms
	all, requests                                                            *inflight.Room
}

func newLoad(metrics prometheus.Registerer, limits LoadLimits) (*load, error) {
	limits.Time = cmp.Or(limits.Time, time.Minute)
	all := int64(limits.All)
	l := &load{limits: limits, requests: &inflight.Room{Most: all, Reserve: all / reserve, Little: max(all/little, 1), Wait: loadWait}}
	if n := limits.Requests; n > 0 {
		l.workspace = &inflight.Rooms{Most: int64(n), Pieces: n * (1 + waitingPerWorkspace), Wait: loadWait}
		l.objects = newObjects()
		if limits.Turns > 0 {
			l.turns = newTurns(limits.Turns)
		}
	}
	if n := limits.Parallel; n > 0 {
		l.comparisons, l.compressed = newComparisons(n), &inflight.Rooms{Most: int64(n), Pieces: n, Wait: loadWait}
	}
	l.all = &inflight.Room{Most: limits.Bytes, Reserve: limits.Bytes / reserve, Little: max(limits.Bytes/share, 1), Wait: loadWait}
	if limits.Bytes > 0 {
		shares := func() *inflight.Rooms {
			return &inflight.Rooms{Most: max(limits.Bytes/share, 1), Pieces: int(limits.Bytes/leastBytes) + 1, Wait: loadWait}
		}
		l.org, l.caller = shares(), shares()
		l.watches = &inflight.Rooms{Most: beginning, Pieces: beginning + waitingToBegin, Wait: loadWait}
	}
	for _, gauge := range []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "kedge_proxy_in_flight_bytes", Help: "Bytes that the requests of more than 3 MiB that are in progress count for.",
		}, func() float64 { return float64(l.all.Used()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "kedge_proxy_in_flight_requests", Help: "Requests that kcp has, except long-running ones. 0 without a limit.",
		}, func() float64 { return float64(l.requests.Used()) }),
	} {
		if err := metrics.Register(gauge); err != nil {
			return nil, fmt.Errorf("register the metrics of the load: %w", err)
		}
	}
	return l, nil
}

// door is a bound that a request passes before it is sent.
type door struct {
	limit, refusal string
	enter          func(context.Context) (leave func(), waited bool, err error)
}

// doors returns the bounds for a request, in their order. A list of more than the share of its
// Organization is alone in it.
func (l *load) doors(caller, payer string, w tenancy.Workspace, requests, bytes int64) (doors []door) {
	if l.workspace != nil {
		doors = append(doors, door{
			"requests_in_flight_per_workspace", "too many requests are in progress in this workspace; wait until one ends, and list with a limit",
			func(ctx context.Context) (func(), bool, error) {
				return l.workspace.Enter(ctx, w.ClusterID, caller, requests)
			},
		})
	}
	if l.heavy(bytes) {
		doors = append(doors, l.heavyDoors(caller, payer, w, bytes)...)
	}
	if l.limits.All > 0 {
		doors = append(doors, door{"requests_in_flight", "too many requests are in progress in the hub; try again", func(ctx context.Context) (func(), bool, error) {
			return l.requests.Enter(ctx, payer, 1)
		}})
	}
	return doors
}

// beginningDoors are those of a watch, until it has sent what it begins with.
func (l *load) beginningDoors(caller string, w tenancy.Workspace, info *request.RequestInfo) []door {
	if l.watches == nil || !begins(info) {
		return nil
	}
	return []door{{
		"watches_beginning_per_workspace", "too many watches of this workspace begin; try again",
		func(ctx context.Context) (func(), bool, error) { return l.watches.Enter(ctx, w.ClusterID, caller, 1) },
	}}
}

// heavyDoors are those of a request that counts for LoadLimits.Bytes.
func (l *load) heavyDoors(caller, payer string, w tenancy.Workspace, bytes int64) []door {
	ofShare := bytes
	if n := int64(l.limits.Parallel); n > 0 {
		ofShare = max(bytes, l.org.Most/n)
	}
	rooms := func(limit, refusal string, in *inflight.Rooms, key, owner string) door {
		return door{limit, refusal, func(ctx context.Context) (func(), bool, error) { return in.Enter(ctx, key, owner, ofShare) }}
	}
	return []door{
		rooms("bytes_in_flight_per_person", "too much data is in progress for you; wait until a request ends, and list with a limit",
			l.caller, caller, w.OrgUUID),
		rooms("bytes_in_flight_per_org", "too much data of your organization is in progress; wait until a request ends, and list with a limit",
			l.org, w.OrgUUID, caller),
		{"bytes_in_flight", "too much data is in progress in the hub; try again", func(ctx context.Context) (func(), bool, error) {
			return l.all.Enter(ctx, payer, min(bytes, l.org.Most))
		}},
	}
}

// heavy reports whether a request counts for LoadLimits.Bytes.
func (l *load) heavy(bytes int64) bool { return l.org != nil && bytes > light }

// admission is a request that was admitted.
type admission struct {
	// bytes is what the request counts for, and heavy whether LoadLimits.Bytes counts it.
	bytes int64
	heavy bool
	// timed is true if the client must have read the answer in time, because others wait for the room.
	timed bool
	// waited is true if it could not be sent at once.
	waited bool
	// leave is called when the answer has been passed on. It may be called again.
	leave func()
}

// enter waits until a request may be sent.
func (l *load) enter(r *http.Request, caller, payer string, in tenancy.Workspace, info *request.RequestInfo) (a admission, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), loadWait)
	defer cancel()
	var entered []func()
	a.leave = sync.OnceFunc(func() {
		for _, f := range entered {
			f()
		}
	})
	doors := l.objectDoors(caller, in, info)
	requests, bytes := int64(0), int64(leastBytes)
	if info.Verb != "watch" || replays(r, info) {
		requests, bytes = l.weigh(in, r, info)
		doors = append(doors, l.doors(caller, payer, in, requests, bytes)...)
	}
	a.bytes, a.heavy = bytes, l.heavy(bytes)
	if !a.heavy {
		// Those of a heavy one bound it already, and nobody waits for others with a place of this one.
		doors = append(doors, l.beginningDoors(caller, in, info)...)
	}
	for _, d := range doors {
		f, late, err := d.enter(ctx)
		if a.waited = a.waited || late; err != nil {
			a.leave()
			l.limits.Refused(d.limit)
			return a, errs.New(errs.TooManyRequests, d.refusal).After(loadRetryAfter)
		}
		entered = append(entered, f)
	}
	// Nobody knows how long a large answer takes where Bytes is no limit.
	a.timed = requests > 0 && (a.heavy || len(entered) > 0 && bytes <= light)
	return a, nil
}

// limitReading gives a client so much time for an answer: who reads slowly keeps the room from others. end is called
// when the answer has been passed on: the connection then belongs to the requests that follow on it, unless it is cut.
func limitReading(w http.ResponseWriter, limit time.Duration) (end func()) {
	control, until := http.NewResponseController(w), time.Now().Add(limit)
	_ = control.SetWriteDeadline(until)
	return func() {
		if time.Now().Before(until) {
			_ = control.SetWriteDeadline(time.Time{})
		}
	}
}

// weigh returns for how many requests a request counts, and for how many bytes.
func (l *load) weigh(w tenancy.Workspace, r *http.Request, info *request.RequestInfo) (requests, bytes int64) {
	requests, bytes = 1, leastBytes+sizeOfBody(r)
	switch {
	case expands(r, info):
		bytes = leastBytes + expansion*sizeOfBody(r)
	case compares(r.Method, info):
		bytes = leastBytes + held*sizeOfBody(r)
	}
	lists := reads(info) || info.Verb == "watch"
	table := tabular(r, info)
	if r.Method == http.MethodHead && lists {
		// kcp makes the whole answer and sends none of it.
		bytes += l.limits.Bytes / share / unknownShare
	}
	if !lists && !describes(info) && !table || l.limits.Stored == nil {
		return requests, bytes
	}
	objects, stored, known := l.limits.Stored(w)
	switch {
	case table && !lists:
		return requests, bytes + tenancy.MaxColumns*min(stored, largestObject)
	case !lists:
		if known && l.limits.Served != nil {
			definitions, bindings := l.limits.Served(w)
			bytes += min(definitions*largestObject, stored) + bindings*boundSchemas
		}
		return requests, bytes
	}
	limit, limited := limitOf(r)
	if limited = limited && info.Verb != "watch"; !limited {
		requests = min(1+objects/page, max(int64(l.limits.Requests)/2, 1))
		limit = objects
	}
	switch {
	case !known && info.Verb == "watch":
		// A Workspace is measured soon after the start, and a watch is no reason to refuse one until then.
		return requests, bytes
	case !known:
		return requests, bytes + l.limits.Bytes/share/unknownShare
	case limit < stored/largestObject:
		stored = limit * largestObject
	}
	if table {
		stored *= tenancy.MaxColumns
	}
	return requests, bytes + stored
}

// tabular reports whether kcp answers a request with a table whose columns a tenant may have defined: each can be a copy
// of an object.
func tabular(r *http.Request, info *request.RequestInfo) bool {
	return strings.Contains(info.APIGroup, ".") && (!writes(r.Method) || info.Verb == "deletecollection") &&
		strings.Contains(strings.ToLower(strings.Join(r.Header["Accept"], ",")), "as=table")
}

// expands reports whether kcp makes much more of the body of a request than its size.
func expands(r *http.Request, info *request.RequestInfo) bool {
	return writes(r.Method) && (inYAML(r) || info.Resource == "customresourcedefinitions" || info.Resource == "apiresourceschemas")
}

// reads reports whether kcp reads all objects of a kind for a request and can answer with them.
func reads(info *request.RequestInfo) bool {
	return info.Verb == "list" || info.Verb == "deletecollection"
}

// describes reports whether a request is for the OpenAPI documents of a Workspace, which kcp makes of all
// definitions in it.
func describes(info *request.RequestInfo) bool {
	return info.Path == openAPI || strings.HasPrefix(info.Path, openAPI+"/")
}

// limitOf returns the limit of a list. kcp ignores it for a list of resourceVersion 0, which it answers
// from its cache, and reads on until as many objects match a selector.
func limitOf(r *http.Request) (limit int64, ok bool) {
	query := r.URL.Query()
	if query.Get("resourceVersion") == "0" || query.Get("labelSelector") != "" || query.Get("fieldSelector") != "" {
		return 0, false
	}
	limit, err := strconv.ParseInt(query.Get("limit"), 10, 64)
	return limit, err == nil && limit > 0
}
