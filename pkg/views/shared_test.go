package views_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// The objects in a list are shared and read-only. The list itself belongs to the caller.
func TestViews_listsAreTheCallersOwn(t *testing.T) {
	t.Parallel()
	const person, org = "person-000000", 0
	v := watching(t, world{orgs: 3, people: 20, rows: 3}.objects(), nil)
	for name, alter := range map[string]func() (before, after any){
		"People": func() (any, any) {
			list := v.People()
			clear(list)
			return 20, len(v.SearchPeople("person", 100))
		},
		"SearchPeople": func() (any, any) {
			before := v.SearchPeople("person", 5)[0]
			clear(v.SearchPeople("person", 5))
			return before, v.SearchPeople("person", 5)[0]
		},
		"MembershipsOf, few": func() (any, any) {
			clear(v.MembershipsOf(person))
			return 3, len(present(v.MembershipsOf(person)))
		},
		"MembershipsOf, appended to": func() (any, any) {
			_ = append(v.MembershipsOf(person), &v1alpha1.Membership{})
			return 3, len(v.MembershipsOf(person))
		},
		"MembershipsIn, many": func() (any, any) {
			clear(v.MembershipsIn(orgCluster(org)))
			return 20, len(present(v.MembershipsIn(orgCluster(org))))
		},
		"Orgs": func() (any, any) {
			clear(v.Orgs())
			o, _ := v.Org(orgUUID(org))
			return orgUUID(org), o.UUID()
		},
		"Workspaces": func() (any, any) {
			list := v.Workspaces(orgUUID(org))
			list[0].DisplayName, list[0].ClusterID, list[0].UUID = "altered", "altered", "altered"
			ws, _ := v.Workspace(orgUUID(org), workspaceUUID(org))
			return "Workspace 0", ws.DisplayName
		},
		"OrgsCreatedBy": func() (any, any) {
			clear(v.OrgsCreatedBy(person))
			return []string{orgUUID(0)}, v.OrgsCreatedBy(person)
		},
		"Index, appended to": func() (any, any) {
			rows := v.Index(person)
			_ = append(rows[:len(rows):cap(rows)], v1alpha1.MembershipIndexEntry{OrgUUID: "another"})
			return cap(rows), len(rows)
		},
	} {
		before, after := alter()
		require.Equal(t, before, after, name)
	}
}

func present(list []*v1alpha1.Membership) []*v1alpha1.Membership {
	var out []*v1alpha1.Membership
	for _, m := range list {
		if m != nil {
			out = append(out, m)
		}
	}
	return out
}

// A view can return a changed object. It must not write into the informer's object,
// because reconcilers compare that.
func TestViews_doNotWriteIntoObjectsOfInformers(t *testing.T) {
	t.Parallel()
	w := world{orgs: 3, people: 12, rows: 3}
	objects := w.objects()
	// The index has the role admin, the Membership has the role member, and one Org has
	// no Membership.
	demoted := w.membership(0, 0)
	demoted.Spec.Role = v1alpha1.RoleMember
	objects["memberships"][0] = demoted
	objects["memberships"] = append(objects["memberships"][:1:1], objects["memberships"][2:]...)
	v := watching(t, objects, nil)
	before := []any{}
	for x := range v.Indexes.All() {
		before = append(before, x, x.DeepCopy())
	}
	for m := range v.Memberships.All() {
		before = append(before, m, m.DeepCopy())
	}
	for u := range v.Users.All() {
		before = append(before, u, u.DeepCopy())
	}

	require.Len(t, v.Index(personName(0)), 2)
	require.Equal(t, v1alpha1.RoleMember, v.Index(personName(0))[0].Role)
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for i := range w.people {
				v.Index(personName(i))
				v.SearchPeople(personName(i), 3)
				v.MembershipsOf(personName(i))
				for org := range w.orgs {
					v.MembershipsIn(orgCluster(org))
					v.Workspaces(orgUUID(org))
					v.UsedWorkspaces(orgUUID(org), nil)
					v.Sudo(personName(i), orgUUID(org), workspaceUUID(org))
				}
			}
		})
	}
	readers.Wait()
	for i := 0; i < len(before); i += 2 {
		require.Equal(t, before[i+1], before[i])
	}
}
