package requests_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/requests"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const (
	inOrg = "/api/orgs/" + apitest.Acme
	inDev = inOrg + "/workspaces/" + apitest.Dev
	// one is the name of the AccessRequest that tests make.
	one = "77777777-7777-4777-8777-777777777777"
)

// world is kcp with the caches of the hub. What is decided is carried out at once.
type world struct {
	*apitest.World
	api.Store
	held map[string]*v1alpha1.AccessRequest
	http http.Handler
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{World: apitest.NewWorld(), held: map[string]*v1alpha1.AccessRequest{}}
	h := &requests.Handler{
		Deps: w.Deps(t, w, one), Requests: w, KCP: w, Count: func(string) {},
		Followed: func(string, string, string) bool { return true },
	}
	w.http = apitest.Router(w.World, h.Mount)
	return w
}

func (w *world) AccessRequest(_, name string) (*v1alpha1.AccessRequest, bool) {
	r, ok := w.held[name]
	return r, ok
}

func (w *world) AccessRequestsIn(string) []*v1alpha1.AccessRequest {
	return slices.Collect(maps.Values(w.held))
}

func (w *world) GetAccessRequest(_ context.Context, _, name string) (*v1alpha1.AccessRequest, error) {
	return w.held[name], nil
}

func (w *world) ListAccessRequests(context.Context, string) (all []v1alpha1.AccessRequest, _ error) {
	for _, r := range w.held {
		all = append(all, *r)
	}
	return all, nil
}

func (w *world) ChangeOrganization(ctx context.Context, held *v1alpha1.Organization, _ api.Match, edit api.Edit[*v1alpha1.Organization]) (*v1alpha1.Organization, error) {
	org, _ := w.Org(held.Name)
	o := org.DeepCopy()
	if err := edit(ctx, o); err != nil {
		return nil, err
	}
	for _, c := range o.Spec.RequestChanges {
		if c.Request != nil {
			r := tenancy.NewAccessRequest(c)
			r.ResourceVersion, r.CreationTimestamp = apitest.FirstVersion, apitest.Epoch()
			w.held[r.Name] = r
			continue
		}
		r := w.held[c.Name].DeepCopy()
		r.Status = *c.Status
		w.held[c.Name] = r
	}
	for _, c := range o.Spec.MembershipChanges {
		m, _ := w.Membership(org.ClusterID, tenancy.MembershipName(c.User, c.Workspace))
		if tenancy.Removes(c) {
			w.Leave(c.User, held.Name, c.Workspace)
			continue
		}
		m = tenancy.ChangedMembership(m, c)
		m.UID = "uid"
		w.PutMembership(held.Name, m)
	}
	o.Spec.RequestChanges, o.Spec.MembershipChanges = nil, nil
	o.Generation++
	w.PutOrg(o, org.ClusterID)
	return o, nil
}

func (w *world) call(as, method, path, body string) apitest.Answer {
	c := apitest.Call{As: as, Method: method, Path: path, Org: apitest.Acme, Body: body}
	if strings.HasPrefix(path, inDev) {
		c.Workspace = apitest.Dev
	}
	return c.Do(w.http)
}

// put adds an open request of a person in Dev.
func (w *world) put(user string, kind v1alpha1.AccessRequestKind) {
	r := &v1alpha1.AccessRequest{Spec: v1alpha1.AccessRequestSpec{
		UserRef: v1alpha1.NamedRef{Name: user}, WorkspaceRef: v1alpha1.NamedRef{Name: apitest.Dev}, Kind: kind,
		Duration: metav1.Duration{Duration: time.Hour}, Reason: "stuck",
	}}
	r.Name, r.ResourceVersion, r.CreationTimestamp = one, apitest.FirstVersion, apitest.Epoch()
	w.held[one] = r
}

// let lets members of Acme ask for rights in Dev.
func (w *world) let() {
	ws, _ := w.Workspace(apitest.Acme, apitest.Dev)
	ws.Requests = tenancy.RequestsMembers
	w.PutWorkspace(ws)
}

