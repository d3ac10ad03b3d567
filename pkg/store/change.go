package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/keylock"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Match is the precondition of a write: its error refuses a resource version of the object. nil
// accepts every version.
type Match = func(version string) error

// Edit changes a copy of an object, or refuses the change.
type Edit[T any] = func(context.Context, T) error

// ChangeUser changes a User by compare-and-swap. edit changes a copy of the User; after a conflict
// it is called again with the newer object. held may be out of date. match is called after edit with
// the resource version that edit saw. The error is NotFound if the name now belongs to an object with
// another UID.
func (s *Store) ChangeUser(ctx context.Context, held *v1alpha1.User, match Match, edit Edit[*v1alpha1.User]) (*v1alpha1.User, error) {
	return change(ctx, s.turns, s.clients.Users(s.users), held, match, edit, "user")
}

// ChangeOrganization is ChangeUser for an Organization.
func (s *Store) ChangeOrganization(ctx context.Context, held *v1alpha1.Organization, match Match,
	edit Edit[*v1alpha1.Organization],
) (*v1alpha1.Organization, error) {
	return change(ctx, s.turns, s.clients.Organizations(s.orgs), held, match, edit, "organization")
}

// ChangeBot is ChangeUser for a Bot, in the logical cluster that held came from.
func (s *Store) ChangeBot(ctx context.Context, held *v1alpha1.Bot, match Match, edit Edit[*v1alpha1.Bot]) (*v1alpha1.Bot, error) {
	return change(ctx, s.turns, s.clients.Bots(kcp.ClusterOf(held)), held, match, edit, "bot")
}

// ChangeCatalogEntry is ChangeBot for a CatalogEntry.
func (s *Store) ChangeCatalogEntry(ctx context.Context, held *v1alpha1.CatalogEntry, match Match,
	edit Edit[*v1alpha1.CatalogEntry],
) (*v1alpha1.CatalogEntry, error) {
	return change(ctx, s.turns, s.clients.CatalogEntries(kcp.ClusterOf(held)), held, match, edit, catalogEntry)
}

// ChangeSession is ChangeUser for a Session. held is from kcp: the cache of Sessions has not all of their
// fields, and what it does not have an edit cannot remove.
func (s *Store) ChangeSession(ctx context.Context, held *v1alpha1.Session, edit Edit[*v1alpha1.Session]) (*v1alpha1.Session, error) {
	return change(ctx, s.sessionTurns, s.clients.Sessions(s.users), held, nil, edit, "session")
}

// ChangeWorkspace is ChangeUser for a child Workspace, in the logical cluster of its Organization.
// edit changes the annotations of the Workspace.
func (s *Store) ChangeWorkspace(ctx context.Context, orgCluster string, w tenancy.Workspace, match Match,
	edit func(w tenancy.Workspace, annotations map[string]string) error,
) (tenancy.Workspace, error) {
	held := &kcptenancyv1alpha1.Workspace{}
	held.Name = w.UUID
	changed, err := change(ctx, s.turns, s.clients.Workspaces(orgCluster), held, match, func(_ context.Context, ws *kcptenancyv1alpha1.Workspace) error {
		if ws.Annotations == nil {
			ws.Annotations = map[string]string{}
		}
		return edit(tenancy.WorkspaceOf(w.OrgUUID, ws), ws.Annotations)
	}, "workspace")
	if err != nil {
		return tenancy.Workspace{}, err
	}
	return tenancy.WorkspaceOf(w.OrgUUID, changed), nil
}

// change patches what edit changes, with the UID and the resource version that edit saw as
// preconditions. It reads the object from kcp where held does not suffice: without a UID, held is a
// name only; with a match, the client may have seen a newer version than a cache has; and an edit that
// changes nothing is made again on what kcp has.
//
// It repeats conflicts until ctx ends. client-go/util/retry repeats them a number of times, and
// sleeps on after the client has left.
func change[T kcp.Object](ctx context.Context, turns *keylock.Locks, client *kcp.Client[T], held T, match Match, edit Edit[T], what string) (T, error) {
	var changed, none T
	name, uid := held.GetName(), held.GetUID()
	key := string(uid)
	if key == "" {
		key = name
	}
	// Writers of this process take turns, so that only other replicas cause conflicts.
	done, waited, err := turns.Lock(ctx, key)
	if err != nil {
		return none, unavailable(err)
	}
	defer done()
	stale, lost := waited || match != nil || uid == "", false
	var conflict error
	err = pauses(5*time.Millisecond).Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		var patch []byte
		var subresources []string
		for {
			if stale {
				now, err := read(ctx, client, name, what)
				switch {
				case err != nil:
					return false, err
				case uid != "" && now.GetUID() != uid:
					// The caller's permission was for the object with the other UID.
					return false, errs.New(errs.NotFound, "the "+what+" does not exist any more")
				}
				held = now
			}
			wanted := held.DeepCopyObject().(T)
			err := edit(ctx, wanted)
			if err != nil {
				return false, err
			}
			if patch, subresources, err = difference(held, wanted); err != nil {
				return false, errs.Wrap(errs.Internal, err, "the "+what+" could not be written")
			}
			if patch != nil || stale {
				break
			}
			stale = true
		}
		// If an answer was lost and no change is left to make, the first attempt made it.
		if match != nil && (patch != nil || !lost) {
			if err := match(held.GetResourceVersion()); err != nil {
				return false, err
			}
		}
		if patch == nil {
			changed = held
			return true, nil
		}
		tries := 0
		err := retry(ctx, func(ctx context.Context) (err error) {
			tries++
			changed, err = client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kcp.FieldManager}, subresources...)
			return err
		})
		if apierrors.IsConflict(err) {
			conflict, stale, lost = err, true, lost || tries > 1
			return false, nil
		}
		return true, convert(err, what)
	})
	switch {
	case conflict != nil && (wait.Interrupted(err) || errors.Is(err, context.DeadlineExceeded)):
		e := errs.Wrap(errs.Unavailable, conflict, "the "+what+" is being changed by others all the time; try again")
		e.RetryAfter, err = retryAfter, e
	case wait.Interrupted(err):
		err = unavailable(err)
	}
	if err != nil {
		return none, err
	}
	return changed, nil
}

