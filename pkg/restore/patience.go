package restore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// trials tell which Steps go on failing.
type trials struct {
	patience time.Duration
	// since has when a Step began to fail. last is when a Step was done, or kcp was not there.
	since map[stepKey]time.Time
	last  time.Time
}

// moved notes that there is reason to wait.
func (t *trials) moved(now time.Time) { t.last = now }

// over reports whether a Step that has failed just now is given up.
func (t *trials) over(s Step, err error, now time.Time) bool {
	if outage(err) {
		t.moved(now)
	}
	since, ok := t.since[keyOf(s)]
	if !ok {
		since = now
		t.since[keyOf(s)] = now
	}
	if t.last.After(since) {
		since = t.last
	}
	return now.Sub(since) >= t.patience
}

// outage reports whether an error passes with an outage of kcp, or with a full disk. What kcp answers counts, and not the
// code for clients, to whom the hub calls all of this a moment. What it refuses for good must not keep the others waiting:
// it refuses a logical cluster that no shard has. A shard that gives no answer is asked by an address of its own, so its error
// can have no code.
func outage(err error) bool {
	var silence net.Error
	switch {
	case errors.As(err, &silence), errors.Is(err, context.Canceled), withoutEtcd(err):
		return true
	case apierrors.IsForbidden(err), failedInside(err):
		return false
	}
	code := firstCode(err)
	return code == errs.Unavailable || code == errs.InsufficientStorage ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
}

// failedInside reports whether kcp answered 500. Client-go takes most codes from 500 on for that, 502 of a front proxy
// that cannot reach a shard included.
func failedInside(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInternalServerError
}

// withoutEtcd reports whether kcp answers, and its etcd does not: it has no status for that but an internal error.
func withoutEtcd(err error) bool {
	return failedInside(err) &&
		(strings.Contains(err.Error(), "etcdserver: ") || strings.Contains(err.Error(), "rpc error: "))
}

// firstCode returns the code that an error got first. Sessions have one code for all that is no refusal.
func firstCode(err error) (code errs.Code) {
	for e := (*errs.Error)(nil); errors.As(err, &e); err = e.Err {
		code = e.Code
	}
	return code
}

// GiveUp lists a Step that was tried for a time in vain, and says so in the log.
func GiveUp(ctx context.Context, s Step, err error, after time.Duration) Impossible {
	reason := fmt.Sprintf("given up after %s, end it yourself: %v", after, err)
	warn(ctx, "RIGHTS CAN BE BACK: what ended after the backup could not be ended again", s, reason)
	return Impossible{Step: s, Reason: reason, GivenUp: true}
}
