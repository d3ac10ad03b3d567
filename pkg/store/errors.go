package store

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// writeTimeout limits a write that continues after its request ended.
const writeTimeout = 15 * time.Second

// retryAfter is the Retry-After sent to clients while kcp is unavailable.
const retryAfter = 2 * time.Second

// maxRetryAfter limits what kcp asks for while it is busy.
const maxRetryAfter = 10 * time.Second

// convert converts an error of kcp to one for the client. what names the object in the
// message. kcp's text goes to the log only, except the causes of a failed validation, which
// are about the client's own input.
func convert(err error, what string) error {
	var status apierrors.APIStatus
	var known *errs.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known) && known.Code == errs.Unavailable:
		if known.RetryAfter == 0 {
			known.RetryAfter = retryAfter
		}
		return known
	case errors.As(err, &known) && known.Code == errs.InsufficientStorage:
		return known
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return unavailable(err)
	case !errors.As(err, &status):
		var network net.Error
		if errors.As(err, &network) || strings.Contains(err.Error(), "connection refused") {
			return unavailable(err)
		}
		return errs.Wrap(errs.Internal, err, "the "+what+" could not be written")
	}
	switch {
	case apierrors.IsInvalid(err):
		e := errs.Wrap(errs.Invalid, err, "the "+what+" is not valid")
		if details := status.Status().Details; details != nil {
			for _, c := range details.Causes {
				e.Causes = append(e.Causes, errs.Cause{Type: string(c.Type), Field: strings.TrimPrefix(c.Field, "spec."), Message: c.Message})
			}
		}
		return e
	case apierrors.IsNotFound(err):
		return errs.Wrap(errs.NotFound, err, "the "+what+" does not exist any more")
	case apierrors.IsAlreadyExists(err):
		return errs.Wrap(errs.AlreadyExists, err, "the "+what+" exists already")
	case apierrors.IsConflict(err):
		return errs.Wrap(errs.Conflict, err, "the "+what+" was changed at the same time; read it again and repeat the request")
	case apierrors.IsTooManyRequests(err):
		return busy(err)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		// kcp's authorizers read caches: they refuse the hub what it may do in a logical cluster
		// that they have not seen yet.
		return refused(err)
	case apierrors.IsTimeout(err), status.Status().Code >= http.StatusInternalServerError:
		// Failures of kcp, or of a load balancer in front of it.
		return unavailable(err)
	}
	return errs.Wrap(errs.Internal, err, "the "+what+" could not be written")
}

// busy is the error for a request that kcp refuses for the moment: it has too many, or it has no
// storage yet for an API that was bound a moment ago.
func busy(err error) error {
	e := errs.Wrap(errs.Unavailable, err, "kcp is busy, or is only beginning to serve this API; try again in a moment")
	e.RetryAfter = retryAfter
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
		e.RetryAfter = min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	return e
}

// refused is the error for a request of the hub itself that kcp does not permit.
func refused(err error) error {
	return errs.Wrap(errs.Unavailable, err,
		"kcp refuses a request of the hub at the moment; try again, and tell the operator if it lasts").After(retryAfter)
}

func unavailable(err error) error {
	return errs.Wrap(errs.Unavailable, err, "kcp cannot be reached at the moment; try again").After(retryAfter)
}
