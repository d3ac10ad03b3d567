package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/test/doubles/pgtest"
	"github.com/faroshq/kedge-hub/test/framework"
)

// frozenCopy copies the data of a kcp as a snapshot of its disk has it.
func frozenCopy(t *testing.T, kcp *framework.KCP) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "kcp")
	require.NoError(t, kcp.Signal(syscall.SIGSTOP))
	err := os.CopyFS(dir, os.DirFS(kcp.Dir))
	require.NoError(t, errors.Join(err, kcp.Signal(syscall.SIGCONT)))
	return dir
}

// namesChainsOf waits until kcp has the ends of the audit chains of some replicas.
func namesChainsOf(t *testing.T, kcp *framework.KCP, replicas int) {
	t.Helper()
	path := "jsonpath={.metadata.annotations." + strings.ReplaceAll(v1alpha1.AuditHeadsAnnotation, ".", `\.`) + "}"
	framework.Eventually(t, framework.Long, func() error {
		out, errOut, err := kcp.Kubectl(t, "", "root", "get", "workspaces.tenancy.kcp.io", "kedge", "-o", path)
		return framework.Check(err == nil && strings.Count(out, ":rights:") == replicas, "%s %s", out, errOut)
	})
}

// storesItsEvents waits until a records database has all events of a hub that nobody asks anything.
func storesItsEvents(t *testing.T, h *hub, database string) {
	t.Helper()
	db, err := records.Open(records.Options{URL: database})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	framework.Eventually(t, framework.Long, func() error {
		ends, err := audit.Ends(audit.Options{File: audit.DefaultFile(h.dir)})
		if err != nil {
			return err
		}
		stored, err := db.Heads(t.Context())
		if err != nil {
			return err
		}
		for _, end := range ends {
			if !slices.Contains(stored, end) {
				return fmt.Errorf("%s is not stored: %v", end, stored)
			}
		}
		return nil
	})
}

// TestRestoreExternal_givesNoRightBackOnAnyReplica restores the data of an external kcp behind two hubs. What ended since is in
// the audit files of one of them, and in the records database for the other one, whose disk is lost. One is killed in restore mode.
func TestRestoreExternal_givesNoRightBackOnAnyReplica(t *testing.T) {
	t.Parallel()
	kcp, err := framework.StartKCP(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { kcp.Kill() })
	program, err := framework.Bin("kedge-hub")
	require.NoError(t, err)
	database := pgtest.Records(t)
	start := func(h *hub, flags ...string) *hub {
		shared := []string{"--kcp-kubeconfig", kcp.Kubeconfig, "--personal-orgs=false", "--database", database}
		return launchProgram(t, program, h.dir, h.port, append(shared, flags...)...)
	}
	var hubs []*hub
	for range 2 {
		h := start(&hub{dir: t.TempDir(), port: freePort(t)})
		h.awaitReady(t)
		hubs = append(hubs, h)
	}
	l := newLosses(t, hubs[0])
	cookie, session := signsIn(t, hubs[1], "erin")
	byCookie := framework.Call{Method: http.MethodGet, Path: "/api/users/me", Header: http.Header{"Cookie": {cookie}}}
	hubs[1].Do(t, byCookie, http.StatusOK)
	namesChainsOf(t, kcp, 2)
	l.load(hubs[0])
	at := time.Now().UTC().Format(time.RFC3339)
	saved := frozenCopy(t, kcp)
	wants(t, hubs[1], framework.Call{As: "erin", Method: http.MethodDelete, Path: "/api/users/me/sessions/" + session})
	l.lose(t, hubs[1])

	orders := func(args ...string) (string, error) {
		return restores(t, append([]string{"--external", "--kcp-kubeconfig", kcp.Kubeconfig, "--backup-at", at}, args...)...)
	}
	storesItsEvents(t, hubs[1], database)
	files := []string{"--replay", filepath.Join(hubs[0].dir, "audit"), "--replay-database", "none"}
	all := []string{"--replay", filepath.Join(hubs[0].dir, "audit"), "--replay-database", database}
	out, err := orders(all...)
	require.Error(t, err)
	require.Contains(t, out, "stop all replicas", "hubs serve")
	for _, h := range hubs {
		h.Kill()
	}
	l.loading.Wait()
	require.NoError(t, os.RemoveAll(filepath.Join(hubs[1].dir, "audit")))
	require.NoError(t, kcp.Stop())
	require.NoError(t, os.RemoveAll(kcp.Dir))
	require.NoError(t, os.CopyFS(kcp.Dir, os.DirFS(saved)))
	require.NoError(t, kcp.Start())

	out, err = orders(files...)
	require.Error(t, err, "%s", out)
	require.Contains(t, out, "rights: is missing, with the whole chain")
	require.Contains(t, out, "--accept-lost-history")
	out, err = orders(all...)
	require.NoError(t, err, "%s", out)
	require.Equal(t, 2, strings.Count(out, "its audit log ends at event"), "%s", out)

	flags := []string{"--deletion-grace", "1s", "--expired-workspace-grace", "1s"}
	var ends []func()
	modes := make([]atomic.Bool, len(hubs))
	for i, h := range hubs {
		ends = append(ends, l.knocks(t, h.Client, func(a framework.Answer) {
			if a.Code == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != "" && strings.Contains(string(a.Raw), "restore mode") {
				modes[i].Store(true)
			}
		}))
		hubs[i] = start(h, flags...)
	}
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(strings.Contains(hubs[0].Output.String(), "restore mode: ending"), "%s", hubs[0].Output)
	})
	hubs[0].Kill()
	hubs[0] = start(hubs[0], flags...)
	for i, h := range hubs {
		h.awaitReady(t)
		l.stayLost(t, h)
		h.Do(t, byCookie, http.StatusUnauthorized)
		require.True(t, modes[i].Load(), "hub %d was never in restore mode", i)
		ends[i]()
		l.reported(t, reportOf(t, h))
		held(t, h, 1)
	}
	kcp.Refuses(t, "bob", l.cluster)
	require.Equal(t, http.StatusOK, kcp.Straight(t, "erin", l.cluster, "/api/v1/namespaces"))
	out, err = restores(t, "--report", "--kcp-kubeconfig", kcp.Kubeconfig)
	require.NoError(t, err, "%s", out)
	var r restore.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	l.reported(t, r)
	verified(t, hubs[0].dir)

	// The command finds no socket of a hub in an empty folder.
	l.released(t, hubs[0], func() {
		out, err := restores(t, "--release", "--kcp-kubeconfig", kcp.Kubeconfig, "--data-dir", t.TempDir())
		require.NoError(t, err, "%s", out)
	})
	for _, h := range hubs {
		held(t, h, 0)
	}
	_, err = restores(t, "--report", "--kcp-kubeconfig", kcp.Kubeconfig)
	require.Error(t, err, "the order is removed")
}

// held waits until a hub says whether it holds purges.
func held(t *testing.T, h *hub, value int) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		a, err := (&framework.Client{URL: h.metrics, HTTP: http.DefaultClient}).Try(framework.Call{Method: http.MethodGet})
		held := err == nil && strings.Contains(string(a.Raw), fmt.Sprintf("\nkedge_purges_held %d\n", value))
		return framework.Check(held, "kedge_purges_held is not %d: %v", value, err)
	})
}
