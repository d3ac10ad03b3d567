package membershipindex_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/membershipindex"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestO3_indexFollowsTheMemberships(t *testing.T) {
	t.Parallel()
	place := tenancy.IndexedMembership{Org: tenancy.Org{Organization: tenancy.NewOrganization("o", "O", "alice")}, FirstAdmin: "alice", Role: "admin"}
	held := func(names ...string) *v1alpha1.UserMembershipIndex {
		i := &v1alpha1.UserMembershipIndex{}
		i.Name = "alice"
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
			k := kcptest.New(t)
			if c.index != nil {
				k.Put(kcptest.Users, c.index)
			}
			v := indexed{places: c.places, user: c.user}
			_, err := membershipindex.New(v, k.Stored.Indexes)(t.Context(), controller.Key{Cluster: kcptest.Users, Name: "alice"})
			require.NoError(t, err)
			if c.want == "" {
				require.Empty(t, k.Writes())
				return
			}
			require.Len(t, k.Writes(), 1)
			require.Equal(t, c.want, k.Writes()[0].Verb)
			got := held()
			require.Equal(t, c.want != "delete", k.Read(kcptest.Users, got))
			require.Len(t, got.Spec.Entries, c.rows)
			if c.index != nil && c.index.Annotations[v1alpha1.OperationAnnotation] == "nonsense" {
				require.Equal(t, "nonsense", got.Annotations[v1alpha1.OperationAnnotation])
			} else {
				require.NotContains(t, got.Annotations, v1alpha1.OperationAnnotation)
			}
		})
	}
}

// indexed are views of one User.
type indexed struct {
	places []tenancy.IndexedMembership
	user   bool
}

func (v indexed) ByName(string) (*v1alpha1.User, bool) { return &v1alpha1.User{}, v.user }

func (v indexed) IndexedMemberships(string) []tenancy.IndexedMembership { return v.places }