func TestCreate_isForThoseWhoMayAsk(t *testing.T) {
	t.Parallel()
	const inOrgBody, inDevBody = `{"workspace":"` + apitest.Dev + `","kind":"sudo","reason":"stuck","for":"30m"}`, `{"kind":"sudo","reason":"stuck"}`
	for name, c := range map[string]struct {
		as, path, body string
		let            bool
		code           int
	}{
		"a guest":                              {apitest.WSMember, inDev, inDevBody, false, http.StatusCreated},
		"a guest in the organization":          {apitest.WSMember, inOrg, inOrgBody, false, http.StatusForbidden},
		"an admin of the organization":         {apitest.Admin, inOrg, inOrgBody, false, http.StatusCreated},
		"a member who is not in it":            {apitest.Member, inOrg, inOrgBody, false, http.StatusNotFound},
		"a member whom it lets":                {apitest.Member, inOrg, inOrgBody, true, http.StatusCreated},
		"in a workspace that is not there":     {apitest.Admin, inOrg, strings.ReplaceAll(inOrgBody, apitest.Dev, apitest.Nowhere), true, http.StatusNotFound},
		"in a workspace that was deleted":      {apitest.Admin, inOrg, strings.ReplaceAll(inOrgBody, apitest.Dev, apitest.Gone), true, http.StatusNotFound},
		"somebody who has it":                  {apitest.WSAdmin, inDev, `{"kind":"admin","reason":"stuck"}`, false, http.StatusConflict},
		"without a reason":                     {apitest.WSMember, inDev, `{"kind":"sudo","reason":""}`, false, http.StatusBadRequest},
		"with a workspace in that of the path": {apitest.WSMember, inDev, inOrgBody, false, http.StatusBadRequest},
	} {
		w := newWorld(t)
		if c.let {
			w.let()
		}
		a := w.call(c.as, http.MethodPost, c.path+"/requests", c.body)
		require.Equal(t, c.code, a.Code, name+": "+a.Body)
		if c.code != http.StatusCreated {
			require.Empty(t, w.held, name)
			continue
		}
		made := a.Object(t, http.StatusCreated)
		require.Equal(t, "Open", made["state"])
		require.Equal(t, c.as, made["user"])
	}
}

func TestList_hasOwnOnesAndThoseToDecide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(apitest.WSMember, v1alpha1.RequestAdmin)
	for as, seen := range map[string]bool{apitest.WSMember: true, apitest.WSAdmin: true, apitest.Mixed: true} {
		require.Equal(t, seen, len(w.call(as, http.MethodGet, inDev+"/requests", "").Items(t, "id")) == 1, as)
	}
	for as, seen := range map[string]bool{apitest.Admin: true, apitest.Mixed: true, apitest.Member: false} {
		require.Equal(t, seen, len(w.call(as, http.MethodGet, inOrg+"/requests", "").Items(t, "id")) == 1, as)
	}
	require.Empty(t, w.call(apitest.Member, http.MethodGet, inOrg+"/requests/workspaces", "").Items(t, "uuid"))
	w.let()
	require.Equal(t, []string{apitest.Dev}, w.call(apitest.Member, http.MethodGet, inOrg+"/requests/workspaces", "").Items(t, "uuid"))
}

func TestApprove_givesWhatWasAskedForUntilItIsRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(apitest.WSMember, v1alpha1.RequestAdmin)
	at := "/requests/" + one
	for as, code := range map[string]int{apitest.WSMember: http.StatusForbidden, apitest.Foreigner: http.StatusForbidden} {
		require.Equal(t, code, w.call(as, http.MethodPost, inDev+at+"/approve", `{}`).Code, as)
	}
	require.Equal(t, http.StatusNotFound, w.call(apitest.Member, http.MethodPost, inOrg+at+"/approve", `{}`).Code, "bob does not see it")
	require.Equal(t, http.StatusForbidden, w.call(apitest.WSAdmin, http.MethodPost, inDev+at+"/withdraw", `{}`).Code)
	require.Equal(t, http.StatusConflict, w.call(apitest.WSAdmin, http.MethodPost, inDev+at+"/revoke", `{}`).Code, "it gave nothing")
	approved := w.call(apitest.Admin, http.MethodPost, inOrg+at+"/approve", `{"note":"go"}`).Object(t, http.StatusOK)
	require.Equal(t, "Approved", approved["state"])
	require.Equal(t, apitest.Admin, approved["decidedBy"])
	require.Equal(t, "go", approved["note"])
	require.Equal(t, apitest.Epoch().Add(time.Hour).UTC().Format(time.RFC3339), approved["endsAt"])
	m, _ := w.Membership("acmecluster", tenancy.MembershipName(apitest.WSMember, apitest.Dev))
	require.Equal(t, tenancy.RequestSource(one), m.Spec.Extra[0].Source)
	require.Equal(t, v1alpha1.RoleMember, m.Spec.Role, "what was given by hand stays")
	require.Equal(t, http.StatusConflict, w.call(apitest.WSAdmin, http.MethodPost, inDev+at+"/deny", `{}`).Code)
	require.Equal(t, "Ended", w.call(apitest.WSAdmin, http.MethodPost, inDev+at+"/revoke", `{}`).Object(t, http.StatusOK)["state"])
	m, _ = w.Membership("acmecluster", tenancy.MembershipName(apitest.WSMember, apitest.Dev))
	require.Empty(t, m.Spec.Extra)
}

