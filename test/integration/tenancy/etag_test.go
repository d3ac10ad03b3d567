package tenancy

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/framework"
)

// ifMatch sets the If-Match header of a call.
func ifMatch(c call, tag string) call {
	c.Header = http.Header{"If-Match": {tag}}
	return c
}

// presentTag returns the current ETag of the object that a call would change. The 412
// answer to a precondition that never holds has it in a header.
func presentTag(t testing.TB, hub *framework.Hub, c call) string {
	t.Helper()
	a := hub.Do(t, ifMatch(c, `"0"`), http.StatusPreconditionFailed)
	require.Equal(t, "PreconditionFailed", string(framework.StatusOf(t, a).Reason))
	require.Regexp(t, `^"\d+"$`, a.Header.Get("ETag"))
	return a.Header.Get("ETag")
}

// renaming makes PATCH requests of the display name.
func renaming(c call) func(i int) (call, string) {
	return func(i int) (call, string) {
		name := fmt.Sprint("name ", i)
		c.Body = map[string]string{"displayName": name}
		return c, name
	}
}

// If many clients change an object with the same ETag on two hubs, exactly one request
// succeeds, and its change is stored.
func TestETag_letsOneOfManyChangeWhatTheyReadOnTwoHubs(t *testing.T) {
	t.Parallel()
	const atATime, rounds = 6, 12
	root := framework.NewRoot()
	hubs := framework.StartHubs(t, kcp, root, 2, framework.WithAdmin)
	p := newPlatform(t, root)
	org := hubs[0].CreateOrg(t, "alice", "ACME")
	ws := hubs[0].CreateWorkspace(t, "alice", org, "one").Text("uuid")
	framework.SignUp(t, hubs[0], "bob", "carol")
	hubs[0].Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("carol", "admin")), http.StatusCreated)
	hubs[0].Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	for _, hub := range hubs {
		framework.Eventually(t, framework.Long, func() error {
			a, err := hub.Try(framework.InWorkspace("alice", http.MethodGet, org, ws, "", nil))
			return errors.Join(err, framework.Equal(http.StatusOK, a.Code))
		})
	}
	number := func(c call, field string) func(int) (call, string) {
		return func(i int) (call, string) {
			c.Body = map[string]int{field: i + 1}
			return c, strconv.Itoa(i + 1)
		}
	}
	for name, c := range map[string]struct {
		change func(i int) (call, string)
		// stands reads the stored value from kcp.
		stands func() (string, error)
	}{
		"a person": {renaming(call{As: "bob", Method: http.MethodPatch, Path: "/api/users/me"}), func() (string, error) {
			u, err := p.Users(p.UsersPath()).Get(t.Context(), "bob", metav1.GetOptions{})
			return u.Spec.DisplayName, err
		}},
		"an Org": {renaming(framework.InOrg("alice", http.MethodPatch, org, "", nil)), func() (string, error) {
			o, err := p.Organizations(p.OrgsPath()).Get(t.Context(), org, metav1.GetOptions{})
			return o.Spec.DisplayName, err
		}},
		"a Workspace": {renaming(framework.InWorkspace("alice", http.MethodPatch, org, ws, "", nil)), func() (string, error) {
			w, err := p.Workspaces(p.OrgPath(org)).Get(t.Context(), ws, metav1.GetOptions{})
			return w.Annotations[v1alpha1.DisplayNameAnnotation], err
		}},
		"a member": {func(i int) (call, string) {
			named := []map[string]string{{"name": fmt.Sprint("role-", i)}}
			return framework.InWorkspace("alice", http.MethodPatch, org, ws, "/members/bob", map[string]any{"roles": named}), fmt.Sprint(named)
		}, func() (string, error) {
			m, err := p.Memberships(p.OrgPath(org)).Get(t.Context(), ws+".bob", metav1.GetOptions{})
			var named []map[string]string
			for _, r := range m.Spec.Roles {
				named = append(named, map[string]string{"name": r.Name})
			}
			return fmt.Sprint(named), err
		}},
		"a person's quota": {number(call{As: "heidi", Method: http.MethodPatch, Path: "/api/admin/users/carol"}, "orgQuota"), func() (string, error) {
			u, err := p.Users(p.UsersPath()).Get(t.Context(), "carol", metav1.GetOptions{})
			return strconv.Itoa(int(u.Spec.OrgQuota)), err
		}},
		"an Org's quota": {number(call{As: "heidi", Method: http.MethodPatch, Path: "/api/admin/orgs/" + org}, "workspaceQuota"), func() (string, error) {
			o, err := p.Organizations(p.OrgsPath()).Get(t.Context(), org, metav1.GetOptions{})
			return strconv.Itoa(int(o.Spec.WorkspaceQuota)), err
		}},
	} {
		var codes tally
		began, nobody := time.Now(), 0
		for round := 0; round < rounds; {
			calls, wants := make([]call, atATime), make([]string, atATime)
			for i := range calls {
				calls[i], wants[i] = c.change(round*atATime + i)
			}
			tag := presentTag(t, hubs[round%2], calls[0])
			for i := range calls {
				calls[i] = ifMatch(calls[i], tag)
			}
			answers, err := framework.AtOnce(hubs, calls)
			require.NoError(t, err)
			winner := -1
			for i, a := range answers {
				codes.add(strconv.Itoa(a.Code))
				switch a.Code {
				case http.StatusOK, http.StatusAccepted:
					require.Negative(t, winner, "%s: two have changed what both had read: %s | %s", name, a.Raw, answers[max(winner, 0)].Raw)
					require.NotEqual(t, tag, a.Header.Get("ETag"))
					winner = i
				case http.StatusPreconditionFailed:
					require.NotEqual(t, tag, a.Header.Get("ETag"), "what it was read as is no reason to refuse")
				default:
					require.Fail(t, "no other answer", "%s: %d %s", name, a.Code, a.Raw)
				}
			}
			if winner < 0 {
				// A controller changed the object first, so all clients were refused.
				nobody++
				require.Less(t, nobody, 20*rounds, "%s: nobody ever wins", name)
				continue
			}
			stands, err := c.stands()
			require.NoError(t, err)
			require.Equal(t, wants[winner], stands, "%s: of those who were refused nothing stands", name)
			round++
		}
		t.Logf("%s: %d rounds of %d on %d hubs in %s: %s%d times a controller was faster", name, rounds, atATime, len(hubs), time.Since(began).Round(time.Millisecond), &codes, nobody)
	}
	// bob deletes his account on this hub: other tests use that of TestETag_isGoodForOneChange, and need him.
	t.Run("a person's is good for one change", func(t *testing.T) {
		goodForOneChange(t, hubs[0], func(method string, body any) call {
			return call{As: "bob", Method: method, Path: "/api/users/me", Body: body}
		}, http.StatusAccepted)
	})
}

