package organization

import (
	"context"
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// held are the Memberships of an Organization in kcp, while changes are carried out. One at a time is read as long as that
// is enough: kcp answers a list from its cache once that has followed every write to the store, of whatever kind, which
// takes up to 100 ms.
type held struct {
	find func(name string) (*v1alpha1.Membership, bool, error)
	list func() ([]*v1alpha1.Membership, error)
	// added are those that were made. One of them may be there although its addition failed, so that a removal takes it along.
	added  []*v1alpha1.Membership
	listed []*v1alpha1.Membership
	whole  bool
}

func (s *members) held(ctx context.Context, cluster string) *held {
	return &held{
		find: func(name string) (*v1alpha1.Membership, bool, error) { return s.memberships.Find(ctx, cluster, name) },
		list: func() ([]*v1alpha1.Membership, error) { return s.memberships.List(ctx, cluster) },
	}
}

// of returns the Membership of a User in the Organization, or in a Workspace of it if workspace is not empty, and nil for none.
func (h *held) of(user, workspace string) (*v1alpha1.Membership, error) {
	name := tenancy.MembershipName(user, workspace)
	if !h.whole {
		if m, ok, err := h.find(name); ok || err != nil {
			return m, err
		}
	}
	known := h.known()
	if i := slices.IndexFunc(known, func(m *v1alpha1.Membership) bool { return m.Name == name }); i >= 0 {
		return known[i], nil
	}
	return nil, nil
}

// readAll has known return every Membership.
func (h *held) readAll() error {
	if h.whole {
		return nil
	}
	listed, err := h.list()
	if err != nil {
		return err
	}
	h.listed, h.whole = listed, true
	h.added = slices.DeleteFunc(h.added, func(m *v1alpha1.Membership) bool { return named(listed, m.Name) })
	return nil
}

// known returns the Memberships that were listed or made.
func (h *held) known() []*v1alpha1.Membership { return slices.Concat(h.listed, h.added) }

func named(all []*v1alpha1.Membership, name string) bool {
	return slices.ContainsFunc(all, func(m *v1alpha1.Membership) bool { return m.Name == name })
}

func (h *held) made(m *v1alpha1.Membership) { h.added = append(h.added, m) }

func (h *held) changed(before, after *v1alpha1.Membership) {
	if i := slices.Index(h.listed, before); i >= 0 {
		h.listed[i] = after
	}
}

func (h *held) removed(gone []*v1alpha1.Membership) {
	is := func(m *v1alpha1.Membership) bool { return named(gone, m.Name) }
	h.listed, h.added = slices.DeleteFunc(h.listed, is), slices.DeleteFunc(h.added, is)
}
