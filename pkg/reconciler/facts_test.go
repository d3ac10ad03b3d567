package reconciler

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// What a change takes must be known from its event alone: a restore replays it.
func TestMembershipFacts_sayWhatIsTaken(t *testing.T) {
	t.Parallel()
	end := metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	full := v1alpha1.MembershipSpec{
		Role: v1alpha1.RoleAdmin, Manager: true, Sudo: true, ExpiresAt: &end, Roles: []v1alpha1.RoleRef{{Name: "view"}, {Name: "edit", Namespace: "a"}},
	}
	for name, c := range map[string]struct {
		before, after v1alpha1.MembershipSpec
		want          string
	}{
		"a new one":      {after: full, want: `{"role":"admin","roles":["view","a/edit"],"sudo":true,"manager":true,"expiresAt":"2030-01-01T00:00:00Z"}`},
		"a plain one":    {after: v1alpha1.MembershipSpec{Role: v1alpha1.RoleViewer}, want: `{"role":"viewer"}`},
		"a new manager":  {after: v1alpha1.MembershipSpec{Manager: true}, want: `{"manager":true}`},
		"all but a role": {before: full, after: v1alpha1.MembershipSpec{Role: v1alpha1.RoleMember}, want: `{"role":"member","roles":[],"sudo":false,"manager":false,"expiresAt":"never"}`},
		"the role":       {before: full, after: v1alpha1.MembershipSpec{Manager: true, ExpiresAt: &end}, want: `{"role":"none","roles":[],"sudo":false,"manager":true}`},
		"a part that was not given by hand": {
			before: v1alpha1.MembershipSpec{Role: v1alpha1.RoleMember, Extra: []v1alpha1.MembershipExtra{{Source: "group:g", Role: v1alpha1.RoleViewer}, {Source: "request:r", Sudo: true}}},
			after:  v1alpha1.MembershipSpec{Role: v1alpha1.RoleMember, Extra: []v1alpha1.MembershipExtra{{Source: "group:g", Role: v1alpha1.RoleViewer}}},
			want:   `{"role":"member","sources":["group:g"]}`,
		},
		"nothing": {before: full, after: full, want: `{"role":"admin","roles":["view","a/edit"],"sudo":true,"manager":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(MembershipFacts(c.before, c.after))
			require.NoError(t, err)
			require.JSONEq(t, c.want, string(got))
		})
	}
}
