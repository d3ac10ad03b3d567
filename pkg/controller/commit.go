package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// commit patches what changed. Metadata or spec and status never change in one pass: the event of
// the first patch enqueues the key for the second.
func (r *reconciler[T]) commit(ctx context.Context, key Key, old, new T) error {
	patch, subresource, err := r.diff(old, new)
	if err != nil || patch == nil {
		return err
	}
	err = r.kind.Patch(ctx, key, patch, subresource)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		// The cache is outdated. The next pass will find the newer object, or none.
		return fmt.Errorf("patch %s: %w: %w", key, ErrRetry, err)
	case err != nil:
		return fmt.Errorf("patch %s: %w", key, err)
	}
	return nil
}

// diff returns the patch of a pass: all changes except the status or, if there are none, the
// status. It is nil if nothing changed.
func (r *reconciler[T]) diff(old, new T) (patch []byte, subresource string, err error) {
	from, err := r.kind.Encode(old)
	if err != nil {
		return nil, "", fmt.Errorf("encode: %w", err)
	}
	to, err := r.kind.Encode(new)
	if err != nil {
		return nil, "", fmt.Errorf("encode: %w", err)
	}
	if bytes.Equal(from, to) {
		return nil, "", nil
	}
	// The common status can be in an annotation, so removing the status field is not enough.
	rest := r.kind.Copy(new)
	r.kind.Status(old).DeepCopyInto(r.kind.Status(rest))
	without, err := r.kind.Encode(rest)
	if err != nil {
		return nil, "", fmt.Errorf("encode: %w", err)
	}
	changes, err := compare(from, without)
	if err != nil {
		return nil, "", err
	}
	delete(changes, "status")
	if len(changes) == 0 {
		if changes, err = compare(from, to); err != nil || len(changes) == 0 {
			return nil, "", err
		}
		if _, ok := changes["status"]; ok {
			subresource = "status"
		}
	}
	metadata, _ := changes["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	// The patch must not apply to a newer version, or to another object of the same name.
	metadata["uid"], metadata["resourceVersion"] = old.GetUID(), old.GetResourceVersion()
	changes["metadata"] = metadata
	if patch, err = json.Marshal(changes); err != nil {
		return nil, "", fmt.Errorf("encode the patch: %w", err)
	}
	return patch, subresource, nil
}

func compare(from, to []byte) (map[string]any, error) {
	raw, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	var changes map[string]any
	if err := json.Unmarshal(raw, &changes); err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	return changes, nil
}
