package restore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

var view, edit = v1alpha1.RoleRef{Name: "view"}, v1alpha1.RoleRef{Name: "edit", Namespace: "a"}

// gives is what the Membership of bob gives after Steps; nil if it is removed.
func gives(t *testing.T, before v1alpha1.MembershipSpec, steps ...restore.Step) *v1alpha1.MembershipSpec {
	t.Helper()
	m := &v1alpha1.Membership{Spec: before}
	m.UID, m.Generation = "uid", 1
	for _, s := range steps {
		o := &v1alpha1.Organization{}
		e, ok := s.MemberEdit(v1alpha1.MembershipChange{
			Role: m.Spec.Role, Manager: m.Spec.Manager, Sudo: m.Spec.Sudo, Roles: m.Spec.Roles, ExpiresAt: m.Spec.ExpiresAt,
			Extra: m.Spec.Extra,
		}, metav1.NowMicro())
		if !ok {
			continue
		}
		changes, err := tenancy.DecideEdit(o, m, e)
		require.NoError(t, err)
		require.Len(t, changes, 1, "an edit that changes nothing is none")
		require.True(t, tenancy.ReducesMembership(m, changes[0]), "a step gives nothing")
		if tenancy.Removes(changes[0]) {
			return nil
		}
		m = tenancy.ChangedMembership(m, changes[0])
		m.Generation++
	}
	return &m.Spec
}

// What did not come by hand goes with its source, and a Membership without a part goes itself.
func TestStep_takesPartsThatHaveEnded(t *testing.T) {
	t.Parallel()
	request, group := v1alpha1.MembershipExtra{Source: "request:r", Sudo: true}, v1alpha1.MembershipExtra{Source: "group:g", Role: "admin"}
	both := []v1alpha1.MembershipExtra{request, group}
	for name, c := range map[string]struct {
		before v1alpha1.MembershipSpec
		facts  audit.Facts
		want   *v1alpha1.MembershipSpec
	}{
		"one of them":         {v1alpha1.MembershipSpec{Role: "member", Extra: both}, audit.Facts{Role: "member", Sources: &[]string{"group:g"}}, &v1alpha1.MembershipSpec{Role: "member", Extra: both[1:]}},
		"all":                 {v1alpha1.MembershipSpec{Role: "member", Extra: both}, audit.Facts{Role: "member", Sources: &[]string{}}, &v1alpha1.MembershipSpec{Role: "member"}},
		"without one by hand": {v1alpha1.MembershipSpec{Extra: both}, audit.Facts{Sources: &[]string{"group:g"}}, &v1alpha1.MembershipSpec{Extra: both[1:]}},
		"the last one":        {v1alpha1.MembershipSpec{Extra: both}, audit.Facts{Sources: &[]string{}}, nil},
		"none":                {v1alpha1.MembershipSpec{Extra: both}, audit.Facts{Role: "member"}, &v1alpha1.MembershipSpec{Extra: both}},
		"and what was given":  {v1alpha1.MembershipSpec{Role: "admin", Extra: both}, audit.Facts{Role: "member", Sources: &[]string{"request:r"}}, &v1alpha1.MembershipSpec{Role: "member", Extra: both[:1]}},
	} {
		require.Equal(t, c.want, gives(t, c.before, restore.Step{Kind: restore.LimitMember, Object: "bob", Workspace: "w", Facts: c.facts}), name)
	}
	require.Nil(t, gives(t, v1alpha1.MembershipSpec{Extra: both}, restore.Step{Kind: restore.RemoveMember, Object: "bob", Workspace: "w"}))
}

