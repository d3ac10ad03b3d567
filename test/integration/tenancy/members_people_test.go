package tenancy

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/test/framework"
)

// The search returns names only, and only of Users that can be invited.
func TestSearch_findsPeopleWhoCanBeInvited(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root, framework.WithAdmin)
	framework.SignUp(t, hub, "alice", "bob", "carol", "heidi")
	hub.Do(t, call{As: "bob", Method: http.MethodPatch, Path: "/api/users/me", Body: `{"displayName":"Robert Tables"}`}, http.StatusOK)
	search := func(q string, code int) framework.Answer {
		return hub.Do(t, call{As: "alice", Method: http.MethodGet, Path: "/api/users?q=" + url.QueryEscape(q)}, code)
	}
	found := func(q string) []string {
		var names []string
		for _, item := range search(q, http.StatusOK).JSON["items"].([]any) {
			u := item.(map[string]any)
			require.Len(t, u, 2, "%v", u)
			require.Contains(t, u, "displayName")
			names = append(names, fmt.Sprint(u["name"]))
		}
		return names
	}
	for q, names := range map[string][]string{
		"bob": {"bob"}, "TABLES": {"bob"}, "bert ta": {"bob"}, "ca": {"carol"}, "nobody": nil, "ob": {"bob"},
	} {
		require.Equal(t, names, found(q), q)
	}
	for _, q := range []string{"", "b", " b "} {
		search(q, http.StatusBadRequest)
	}
	hub.Do(t, call{Method: http.MethodGet, Path: "/api/users?q=bob"}, http.StatusUnauthorized)

	// Soft-deleted and pending Users are not found and cannot be added; undelete and
	// approval make them visible again.
	org := hub.CreateOrg(t, "alice", "ACME")
	hub.Do(t, call{As: "bob", Method: http.MethodDelete, Path: "/api/users/me"}, http.StatusAccepted)
	hub.Do(t, framework.Registering("carol", "Pending"), http.StatusOK)
	framework.Eventually(t, framework.Long, func() error {
		a, err := hub.Try(call{As: "bob", Method: http.MethodGet, Path: "/api/orgs"})
		if err == nil {
			err = framework.Equal(http.StatusForbidden, a.Code)
		}
		return err
	})
	require.Empty(t, found("bob"))
	require.Empty(t, found("carol"))
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "member")), http.StatusBadRequest)
	hub.Do(t, call{As: "carol", Method: http.MethodGet, Path: "/api/orgs"}, http.StatusForbidden)
	hub.Do(t, call{As: "bob", Method: http.MethodPost, Path: "/api/users/me/undelete"}, http.StatusOK)
	hub.Do(t, framework.Registering("carol", "Approved"), http.StatusOK)
	framework.Eventually(t, framework.Long, func() error {
		a, err := hub.Try(call{As: "bob", Method: http.MethodGet, Path: "/api/orgs"})
		if err == nil {
			err = framework.Equal(http.StatusOK, a.Code)
		}
		return err
	})
	require.Equal(t, []string{"bob"}, found("bob"))
	require.Equal(t, []string{"carol"}, found("carol"))
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "member")), http.StatusCreated)
}

