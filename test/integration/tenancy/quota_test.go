package tenancy

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/framework"
)

const (
	creates = 64
	limit   = 10
)

// quotaOf formats a quota in an answer as "used of limit".
func quotaOf(a framework.Answer, field string) string {
	q, _ := a.JSON[field].(map[string]any)
	return fmt.Sprintf("%v of %v", q["used"], q["limit"])
}

// burst sends creates at once. It requires that exactly taken of them succeed and that
// the quota refuses all others. It returns the UUIDs of the created objects.
func burst(t testing.TB, hubs []*framework.Hub, taken int, create func(i int) call) []string {
	t.Helper()
	calls := make([]call, creates)
	for i := range calls {
		calls[i] = create(i)
	}
	began := time.Now()
	answers, err := framework.AtOnce(hubs, calls)
	require.NoError(t, err)
	var codes tally
	var uuids []string
	for _, a := range answers {
		codes.add(strconv.Itoa(a.Code))
		if a.Code == http.StatusCreated || a.Code == http.StatusAccepted {
			uuids = append(uuids, a.Text("uuid"))
			continue
		}
		require.Equal(t, http.StatusForbidden, a.Code, "%s", a.Raw)
		require.Equal(t, []string{"QuotaExceeded"}, framework.CausesOf(t, a))
		require.Equal(t, metav1.StatusReasonForbidden, framework.StatusOf(t, a).Reason)
		require.Contains(t, framework.StatusOf(t, a).Message, fmt.Sprintf("%d of at most %d", limit, limit))
		require.Contains(t, framework.StatusOf(t, a).Message, "ask a platform admin")
	}
	t.Logf("%d creates at once on %d hubs in %s: %s", creates, len(hubs), time.Since(began).Round(time.Millisecond), &codes)
	require.Len(t, uuids, taken)
	return uuids
}

