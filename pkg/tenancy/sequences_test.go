package tenancy_test

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// quota is the quota of Workspaces of the Organization in sequences.
const quota = 2

// sequences runs a sequence of events, encoded in bytes, on one Organization in a fake kcp:
// requests that read, decide and write in separate steps, direct writes of Memberships, and
// passes of the controller, whose every call is followed by the next events. The cache is
// updated when the bytes say so.
type sequences struct {
	t     testing.TB
	input []byte

	version int
	org     *v1alpha1.Organization
	members map[string]*v1alpha1.Membership
	// workspaces are the Workspaces that were claimed and created.
	workspaces map[string]bool
	// memory is the cached Organization, seen are the cached Workspaces.
	memory *v1alpha1.Organization
	seen   []string

	inactive   map[string]bool
	anyDeleted bool
	// failures counts down to a failing call of the controller.
	failures int
	depth    int
	requests [2]*request
	decided  []decision
}

// request is an Ending in progress: org is the Organization that it read, changes its
// decision.
type request struct {
	ending  tenancy.Ending
	org     *v1alpha1.Organization
	changes []v1alpha1.MembershipChange
}

// decision is a written change and the Memberships in Workspaces that it is to remove too.
type decision struct {
	v1alpha1.MembershipChange
	along []types.UID
}

func newSequences(t testing.TB, input []byte) *sequences {
	s := &sequences{
		t: t, input: input, members: map[string]*v1alpha1.Membership{}, workspaces: map[string]bool{}, inactive: map[string]bool{},
	}
	s.org = tenancy.NewOrganization("o", "O", "alice")
	s.org.UID, s.org.Generation = "o", 1
	s.put(tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin))
	s.put(tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin))
	s.wrote(s.org)
	s.follow()
	return s
}

func (s *sequences) next() int {
	if len(s.input) == 0 {
		return 0
	}
	b := s.input[0]
	s.input = s.input[1:]
	return int(b)
}

func (s *sequences) person() string {
	return []string{"alice", "bob", "carol"}[s.next()%3]
}

func (s *sequences) wrote(o metav1.Object) {
	s.version++
	o.SetResourceVersion(strconv.Itoa(s.version))
}

func (s *sequences) put(m *v1alpha1.Membership) {
	if s.members[m.Name] == nil {
		s.wrote(m)
		m.UID, m.Generation = types.UID(m.Name+m.ResourceVersion), 1
		s.members[m.Name] = m
	}
}

func (s *sequences) setRole(name string, role v1alpha1.Role) {
	if m := s.members[name]; m != nil && m.Spec.Role != role {
		m.Spec.Role = role
		m.Generation++
		s.wrote(m)
	}
}

func (s *sequences) follow() {
	s.memory, s.seen = s.org.DeepCopy(), slices.Sorted(maps.Keys(s.workspaces))
}

func (s *sequences) list() []v1alpha1.Membership {
	var list []v1alpha1.Membership
	for _, name := range slices.Sorted(maps.Keys(s.members)) {
		list = append(list, *s.members[name].DeepCopy())
	}
	return list
}

func (s *sequences) active(user string) bool { return !s.inactive[user] }

// step runs one event.
func (s *sequences) step() {
	if len(s.input) == 0 {
		return
	}
	high := s.input[0] >> 7
	switch slot := &s.requests[high]; s.next() % 16 {
	case 0, 1:
		role := []v1alpha1.Role{v1alpha1.RoleMember, v1alpha1.RoleAdmin}[s.next()%2]
		s.put(tenancy.NewMembership(s.person(), []string{"", "w", "v"}[s.next()%3], role))
	case 2:
		s.setRole(s.person(), v1alpha1.RoleAdmin)
	case 3:
		delete(s.members, tenancy.MembershipName(s.person(), "w"))
	case 4, 5:
		*slot = &request{ending: s.ending(), org: s.memory.DeepCopy()}
	case 6, 7:
		s.decide(*slot)
	case 8, 9:
		s.commit(*slot)
	case 10:
		s.reconcile()
	case 11:
		if s.memory = s.org.DeepCopy(); high == 0 {
			s.follow()
		}
	case 12:
		if user := s.person(); s.inactive[user] {
			s.inactive[user] = false
		} else {
			s.inactive[user], s.anyDeleted = true, true
		}
	case 13:
		s.claim("ws" + strconv.Itoa(s.next()%4))
	case 14:
		delete(s.workspaces, "ws"+strconv.Itoa(s.next()%4))
		s.failures = s.next() % 8
	case 15:
		s.atOnce(s.ending())
	}
	s.check()
}

func (s *sequences) ending() tenancy.Ending {
	what := s.next()
	e := tenancy.Ending{By: s.person(), Cascade: what&1 == 1, At: metav1.NewMicroTime(time.Unix(0, 0))}
	e.User = s.person()
	if what&2 == 2 {
		e.User = e.By
	}
	if what&12 == 12 {
		e.Role, e.Cascade = v1alpha1.RoleMember, false
	}
	return e
}

