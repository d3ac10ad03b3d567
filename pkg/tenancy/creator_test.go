package tenancy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// TestCreator_readsAnOrgUntilRemoved has an Org that alice created, in each of its states.
func TestCreator_readsAnOrgUntilRemoved(t *testing.T) {
	t.Parallel()
	const uuid = "33333333-3333-4333-8333-333333333333"
	created := metav1.NewTime(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
	claim := tenancy.NewClaim(uuid, "New", "alice", "", created)
	going := tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin)
	going.DeletionTimestamp = &created
	other := tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin)
	for name, c := range map[string]struct {
		user      string
		claim     *v1alpha1.Claim
		cluster   string
		made      bool
		personal  bool
		namesake  bool
		members   []*v1alpha1.Membership
		want      v1alpha1.Role
		ownerLeft bool
	}{
		"accepted":                          {user: "alice", claim: &claim, want: v1alpha1.RoleAdmin},
		"a claim that was carried out":      {user: "alice", claim: &v1alpha1.Claim{UUID: uuid}},
		"never asked for":                   {user: "alice"},
		"without a logical cluster":         {user: "alice", made: true, want: v1alpha1.RoleAdmin},
		"without members":                   {user: "alice", made: true, cluster: "c", want: v1alpha1.RoleAdmin},
		"a member before the index says so": {user: "alice", made: true, cluster: "c", members: []*v1alpha1.Membership{tenancy.NewMembership("alice", "", v1alpha1.RoleMember), other}, want: v1alpha1.RoleMember},
		"the creator was removed":           {user: "alice", made: true, cluster: "c", members: []*v1alpha1.Membership{other}},
		"the creator is being removed":      {user: "alice", made: true, cluster: "c", members: []*v1alpha1.Membership{going, other}},
		"somebody else":                     {user: "mallory", made: true, cluster: "c"},
		"a later person of the same name":   {user: "alice", made: true, cluster: "c", namesake: true},
		"a personal Org":                    {user: "alice", made: true, cluster: "c", personal: true, ownerLeft: true},
		"a personal Org with its owner":     {user: "alice", made: true, cluster: "c", personal: true, members: []*v1alpha1.Membership{tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			org := tenancy.Org{Organization: tenancy.NewOrganization(uuid, "New", "alice"), ClusterID: c.cluster}
			org.CreationTimestamp, org.Spec.Personal = created, c.personal
			creator := tenancy.Creator{
				Org: func(string) (tenancy.Org, bool) { return org, c.made },
				Membership: func(cluster, name string) (*v1alpha1.Membership, bool) {
					require.Equal(t, "c", cluster)
					for _, m := range c.members {
						if m.Name == name {
							return m, true
						}
					}
					return nil, false
				},
				MembershipsAt: func(string, string) []*v1alpha1.Membership { return c.members },
			}
			u := &v1alpha1.User{}
			u.Name, u.CreationTimestamp = c.user, created
			if c.namesake {
				u.CreationTimestamp.Time = created.Add(time.Second)
			}
			if c.claim != nil {
				u.Spec.OrgClaims = []v1alpha1.Claim{*c.claim}
			}
			found, role := creator.ReadOrg(u, uuid)
			require.Equal(t, c.want, role)
			if role != "" {
				require.Equal(t, uuid, found.UUID())
			}
			if c.cluster != "" {
				require.Equal(t, c.ownerLeft, creator.OwnerLeft(org))
			}
		})
	}
}