// If two admins end the same Membership with the same ETag, at most one request succeeds,
// although the decision is written to the Organization. The audit log of each hub has the requests to both, and so has
// the usage.
func TestETag_letsOneOfTwoDemoteWhomTheyRead(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hubs := framework.StartHubs(t, kcp, root, 2, sharedRecords(t))
	org := hubs[0].CreateOrg(t, "alice", "ACME")
	framework.SignUp(t, hubs[0], "bob")
	hubs[0].Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "admin")), http.StatusCreated)
	framework.Eventually(t, framework.Long, func() error {
		a, err := hubs[1].Try(framework.InOrg("bob", http.MethodGet, org, "", nil))
		return errors.Join(err, framework.Equal(http.StatusOK, a.Code))
	})
	demote := framework.InOrg("alice", http.MethodPatch, org, "/members/bob", framework.WithRole("member"))
	remove := framework.InOrg("alice", http.MethodDelete, org, "/members/bob", nil)
	var codes tally
	audited := map[string]int{}
	for round, others := 0, []call{demote, remove}; round < 20; {
		tag := presentTag(t, hubs[0], demote)
		second := others[round%2]
		answers, err := framework.AtOnce(hubs, []call{ifMatch(demote, tag), ifMatch(second, tag)})
		require.NoError(t, err)
		won := 0
		for _, a := range answers {
			codes.add(strconv.Itoa(a.Code))
			audited[a.Header.Get("X-Request-Id")] = a.Code
			if a.Code < http.StatusMultipleChoices {
				won++
				continue
			}
			// Without a precondition, the second request can get 409 or 404, too.
			require.Contains(t, []int{http.StatusPreconditionFailed, http.StatusConflict, http.StatusNotFound}, a.Code, "%s", a.Raw)
		}
		require.LessOrEqual(t, won, 1, "%s | %s", answers[0].Raw, answers[1].Raw)
		round += won
		// Restore the role, whichever request won.
		framework.Eventually(t, framework.Long, func() error {
			a, err := hubs[0].Try(framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "admin")))
			if err == nil && a.Code == http.StatusConflict {
				a, err = hubs[0].Try(framework.InOrg("alice", http.MethodPatch, org, "/members/bob", framework.WithRole("admin")))
			}
			if err == nil && a.Code != http.StatusOK && a.Code != http.StatusCreated {
				err = fmt.Errorf("not an admin again: %s", a.Raw)
			}
			return err
		})
	}
	t.Logf("20 rounds: %s", &codes)
	requireAudited(t, hubs, org, audited)
	requireUsed(t, hubs, org)
}

