package tenancy_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// check verifies the invariants that hold at every moment.
func (s *sequences) check() {
	admins := 0
	for _, m := range s.members {
		if m.Spec.Scope == v1alpha1.ScopeOrg && m.Spec.Role == v1alpha1.RoleAdmin && (s.anyDeleted || s.active(m.Spec.UserRef.Name)) {
			admins++
		}
	}
	require.Positive(s.t, admins, "O-9: an Org has an admin, and an active one unless people were deleted")
	require.LessOrEqual(s.t, len(s.workspaces), quota, "O-6: what exists")
	require.LessOrEqual(s.t, len(s.org.Spec.WorkspaceClaims), quota, "O-6: what is claimed")
}

// simple is a model of the Organization without concurrency.
type simple struct {
	org map[string]v1alpha1.Role
	in  map[string]map[string]bool
}

func (s *sequences) simple() simple {
	m := simple{org: map[string]v1alpha1.Role{}, in: map[string]map[string]bool{}}
	for _, held := range s.members {
		user := held.Spec.UserRef.Name
		if held.Spec.WorkspaceRef == nil {
			m.org[user] = held.Spec.Role
			continue
		}
		if m.in[user] == nil {
			m.in[user] = map[string]bool{}
		}
		m.in[user][held.Spec.WorkspaceRef.Name] = true
	}
	return m
}

// end applies O-9 to the model: it returns the cause or code of a refusal, or the new state.
func (m simple) end(e tenancy.Ending, active func(string) bool) (code errs.Code, cause string) {
	others := 0
	for user, role := range m.org {
		if role == v1alpha1.RoleAdmin && user != e.User && active(user) {
			others++
		}
	}
	role, member := m.org[e.User]
	switch {
	case e.By != e.User && (m.org[e.By] != v1alpha1.RoleAdmin || !active(e.By)):
		return errs.Forbidden, ""
	case !member:
		return errs.NotFound, ""
	case role == v1alpha1.RoleAdmin && e.Role != v1alpha1.RoleAdmin && others == 0:
		return errs.Conflict, tenancy.CauseSoleAdmin
	case e.Role == "" && !e.Cascade && len(m.in[e.User]) > 0:
		return errs.Conflict, tenancy.CauseWorkspaceMembership
	case e.Role != "":
		m.org[e.User] = e.Role
	default:
		delete(m.org, e.User)
		delete(m.in, e.User)
	}
	return 0, ""
}

// atOnce runs one request without concurrency and compares the result with the model.
func (s *sequences) atOnce(e tenancy.Ending) {
	if s.depth > 0 || len(s.org.Spec.MembershipChanges) > 0 {
		return
	}
	want := s.simple()
	code, cause := want.end(e, s.active)
	r := &request{ending: e, org: s.org.DeepCopy()}
	var err error
	r.changes, err = tenancy.DecideEnding(r.org, pointers(s.list()), e, s.active, func(string) string { return "" })
	if code != 0 {
		require.True(s.t, errs.Is(err, code), "%+v: %v", e, err)
		if cause != "" {
			var refused *errs.Error
			require.ErrorAs(s.t, err, &refused)
			require.Equal(s.t, cause, refused.Causes[0].Type)
		}
		return
	}
	require.NoError(s.t, err, "%+v", e)
	s.commit(r)
	rest := s.input
	s.settle()
	s.input = rest
	require.Equal(s.t, want, s.simple(), "%+v", e)
}

// checkDecided verifies, after settle, that each decision was carried out, or that the
// Membership was changed in between.
func (s *sequences) checkDecided() {
	held := func(uid types.UID) *v1alpha1.Membership {
		for _, m := range s.members {
			if m.UID == uid {
				return m
			}
		}
		return nil
	}
	for _, d := range s.decided {
		switch m := held(d.UID); {
		case m != nil:
			require.Greater(s.t, m.Generation, d.Generation, "neither carried out nor void: %+v", d)
		case d.Cascade:
			require.False(s.t, slices.ContainsFunc(d.along, func(uid types.UID) bool { return held(uid) != nil }), "half a removal: %+v", d)
		}
	}
}

// O-6 and O-9 hold for every order of events, and every decision is carried out.
func FuzzMembershipSequences(f *testing.F) {
	f.Add([]byte{})
	// Two admins demote each other; both read before either writes.
	f.Add([]byte{4, 12, 0, 1, 132, 12, 1, 0, 6, 134, 8, 136, 134, 136, 10})
	// The only other admin leaves while the first one is demoted.
	f.Add([]byte{4, 2, 0, 0, 6, 132, 2, 1, 1, 134, 8, 136, 11, 10, 134, 136})
	// A member is removed with a cascade, and kcp fails in between.
	f.Add([]byte{0, 0, 2, 0, 0, 0, 2, 1, 0, 0, 2, 2, 11, 4, 1, 0, 2, 6, 8, 11, 14, 0, 2, 10, 14, 0, 3, 10, 10})
	// A member is promoted while being removed, and is removed again.
	f.Add([]byte{0, 0, 2, 0, 4, 0, 0, 2, 6, 8, 11, 2, 2, 10, 15, 0, 1, 2})
	// A removal without a cascade, a new Workspace Membership, and a removal with a cascade.
	f.Add([]byte{0, 0, 2, 0, 4, 0, 0, 2, 6, 8, 11, 0, 0, 2, 1, 4, 1, 0, 2, 6, 10, 8})
	// An admin is deleted while the other one leaves.
	f.Add([]byte{4, 2, 0, 0, 6, 12, 1, 8, 11, 10, 15, 2, 1, 1})
	// The only active admin leaves.
	f.Add([]byte{12, 1, 15, 2, 0, 0})
	// Two Workspaces are created and are not in the cache when a third is requested.
	f.Add([]byte{13, 0, 139, 13, 1, 139, 10, 9, 9, 9, 9, 139, 10, 9, 9, 9, 9, 139, 13, 2, 139, 10, 9, 9, 9, 9})
	// A leader with an outdated cache finds a request for a Workspace that was created and
	// deleted since, while another takes its place.
	f.Add([]byte("\r0+\r1+Z00000000000020.11ZZ+Z+\r2"))
	// Three Workspaces with a quota of two, and room for the third after one is deleted.
	f.Add([]byte{13, 0, 13, 1, 11, 13, 1, 11, 13, 2, 10, 11, 13, 2, 14, 0, 0, 10, 11, 10, 11, 13, 2, 11, 10})
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) > 512 {
			t.Skip("long enough")
		}
		s := newSequences(t, input)
		for len(s.input) > 0 {
			s.step()
		}
		s.settle()
		s.checkDecided()
	})
}
