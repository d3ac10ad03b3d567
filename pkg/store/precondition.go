package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/keylock"
)

// read gets an object from kcp, with retries.
func read[T kcp.Object](ctx context.Context, client *kcp.Client[T], name, what string) (T, error) {
	var held T
	err := retry(ctx, func(ctx context.Context) (err error) {
		held, err = client.Get(ctx, name, metav1.GetOptions{})
		return err
	})
	return held, convert(err, what)
}

// present returns held, which may come from a cache, or with a match the object as kcp has it:
// the client may have seen a newer version than the cache. The error is NotFound if the name now
// belongs to an object with another UID.
func present[T kcp.Object](ctx context.Context, client *kcp.Client[T], held T, match func(version string) error, what string) (T, error) {
	if match == nil {
		return held, nil
	}
	now, err := read(ctx, client, held.GetName(), what)
	if err == nil && now.GetUID() != held.GetUID() {
		err = errs.New(errs.NotFound, "the "+what+" does not exist any more")
	}
	return now, err
}

// mark changes the status of an object. With a match it reads the object from kcp first.
func mark[T kcp.Object](ctx context.Context, turns *keylock.Locks, client *kcp.Client[T], held T, change func(context.Context, T) (map[string]any, error), match func(version string) error, what string) (T, error) {
	held, err := present(ctx, client, held, match, what)
	if err != nil {
		return held, err
	}
	return amend(ctx, turns, client, held, within("status", change), match, what, "status")
}

// patchIf sends a JSON merge patch for a version of the object that match accepts, with that
// version as a precondition.
func patchIf[T kcp.Object](ctx context.Context, turns *keylock.Locks, client *kcp.Client[T], name string, raw []byte, match func(version string) error, what string) (T, error) {
	held, err := read(ctx, client, name, what)
	if err != nil {
		return held, err
	}
	return amend(ctx, turns, client, held, func(_ context.Context, o T) (fields map[string]any, err error) {
		if holds(o, raw) {
			return nil, nil
		}
		if err := json.Unmarshal(raw, &fields); err != nil {
			return nil, errs.Wrap(errs.Internal, fmt.Errorf("read the patch: %w", err), "the "+what+" could not be written")
		}
		return fields, nil
	}, match, what)
}

// holds reports whether a merge patch would leave the object unchanged.
func holds[T kcp.Object](o T, raw []byte) bool {
	before, err := json.Marshal(o)
	if err != nil {
		return false
	}
	merged, err := jsonpatch.MergePatch(before, raw)
	if err != nil {
		return false
	}
	// An empty field and an absent one are equal in the object but not in JSON.
	var patched T
	if json.Unmarshal(merged, &patched) != nil {
		return false
	}
	after, err := json.Marshal(patched)
	return err == nil && bytes.Equal(before, after)
}

// deleteIf removes no other version of an object than one that match lets pass.
func deleteIf[T kcp.Object](ctx context.Context, client *kcp.Client[T], name string, match func(version string) error, what string) error {
	for lost := false; ; {
		held, err := read(ctx, client, name, what)
		switch {
		case lost && (errs.Is(err, errs.NotFound) || err == nil && !held.GetDeletionTimestamp().IsZero()):
			return nil
		case err != nil:
			return err
		}
		uid, version := held.GetUID(), held.GetResourceVersion()
		if err := match(version); err != nil {
			return err
		}
		tries := 0
		err = retry(ctx, func(ctx context.Context) error {
			tries++
			return client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
		})
		lost = lost || tries > 1
		switch {
		case apierrors.IsNotFound(err) && lost:
			return nil
		case !apierrors.IsConflict(err):
			return convert(err, what)
		}
	}
}
