package proxy

import (
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// replayIdle is the time without a byte from kcp after which a watch has sent what existed when it began, and slow is what
// comes in that time, spent waiting for kcp, where it sends events: in a busy Workspace they never cease.
const replayIdle, slow = 250 * time.Millisecond, 128 << 10

// begins reports whether kcp begins the answer to a watch with more than one object: with what exists, or with what it keeps
// of the changes since a version, which may be as much.
func begins(info *request.RequestInfo) bool {
	return info.Verb == "watch" && (info.Name == "" || info.Namespace == "")
}

// replays reports whether kcp begins the answer to a watch with all objects that exist: it does without a
// resource version, with version 0 and with sendInitialEvents. For a watch of one object in one namespace it looks up
// that one.
func replays(r *http.Request, info *request.RequestInfo) bool {
	if !begins(info) {
		return false
	}
	query := r.URL.Query()
	if initial, given := query["sendInitialEvents"]; given && (len(initial) != 1 || initial[0] != "0" && initial[0] != "false") {
		return true
	}
	versions := query["resourceVersion"]
	if len(versions) != 1 {
		return true
	}
	n, err := strconv.ParseUint(versions[0], 10, 64)
	return versions[0] == "" || err == nil && n == 0
}

// replay is the beginning of a watch, in which kcp sends what exists, or what it keeps of the changes since a version. It
// counts as a list without a limit does, or for little, and is over when as much was sent as an Organization may have in
// progress, when nothing or little has come for a moment, or after half of the time in which the answer to a list must be
// read, if the client keeps up. A client that does not read in time loses the watch. However long kcp takes, the next
// replay waits: many at once only take longer.
type replay struct {
	leave func()
	// limited sets the deadline of the client, also of one whose connection was upgraded meanwhile, and
	// unlimit removes it.
	limited, unlimit func()

	mu sync.Mutex
	// left is how many bytes of it may still come, of most.
	left, most int64
	// came has come since so much time was spent waiting for kcp.
	came   int64
	waited time.Duration
	// longest is half of the time in which the answer to a list must be read.
	longest time.Duration
	// reading is true while the hub waits for kcp.
	reading, late, over bool
	idle, limit         *time.Timer
}

// replay begins the replay of an admitted watch. The caller calls stop.
func (l *load) replay(s *stream, a admission) *replay {
	// What exists may be more than the hub knows.
	r := &replay{
		leave: a.leave, left: max(a.bytes, l.limits.Bytes/share, 2*light), most: l.limits.Bytes / share, longest: l.limits.Time / 2,
		limited: func() {}, unlimit: func() {},
	}
	if a.timed {
		unlimit := limitReading(s.client, l.limits.Time)
		r.limited = func() { _ = http.NewResponseController(s.client).SetWriteDeadline(time.Now().Add(r.longest)) }
		r.unlimit = func() {
			unlimit()
			if s.ended() != nil {
				// The deadline of a termination holds.
				_ = http.NewResponseController(s.client).SetWriteDeadline(time.Now().Add(s.flushTimeout))
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle = time.AfterFunc(time.Hour, func() { r.locked(func() bool { return r.reading }) })
	r.idle.Stop()
	r.limit = time.AfterFunc(r.longest, func() {
		r.locked(func() bool {
			if r.late = true; !r.reading {
				r.limited()
			}
			// One that no deadline holds to its client gives the room back.
			return r.reading || !a.timed
		})
	})
	return r
}

// locked ends the replay if ends is true.
func (r *replay) locked(ends func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || !ends() {
		return
	}
	r.over = true
	r.idle.Stop()
	r.limit.Stop()
	r.leave()
	r.unlimit()
}

// read reads from kcp.
func (r *replay) read(from io.Reader, p []byte) (int, error) {
	r.locked(func() bool {
		r.reading = !r.late
		r.idle.Reset(replayIdle)
		return r.late
	})
	began := time.Now()
	n, err := from.Read(p)
	r.locked(func() bool {
		r.reading = false
		r.idle.Stop()
		r.left -= int64(n)
		r.came += int64(n)
		if r.waited += time.Since(began); r.waited >= replayIdle {
			if r.came < slow {
				return true
			}
			r.came, r.waited = 0, 0
		}
		return err != nil || r.left <= 0
	})
	return n, err
}

// going reports whether the replay goes on.
func (r *replay) going() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.over
}

// outgrew has the replay begin anew, and give back more room at its end.
func (r *replay) outgrew(leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		leave()
		return
	}
	before := r.leave
	r.left, r.late, r.leave = r.most, false, func() { before(); leave() }
	r.limit.Reset(r.longest)
}

// stop ends the replay with the watch.
func (r *replay) stop() { r.locked(func() bool { return true }) }
