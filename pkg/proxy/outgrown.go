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

// inflated is what a byte of a compressed answer counts for.
const inflated = 8

// errOutgrown is the error of an answer that found no room in the middle.
var errOutgrown error = errs.New(errs.TooManyRequests, "the answer is larger than the hub knew, and too much is in progress; try again").After(loadRetryAfter)

// outgrown watches an answer that was admitted as a light one.
//
// What a Workspace stores may be more than this replica knows: other replicas let in what they count by themselves, and
// controllers of providers store past the proxy. A list then counts for little, and a hundred of them keep all cores of
// kcp busy. So an answer that gets larger than a light one waits for the room of a heavy one before kcp can send the rest,
// and has the Workspace count for what was seen until it is measured again.
//
// A compressed answer hides how much that is. So a list is compressed only where the payer has room for a large answer, and
// keeps that room.
type outgrown struct {
	load          *load
	ctx           context.Context //nolint:containedctx // it is that of the request
	caller, payer string
	in            tenancy.Workspace
	// each is what a byte counts for, and got what all did.
	each, got int64
	// heavy is true when it is, and compressible while the answer may be compressed and has the room of a large one.
	heavy, compressible bool

	mu    sync.Mutex
	ended bool
	left  []func()
}

// outgrown watches the answer to an admitted request. It is nil for one that counts as heavy already. plain is true if kcp
// must not compress the answer. The caller calls end.
func (l *load) outgrown(r *http.Request, s *stream, in tenancy.Workspace, info *request.RequestInfo, a admission) (o *outgrown, plain bool) {
	if a.heavy || l.org == nil {
		return nil, false
	}
	o = &outgrown{load: l, ctx: r.Context(), caller: s.key.user, payer: s.payer, in: in, each: 1}
	if l.large == nil || info.Verb != "list" && !describes(info) || r.Header.Get("Accept-Encoding") == "" {
		return o, false
	}
	leave, ok := l.large.Try(o.payer, in.OrgUUID, 1)
	if !ok {
		return o, true
	}
	o.compressible, o.left = true, []func(){leave}
	return o, false
}

// answers takes note of the encoding of the answer.
func (o *outgrown) answers(r *http.Response) {
	if o != nil && r.Header.Get("Content-Encoding") != "" {
		o.each = inflated
	}
}

// took counts what kcp has sent, and waits where that has become too much. bytes is what the answer counts for from
// there on, or 0 where nothing has changed.
func (o *outgrown) took(n int) (bytes int64, err error) {
	if o == nil || o.heavy {
		return 0, nil
	}
	if o.got += int64(n) * o.each; o.got <= light {
		return 0, nil
	}
	o.heavy = true
	if o.load.limits.Larger != nil {
		o.load.limits.Larger(o.in, o.got)
	}
	if o.compressible {
		return 0, nil
	}
	bytes = o.load.limits.Bytes / share / unknownShare
	ctx, cancel := context.WithTimeout(o.ctx, loadWait)
	defer cancel()
	for _, d := range o.load.heavyDoors(o.caller, o.payer, o.in, bytes) {
		leave, _, err := d.enter(ctx)
		if err != nil {
			o.load.limits.Refused(d.limit)
			return 0, errOutgrown
		}
		o.leaves(leave)
	}
	return bytes, nil
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
		if _, late := s.outgrown.took(n); late != nil {
			return 0, late
		}
		return n, err
	}
	n, err := s.replay.read(from, p)
	if !s.replay.going() {
		// What it sends from here on are events.
		return n, err
	}
	bytes, late := s.outgrown.took(n)
	if late != nil {
		return 0, late
	}
	s.replay.outgrew(bytes, s.outgrown.end)
	return n, err
}