// O-5 with concurrent requests on two hubs, and the right to change the quota.
func TestO5_SixtyFourOrgsAtOnceLeaveAsManyAsTheQuota(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hubs := framework.StartHubs(t, kcp, root, 2, framework.WithAdmin)
	p := newPlatform(t, root)
	framework.SignUp(t, hubs[0], "alice", "bob", "heidi")
	create := func(i int) call {
		return call{As: "alice", Method: http.MethodPost, Path: "/api/orgs", Body: map[string]string{"displayName": fmt.Sprint("org ", i)}}
	}
	uuids := burst(t, hubs, limit, create)
	ready := func(n int) {
		t.Helper()
		framework.Eventually(t, framework.Long, func() error {
			made := p.OrganizationsBy(t, "alice")
			for _, o := range made {
				if o.Status.Phase != v1alpha1.PhaseReady {
					return fmt.Errorf("%s is %s", o.Name, o.Status.Phase)
				}
			}
			return framework.Equal(n, len(made))
		})
	}
	ready(limit)
	for _, uuid := range uuids {
		require.Contains(t, p.OrganizationsBy(t, "alice"), uuid, "every one that was promised is there")
		for _, hub := range hubs {
			framework.Eventually(t, framework.Long, func() error {
				a, err := hub.Try(framework.InOrg("alice", http.MethodGet, uuid, "", nil))
				if err == nil {
					err = framework.Equal(http.StatusOK, a.Code)
				}
				return err
			})
		}
	}
	me := func(hub *framework.Hub) string {
		return quotaOf(hub.Do(t, call{As: "alice", Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK), "orgQuota")
	}
	// A soft-deleted Org keeps using the quota, so that an undelete succeeds.
	hubs[0].Do(t, framework.InOrg("alice", http.MethodDelete, uuids[0], "", nil), http.StatusOK)
	require.Equal(t, "10 of 10", me(hubs[0]))
	burst(t, hubs, 0, create)
	hubs[0].Do(t, framework.InOrg("alice", http.MethodPost, uuids[0], "/undelete", nil), http.StatusOK)
	require.Equal(t, "10 of 10", me(hubs[0]))
	// The positive control: the quota of another person is unaffected.
	hubs[0].CreateOrg(t, "bob", "Bob's")

	// Only a platform admin changes quotas and sees the quotas of others.
	more := call{As: "heidi", Method: http.MethodPatch, Path: "/api/admin/users/alice", Body: `{"orgQuota":11}`}
	for _, c := range []call{
		{As: "alice", Method: more.Method, Path: more.Path, Body: more.Body},
		{As: "alice", Method: http.MethodGet, Path: "/api/admin/users"},
	} {
		hubs[0].Do(t, c, http.StatusForbidden)
	}
	hubs[0].Do(t, call{As: "alice", Method: http.MethodPatch, Path: "/api/users/me", Body: `{"orgQuota":11}`}, http.StatusBadRequest)
	for _, body := range []string{`{"orgQuota":-1}`, `{"orgQuota":5001}`, `{"orgQuota":"11"}`, `{"workspaceQuota":11}`} {
		hubs[0].Do(t, call{As: "heidi", Method: more.Method, Path: more.Path, Body: body}, http.StatusBadRequest)
	}
	hubs[0].Do(t, call{As: "heidi", Method: more.Method, Path: "/api/admin/users/nobody", Body: more.Body}, http.StatusNotFound)
	require.Equal(t, "10 of 11", quotaOf(hubs[0].Do(t, more, http.StatusOK), "orgQuota"))
	require.Equal(t, "10 of 11", me(hubs[0]))
	for _, item := range hubs[0].Do(t, call{As: "heidi", Method: http.MethodGet, Path: "/api/admin/users"}, http.StatusOK).JSON["items"].([]any) {
		if u := item.(map[string]any); u["name"] == "alice" {
			require.Equal(t, map[string]any{"limit": 11.0, "used": 10.0}, u["orgQuota"])
		}
	}
	hubs[0].CreateOrg(t, "alice", "one more")
	hubs[0].Do(t, create(0), http.StatusForbidden)
	// A quota below the used amount deletes nothing.
	lower := more
	lower.Body = `{"orgQuota":3}`
	require.Equal(t, "11 of 3", quotaOf(hubs[0].Do(t, lower, http.StatusOK), "orgQuota"))
	hubs[0].Do(t, create(0), http.StatusForbidden)
	lower.Body = `{"orgQuota":null}`
	require.Equal(t, "11 of 10", quotaOf(hubs[0].Do(t, lower, http.StatusOK), "orgQuota"))
	ready(limit + 1)
}

// O-6 with concurrent requests by two people on two hubs, and the right to change the
// quota. Few tests write as these two: a hub carries out eight writes of a person at a time.
func TestO6_SixtyFourWorkspacesAtOnceLeaveAsManyAsTheQuota(t *testing.T) {
	t.Parallel()
	hubs := kcp.Shared(t, 2)
	p := newPlatform(t, hubs[0].Options.RootWorkspace)
	people := []string{"frank", "grace"}
	framework.SignUp(t, hubs[0], "frank", "grace", "heidi")
	org := hubs[0].CreateOrg(t, "frank", "ACME")
	other := hubs[0].CreateOrg(t, "frank", "Other")
	hubs[0].Do(t, framework.InOrg("frank", http.MethodPost, org, "/members", framework.Adding("grace", "member")), http.StatusCreated)
	quota := func(as, body string, code int) framework.Answer {
		return hubs[0].Do(t, call{As: as, Method: http.MethodPatch, Path: "/api/admin/orgs/" + org, Body: body}, code)
	}
	quota("frank", `{"workspaceQuota":10}`, http.StatusForbidden)
	quota("grace", `{"workspaceQuota":10}`, http.StatusForbidden)
	hubs[0].Do(t, framework.InOrg("frank", http.MethodPatch, org, "", `{"workspaceQuota":10}`), http.StatusBadRequest)
	quota("heidi", `{"workspaceQuota":-1}`, http.StatusBadRequest)
	hubs[0].Do(t, call{As: "heidi", Method: http.MethodPatch, Path: "/api/admin/orgs/11111111-2222-4333-8444-555555555555", Body: `{"workspaceQuota":10}`}, http.StatusNotFound)
	hubs[0].Do(t, framework.InOrg("heidi", http.MethodGet, org, "", nil), http.StatusForbidden)
	require.Equal(t, "0 of 10", quotaOf(quota("heidi", `{"workspaceQuota":10}`, http.StatusOK), "workspaceQuota"))
	for _, hub := range hubs {
		for _, who := range people {
			framework.Eventually(t, framework.Long, func() error {
				a, err := hub.Try(framework.InOrg(who, http.MethodGet, org, "", nil))
				if got := quotaOf(a, "workspaceQuota"); err == nil && got != "0 of 10" {
					err = fmt.Errorf("%s sees %s", who, got)
				}
				return err
			})
		}
	}

	create := func(i int) call {
		return framework.InOrg(people[i/2%2], http.MethodPost, org, "/workspaces", map[string]string{"displayName": fmt.Sprint("ws ", i)})
	}
	uuids := burst(t, hubs, limit, create)
	framework.Eventually(t, framework.Long, func() error {
		a, err := hubs[1].Try(framework.InOrg("frank", http.MethodGet, org, "/workspaces", nil))
		if err != nil {
			return err
		}
		items, _ := a.JSON["items"].([]any)
		for _, item := range items {
			if ws := item.(map[string]any); ws["phase"] != "Ready" {
				return fmt.Errorf("%v is %v", ws["uuid"], ws["phase"])
			}
		}
		return framework.Equal(limit, len(items))
	})
	made := p.WorkspacesOf(t, org)
	require.Len(t, made, limit)
	for _, uuid := range uuids {
		require.Contains(t, made, uuid, "every one that was promised is there")
	}
	hubs[0].Do(t, framework.InWorkspace("frank", http.MethodDelete, org, uuids[0], "", nil), http.StatusOK)
	require.Equal(t, "10 of 10", quotaOf(hubs[0].Do(t, framework.InOrg("grace", http.MethodGet, org, "", nil), http.StatusOK), "workspaceQuota"))
	burst(t, hubs, 0, create)
	hubs[0].Do(t, framework.InWorkspace("frank", http.MethodPost, org, uuids[0], "/undelete", nil), http.StatusOK)
	hubs[0].CreateWorkspace(t, "frank", other, "elsewhere")

	require.Equal(t, "10 of 11", quotaOf(quota("heidi", `{"workspaceQuota":11}`, http.StatusOK), "workspaceQuota"))
	hubs[0].CreateWorkspace(t, "grace", org, "one more")
	hubs[0].Do(t, create(0), http.StatusForbidden)
	require.Len(t, p.WorkspacesOf(t, org), limit+1)
}

// A POST with a repeated Idempotency-Key creates nothing, concurrently or later, on any
// hub.
func TestIdempotencyKey_returnsWhatTheFirstRequestMade(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hubs := framework.StartHubs(t, kcp, root, 2)
	p := newPlatform(t, root)
	framework.SignUp(t, hubs[0], "alice", "bob")
	keyed := func(c call, keys ...string) call {
		c.Header = http.Header{"Idempotency-Key": keys}
		return c
	}
	org := func(as, name string) call {
		return call{As: as, Method: http.MethodPost, Path: "/api/orgs", Body: map[string]string{"displayName": name}}
	}
	// once sends the same request eight times at once and returns the one UUID that all
	// answers have.
	once := func(c call) string {
		t.Helper()
		calls := make([]call, 8)
		for i := range calls {
			calls[i] = c
		}
		answers, err := framework.AtOnce(hubs, calls)
		require.NoError(t, err)
		for _, a := range answers {
			require.Equal(t, http.StatusCreated, a.Code, "%s", a.Raw)
			require.Equal(t, answers[0].Text("uuid"), a.Text("uuid"))
			require.Equal(t, "Ready", a.Text("phase"))
		}
		return answers[0].Text("uuid")
	}
	first := once(keyed(org("alice", "ACME"), "key-1"))
	later := hubs[1].Do(t, keyed(org("alice", "Another name"), "key-1"), http.StatusCreated)
	require.Equal(t, first, later.Text("uuid"))
	require.Equal(t, "ACME", later.Text("displayName"), "it is what the first made")
	require.Len(t, p.OrganizationsBy(t, "alice"), 1)
	require.NotEmpty(t, p.OrganizationsBy(t, "alice")[first].Labels[v1alpha1.IdempotencyKeyLabel])
	require.Equal(t, "1 of 10", quotaOf(hubs[0].Do(t, call{As: "alice", Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK), "orgQuota"))

	// A request with another key, by another person or without a key is a different
	// request.
	var makes sync.WaitGroup
	others := make([]framework.Answer, 3)
	for i, c := range []call{keyed(org("alice", "ACME"), "key-2"), keyed(org("bob", "ACME"), "key-1"), org("alice", "ACME")} {
		makes.Go(func() { others[i], _ = hubs[i%2].Try(c) })
	}
	makes.Wait()
	seen := map[string]bool{first: true}
	for _, a := range others {
		require.Equal(t, http.StatusCreated, a.Code, "%s", a.Raw)
		require.False(t, seen[a.Text("uuid")])
		seen[a.Text("uuid")] = true
	}

	workspace := func(org string) call {
		return framework.InOrg("alice", http.MethodPost, org, "/workspaces", map[string]string{"displayName": "platform"})
	}
	for _, hub := range hubs {
		framework.Eventually(t, framework.Long, func() error {
			a, err := hub.Try(framework.InOrg("alice", http.MethodGet, first, "", nil))
			if err == nil {
				err = framework.Equal(http.StatusOK, a.Code)
			}
			return err
		})
	}
	ws := once(keyed(workspace(first), "key-1"))
	require.Len(t, p.WorkspacesOf(t, first), 1)
	require.NotEmpty(t, p.WorkspacesOf(t, first)[ws].Labels[v1alpha1.IdempotencyKeyLabel])
	require.NotEqual(t, ws, hubs[0].Do(t, keyed(workspace(others[0].Text("uuid")), "key-1"), http.StatusCreated).Text("uuid"), "the key counts in its Org")
	require.NotEqual(t, ws, hubs[0].Do(t, keyed(workspace(first), "key-2"), http.StatusCreated).Text("uuid"))
	require.Len(t, p.WorkspacesOf(t, first), 2)

	for _, keys := range [][]string{{""}, {"a", "b"}, {"two words"}, {"käse"}, {fmt.Sprintf("%0256d", 0)}} {
		for _, c := range []call{org("alice", "ACME"), workspace(first)} {
			a := hubs[0].Do(t, keyed(c, keys...), http.StatusBadRequest)
			require.Equal(t, "header:Idempotency-Key", framework.StatusOf(t, a).Details.Causes[0].Field)
		}
	}
	require.Len(t, p.WorkspacesOf(t, first), 2)
}