// An ETag allows one change. A DELETE with the ETag of that change succeeds.
func TestETag_isGoodForOneChange(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	org := hub.CreateOrg(t, "alice", "ACME")
	ws := hub.CreateWorkspace(t, "alice", org, "one").Text("uuid")
	t.Run("a Workspace", func(t *testing.T) {
		goodForOneChange(t, hub, func(method string, body any) call {
			return framework.InWorkspace("alice", method, org, ws, "", body)
		}, http.StatusOK)
	})
	t.Run("an Org", func(t *testing.T) {
		goodForOneChange(t, hub, func(method string, body any) call {
			return framework.InOrg("alice", method, org, "", body)
		}, http.StatusOK)
	})
}

// goodForOneChange renames and deletes what the calls are about. The code is that of the answer to the DELETE.
func goodForOneChange(t *testing.T, hub *framework.Hub, of func(method string, body any) call, deleted int) {
	t.Helper()
	// Controllers change the object, too. After a 412 the test reads it again, as
	// every client does.
	succeeds := func(c call, code int) framework.Answer {
		for range 100 {
			tag := hub.Do(t, callOf(c), http.StatusOK).Header.Get("ETag")
			require.NotEmpty(t, tag)
			if a := hub.Do(t, ifMatch(c, tag), code, http.StatusPreconditionFailed); a.Code == code {
				hub.Do(t, ifMatch(c, tag), http.StatusPreconditionFailed, http.StatusNotFound, http.StatusForbidden)
				return a
			}
		}
		require.Fail(t, "it never succeeds")
		return framework.Answer{}
	}
	rename := of(http.MethodPatch, map[string]string{"displayName": "New"})
	require.Equal(t, "New", succeeds(rename, http.StatusOK).Text("displayName"))
	hub.Do(t, ifMatch(rename, "*"), http.StatusOK)
	for _, bad := range []string{"42", `"42`, ""} {
		a := hub.Do(t, ifMatch(rename, bad), http.StatusBadRequest)
		require.Contains(t, string(a.Raw), "header:If-Match")
	}
	remove := of(http.MethodDelete, nil)
	hub.Do(t, ifMatch(remove, `"0", W/"1"`), http.StatusPreconditionFailed)
	require.NotEmpty(t, succeeds(remove, deleted).Text("deletionRequestedAt"))
}

// callOf returns the GET for the object of a call.
func callOf(c call) call {
	c.Method, c.Body, c.Header = http.MethodGet, nil, nil
	return c
}
