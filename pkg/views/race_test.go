package views

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// A returned slice never changes later, and a read is never older than the last event.
func TestViews_readersAndEventsDoNotRace(t *testing.T) {
	t.Parallel()
	const people = 40
	v := newViews(t)
	users, memberships, indexes := v.Users.handle, membershipsOf(v), v.Indexes.handle
	workspacesOf(v)(nil, workspace("o", orgUUID, "org1"))
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got := v.People()
				clear(got)
				clear(v.MembershipsIn("org1"))
				clear(v.MembershipsOf("p1"))
				for _, row := range v.Index("p1") {
					_ = row.Role
				}
				v.SearchPeople("p", 5)
			}
		})
	}
	for i := range people {
		name := fmt.Sprint("p", i)
		u := user("u", name, name, 1)
		users(nil, u)
		require.Contains(t, v.People(), u)
		m := at("org1", tenancy.NewMembership(name, "", "admin"))
		memberships(nil, m)
		x := at("u", &v1alpha1.UserMembershipIndex{Spec: v1alpha1.UserMembershipIndexSpec{
			Entries: []v1alpha1.MembershipIndexEntry{{OrgUUID: orgUUID, Role: v1alpha1.RoleAdmin}},
		}})
		x.Name = name
		v.Indexes.transform(x)
		indexes(nil, x)
		require.Len(t, v.Index(name), 1)
		if i%3 == 0 {
			users(u, nil)
			require.NotContains(t, v.People(), u)
			memberships(m, nil)
			require.Empty(t, v.Index(name))
		}
	}
	close(stop)
	readers.Wait()
	require.Len(t, v.People(), people-(people+2)/3)
	require.Len(t, v.MembershipsIn("org1"), people-(people+2)/3)
}
