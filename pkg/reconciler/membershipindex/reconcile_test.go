package membershipindex_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/membershipindex"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestO3_indexFollowsTheMemberships(t *testing.T) {
	t.Parallel()
	place := tenancy.IndexedMembership{Org: tenancy.Org{Organization: tenancy.NewOrganization("o", "O", "alice")}, FirstAdmin: "alice", Role: "admin"}
	held := func(names ...string) *v1alpha1.UserMembershipIndex {
		i := &v1alpha1.UserMembershipIndex{}
		i.Name, i.ResourceVersion = "alice", "7"
		for _, name := range names {
			p := place
			p.Org = tenancy.Org{Organization: tenancy.NewOrganization("o", name, "alice")}
			i.Spec.Entries = append(i.Spec.Entries, tenancy.IndexEntries([]tenancy.IndexedMembership{p})...)
		}
		return i
	}
	annotated := func(i *v1alpha1.UserMembershipIndex, operation string) *v1alpha1.UserMembershipIndex {
		i.Annotations = map[string]string{v1alpha1.OperationAnnotation: operation}
		return i
	}
	for name, c := range map[string]struct {
		user   bool
		places []tenancy.IndexedMembership
		index  *v1alpha1.UserMembershipIndex
		want   string
		rows   int
	}{
		"a new person has an empty one": {true, nil, nil, "create", 0},
		"it was deleted":                {true, []tenancy.IndexedMembership{place}, nil, "create", 1},
		"it is right":                   {true, []tenancy.IndexedMembership{place}, held("O"), "", 0},
		"an Org was renamed":            {true, []tenancy.IndexedMembership{place}, held("Old"), "update", 1},
		"a row too many":                {true, []tenancy.IndexedMembership{place}, held("O", "P"), "update", 1},
		"nothing left":                  {true, nil, held("O"), "update", 0},
		"the person is gone":            {false, nil, held("O"), "delete", 0},
		"neither":                       {false, nil, nil, "", 0},
		"it is to be ignored":           {true, nil, annotated(held("O"), v1alpha1.OperationIgnore), "", 0},
		"it was asked for":              {true, []tenancy.IndexedMembership{place}, annotated(held("O"), v1alpha1.OperationReconcile), "update", 1},
		"a word that means nothing":     {true, []tenancy.IndexedMembership{place}, annotated(held("Old"), "nonsense"), "update", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			did, rows := "", 0
			note := func(what string) func(context.Context, *v1alpha1.UserMembershipIndex) error {
				return func(_ context.Context, i *v1alpha1.UserMembershipIndex) error {
					require.Equal(t, "alice", i.Name)
					if c.index != nil && c.index.Annotations[v1alpha1.OperationAnnotation] == "nonsense" {
						require.Equal(t, "nonsense", i.Annotations[v1alpha1.OperationAnnotation])
					} else {
						require.Empty(t, i.Annotations)
					}
					did, rows = what, len(i.Spec.Entries)
					if what == "delete" {
						rows = 0
					}
					return nil
				}
			}
			_, err := membershipindex.New(membershipindex.Config{
				User:               func(string) (*v1alpha1.User, bool) { return &v1alpha1.User{}, c.user },
				IndexedMemberships: func(string) []tenancy.IndexedMembership { return c.places },
				Index:              func(string) (*v1alpha1.UserMembershipIndex, bool) { return c.index, c.index != nil },
				Create:             note("create"), Update: note("update"), Delete: note("delete"),
			})(t.Context(), controller.Key{Cluster: "u", Name: "alice"})
			require.NoError(t, err)
			require.Equal(t, c.want, did)
			require.Equal(t, c.rows, rows)
		})
	}
}
