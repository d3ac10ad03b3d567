package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/proxy"
)

const (
	objectsOfA = "/clusters/aaaa/api/v1/namespaces/n/configmaps"
	objectsOfB = "/clusters/bbbb/api/v1/namespaces/n/configmaps"
	objectOfA  = objectsOfA + "/one"
)

// The attack: have kcp share its cores and its disk among as many small requests as a tenant can send.
func TestLoad_kcpHasAFewRequestsOfAnOrganization(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoaded(t, 1, proxy.LoadLimits{Requests: 100, Turns: 2})
		l.send(30, http.MethodPost, objectsOfA, "alice")
		require.Equal(t, 2, l.kcp.has("aaaa"))
		// Neighbours do not wait, nor do watches.
		l.send(2, http.MethodGet, objectsOfB, "bob")
		require.Equal(t, 2, l.kcp.has("bbbb"))
		l.send(1, http.MethodGet, objectsOfA+"?watch=true", "alice")
		require.Equal(t, 3, l.kcp.has("aaaa"))
		close(l.kcp.released)
		l.running.Wait()
		require.Equal(t, 33, l.answered(http.StatusOK), "all, in turn")
		require.Empty(t, l.refused.all())
	})
}

// The attack: large objects, each of which keeps a core of kcp busy for as long as many small ones.
func TestLoad_largeRequestsHaveMoreTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoaded(t, 1, proxy.LoadLimits{Requests: 100, Turns: 4})
		for range 3 {
			l.write(t.Context(), http.MethodPost, objectsOfA, "alice", strings.NewReader(strings.Repeat("x", mebibyte)))
		}
		require.Equal(t, 1, l.kcp.has("aaaa"))
		close(l.kcp.released)
		l.running.Wait()
		require.Equal(t, 3, l.answered(http.StatusOK))
	})
}

// The attack: have roles wait behind a flood in one Organization, and so those in all others of its creator; or have what
// takes something away wait.
func TestLoad_rolesAndDeletionsDoNotWaitForATurnOfTheirOrganization(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoaded(t, 1, proxy.LoadLimits{Requests: 100, Turns: 1, Parallel: 1})
		l.send(5, http.MethodPost, objectsOfA, "alice")
		require.Equal(t, 1, l.kcp.has("aaaa"))
		l.write(t.Context(), http.MethodPost, bindingsPath, "alice", strings.NewReader("{}"))
		require.Equal(t, 2, l.kcp.has("aaaa"))
		l.send(1, http.MethodDelete, objectOfA, "alice")
		require.Equal(t, 3, l.kcp.has("aaaa"))
		close(l.kcp.released)
		l.running.Wait()
		require.Equal(t, 7, l.answered(http.StatusOK))
	})
}

// Who has a request that kcp does not answer, such as for a webhook of theirs, or sends a body slowly, keeps nobody from
// their turn for longer than a second.
func TestLoad_aTurnLastsASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoaded(t, 1, proxy.LoadLimits{Requests: 100, Turns: 2})
		slow, rest := io.Pipe()
		l.write(t.Context(), http.MethodPost, objectsOfA, "alice", slow)
		l.send(15, http.MethodGet, objectOfA, "alice")
		require.Equal(t, 1, l.kcp.has("aaaa"), "a body of unknown size counts for a large one")
		<-time.After(1100 * time.Millisecond)
		require.Equal(t, 3, l.kcp.has("aaaa"))
		<-time.After(10 * time.Second)
		require.Equal(t, 16, l.kcp.has("aaaa"))
		require.NoError(t, rest.Close())
		close(l.kcp.released)
		l.running.Wait()
	})
}

func TestLoad_nobodyWaitsForATurnForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoaded(t, 1, proxy.LoadLimits{Requests: 100, Turns: 1})
		l.send(20, http.MethodGet, objectOfA, "alice")
		<-time.After(11 * time.Second)
		refused := l.answered(http.StatusTooManyRequests)
		require.Greater(t, refused, 5)
		require.Equal(t, 20-refused, l.kcp.has("aaaa"))
		require.Contains(t, l.refused.all(), "turns_per_org")
		close(l.kcp.released)
		l.running.Wait()
		require.Equal(t, 20-refused, l.answered(http.StatusOK))
	})
}

// The attack: be removed while a request waits, which kcp would do later.
func TestLoad_aRightThatEndsWhileItsRequestWaitsForATurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoaded(t, 1, proxy.LoadLimits{Requests: 100, Turns: 1})
		l.rights.set("bob", false, inWorkspace(v1alpha1.RoleAdmin))
		l.send(1, http.MethodPost, objectsOfA, "bob")
		l.send(5, http.MethodPost, objectsOfA, "alice")
		require.Equal(t, 1, l.kcp.has("aaaa"))
		l.rights.set("alice", false)
		l.proxy.Recheck("alice")
		synctest.Wait()
		require.Equal(t, 5, l.answered(http.StatusForbidden), "%v", l.codes)
		close(l.kcp.released)
		l.running.Wait()
		require.Equal(t, 1, l.kcp.all, "kcp has never had them")
	})
}