func (s *sequences) decide(r *request) {
	if r == nil || r.changes != nil {
		return
	}
	r.changes, _ = tenancy.DecideEnding(r.org, pointers(s.list()), r.ending, s.active, func(string) string { return "" })
}

func (s *sequences) commit(r *request) bool {
	switch {
	case r == nil || r.changes == nil:
		return false
	case r.org.ResourceVersion != s.org.ResourceVersion:
		r.org, r.changes = s.org.DeepCopy(), nil
		return false
	}
	d := decision{MembershipChange: r.changes[len(r.changes)-1]}
	require.Equal(s.t, r.ending.User, d.User)
	// A User who is being removed already is removed as the first request decided. A later
	// cascade removes the Memberships it finds and promises nothing.
	if first, ok := tenancy.ChangeOf(s.org, d.User, ""); d.Cascade && (!ok || first.UID != d.UID || first.Role != "") {
		for _, m := range s.members {
			if m.Spec.UserRef.Name == d.User && m.Spec.WorkspaceRef != nil {
				d.along = append(d.along, m.UID)
			}
		}
	}
	s.decided = append(s.decided, d)
	s.org.Spec.MembershipChanges = r.changes
	s.wrote(s.org)
	r.changes = nil
	return true
}

func (s *sequences) claim(uuid string) {
	claims, err := tenancy.ClaimWorkspace(s.memory, s.seen, quota, v1alpha1.Claim{UUID: uuid, Request: &v1alpha1.ClaimRequest{}})
	if err == nil && claims != nil && s.memory.ResourceVersion == s.org.ResourceVersion {
		s.org.Spec.WorkspaceClaims = claims
		s.wrote(s.org)
	}
}

var errPlayed = errors.New("kcp cannot be reached")

// call runs other events first, and fails when failures reaches zero.
func (s *sequences) call() error {
	if s.depth < 3 {
		s.step()
	}
	return s.fail()
}

func (s *sequences) fail() error {
	if s.failures > 0 {
		if s.failures--; s.failures == 0 {
			return errPlayed
		}
	}
	return nil
}

// reconcile is one pass of the Organization controller over the cached object: claims first,
// then the changes in order, and one write for both.
func (s *sequences) reconcile() {
	s.depth++
	defer func() { s.depth-- }()
	o, seen := s.memory.DeepCopy(), s.seen
	before := o.DeepCopy()
	o.Spec.WorkspaceClaims, _ = tenancy.SettleClaims(o.Spec.WorkspaceClaims, seen, tenancy.Claimed{
		Claims: func() ([]v1alpha1.Claim, error) {
			err := s.call()
			return s.org.Spec.WorkspaceClaims, err
		},
		// No event runs between the check and the create: the whole life of a Workspace would
		// have to fit in between.
		Make: func(c v1alpha1.Claim) error {
			err := s.fail()
			if err == nil {
				s.workspaces[c.UUID] = true
			}
			return err
		},
		Exists: func(uuid string) (bool, error) {
			err := s.call()
			return s.workspaces[uuid], err
		},
	})
	if s.call() == nil {
		held := s.list()
		o.Spec.MembershipChanges = slices.DeleteFunc(o.Spec.MembershipChanges, func(c v1alpha1.MembershipChange) bool {
			return s.carryOut(c, held) == nil
		})
	}
	if s.call() != nil || o.ResourceVersion != s.org.ResourceVersion || apiequality.Semantic.DeepEqual(before, o) {
		return
	}
	s.org = o
	s.wrote(s.org)
}

func (s *sequences) carryOut(c v1alpha1.MembershipChange, held []v1alpha1.Membership) error {
	i := slices.IndexFunc(held, func(m v1alpha1.Membership) bool { return m.Name == c.User })
	switch {
	case i < 0 || !tenancy.ChangeApplies(c, &held[i]):
		return nil
	case c.Role != "":
		return s.change(&held[i], func() { s.setRole(c.User, c.Role) })
	}
	for j := range held {
		if m := &held[j]; c.Cascade && m.Spec.WorkspaceRef != nil && m.Spec.UserRef.Name == c.User {
			if err := s.change(m, func() { delete(s.members, m.Name) }); err != nil {
				return err
			}
		}
	}
	return s.change(&held[i], func() { delete(s.members, c.User) })
}

// change returns a change of exactly this Membership.
func (s *sequences) change(m *v1alpha1.Membership, do func()) error {
	if err := s.call(); err != nil {
		return err
	}
	switch held := s.members[m.Name]; {
	case held == nil:
		return nil
	case held.UID != m.UID || held.ResourceVersion != m.ResourceVersion:
		return errPlayed
	}
	do()
	s.check()
	return nil
}

// settle runs the controller, without other events, until all changes are carried out.
func (s *sequences) settle() {
	s.input, s.failures = nil, 0
	for pass := 0; pass < 6; pass++ {
		s.follow()
		s.reconcile()
	}
	require.Empty(s.t, s.org.Spec.MembershipChanges, "it comes to an end")
	s.check()
}
