package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/mergepatch"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// The limits in the schema of StorageLimits.
const (
	minBytes, maxBytes = 1 << 20, 1 << 40
	maxObjects         = 10_000_000
	maxKinds           = 10_000
)

func (h *Handler) storageView(o *v1alpha1.Organization) rest.StorageLimits {
	l := tenancy.StorageLimits(o.Spec.Storage, h.Storage)
	return rest.StorageLimits{
		Bytes: quantity(l.Bytes), WorkspaceBytes: quantity(l.WorkspaceBytes),
		WorkspaceObjects: l.WorkspaceObjects, WorkspaceCRDs: l.WorkspaceCRDs,
		WorkspaceAPIBindings: l.WorkspaceAPIBindings, WorkspaceRoles: l.WorkspaceRoles,
	}
}

func quantity(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

// storageEdit is a change of the limits of storage.
type storageEdit func(*v1alpha1.OrganizationSpec)

// storage reads the member storage. It returns nil if the body does not have it. facts says the change in the
// audit log.
func storage(raw rest.Field[rest.StorageLimitsPatch]) (edit storageEdit, facts string, err error) {
	if raw == nil {
		return nil, "", nil
	}
	in, err := mergepatch.Object("storage", json.RawMessage(raw))
	if err != nil {
		return nil, "", err
	}
	if in == nil {
		return func(s *v1alpha1.OrganizationSpec) { s.Storage = nil }, "storage=default", nil
	}
	var set []func(to *v1alpha1.StorageLimits)
	var said []string
	for _, f := range []struct {
		name string
		of   func(*v1alpha1.StorageLimits) *int64
		most int64
		size bool
	}{
		{"bytes", func(l *v1alpha1.StorageLimits) *int64 { return &l.Bytes }, maxBytes, true},
		{"workspaceBytes", func(l *v1alpha1.StorageLimits) *int64 { return &l.WorkspaceBytes }, maxBytes, true},
		{"workspaceObjects", func(l *v1alpha1.StorageLimits) *int64 { return &l.WorkspaceObjects }, maxObjects, false},
		{"workspaceCRDs", func(l *v1alpha1.StorageLimits) *int64 { return &l.WorkspaceCRDs }, maxKinds, false},
		{"workspaceAPIBindings", func(l *v1alpha1.StorageLimits) *int64 { return &l.WorkspaceAPIBindings }, maxKinds, false},
		{"workspaceRoles", func(l *v1alpha1.StorageLimits) *int64 { return &l.WorkspaceRoles }, maxKinds, false},
	} {
		given, ok := in[f.name]
		if !ok {
			continue
		}
		delete(in, f.name)
		limit, err := limitOf("storage."+f.name, given, f.size, f.most)
		if err != nil {
			return nil, "", err
		}
		set = append(set, func(to *v1alpha1.StorageLimits) { *f.of(to) = limit })
		said = append(said, f.name+"="+limitInFacts(limit, f.size))
	}
	if len(in) > 0 {
		return nil, "", errs.InvalidField("storage."+slices.Sorted(maps.Keys(in))[0],
			"is not a limit: there are bytes, workspaceBytes, workspaceObjects, workspaceCRDs, workspaceAPIBindings and workspaceRoles")
	}
	return func(s *v1alpha1.OrganizationSpec) {
		var limits v1alpha1.StorageLimits
		if s.Storage != nil {
			limits = *s.Storage
		}
		for _, change := range set {
			change(&limits)
		}
		s.Storage = nil
		if limits != (v1alpha1.StorageLimits{}) {
			s.Storage = &limits
		}
	}, strings.Join(said, " "), nil
}

func limitInFacts(limit int64, size bool) string {
	switch {
	case limit == 0:
		return "default"
	case size:
		return quantity(limit)
	}
	return fmt.Sprint(limit)
}

// limitOf reads one limit. null restores the default, as 0 does.
func limitOf(field string, raw json.RawMessage, size bool, most int64) (n int64, err error) {
	if mergepatch.IsNull(raw) {
		return 0, nil
	}
	if !size {
		if json.Unmarshal(raw, &n) != nil || n < 0 || n > most {
			return 0, errs.InvalidField(field, fmt.Sprintf("must be a number from 0, which means the default, to %d", most))
		}
		return n, nil
	}
	var text string
	q, err := resource.Quantity{}, json.Unmarshal(raw, &text)
	if err == nil {
		q, err = resource.ParseQuantity(text)
	}
	if n = q.Value(); err != nil || n != 0 && (n < minBytes || n > most) {
		return 0, errs.InvalidField(field, `must be a size from "1Mi" to "1Ti", such as "10Gi", or "0", which means the default`)
	}
	return n, nil
}
