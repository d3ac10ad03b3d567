package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/kcp/embedded/disk"
	"github.com/faroshq/kedge-hub/test/doubles/disktest"
	"github.com/faroshq/kedge-hub/test/framework"
)

// tenant is an Organization of alice with bob and carol as members, before its store is full.
type tenant struct {
	*hub
	org, ws, cluster string
	// objects is the path of the ConfigMaps of its Workspace.
	objects string
}

func newTenant(t *testing.T, h *hub) *tenant {
	t.Helper()
	s := &tenant{hub: h, org: h.CreateOrg(t, "alice", "Home")}
	for _, person := range []string{"bob", "carol"} {
		h.Do(t, framework.Call{As: person, Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
		h.Do(t, framework.InOrg("alice", http.MethodPost, s.org, "/members", framework.Adding(person, "admin")), http.StatusCreated)
	}
	h.Do(t, framework.Call{As: "dave", Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
	ws := h.CreateWorkspace(t, "alice", s.org, "own")
	s.ws, s.cluster = ws.Text("uuid"), ws.Text("clusterID")
	s.objects = "/clusters/" + s.cluster + "/api/v1/namespaces/default/configmaps"
	h.Do(t, s.creating("held", 2000), http.StatusCreated)
	h.Do(t, s.creating("doomed", 2000), http.StatusCreated)
	for _, person := range []string{"bob", "carol"} {
		h.Enters(t, person, s.cluster)
	}
	return s
}

func (s *tenant) creating(name string, size int) framework.Call {
	return framework.Call{As: "alice", Method: http.MethodPost, Path: s.objects, Body: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]string{"x": strings.Repeat("x", size)},
	}}
}

// create creates an object, and repeats that while the Workspace is being measured or kcp is busy.
func (s *tenant) create(t *testing.T, name string, size int) (a framework.Answer) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() (err error) {
		if a, err = s.Try(s.creating(name, size)); err == nil && a.Code == http.StatusServiceUnavailable {
			err = fmt.Errorf("%s", a.Raw)
		}
		return err
	})
	if a.Code == http.StatusConflict {
		// kcp has carried out the request that it did not answer in time.
		a.Code = http.StatusCreated
	}
	return a
}

// filling is an update of an object, which becomes so large.
func (s *tenant) filling(size int) framework.Call {
	return framework.Call{
		As: "alice", Method: http.MethodPatch, Path: s.objects + "/held", Body: map[string]any{"data": map[string]string{"x": strings.Repeat("y", size)}},
		Header: http.Header{"Content-Type": {"application/merge-patch+json"}},
	}
}

// growth is what makes new objects or larger ones.
func (s *tenant) growth(newcomer string) map[string]framework.Call {
	return map[string]framework.Call{
		"an Org":      {As: "alice", Method: http.MethodPost, Path: "/api/orgs", Body: map[string]string{"displayName": "none"}},
		"a Workspace": framework.InOrg("alice", http.MethodPost, s.org, "/workspaces", map[string]string{"displayName": "none"}),
		"a member":    framework.InOrg("alice", http.MethodPost, s.org, "/members", framework.Adding("dave", "member")),
		"a bot": framework.InWorkspace("alice", http.MethodPost, s.org, s.ws, "/serviceaccounts",
			map[string]string{"displayName": "none", "role": "member"}),
		"a ConfigMap":   s.creating("new", 10),
		"a larger one":  s.filling(9000),
		"a first time":  {As: newcomer, Method: http.MethodGet, Path: "/api/users/me"},
		"a replacement": {As: "alice", Method: http.MethodPut, Path: s.objects + "/absent", Body: s.creating("absent", 10).Body},
	}
}

// changes keep their size.
func (s *tenant) changes() map[string]framework.Call {
	return map[string]framework.Call{
		"a name":           framework.InOrg("alice", http.MethodPatch, s.org, "", map[string]string{"displayName": "Other"}),
		"of the same size": s.filling(2000),
	}
}

func (s *tenant) refuses(t *testing.T, why string, all ...map[string]framework.Call) {
	t.Helper()
	for _, calls := range all {
		for name, call := range calls {
			var a framework.Answer
			// A machine that is busy with other tests lets kcp seem unavailable for a moment.
			framework.Eventually(t, framework.Long, func() (err error) {
				if a, err = s.Try(call); err == nil && a.Code == http.StatusServiceUnavailable {
					err = fmt.Errorf("%s: %s", name, a.Raw)
				}
				return err
			})
			require.Equal(t, http.StatusInsufficientStorage, a.Code, "%s: %s", name, a.Raw)
			require.Contains(t, a.Text("message"), why, name)
			require.Equal(t, "InsufficientStorage", a.Text("reason"), name)
			require.Empty(t, a.Header.Get("Retry-After"), "%s: kubectl would repeat it", name)
		}
	}
}

