package groups_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/groups"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const (
	path = "/api/orgs/" + apitest.Acme + "/groups"
	one  = "77777777-7777-4777-8777-777777777777"
	dev  = `{"group":"kedge:dev","role":"member"}`
)

// world is kcp with the caches of the hub.
type world struct {
	*apitest.World
	api.Store
	http http.Handler
	// groups are those of people in kcp.
	groups map[string][]string
}

func newWorld(t testing.TB, known bool) *world {
	t.Helper()
	w := &world{World: apitest.NewWorld(), groups: map[string][]string{apitest.Admin: {"kedge:dev", "kedge:ops"}}}
	h := &groups.Handler{Deps: w.Deps(t, w, one), Groups: w, KCP: w, MaxAge: 24 * time.Hour, Known: known}
	w.http = apitest.Router(w.World, h.Mount)
	return w
}

func (w *world) GetUser(_ context.Context, name string) (*v1alpha1.User, error) {
	u := apitest.Person(name)
	u.Spec.Groups = tenancy.HeardGroups{Groups: w.groups[name], IssuedAt: apitest.Now()}.Learn(nil, apitest.Now(), time.Hour)
	return u, nil
}

func (w *world) SomeWithGroup(hash v1alpha1.GroupHash, limit int) []*v1alpha1.User {
	if hash != tenancy.HashGroup("kedge:dev") || limit != tenancy.MaxGroupMembers {
		return nil
	}
	u := apitest.Person("carol")
	u.Spec.Groups = &v1alpha1.UserGroups{IssuedAt: apitest.Epoch(), Hashes: []v1alpha1.GroupHash{hash}}
	return []*v1alpha1.User{u}
}

func (w *world) ChangeOrganization(ctx context.Context, held *v1alpha1.Organization, match api.Match,
	edit api.Edit[*v1alpha1.Organization],
) (*v1alpha1.Organization, error) {
	org, _ := w.Org(held.Name)
	if match != nil {
		if err := match(org.ResourceVersion); err != nil {
			return nil, err
		}
	}
	o := org.DeepCopy()
	if err := edit(ctx, o); err != nil {
		return nil, err
	}
	o.Generation++
	w.PutOrg(o, org.ClusterID)
	return o, nil
}

func (w *world) call(as, method, path, body string) apitest.Answer {
	return apitest.Call{As: as, Method: method, Path: path, Org: apitest.Acme, Body: body}.Do(w.http)
}

func TestGroups_areMappedListedAndRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true)
	var made rest.GroupMapping
	w.call(apitest.Admin, http.MethodPost, path, dev).Into(t, http.StatusCreated, &made)
	require.Equal(t, rest.GroupMapping{
		ID: one, Group: "kedge:dev", Role: "member", CreatedBy: apitest.Admin, CreatedAt: made.CreatedAt, People: 1,
	}, made)
	w.call(apitest.Admin, http.MethodPost, path, dev).Into(t, http.StatusOK, &made)
	require.Equal(t, one, made.ID, "the same once more is the same")
	w.call(apitest.Admin, http.MethodPost, path, `{"group":"kedge:dev","role":"admin"}`).Refused(t, http.StatusConflict)
	require.Equal(t, []string{one}, w.call(apitest.Admin, http.MethodGet, path, "").Items(t, "id"))
	require.Equal(t, http.StatusNoContent, w.call(apitest.Admin, http.MethodDelete, path+"/"+one, "").Code)
	w.call(apitest.Admin, http.MethodDelete, path+"/"+one, "").Refused(t, http.StatusNotFound)
	require.Empty(t, w.call(apitest.Admin, http.MethodGet, path, "").Items(t, "id"))
}

func TestGroups_badInputNamesTheField(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true)
	for field, body := range map[string]string{
		"group":     `{"group":"system:masters","role":"member"}`,
		"role":      `{"group":"kedge:dev","role":"root"}`,
		"workspace": `{"group":"kedge:dev","role":"member","workspace":"` + one + `"}`,
	} {
		w.call(apitest.Admin, http.MethodPost, path, body).RefusedField(t, field)
	}
	w.call(apitest.Admin, http.MethodDelete, path+"/..", "").Refused(t, http.StatusNotFound)
}

