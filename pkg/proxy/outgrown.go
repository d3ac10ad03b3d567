package proxy

import (
	"context"
	"io"
	"net/http"
	"sync"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// errOutgrown is the error of an answer that found no room in the middle.
var errOutgrown error = errs.New(errs.TooManyRequests, "the answer is larger than the hub knew, and too much is in progress; try again").After(loadRetryAfter)

// outgrown watches an answer that was admitted as a light one.
//
// A Workspace may store more than this replica knows: each replica counts what it lets in, and controllers of providers
// store past the proxy. A list then counts for little, and a hundred of them keep all cores of kcp busy. So an answer that
// gets larger than a light one waits for the room of a heavy one before kcp can send the rest, and the Workspace counts for
// as much as an unknown one does until the next measurement.
type outgrown struct {
	load          *load
	ctx           context.Context //nolint:containedctx // it is that of the request
	client        http.ResponseWriter
	caller, payer string
	in            tenancy.Workspace
	// stored is true if the answer has what is stored, and nothing else.
	stored bool
	got    int64
	heavy  bool

	mu    sync.Mutex
	ended bool
	left  []func()
}

// outgrown watches the answer to a request. It is nil for one that counts as heavy already, and for one that changes
// something: nobody repeats that because its answer was cut. The caller calls end.
func (l *load) outgrown(r *http.Request, s *stream, in tenancy.Workspace, info *request.RequestInfo, a admission) *outgrown {
	if a.heavy || l.org == nil || r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" {
		return nil
	}
	return &outgrown{
		load: l, ctx: r.Context(), client: s.client, caller: s.key.user, payer: s.payer, in: in,
		stored: (info.Verb == "list" || replays(r, info)) && !tabular(r, info),
	}
}

// compress decides whether kcp may compress an answer. A compressed one hides how large it is: 20 MB can be a hundred KiB, which
// no pace holds up. So plain is true for those that count as large, and of the others an Organization has as many as large ones
// at once; where it has them, plain is true. The caller calls leave.
func (l *load) compress(r *http.Request, org string, info *request.RequestInfo, a admission) (leave func(), plain bool) {
	leave = func() {}
	if a.heavy {
		return leave, true
	}
	if l.compressed == nil || !reads(info) && !describes(info) || r.Header.Get("Accept-Encoding") == "" {
		return leave, false
	}
	if out, ok := l.compressed.Try(org, "", 1); ok {
		return out, false
	}
	return leave, true
}

// took counts what kcp has sent, and waits where that has become too much. It returns true once, when the answer has got
// the room of a heavy one.
func (o *outgrown) took(n int) (grew bool, err error) {
	if o == nil || o.heavy {
		return false, nil
	}
	if o.got += int64(n); o.got <= light {
		return false, nil
	}
	o.heavy = true
	bytes := max(o.got, o.load.limits.Bytes/share/unknownShare)
	if o.stored && o.load.limits.Larger != nil {
		o.load.limits.Larger(o.in, bytes)
	}
	ctx, cancel := context.WithTimeout(o.ctx, loadWait)
	defer cancel()
	for _, d := range o.load.heavyDoors(o.caller, o.payer, o.in, bytes) {
		leave, _, err := d.enter(ctx)
		if err != nil {
			o.load.limits.Refused(d.limit)
			return false, errOutgrown
		}
		o.leaves(leave)
	}
	// A client that reads slowly keeps the room from others.
	o.leaves(limitReading(o.client, o.load.limits.Time))
	return true, nil
}

// leaves has leave called at the end.
func (o *outgrown) leaves(leave func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		leave()
		return
	}
	o.left = append(o.left, leave)
}

// end gives the room back.
func (o *outgrown) end() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	for _, leave := range o.left {
		leave()
	}
	o.left = nil
}

// read reads from kcp.
func (s *stream) read(from io.Reader, p []byte) (int, error) {
	if s.replay == nil {
		n, err := from.Read(p)
		return s.took(n, err)
	}
	n, err := s.replay.read(from, p)
	if !s.replay.going() {
		// Events follow, however many.
		return n, err
	}
	return s.took(n, err)
}

// took counts what kcp has sent of what exists. The answer ends where there is no room for it.
func (s *stream) took(n int, read error) (int, error) {
	switch grew, late := s.outgrown.took(n); {
	case late != nil:
		return 0, late
	case grew && s.replay != nil:
		s.replay.outgrew(s.outgrown.end)
	}
	if err := s.pace.took(n); err != nil {
		return 0, err
	}
	return n, read
}
