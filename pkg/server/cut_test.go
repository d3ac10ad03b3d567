package server

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// The attack: open a watch with what a binding gave when that is gone already, in a kcp
// that is too busy to have followed at once.
func TestWhoLosesABindingIsCutUntilKCPHasFollowed(t *testing.T) {
	t.Parallel()
	binding := func(uid types.UID, labels map[string]string) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{UID: uid, Labels: labels, Annotations: map[string]string{"kcp.io/cluster": "aaaa"}},
			RoleRef:    rbacv1.RoleRef{Name: "kedge:workspace:admin"},
		}
	}
	alices := map[string]string{v1alpha1.UserLabel: "alice"}
	for _, tc := range []struct {
		name     string
		old, new *rbacv1.ClusterRoleBinding
		cut      bool
	}{
		{"gone", binding("1", alices), nil, true},
		{"made anew, of another role perhaps", binding("1", alices), binding("2", alices), true},
		{"new", nil, binding("1", alices), false},
		{"changed, which a role cannot be", binding("1", alices), binding("1", nil), false},
		{"nobody's", binding("1", nil), nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			now, want := time.Duration(0), []time.Duration(nil)
			var at []time.Duration
			later := map[time.Duration]func(){}
			unbound(func(user, cluster, clusterRole string) {
				require.Equal(t, []string{"alice", "aaaa", "kedge:workspace:admin"}, []string{user, cluster, clusterRole})
				at = append(at, now)
			}, func(d time.Duration, f func()) { later[d] = f })(tc.old, tc.new)
			for now = time.Second / 2; now <= time.Minute; now += time.Second / 2 {
				if f := later[now]; f != nil {
					f()
				}
			}
			if tc.cut {
				want = []time.Duration{0, 500 * time.Millisecond, 2 * time.Second, 5 * time.Second}
			}
			require.Equal(t, want, at)
			require.Len(t, later, max(0, len(want)-1), "and that is all")
		})
	}
}

// The attack: hide one's binding from the hub before it goes, and open a watch with what
// it gave when the right that it stood for has ended.
func TestWhoCouldHideTheirBindingIsCutUntilKCPHasFollowed(t *testing.T) {
	t.Parallel()
	alices := func(role v1alpha1.Role) *v1alpha1.Membership {
		return &v1alpha1.Membership{Spec: v1alpha1.MembershipSpec{UserRef: v1alpha1.NamedRef{Name: "alice"}, Role: role}}
	}
	for _, tc := range []struct {
		name     string
		old, new *v1alpha1.Membership
		cut      bool
	}{
		{"demoted", alices(v1alpha1.RoleAdmin), alices(v1alpha1.RoleMember), true},
		{"removed", alices(v1alpha1.RoleAdmin), nil, true},
		{"sudo was taken", &v1alpha1.Membership{Spec: v1alpha1.MembershipSpec{Role: v1alpha1.RoleMember, Sudo: true}}, alices(v1alpha1.RoleMember), false},
		{"an admin still", alices(v1alpha1.RoleAdmin), alices(v1alpha1.RoleAdmin), false},
		{"never one", alices(v1alpha1.RoleMember), nil, false},
		{"new", nil, alices(v1alpha1.RoleAdmin), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var cut, want []string
			later := map[time.Duration]func(){}
			stopped(func(user, cluster, clusterRole string) { cut = append(cut, user+" "+cluster+" "+clusterRole) },
				func(d time.Duration, f func()) { later[d] = f },
				func(*v1alpha1.Membership) []string { return []string{"aaaa"} })(tc.old, tc.new)
			for _, f := range later {
				f()
			}
			if tc.cut {
				want = slices.Repeat([]string{"alice aaaa kedge:workspace:admin"}, 1+len(lags))
			}
			require.Equal(t, want, cut)
		})
	}
}