func TestDecide_nobodyDecidesTheirOwn(t *testing.T) {
	t.Parallel()
	for _, decision := range []string{"approve", "deny"} {
		w := newWorld(t)
		w.put(apitest.WSAdmin, v1alpha1.RequestSudo)
		refused := w.call(apitest.WSAdmin, http.MethodPost, inDev+"/requests/"+one+"/"+decision, `{}`).Refused(t, http.StatusForbidden)
		require.EqualValues(t, tenancy.CauseOwnRequest, refused.Details.Causes[0].Type)
	}
}

// A manager gives the role of a member, and neither more nor to themselves.
func TestDecide_managersGiveTheRoleOfAMember(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		user string
		kind v1alpha1.AccessRequestKind
		code int
	}{
		{apitest.WSMember, v1alpha1.RequestSudo, http.StatusNotFound},
		{apitest.WSMember, v1alpha1.RequestAdmin, http.StatusNotFound},
		{"nina", v1alpha1.RequestMember, http.StatusForbidden},
		{apitest.Member, v1alpha1.RequestMember, http.StatusOK},
	} {
		w := newWorld(t)
		w.PutUser(apitest.Person("nina"))
		m := apitest.Membership("nina", apitest.Dev, "")
		m.Spec.Manager = true
		w.PutMembership(apitest.Acme, m)
		w.put(c.user, c.kind)
		seen := w.call("nina", http.MethodGet, inDev+"/requests", "").Items(t, "id")
		require.Equal(t, c.code != http.StatusNotFound, len(seen) == 1, c.kind)
		require.Equal(t, c.code, w.call("nina", http.MethodPost, inDev+"/requests/"+one+"/approve", `{}`).Code, c.kind)
	}
}

func TestHandler_writesIntents(t *testing.T) {
	t.Parallel()
	start := func(put bool) func(*testing.T) (http.Handler, *apitest.World) {
		return func(t *testing.T) (http.Handler, *apitest.World) {
			w := newWorld(t)
			if put {
				w.put(apitest.WSMember, v1alpha1.RequestSudo)
			}
			return w.http, w.World
		}
	}
	in := func(as, path, body string) apitest.Call {
		return apitest.Call{As: as, Method: http.MethodPost, Path: inDev + "/requests" + path, Org: apitest.Acme, Workspace: apitest.Dev, Body: body}
	}
	apitest.RequireIntents(t, start(false), map[string]apitest.Intent{
		"create": {Call: in(apitest.WSMember, "", `{"kind":"admin","reason":"stuck"}`), Object: apitest.WSMember, Facts: `{"request":"` + one + `","role":"admin","reason":"stuck"}`},
	})
	apitest.RequireIntents(t, start(true), map[string]apitest.Intent{
		"approve":  {Call: in(apitest.WSAdmin, "/"+one+"/approve", `{}`), Object: apitest.WSMember, Facts: `{"request":"` + one + `","sudo":true,"reason":"stuck"}`},
		"deny":     {Call: in(apitest.WSAdmin, "/"+one+"/deny", `{"note":"no"}`), Object: apitest.WSMember, Facts: `{"request":"` + one + `","reason":"no"}`, Reduces: true},
		"withdraw": {Call: in(apitest.WSMember, "/"+one+"/withdraw", `{}`), Object: apitest.WSMember, Facts: `{"request":"` + one + `"}`, Reduces: true},
	})
}

func TestRevoke_hasAReceiptInItsAnswer(t *testing.T) {
	t.Parallel()
	for decision, as := range map[string]string{"revoke": apitest.WSAdmin, "withdraw": apitest.WSMember} {
		w := newWorld(t)
		w.put(apitest.WSMember, v1alpha1.RequestAdmin)
		w.call(apitest.Admin, http.MethodPost, inOrg+"/requests/"+one+"/approve", `{}`).Object(t, http.StatusOK)
		a := apitest.Call{
			As: as, Method: http.MethodPost, Path: inDev + "/requests/" + one + "/" + decision, Org: apitest.Acme, Workspace: apitest.Dev, Body: `{}`,
			Header: apitest.Prefer(),
		}.Do(w.http)
		w.Receipted(t, a, 1)
		require.Equal(t, "Ended", a.Object(t, http.StatusOK)["state"])
	}
}
