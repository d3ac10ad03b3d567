package restore

import (
	"context"
	"errors"
	"fmt"
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

// outage reports whether an error passes with an outage of kcp, or with a full disk.
func outage(err error) bool {
	return errs.Is(err, errs.Unavailable) || errs.Is(err, errs.InsufficientStorage) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
}

// GiveUp lists a Step that was tried for a time in vain, and says so in the log.
func GiveUp(ctx context.Context, s Step, err error, after time.Duration) Impossible {
	reason := fmt.Sprintf("given up after %s, end it yourself: %v", after, err)
	warn(ctx, "RIGHTS CAN BE BACK: what ended after the backup could not be ended again", s, reason)
	return Impossible{Step: s, Reason: reason, GivenUp: true}
}
