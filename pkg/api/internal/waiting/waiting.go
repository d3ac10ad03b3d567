package waiting

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/keylock"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// writeTimeout limits the time of a write. It continues if its client disconnects, so that it is
// carried out completely or not at all.
const writeTimeout = 30 * time.Second

// Write writes the intent of a request to the audit log and returns a context for the change, which
// does not end with the request. The locks that the change takes are those of the caller; a change that
// reduces rights goes ahead of the others. The error refuses the request.
func Write(r *http.Request, intent httpmw.Intent) (context.Context, context.CancelFunc, error) {
	if err := httpmw.Intend(r, intent); err != nil {
		return nil, nil, err
	}
	ctx, cancel := Context(r)
	return keylock.WithCaller(ctx, httpmw.CallerOf(r).Key(), intent.Reduces), cancel, nil
}

// Context returns a context for the steps before a write, or for a dry run. It does not end with
// the request.
func Context(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Context()), writeTimeout)
}

// Await waits until a condition on the caches holds. It evaluates the condition again
// after each change that affects one of refs.
type Await = func(ctx context.Context, refs []tenancy.Ref, cond func() bool) error

// Until waits until the caches show a write, and reports whether they do. If they take longer than
// timeout, the request succeeds all the same: other checks report caches that lag.
func Until(r *http.Request, timeout time.Duration, await Await, refs []tenancy.Ref, cond func() bool) bool {
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	return await(ctx, refs, cond) == nil
}

// Workspaces is the part of views.Views that Ready waits for.
type Workspaces interface {
	Workspace(org, workspace string) (tenancy.Workspace, bool)
	Await(ctx context.Context, refs []tenancy.Ref, cond func() bool) error
}

// Ready returns the Workspace of the request when it is Ready, and refuses the request if that
// takes longer than timeout. A Workspace is not Ready for a moment after its members have changed.
// What is done in it goes by what Ready returns: the scope of the request may have a Workspace that
// kcp had not scheduled, and that has no logical cluster.
func Ready(r *http.Request, timeout time.Duration, views Workspaces) (ready tenancy.Workspace, err error) {
	scope := httpmw.ScopeOf(r)
	if scope.Workspace.Ready() {
		return *scope.Workspace, nil
	}
	if Until(r, timeout, views.Await, []tenancy.Ref{tenancy.WorkspaceRef(scope.Workspace.UUID)}, func() (ok bool) {
		ready, ok = views.Workspace(scope.Org.UUID(), scope.Workspace.UUID)
		return ok && ready.Ready()
	}) {
		return ready, nil
	}
	return tenancy.Workspace{}, NotReady()
}

// NotReady refuses a request to a Workspace that is not Ready.
func NotReady() error {
	return errs.New(errs.Conflict, "the workspace is not ready; repeat the request when its phase is Ready")
}

// Made returns the status of a created object: 201 when it is ready, and 202 if that takes
// longer than timeout or the caller does not want to wait.
func Made(r *http.Request, timeout time.Duration, await Await, refs []tenancy.Ref, ready func() bool) (code int) {
	if Async(r) {
		return http.StatusAccepted
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	if await(ctx, refs, ready) != nil {
		return http.StatusAccepted
	}
	return http.StatusCreated
}

// Async reports whether the caller does not want to wait until something made is
// ready (RFC 7240, Prefer: respond-async).
func Async(r *http.Request) bool {
	for _, line := range r.Header.Values("Prefer") {
		for preference := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(preference, ";")
			if strings.EqualFold(strings.TrimSpace(name), "respond-async") {
				return true
			}
		}
	}
	return false
}
