package members_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// ahead is kcp where it is ahead of the cache: alice has another Membership of the Organization there.
type ahead struct {
	*apitest.World
	alice func(*v1alpha1.Membership) *v1alpha1.Membership
}

func (a ahead) GetMembership(ctx context.Context, orgCluster, name string) (*v1alpha1.Membership, error) {
	m, err := a.World.GetMembership(ctx, orgCluster, name)
	if name == apitest.Admin {
		m = a.alice(m.DeepCopy())
	}
	return m, err
}

// A removed or demoted admin completes no request that was on its way, wherever the cache is.
func TestGrant_ofARemovedAdminIsRefusedWhenItIsWritten(t *testing.T) {
	t.Parallel()
	grants := map[string]func(*fixture) apitest.Answer{
		"add":                  func(f *fixture) apitest.Answer { return f.add(apitest.Admin, inOrg, addFrank) },
		"add to a Workspace":   func(f *fixture) apitest.Answer { return f.add(apitest.Admin, inDev, addFrank) },
		"promote":              func(f *fixture) apitest.Answer { return f.patch(apitest.Admin, inOrg, "bob", `{"role": "admin"}`) },
		"promote in Workspace": func(f *fixture) apitest.Answer { return f.patch(apitest.Admin, inDev, "walter", `{"role": "admin"}`) },
		"give sudo":            func(f *fixture) apitest.Answer { return f.patch(apitest.Admin, inDev, "walter", `{"sudo": true}`) },
		"give roles": func(f *fixture) apitest.Answer {
			return f.patch(apitest.Admin, inDev, "walter", `{"roles": [{"name": "edit"}]}`)
		},
		"remove":                func(f *fixture) apitest.Answer { return f.remove(apitest.Admin, inOrg, "bob") },
		"remove from Workspace": func(f *fixture) apitest.Answer { return f.remove(apitest.Admin, inDev, "walter") },
	}
	for name, alice := range map[string]func(*v1alpha1.Membership) *v1alpha1.Membership{
		"removed": func(*v1alpha1.Membership) *v1alpha1.Membership { return nil },
		"demoted": func(m *v1alpha1.Membership) *v1alpha1.Membership {
			m.Spec.Role = v1alpha1.RoleMember
			return m
		},
		"removed and added again": func(m *v1alpha1.Membership) *v1alpha1.Membership {
			m.UID = types.UID("of another Membership")
			return m
		},
		"as before": func(m *v1alpha1.Membership) *v1alpha1.Membership { return m },
	} {
		for grant, send := range grants {
			t.Run(name+", "+grant, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				f.handler.Rights.Store = ahead{f.world, alice}
				answer := send(f)
				if name == "as before" {
					require.Less(t, answer.Code, http.StatusMultipleChoices, answer.Body)
					return
				}
				answer.Refused(t, http.StatusForbidden)
				require.Empty(t, f.store.writes)
			})
		}
	}
}

// Leaving needs no right but the Membership itself.
func TestLeave_isNotJudged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.join("olga", "", v1alpha1.RoleAdmin)
	f.handler.Rights.Store = ahead{f.world, func(*v1alpha1.Membership) *v1alpha1.Membership { return nil }}
	require.Equal(t, http.StatusNoContent, f.leave(apitest.Admin, inOrg).Code)
}

// A person who repeats a refused request to leave does not wait for the writers of the
// Organization, and delays nobody.
func TestLeave_isRefusedFromTheCacheBeforeAnythingIsAskedOfKCP(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 3 {
		f.leave(apitest.Mixed, inOrg).Refused(t, http.StatusConflict)
		f.leave(apitest.Admin, inOrg).Refused(t, http.StatusConflict)
	}
	require.Zero(t, f.store.lists)
	require.Equal(t, http.StatusNoContent, f.do(apitest.Mixed, http.MethodDelete, inOrg+"/memberships/me?cascade=true", "").Code)
	require.Equal(t, 1, f.store.lists)
}

func TestAdd_refusesAPersonWithTooManyMemberships(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.world.Crowd(apitest.Foreigner, 1000)
	answer := f.add(apitest.Admin, inOrg, addFrank)
	require.Equal(t, "TooManyMemberships", string(refusedCauses(t, answer)[0].Type))
	f.world.Crowd(apitest.Foreigner, 999)
	f.add(apitest.Admin, inOrg, addFrank).Object(t, http.StatusCreated)
}
