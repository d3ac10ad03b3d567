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

// writeTimeout bounds a write that goes on without its caller.
const writeTimeout = 15 * time.Second

// retryAfter is what a caller is told to wait when kcp cannot be reached.
const retryAfter = 2 * time.Second

// convert turns an error of kcp into one for the caller. what names the object
// in the caller's words. kcp's own text is kept for the log, but for the fields
// of a validation, which are the caller's own input.
func convert(err error, what string) error {
	var status apierrors.APIStatus
	var told *errs.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &told) && told.Code == errs.Unavailable:
		if told.RetryAfter == 0 {
			told.RetryAfter = retryAfter
		}
		return told
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
	case apierrors.IsTooManyRequests(err), apierrors.IsTimeout(err), status.Status().Code >= http.StatusInternalServerError:
		// kcp's own failures, and those of what stands between it and the hub.
		return unavailable(err)
	}
	return errs.Wrap(errs.Internal, err, "the "+what+" could not be written")
}

func unavailable(err error) error {
	e := errs.Wrap(errs.Unavailable, err, "kcp cannot be reached at the moment; try again")
	e.RetryAfter = retryAfter
	return e
}