func (s *tenant) reads(t *testing.T) {
	t.Helper()
	for _, read := range []framework.Call{
		{As: "alice", Method: http.MethodGet, Path: "/api/users/me"},
		framework.InOrg("alice", http.MethodGet, s.org, "", nil),
		{As: "alice", Method: http.MethodGet, Path: s.objects},
	} {
		s.Do(t, read, http.StatusOK)
	}
	// Access reviews and credentials for reads are POST requests.
	stdout, stderr, err := s.Kubectl(t, "alice", s.cluster, "auth", "can-i", "create", "configmaps")
	require.NoError(t, err, "%s%s", stdout, stderr)
	credential := map[string]any{
		"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
		"spec": map[string]any{"interactive": false, "cluster": map[string]any{"server": s.URL + "/clusters/" + s.cluster}},
	}
	s.Do(t, framework.Call{As: "alice", Method: http.MethodPost, Path: "/api/credentials", Body: credential}, http.StatusOK)
	require.Equal(t, "ok", string(s.Do(t, framework.Call{Method: http.MethodGet, Path: "/readyz"}, http.StatusOK).Raw))
	s.Do(t, framework.Call{Method: http.MethodGet, Path: "/livez"}, http.StatusOK)
}

// ends carries out every kind of ending, and waits for what follows.
func (s *tenant) ends(t *testing.T) {
	t.Helper()
	s.Do(t, framework.Call{As: "alice", Method: http.MethodDelete, Path: s.objects + "/doomed"}, http.StatusOK)
	s.Do(t, s.filling(10), http.StatusOK)
	s.Do(t, framework.InOrg("alice", http.MethodPatch, s.org, "/members/carol", framework.WithRole("member")), http.StatusOK, http.StatusAccepted)
	s.Do(t, framework.InOrg("alice", http.MethodDelete, s.org, "/members/bob?cascade=true", nil), http.StatusNoContent, http.StatusAccepted)
	for _, person := range []string{"bob", "carol"} {
		framework.Eventually(t, framework.Long, func() error {
			a, err := s.Try(framework.Call{As: person, Method: http.MethodGet, Path: s.objects})
			if err == nil && a.Code == http.StatusOK {
				err = fmt.Errorf("%s still reads", person)
			}
			return err
		})
	}
	s.Do(t, framework.Call{As: "alice", Method: http.MethodDelete, Path: s.objects}, http.StatusOK)
	s.Do(t, framework.InWorkspace("alice", http.MethodDelete, s.org, s.ws, "", nil), http.StatusOK, http.StatusAccepted)
	s.Do(t, framework.InOrg("alice", http.MethodDelete, s.org, "", nil), http.StatusOK, http.StatusAccepted)
	framework.Eventually(t, framework.Long, func() error {
		a, err := s.Try(framework.Call{As: "alice", Method: http.MethodGet, Path: s.objects})
		if err == nil && a.Code == http.StatusOK {
			err = fmt.Errorf("the deleted Workspace is served: %s", a.Raw)
		}
		return err
	})
}

// floor requires what the readiness probe says about the stores.
func (h *hub) floor(t *testing.T, line, why string) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		details, err := framework.Readiness(h.metrics)
		if err == nil && (!strings.Contains(string(details.Raw), line) || !strings.Contains(string(details.Raw), why)) {
			err = fmt.Errorf("no %q in %s", line, details.Raw)
		}
		return err
	})
}

// compactions is the number of times that the hub has compacted etcd.
func (h *hub) compactions(t *testing.T) (n int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.metrics, http.NoBody)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	for line := range strings.Lines(string(raw)) {
		if count, ok := strings.CutPrefix(line, `kedge_etcd_maintenance_total{action="compact",result="ok"} `); ok {
			n, err = strconv.Atoi(strings.TrimSpace(count))
			require.NoError(t, err)
		}
	}
	return n
}

// A tenant fills etcd. Growth ends for everybody before etcd is full, everything else works, and what
// the tenant deletes is room again without a restart.
func TestFullEtcd_refusesGrowthAndHealsByDeletions(t *testing.T) {
	t.Parallel()
	h := startHub(t, t.TempDir(), freePort(t), "--etcd-quota", "64Mi", "--writes-per-person", "0")
	s := newTenant(t, h)
	made := 0
	for ; made < 100; made++ {
		a := s.create(t, fmt.Sprint("fill", made), 900_000)
		if a.Code == http.StatusInsufficientStorage {
			break
		}
		require.Equal(t, http.StatusCreated, a.Code, "%s", a.Raw)
	}
	// A compaction can make room once more. Three of them leave only what nobody deletes.
	settled := h.compactions(t) + 3
	framework.Eventually(t, framework.Long, func() error {
		if a := s.create(t, fmt.Sprint("fill", made), 900_000); a.Code == http.StatusCreated {
			made++
			settled = h.compactions(t) + 3
		}
		if now := h.compactions(t); now < settled {
			return fmt.Errorf("%d of %d compactions", now, settled)
		}
		return nil
	})
	require.Greater(t, made, 10)
	require.Less(t, made, 80)
	h.floor(t, "[-]etcd not ready: ", "nothing new or larger is written")
	s.refuses(t, "of the hub's etcd is used, and nothing new or larger is written", s.growth("heidi"))
	for name, change := range s.changes() {
		require.Equal(t, http.StatusOK, h.Do(t, change, http.StatusOK).Code, name)
	}
	s.reads(t)
	// A key that is written again and again makes history, and not a full store.
	for n := range 150 {
		hot := s.filling(0)
		hot.Path, hot.Body = s.objects+"/fill0", map[string]any{"data": map[string]string{"x": strings.Repeat(fmt.Sprint(n%10), 900_000)}}
		a, err := h.Try(hot)
		require.NoError(t, err)
		require.Contains(t, []int{http.StatusOK, http.StatusInsufficientStorage, http.StatusServiceUnavailable}, a.Code, "%s", a.Raw)
	}
	for n := range made {
		h.Do(t, framework.Call{As: "alice", Method: http.MethodDelete, Path: s.objects + fmt.Sprint("/fill", n)}, http.StatusOK)
	}
	framework.Eventually(t, framework.Long, func() error {
		a, err := h.Try(s.creating("after", 10))
		if err == nil && a.Code != http.StatusCreated {
			err = fmt.Errorf("%d %s", a.Code, a.Raw)
		}
		return err
	})
	h.floor(t, "[+]etcd ok", "")
	t.Logf("%d objects of 900 KB until growth was refused", made)
	s.ends(t)
	require.NoError(t, h.Stop())
}