func TestStep_takesWhatTheEventTook(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	early, late := metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), metav1.NewTime(time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC))
	full := v1alpha1.MembershipSpec{Role: v1alpha1.RoleAdmin, Manager: true, Sudo: true, Roles: []v1alpha1.RoleRef{view, edit}, ExpiresAt: &late}
	type spec = v1alpha1.MembershipSpec
	with := func(change func(*spec)) *spec { s := *full.DeepCopy(); change(&s); return &s }
	for name, c := range map[string]struct {
		before spec
		facts  audit.Facts
		want   *spec
	}{
		"a lower role takes sudo and roles": {full, audit.Facts{Role: "member"}, with(func(s *spec) { s.Role, s.Sudo, s.Roles = "member", false, nil })},
		"a lower role that keeps them":      {full, audit.Facts{Role: "member", Sudo: &yes, Roles: &[]string{"view", "a/edit"}}, with(func(s *spec) { s.Role = "member" })},
		"a higher role gives nothing":       {spec{Role: "viewer"}, audit.Facts{Role: "admin", Sudo: &yes, Roles: &[]string{"view"}, Manager: &yes}, &spec{Role: "viewer"}},
		"a higher role without sudo":        {with2(full, "member"), audit.Facts{Role: "admin", Sudo: &no}, with(func(s *spec) { s.Role, s.Sudo = "member", false })},
		"sudo":                              {full, audit.Facts{Sudo: &no}, with(func(s *spec) { s.Sudo = false })},
		"further roles":                     {full, audit.Facts{Roles: &[]string{"a/edit", "other"}}, with(func(s *spec) { s.Roles = []v1alpha1.RoleRef{edit} })},
		"all further roles":                 {full, audit.Facts{Roles: &[]string{}}, with(func(s *spec) { s.Roles = nil })},
		"roles of a cut list":               {full, audit.Facts{Roles: &[]string{"view", "and 7 more"}}, with(func(s *spec) { s.Roles = []v1alpha1.RoleRef{view} })},
		"the management":                    {full, audit.Facts{Manager: &no}, with(func(s *spec) { s.Manager = false })},
		"the role of a manager":             {full, audit.Facts{Role: "none"}, with(func(s *spec) { s.Role, s.Sudo, s.Roles = "", false, nil })},
		"the role of a later manager":       {spec{Role: "member"}, audit.Facts{Role: "none", Manager: &yes}, nil},
		"an end":                            {full, audit.Facts{ExpiresAt: "2030-01-01T00:00:00Z"}, with(func(s *spec) { s.ExpiresAt = &early })},
		"a later end":                       {with3(full, &early), audit.Facts{ExpiresAt: "2040-01-01T00:00:00Z"}, with(func(s *spec) { s.ExpiresAt = &early })},
		"no end":                            {full, audit.Facts{ExpiresAt: "never"}, &full},
		"nothing":                           {full, audit.Facts{Role: "admin"}, &full},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := restore.Step{Kind: restore.LimitMember, Object: "bob", Facts: c.facts}
			got := gives(t, c.before, s)
			require.Equal(t, c.want, got)
			if got != nil {
				require.Equal(t, got, gives(t, *got, s), "a second time")
			}
			require.Nil(t, gives(t, c.before, restore.Step{Kind: restore.RemoveMember, Object: "bob"}, s))
		})
	}
}

func with2(s v1alpha1.MembershipSpec, role v1alpha1.Role) v1alpha1.MembershipSpec {
	s.Role = role
	return s
}

func with3(s v1alpha1.MembershipSpec, end *metav1.Time) v1alpha1.MembershipSpec {
	s.ExpiresAt = end
	return s
}

// Two replicas with different clocks may have any order in the plan.
func TestStep_takesTheSameInEveryOrder(t *testing.T) {
	t.Parallel()
	no := false
	end := metav1.NewTime(time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC))
	full := v1alpha1.MembershipSpec{Role: v1alpha1.RoleAdmin, Sudo: true, Roles: []v1alpha1.RoleRef{view, edit}, ExpiresAt: &end}
	var steps []restore.Step
	for _, f := range []audit.Facts{
		{Role: "member", Roles: &[]string{"view"}}, {Role: "admin"}, {Role: "viewer"}, {Sudo: &no}, {ExpiresAt: "2030-01-01T00:00:00Z"}, {ExpiresAt: "never"},
	} {
		steps = append(steps, restore.Step{Kind: restore.LimitMember, Object: "bob", Facts: f})
	}
	want := gives(t, full, steps...)
	for i := range steps {
		order := append(append([]restore.Step{}, steps[i:]...), steps[:i]...)
		require.Equal(t, want, gives(t, full, order...), "from %d on", i)
	}
}