// The search cannot list the whole directory, neither in one request nor letter by
// letter.
func TestSearch_isNoDirectoryDump(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	p := newPlatform(t, root)
	framework.SignUp(t, hub, "alice", "bob")
	crowd := p.CreateUsers(t, "crowd", 25)
	search := func(as, q string) call {
		return call{As: as, Method: http.MethodGet, Path: "/api/users?q=" + url.QueryEscape(q)}
	}
	framework.Eventually(t, framework.Long, func() error {
		a, err := hub.Try(search("alice", crowd[24]))
		if items, _ := a.JSON["items"].([]any); err == nil && len(items) != 1 {
			err = fmt.Errorf("the hub has not seen everybody yet: %s", a.Raw)
		}
		return err
	})
	for _, more := range []string{"", "&limit=500"} {
		c := search("bob", "crowd")
		c.Path += more
		a := hub.Do(t, c, http.StatusOK)
		require.Len(t, a.JSON["items"], 20, more)
		require.Empty(t, a.Text("continue"), more)
	}
	for more, field := range map[string]string{
		"&continue=": "continue", "&continue=crowd-19": "continue", "&deleted=true": "deleted", "&limit=500&limit=500": "limit",
	} {
		c := search("bob", "crowd")
		c.Path += more
		require.Contains(t, string(hub.Do(t, c, http.StatusBadRequest).Raw), `"field":"query:`+field+`"`)
	}
	for _, q := range []string{"%%", "**", "..", "//", "crowd-2[0-4]"} {
		require.Empty(t, hub.Do(t, search("bob", q), http.StatusOK).JSON["items"], "%q is no pattern", q)
	}
	hub.Do(t, search("bob", strings.Repeat("ä", 128)), http.StatusOK)
	hub.Do(t, search("bob", strings.Repeat("ä", 129)), http.StatusBadRequest)

	calls := make([]call, 200)
	for i := range calls {
		calls[i] = search("bob", "crowd")
	}
	answers, err := framework.AtOnce([]*framework.Hub{hub}, calls)
	require.NoError(t, err)
	var codes tally
	for _, a := range answers {
		codes.add(strconv.Itoa(a.Code))
		if a.Code == http.StatusTooManyRequests {
			require.NotEmpty(t, a.Header.Get("Retry-After"))
			require.Equal(t, metav1.StatusReasonTooManyRequests, framework.StatusOf(t, a).Reason)
			continue
		}
		require.Equal(t, http.StatusOK, a.Code, "%s", a.Raw)
	}
	t.Logf("%d searches at once: %s", len(calls), &codes)
	require.Positive(t, codes.times[strconv.Itoa(http.StatusTooManyRequests)])
	// The rate limit is per person and applies to the search only.
	framework.SignUp(t, hub, "bob", "carol")
	hub.Do(t, search("carol", "crowd"), http.StatusOK)
}

// O-3: the switcher shows the entries of the caller only, whatever the request.
func TestO3_TheSwitcherShowsTheCallersOwnRowsOnly(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	first, second := hub.CreateOrg(t, "alice", "Alice's"), hub.CreateOrg(t, "bob", "Bob's")
	rows := func(as, path string) []string {
		var out []string
		for _, item := range hub.Do(t, call{As: as, Method: http.MethodGet, Path: path}, http.StatusOK).JSON["items"].([]any) {
			if e := item.(map[string]any); e["orgUUID"] == first || e["orgUUID"] == second {
				out = append(out, fmt.Sprintf("%v %v %v", e["orgDisplayName"], e["workspaceDisplayName"], e["role"]))
			}
		}
		slices.Sort(out)
		return out
	}
	hub.CreateWorkspace(t, "alice", first, "hers")
	shared := hub.CreateWorkspace(t, "bob", second, "shared").Text("uuid")
	hub.Do(t, framework.InWorkspace("bob", http.MethodPost, second, shared, "/members", framework.Adding("alice", "member")), http.StatusCreated)
	alices := []string{"Alice's <nil> admin", "Alice's hers admin", "Bob's shared member"}
	for _, query := range []string{"", "?deleted=true"} {
		require.Equal(t, alices, rows("alice", "/api/users/me/memberships"+query), query)
	}
	for _, query := range []string{"?user=bob", "?q=bob", "?deleted=true&user=bob"} {
		hub.Do(t, call{As: "alice", Method: http.MethodGet, Path: "/api/users/me/memberships" + query}, http.StatusBadRequest)
	}
	require.Equal(t, []string{"Bob's <nil> admin", "Bob's shared admin"}, rows("bob", "/api/users/me/memberships"))
	require.Empty(t, rows("heidi", "/api/users/me/memberships"), "a platform admin is in nothing by that")
	for _, path := range []string{"/api/users/bob/memberships", "/api/users/bob", "/api/users/alice/memberships"} {
		a := hub.Do(t, call{As: "alice", Method: http.MethodGet, Path: path}, http.StatusNotFound, http.StatusMethodNotAllowed)
		require.NotContains(t, string(a.Raw), second)
	}
	// When the answer to a leave request arrives, the entry is gone.
	hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, second, shared, "/memberships/me", nil), http.StatusNoContent)
	require.Equal(t, alices[:2], rows("alice", "/api/users/me/memberships"))
}