// Between the floors of the disk nothing grows, and everything else works.
func TestNearlyFullDisk_refusesGrowthOnly(t *testing.T) {
	t.Parallel()
	dir := disktest.Mount(t, diskSize)
	h := startHub(t, dir, freePort(t))
	s := newTenant(t, h)
	free, size, err := disk.Usage(dir)
	require.NoError(t, err)
	require.Greater(t, free, size/5)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "fill"), bytes.Repeat([]byte{1}, int(free-size*12/100)), 0o600))
	h.floor(t, "[-]disk not ready: ", "nothing new or larger is written")
	s.refuses(t, "of the hub's disk is used, and nothing new or larger is written", s.growth("heidi"))
	for name, change := range s.changes() {
		require.Equal(t, http.StatusOK, h.Do(t, change, http.StatusOK).Code, name)
	}
	s.reads(t)
	s.ends(t)
	require.NoError(t, os.Remove(filepath.Join(dir, "fill")))
	h.floor(t, "[+]disk ok", "")
	require.NotEmpty(t, h.CreateOrg(t, "alice", "Another"))
	require.NoError(t, h.Stop())
}

// A tenant that fills its Workspace fills its Workspace only, and gets room back by deletions.
func TestFullWorkspace_isOfOneTenant(t *testing.T) {
	t.Parallel()
	h := startHub(t, t.TempDir(), freePort(t), "--workspace-bytes", "4Mi")
	s := newTenant(t, h)
	neighbour := h.CreateWorkspace(t, "erin", h.CreateOrg(t, "erin", "Neighbour"), "own").Text("clusterID")
	made := 0
	for ; made < 30; made++ {
		if a := s.create(t, fmt.Sprint("fill", made), 300_000); a.Code != http.StatusCreated {
			require.Equal(t, http.StatusInsufficientStorage, a.Code, "%s", a.Raw)
			require.Contains(t, a.Text("message"), "this workspace stores 4Mi of 4Mi bytes")
			break
		}
	}
	require.Greater(t, made, 8)
	require.Less(t, made, 15)
	view := h.Do(t, framework.InWorkspace("alice", http.MethodGet, s.org, s.ws, "", nil), http.StatusOK)
	stored, ok := view.JSON["bytes"].(map[string]any)
	require.True(t, ok, "%s", view.Raw)
	require.InDelta(t, 4<<20, stored["used"], 600_000)
	require.InDelta(t, 4<<20, stored["limit"], 0)
	h.Do(t, s.filling(2000), http.StatusOK)
	a := h.Do(t, s.filling(400_000), http.StatusInsufficientStorage)
	require.Contains(t, a.Text("message"), "this workspace stores")
	s.reads(t)
	for _, elsewhere := range []framework.Call{
		{As: "erin", Method: http.MethodPost, Path: "/clusters/" + neighbour + "/api/v1/namespaces/default/configmaps", Body: s.creating("x", 10).Body},
		framework.InOrg("alice", http.MethodPatch, s.org, "", map[string]string{"displayName": "Other"}),
	} {
		require.Less(t, h.Do(t, elsewhere, http.StatusOK, http.StatusCreated).Code, 300)
	}
	for n := range made {
		h.Do(t, framework.Call{As: "alice", Method: http.MethodDelete, Path: s.objects + fmt.Sprint("/fill", n)}, http.StatusOK)
	}
	framework.Eventually(t, 4*time.Minute, func() error {
		a, err := h.Try(s.creating("after", 300_000))
		if err == nil && a.Code != http.StatusCreated {
			err = fmt.Errorf("%d %s", a.Code, a.Raw)
		}
		return err
	})
	require.NoError(t, h.Stop())
}
