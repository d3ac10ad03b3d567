package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/proxy"
)

const bindingsPath = "/clusters/aaaa/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"

// write sends a write with a body, until ctx ends.
func (l *loaded) write(ctx context.Context, method, target, user string, body io.Reader) {
	r := httptest.NewRequestWithContext(ctx, method, target, body)
	r.Header.Set("Authorization", "Bearer "+user+tokenSuffix)
	l.running.Go(func() {
		w := l.do(r)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.codes = append(l.codes, w.Code)
	})
	synctest.Wait()
}

// The attack: write roles, or bindings to a large one, each of which keeps a core of kcp busy for seconds, with as many
// connections as a client can have, and give them up at once, because kcp does not.
func TestLoad_rolesAndBindingsAreWrittenInTurn(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, method, target, user string
		// flying is the number of requests that kcp has at once, of one binding and three others.
		flying int
	}{
		{"bindings", http.MethodPost, bindingsPath, "alice", 1},
		{"bindings that kcp does not store", http.MethodPost, bindingsPath + "?dryRun=All", "alice", 1},
		{"updates of a binding", http.MethodPut, bindingsPath + "/b", "alice", 1},
		{"patches of a role", http.MethodPatch, strings.Replace(bindingsPath, "bindings", "s", 1) + "/r", "alice", 1},
		{"bindings of another person", http.MethodPost, bindingsPath, "bob", 1},
		{"removals", http.MethodDelete, bindingsPath + "/b", "alice", 4},
		{"other objects", http.MethodPost, "/clusters/aaaa/api/v1/namespaces/n/configmaps", "alice", 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLoaded(t, 1, proxy.LoadLimits{Parallel: 1})
				l.rights.set("bob", false, inWorkspace(v1alpha1.RoleAdmin), adminOf(orgB))
				giveUp, cancel := context.WithCancel(t.Context())
				l.write(giveUp, http.MethodPost, bindingsPath, "alice", strings.NewReader("{}"))
				for range 3 {
					l.write(t.Context(), tc.method, tc.target, tc.user, strings.NewReader("{}"))
				}
				cancel()
				require.Equal(t, tc.flying, l.kcp.has("aaaa"), "kcp still has what its client gave up")
				l.write(t.Context(), http.MethodPost, strings.Replace(bindingsPath, "aaaa", "bbbb", 1), "bob", strings.NewReader("{}"))
				require.Equal(t, 1, l.kcp.has("bbbb"), "those of another payer do not wait")
				close(l.kcp.released)
				l.running.Wait()
				require.Equal(t, 5, l.answered(http.StatusOK), "in turn, all: %v", l.codes)
			})
		})
	}
}

// Nobody holds a turn by sending slowly, and nobody waits for ever.
func TestLoad_rolesAndBindingsDoNotWaitForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoaded(t, 1, proxy.LoadLimits{Parallel: 1})
		slow, rest := io.Pipe()
		l.write(t.Context(), http.MethodPost, bindingsPath, "alice", slow)
		require.Zero(t, l.kcp.has("aaaa"))
		l.write(t.Context(), http.MethodPost, bindingsPath, "alice", strings.NewReader("{}"))
		require.Equal(t, 1, l.kcp.has("aaaa"))
		_, err := fmt.Fprint(rest, "{}")
		require.NoError(t, err)
		require.NoError(t, rest.Close())
		<-time.After(11 * time.Second)
		require.Equal(t, 1, l.answered(http.StatusTooManyRequests))
		require.Equal(t, []string{"role_writes_in_flight"}, l.refused.all())
		close(l.kcp.released)
		l.running.Wait()
		require.Equal(t, 1, l.answered(http.StatusOK))
	})
}

// The attack: large bodies of which kcp makes a hundred times as much, as many as a client can send.
func TestLoad_bodiesThatExpandCountForWhatKcpMakesOfThem(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, target, media string
		size, flying        int
	}{
		{"large definitions", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", 1 << 20, 1},
		{"small definitions", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", 20 << 10, 4},
		{"large schemas", "/apis/apis.kcp.io/v1alpha1/apiresourceschemas", "", 1 << 20, 1},
		{"large objects in YAML", "/api/v1/namespaces/n/configmaps", "application/yaml", 1 << 20, 1},
		{"small objects in YAML", "/api/v1/namespaces/n/configmaps", "application/yaml", 20 << 10, 4},
		{"large objects", "/api/v1/namespaces/n/configmaps", "", 1 << 20, 4},
		{"large roles", strings.TrimPrefix(bindingsPath, "/clusters/aaaa"), "", 1 << 20, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLoaded(t, 1, proxy.LoadLimits{Bytes: 512 * mebibyte, Parallel: 1})
				for range 4 {
					r := withBody(http.MethodPost, "/clusters/aaaa"+tc.target, tc.media, strings.Repeat("x", tc.size), false)
					l.running.Go(func() {
						w := l.do(r)
						l.mu.Lock()
						defer l.mu.Unlock()
						l.codes = append(l.codes, w.Code)
					})
				}
				require.Equal(t, tc.flying, l.kcp.has("aaaa"))
				close(l.kcp.released)
				l.running.Wait()
				require.Equal(t, 4, l.answered(http.StatusOK))
			})
		})
	}
}

// The attack: tables of large objects, in which each column of a definition of the tenant is a copy of the object.
func TestLoad_tablesCountForTheirColumns(t *testing.T) {
	t.Parallel()
	const (
		widgets = "/clusters/aaaa/apis/example.org/v1/namespaces/n/widgets/w"
		table   = "application/json;as=Table;v=v1;g=meta.k8s.io, application/json"
	)
	for _, tc := range []struct {
		name, target, accept string
		flying               int
	}{
		{"tables", widgets, table, 1},
		{"tables in upper case", widgets, strings.ToUpper(table), 1},
		{"objects", widgets, "application/json", 4},
		{"tables with the columns of kcp", "/clusters/aaaa/api/v1/namespaces/n/configmaps/c", table, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLoaded(t, 1, proxy.LoadLimits{Bytes: 512 * mebibyte, Parallel: 1})
				for range 4 {
					r := request(http.MethodGet, tc.target, "alice", "Accept", tc.accept)
					l.running.Go(func() { l.do(r) })
				}
				synctest.Wait()
				require.Equal(t, tc.flying, l.kcp.has("aaaa"))
				close(l.kcp.released)
				l.running.Wait()
			})
		})
	}
}
