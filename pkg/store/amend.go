package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// AmendUser changes the spec of a User by compare-and-swap. change gets the current User
// and returns the fields of the spec to set, or nil for none; after a conflict it is called
// again with the newer object. held may be out of date. The error is NotFound if the name
// now belongs to an object with another UID.
func (s *Store) AmendUser(ctx context.Context, held *v1alpha1.User, change func(context.Context, *v1alpha1.User) (map[string]any, error)) (*v1alpha1.User, error) {
	return amend(ctx, &s.turns, s.clients.Users(s.users), held, within("spec", change), nil, "user")
}

// AmendUserIf is AmendUser with the precondition described at PatchUser.
func (s *Store) AmendUserIf(ctx context.Context, held *v1alpha1.User, change func(context.Context, *v1alpha1.User) (map[string]any, error), match func(version string) error) (*v1alpha1.User, error) {
	client := s.clients.Users(s.users)
	held, err := present(ctx, client, held, match, "user")
	if err != nil {
		return nil, err
	}
	return amend(ctx, &s.turns, client, held, within("spec", change), match, "user")
}

// MarkUser changes the status of a User as AmendUser changes the spec. match is the
// precondition described at PatchUser.
func (s *Store) MarkUser(ctx context.Context, held *v1alpha1.User, change func(context.Context, *v1alpha1.User) (map[string]any, error), match func(version string) error) (*v1alpha1.User, error) {
	return mark(ctx, &s.turns, s.clients.Users(s.users), held, change, match, "user")
}

// AmendOrganization is AmendUser for an Organization. If match is not nil, it is called
// after change with the resource version that change saw, and its error refuses the write.
func (s *Store) AmendOrganization(ctx context.Context, held *v1alpha1.Organization, change func(context.Context, *v1alpha1.Organization) (map[string]any, error), match func(version string) error) (*v1alpha1.Organization, error) {
	return amend(ctx, &s.turns, s.clients.Organizations(s.orgs), held, within("spec", change), match, "organization")
}

// MarkOrganization is MarkUser for an Organization.
func (s *Store) MarkOrganization(ctx context.Context, held *v1alpha1.Organization, change func(context.Context, *v1alpha1.Organization) (map[string]any, error), match func(version string) error) (*v1alpha1.Organization, error) {
	return mark(ctx, &s.turns, s.clients.Organizations(s.orgs), held, change, match, "organization")
}

// MarkWorkspace is MarkUser for a child Workspace. It changes annotations.
func (s *Store) MarkWorkspace(ctx context.Context, orgCluster string, w tenancy.Workspace, change func(tenancy.Workspace) (annotations map[string]any, err error), match func(version string) error) (tenancy.Workspace, error) {
	client := s.clients.Workspaces(orgCluster)
	held, err := read(ctx, client, w.UUID, "workspace")
	if err != nil {
		return tenancy.Workspace{}, err
	}
	changed, err := amend(ctx, &s.turns, client, held, func(_ context.Context, ws *kcptenancyv1alpha1.Workspace) (map[string]any, error) {
		annotations, err := change(tenancy.WorkspaceOf(w.OrgUUID, ws))
		if err != nil || annotations == nil {
			return nil, err
		}
		return map[string]any{"metadata": map[string]any{"annotations": annotations}}, nil
	}, match, "workspace")
	if err != nil {
		return tenancy.Workspace{}, err
	}
	return tenancy.WorkspaceOf(w.OrgUUID, changed), nil
}

// within wraps the fields that change returns in one part of the object, such as spec.
func within[T any](part string, change func(context.Context, T) (map[string]any, error)) func(context.Context, T) (map[string]any, error) {
	return func(ctx context.Context, o T) (map[string]any, error) {
		fields, err := change(ctx, o)
		if err != nil || fields == nil {
			return nil, err
		}
		return map[string]any{part: fields}, nil
	}
}

// maxPause is the longest pause after a conflict.
const maxPause = 200 * time.Millisecond

// amend patches the object with the fields that change returns, with the UID and resource
// version that change saw as preconditions. match, if not nil, is called after change with
// that resource version. A caller with a match passes a held that was read from kcp, because
// a cache may be older than what the client has seen.
func amend[T kcp.Object](ctx context.Context, turns *turns, client *kcp.Client[T], held T, change func(context.Context, T) (map[string]any, error), match func(version string) error, what string, subresources ...string) (T, error) {
	var none T
	// Writers of this process take turns, so that only other replicas cause conflicts.
	uid, name := held.GetUID(), held.GetName()
	first, done, err := turns.take(ctx, uid)
	if err != nil {
		return none, unavailable(err)
	}
	defer done()
	lost := false
	for try := 0; ; try++ {
		if try > 0 || !first {
			if held, err = read(ctx, client, name, what); err != nil {
				return none, err
			}
			if held.GetUID() != uid {
				// The caller's permission was for the object with the other UID.
				return none, errs.New(errs.NotFound, "the "+what+" does not exist any more")
			}
		}
		fields, err := change(ctx, held)
		if err != nil {
			return held, err
		}
		// If an answer was lost and no change is left to make, the first attempt made it.
		if match != nil && (fields != nil || !lost) {
			if err := match(held.GetResourceVersion()); err != nil {
				return none, err
			}
		}
		if fields == nil {
			return held, nil
		}
		metadata, _ := fields["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
			fields["metadata"] = metadata
		}
		metadata["uid"], metadata["resourceVersion"] = held.GetUID(), held.GetResourceVersion()
		patch, err := json.Marshal(fields)
		if err != nil {
			return none, errs.Wrap(errs.Internal, fmt.Errorf("encode the patch: %w", err), "the "+what+" could not be written")
		}
		var changed T
		tries := 0
		err = retry(ctx, func(ctx context.Context) (err error) {
			tries++
			changed, err = client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kcp.FieldManager}, subresources...)
			return err
		})
		if !apierrors.IsConflict(err) {
			return changed, convert(err, what)
		}
		lost = lost || tries > 1
		select {
		case <-ctx.Done():
			return none, unavailable(ctx.Err())
		case <-time.After(rand.N(min(maxPause, time.Duration(try+1)*5*time.Millisecond))): //nolint:gosec // a random pause needs no cryptographic randomness
		}
	}
}

// turns is a lock per object: the writers of one object take turns.
type turns struct {
	mu    sync.Mutex
	queue map[types.UID]*turn
}

type turn struct {
	busy    chan struct{}
	waiting int
}

// take waits for the caller's turn. first is false if the caller had to wait: the object
// has probably changed since the caller read it.
func (t *turns) take(ctx context.Context, uid types.UID) (first bool, done func(), err error) {
	t.mu.Lock()
	if t.queue == nil {
		t.queue = map[types.UID]*turn{}
	}
	mine := t.queue[uid]
	if first = mine == nil; first {
		mine = &turn{busy: make(chan struct{}, 1)}
		t.queue[uid] = mine
	}
	mine.waiting++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if mine.waiting--; mine.waiting == 0 {
			delete(t.queue, uid)
		}
	}
	select {
	case mine.busy <- struct{}{}:
		return first, func() { <-mine.busy; leave() }, nil
	case <-ctx.Done():
		leave()
		return false, nil, ctx.Err()
	}
}