// The name of a mapping follows from the key. A second one of that name would be refused by kcp, as a fault.
func TestGroups_anotherMappingWithOneKeyIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true)
	post := apitest.Call{As: apitest.Admin, Method: http.MethodPost, Path: path, Org: apitest.Acme, Body: dev, Header: http.Header{"Idempotency-Key": {"k"}}}
	post.Do(w.http).Object(t, http.StatusCreated)
	post.Do(w.http).Object(t, http.StatusOK)
	post.Body = `{"group":"kedge:ops","role":"member"}`
	require.Contains(t, post.Do(w.http).Refused(t, http.StatusConflict).Message, "Idempotency-Key")
}

func TestGroups_removalHonoursIfMatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true)
	w.call(apitest.Admin, http.MethodPost, path, dev).Object(t, http.StatusCreated)
	stale := apitest.Call{
		As: apitest.Admin, Method: http.MethodDelete, Path: path + "/" + one, Org: apitest.Acme, Header: http.Header{"If-Match": {`"7"`}},
	}
	stale.Do(w.http).Refused(t, http.StatusPreconditionFailed)
	require.Equal(t, []string{one}, w.call(apitest.Admin, http.MethodGet, path, "").Items(t, "id"))
}

// A hub to which no credential says groups would let nobody in.
func TestGroups_areRefusedWhereTheHubKnowsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	require.Contains(t, w.call(apitest.Admin, http.MethodPost, path, dev).Refused(t, http.StatusNotImplemented).Message, "--oidc-groups-claim")
}

// An admin until a time who maps a group of their own would stay longer by it.
func TestGroups_prolongNobodysOwnRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true)
	m := apitest.Membership(apitest.Admin, "", v1alpha1.RoleAdmin)
	m.Spec.ExpiresAt = &metav1.Time{Time: apitest.Epoch().Add(time.Hour)}
	w.PutMembership(apitest.Acme, m)
	w.call(apitest.Admin, http.MethodPost, path, dev).RefusedCause(t, tenancy.CauseOwnRight)
	require.Empty(t, w.call(apitest.Admin, http.MethodGet, path, "").Items(t, "id"))
	w.groups[apitest.Admin] = []string{"kedge:ops"}
	w.call(apitest.Admin, http.MethodPost, path, dev).Object(t, http.StatusCreated)
}

// An admin by a group of theirs who maps another one of theirs would stay admin when they leave the first.
func TestGroups_keepNobodyAdminWhoLeavesOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true)
	m := apitest.Membership(apitest.Admin, "", "")
	m.Spec.Extra = []v1alpha1.MembershipExtra{
		{Source: tenancy.GroupSource("g1"), Role: v1alpha1.RoleAdmin, ExpiresAt: &metav1.Time{Time: apitest.Epoch().Add(time.Hour)}},
	}
	w.PutMembership(apitest.Acme, m)
	admins := strings.Replace(dev, `"role":"member"`, `"role":"admin"`, 1)
	require.NotEqual(t, dev, admins)
	w.call(apitest.Admin, http.MethodPost, path, admins).RefusedCause(t, tenancy.CauseOwnRight)
	w.call(apitest.Admin, http.MethodPost, path, dev).Object(t, http.StatusCreated)
}

func TestGroups_membersNeitherMapNorSeeThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true)
	w.call(apitest.Admin, http.MethodPost, path, dev).Into(t, http.StatusCreated, &rest.GroupMapping{})
	for _, as := range []string{apitest.Member, apitest.WSAdmin} {
		w.call(as, http.MethodGet, path, "").Refused(t, http.StatusForbidden)
		w.call(as, http.MethodPost, path, dev).Refused(t, http.StatusForbidden)
		w.call(as, http.MethodDelete, path+"/"+one, "").Refused(t, http.StatusForbidden)
	}
}

// What ends for two people has one receipt.
func TestRemove_hasAReceipt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true)
	w.call(apitest.Admin, http.MethodPost, path, dev).Object(t, http.StatusCreated)
	for _, user := range []string{apitest.Member, apitest.WSMember} {
		m := apitest.Membership(user, "", "")
		m.Spec.Extra = []v1alpha1.MembershipExtra{{Source: tenancy.GroupSource(one), Role: v1alpha1.RoleMember}}
		w.PutMembership(apitest.Acme, m)
		w.Later(func(world *apitest.World) { world.Leave(user, apitest.Acme, "") })
	}
	a := apitest.Call{As: apitest.Admin, Method: http.MethodDelete, Path: path + "/" + one, Org: apitest.Acme, Header: apitest.Prefer()}.Do(w.http)
	w.Receipted(t, a, 2)
}