// difference returns the merge patch that makes held what wanted is, for this UID and this version of
// the object only, and the subresource that it is for. The patch is nil if there is no difference.
func difference(held, wanted kcp.Object) (patch []byte, subresources []string, err error) {
	from, err := json.Marshal(held)
	if err != nil {
		return nil, nil, fmt.Errorf("encode: %w", err)
	}
	to, err := json.Marshal(wanted)
	if err != nil {
		return nil, nil, fmt.Errorf("encode: %w", err)
	}
	raw, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil {
		return nil, nil, fmt.Errorf("compare: %w", err)
	}
	var changes map[string]any
	if err := json.Unmarshal(raw, &changes); err != nil {
		return nil, nil, fmt.Errorf("compare: %w", err)
	}
	if len(changes) == 0 {
		return nil, nil, nil
	}
	if _, ok := changes["status"]; ok {
		if len(changes) > 1 {
			return nil, nil, errors.New("one write changes the status and the rest of an object")
		}
		subresources = []string{"status"}
	}
	metadata, _ := changes["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["uid"], metadata["resourceVersion"] = held.GetUID(), held.GetResourceVersion()
	changes["metadata"] = metadata
	patch, err = json.Marshal(changes)
	return patch, subresources, err
}

// read gets an object from kcp, with retries.
func read[T kcp.Object](ctx context.Context, client *kcp.Client[T], name, what string) (T, error) {
	var held T
	err := retry(ctx, func(ctx context.Context) (err error) {
		held, err = client.Get(ctx, name, metav1.GetOptions{})
		return err
	})
	return held, convert(err, what)
}

// find is read for an object that need not exist. It returns nil if there is none.
func find[T kcp.Object](ctx context.Context, client *kcp.Client[T], name, what string) (held T, err error) {
	if held, err = read(ctx, client, name, what); errs.Is(err, errs.NotFound) {
		var none T
		return none, nil
	}
	return held, err
}

// list reads all objects of a resource in the logical cluster of client.
func list[L any, P interface {
	*L
	runtime.Object
}, T kcp.Object](ctx context.Context, client *kcp.Client[T], resource, what string) (all L, err error) {
	err = retry(ctx, func(ctx context.Context) error {
		var none L
		all = none
		return client.GetClient().Get().Resource(resource).Do(ctx).Into(P(&all))
	})
	return all, convert(err, what)
}

// remove deletes the object with the UID of held or, with a match, the version of the object that
// match accepts. A deletion that waits for finalizers is for good, and is not asked for again.
func remove[T kcp.Object](ctx context.Context, client *kcp.Client[T], held T, match Match, what string) error {
	uid := held.GetUID()
	only := metav1.Preconditions{UID: &uid}
	if match == nil && !held.GetDeletionTimestamp().IsZero() {
		return nil
	}
	for lost := false; ; {
		if match != nil {
			now, err := read(ctx, client, held.GetName(), what)
			switch {
			case lost && (errs.Is(err, errs.NotFound) || err == nil && !now.GetDeletionTimestamp().IsZero()):
				return nil
			case err != nil:
				return err
			}
			uid, version := now.GetUID(), now.GetResourceVersion()
			if err := match(version); err != nil || !now.GetDeletionTimestamp().IsZero() {
				return err
			}
			only = metav1.Preconditions{UID: &uid, ResourceVersion: &version}
		}
		tries := 0
		err := retry(ctx, func(ctx context.Context) error {
			tries++
			return client.Delete(ctx, held.GetName(), metav1.DeleteOptions{Preconditions: &only})
		})
		lost = lost || tries > 1
		switch {
		case apierrors.IsNotFound(err) && lost:
			// The first attempt deleted it and its answer was lost.
			return nil
		case match == nil || !apierrors.IsConflict(err):
			return convert(err, what)
		}
	}
}
