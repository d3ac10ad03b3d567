package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/keylock"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// AmendUser changes the spec of a User by compare-and-swap. change gets the current User
// and returns the fields of the spec to set, or nil for none; after a conflict it is called
// again with the newer object. held may be out of date. The error is NotFound if the name
// now belongs to an object with another UID.
func (s *Store) AmendUser(ctx context.Context, held *v1alpha1.User, change func(context.Context, *v1alpha1.User) (map[string]any, error)) (*v1alpha1.User, error) {
	return amend(ctx, s.turns, s.clients.Users(s.users), held, within("spec", change), nil, "user")
}

// AmendUserIf is AmendUser with the precondition described at PatchUser.
func (s *Store) AmendUserIf(ctx context.Context, held *v1alpha1.User, change func(context.Context, *v1alpha1.User) (map[string]any, error), match func(version string) error) (*v1alpha1.User, error) {
	client := s.clients.Users(s.users)
	held, err := present(ctx, client, held, match, "user")
	if err != nil {
		return nil, err
	}
	return amend(ctx, s.turns, client, held, within("spec", change), match, "user")
}

// MarkUser changes the status of a User as AmendUser changes the spec. match is the
// precondition described at PatchUser.
func (s *Store) MarkUser(ctx context.Context, held *v1alpha1.User, change func(context.Context, *v1alpha1.User) (map[string]any, error), match func(version string) error) (*v1alpha1.User, error) {
	return mark(ctx, s.turns, s.clients.Users(s.users), held, change, match, "user")
}

// AmendOrganization is AmendUser for an Organization. If match is not nil, it is called
// after change with the resource version that change saw, and its error refuses the write.
func (s *Store) AmendOrganization(ctx context.Context, held *v1alpha1.Organization, change func(context.Context, *v1alpha1.Organization) (map[string]any, error), match func(version string) error) (*v1alpha1.Organization, error) {
	return amend(ctx, s.turns, s.clients.Organizations(s.orgs), held, within("spec", change), match, "organization")
}

// AmendOrganizationIf is AmendOrganization with the precondition described at PatchUser.
func (s *Store) AmendOrganizationIf(ctx context.Context, held *v1alpha1.Organization, change func(context.Context, *v1alpha1.Organization) (map[string]any, error), match func(version string) error) (*v1alpha1.Organization, error) {
	held, err := present(ctx, s.clients.Organizations(s.orgs), held, match, "organization")
	if err != nil {
		return nil, err
	}
	return s.AmendOrganization(ctx, held, change, match)
}

// MarkOrganization is MarkUser for an Organization.
func (s *Store) MarkOrganization(ctx context.Context, held *v1alpha1.Organization, change func(context.Context, *v1alpha1.Organization) (map[string]any, error), match func(version string) error) (*v1alpha1.Organization, error) {
	return mark(ctx, s.turns, s.clients.Organizations(s.orgs), held, change, match, "organization")
}

// MarkWorkspace is MarkUser for a child Workspace. It changes annotations.
func (s *Store) MarkWorkspace(ctx context.Context, orgCluster string, w tenancy.Workspace, change func(tenancy.Workspace) (annotations map[string]any, err error), match func(version string) error) (tenancy.Workspace, error) {
	client := s.clients.Workspaces(orgCluster)
	held, err := read(ctx, client, w.UUID, "workspace")
	if err != nil {
		return tenancy.Workspace{}, err
	}
	changed, err := amend(ctx, s.turns, client, held, func(_ context.Context, ws *kcptenancyv1alpha1.Workspace) (map[string]any, error) {
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

// amend patches the object with the fields that change returns, with the UID and resource
// version that change saw as preconditions. match, if not nil, is called after change with
// that resource version. A caller with a match passes a held that was read from kcp, because
// a cache may be older than what the client has seen.
//
// It repeats conflicts until ctx ends. client-go/util/retry repeats them a number of times, and
// sleeps on after the client has left.
func amend[T kcp.Object](ctx context.Context, turns *keylock.Locks, client *kcp.Client[T], held T, change func(context.Context, T) (map[string]any, error), match func(version string) error, what string, subresources ...string) (T, error) {
	var changed, none T
	// Writers of this process take turns, so that only other replicas cause conflicts.
	uid, name := held.GetUID(), held.GetName()
	done, stale, err := turns.Lock(ctx, string(uid))
	if err != nil {
		return none, unavailable(err)
	}
	defer done()
	lost := false
	err = pauses(5*time.Millisecond).Until(ctx, true, true, func(ctx context.Context) (ok bool, err error) {
		if stale {
			if held, err = read(ctx, client, name, what); err != nil {
				return false, err
			}
			if held.GetUID() != uid {
				// The caller's permission was for the object with the other UID.
				return false, errs.New(errs.NotFound, "the "+what+" does not exist any more")
			}
		}
		fields, err := change(ctx, held)
		if err != nil {
			return false, err
		}
		// If an answer was lost and no change is left to make, the first attempt made it.
		if match != nil && (fields != nil || !lost) {
			if err := match(held.GetResourceVersion()); err != nil {
				return false, err
			}
		}
		if fields == nil {
			changed = held
			return true, nil
		}
		patch, err := versioned(held, fields)
		if err != nil {
			return false, errs.Wrap(errs.Internal, err, "the "+what+" could not be written")
		}
		tries := 0
		err = retry(ctx, func(ctx context.Context) (err error) {
			tries++
			changed, err = client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kcp.FieldManager}, subresources...)
			return err
		})
		if apierrors.IsConflict(err) {
			stale, lost = true, lost || tries > 1
			return false, nil
		}
		return true, convert(err, what)
	})
	if wait.Interrupted(err) {
		err = unavailable(err)
	}
	return changed, err
}

// versioned encodes a merge patch that applies to this UID and this version of the object only.
func versioned(held metav1.Object, fields map[string]any) ([]byte, error) {
	metadata, _ := fields["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		fields["metadata"] = metadata
	}
	metadata["uid"], metadata["resourceVersion"] = held.GetUID(), held.GetResourceVersion()
	patch, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encode the patch: %w", err)
	}
	return patch, nil
}
