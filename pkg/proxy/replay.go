package proxy

import (
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// replayIdle is the time without a byte from kcp after which a watch has sent what existed when it began.
const replayIdle = 250 * time.Millisecond

// maxReplay is the longest time of a replay whose client keeps up: in a busy Workspace events never cease.
const maxReplay = 2 * time.Second

// replays reports whether kcp begins the answer to a watch with all objects that exist: it does without a
// resource version, with version 0 and with sendInitialEvents. For a watch of one object in one namespace it looks up
// that one.
func replays(r *http.Request, info *request.RequestInfo) bool {
	if info.Verb != "watch" || info.Name != "" && info.Namespace != "" {
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

// replay is the beginning of a watch, in which kcp sends what exists. It counts as a list without a limit
// does, and is over when as much was sent as the list counts for, when nothing has come for a moment, or
// after maxReplay, at most half of the time in which the answer to a list must be read, if the client keeps up. A
// client that does not read in time loses the watch.
type replay struct {
	leave func()
	// limited sets the deadline of the client, also of one whose connection was upgraded meanwhile, and
	// unlimit removes it.
	limited, unlimit func()

	mu   sync.Mutex
	left int64
	// reading is true while the hub waits for kcp.
	reading, late, over bool
	idle, limit         *time.Timer
}

// replay begins the replay of an admitted watch. The caller calls stop.
func (l *load) replay(s *stream, a admission) *replay {
	r := &replay{leave: a.leave, left: a.bytes, limited: func() {}, unlimit: func() {}}
	if a.timed {
		unlimit := limitReading(s.client, l.limits.Time)
		r.limited = func() { _ = http.NewResponseController(s.client).SetWriteDeadline(time.Now().Add(l.limits.Time / 2)) }
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
	r.limit = time.AfterFunc(min(l.limits.Time/2, maxReplay), func() {
		r.locked(func() bool {
			if r.late = true; !r.reading {
				r.limited()
			}
			return r.reading
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
	n, err := from.Read(p)
	r.locked(func() bool {
		r.reading = false
		r.idle.Stop()
		r.left -= int64(n)
		return err != nil || r.left <= 0
	})
	return n, err
}

// stop ends the replay with the watch.
func (r *replay) stop() { r.locked(func() bool { return true }) }
