package tenancy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	rules "github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// withSpares keeps as many spare Organizations, and spare Workspaces in each Organization.
func withSpares(orgs, workspaces int) func(*server.Options) {
	return func(o *server.Options) { o.Spares.Organizations, o.Spares.Workspaces = orgs, workspaces }
}

// spareOrgs waits until there are exactly so many spare Organizations, each with a whole Workspace, and
// all have passed the check. It returns the Workspaces by the names of the Organizations.
func spareOrgs(t testing.TB, p framework.Platform, n int, check func(rules.Spare) error) (orgs []rules.Spare, children map[string]rules.Spare) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() (err error) {
		children = map[string]rules.Spare{}
		if orgs, err = framework.SparesIn(t.Context(), p.Clients, p.OrgsPath()); err != nil || len(orgs) != n {
			return fmt.Errorf("%d spares: %w", len(orgs), err)
		}
		for _, o := range orgs {
			if !o.KCPReady {
				return fmt.Errorf("%s is not ready", o.Name)
			}
			inside, err := framework.SparesIn(t.Context(), p.Clients, o.ClusterID)
			if err != nil || len(inside) != 1 || !inside[0].Whole {
				return fmt.Errorf("%s has %v: %w", o.Name, inside, err)
			}
			if err := check(o); err != nil {
				return err
			}
			children[o.Name] = inside[0]
		}
		return nil
	})
	return orgs, children
}

func anySpare(rules.Spare) error { return nil }

// metric returns the value of a series.
func metric(t testing.TB, hub *framework.Hub, series string) string {
	t.Helper()
	response, err := http.Get(hub.Metrics)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	for line := range bytes.Lines(raw) {
		if value, ok := bytes.CutPrefix(line, []byte(series+" ")); ok {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}

// Whatever people ask, a spare is as unknown as what does not exist, and kcp itself gives them nothing in it.
func TestSpares_areNobodysAndCannotBeSeen(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root, withSpares(1, 1), func(o *server.Options) { o.AdminUsers = []string{"carol"} })
	p := kcp.Platform(t, root)
	framework.SignUp(t, hub, "alice", "bob", "carol")
	orgs, children := spareOrgs(t, p, 1, anySpare)
	org, child := orgs[0], children[orgs[0].Name]

	for _, s := range []rules.Spare{org, child} {
		require.NotContains(t, hub.Log.String(), s.Name, "no audit event is about a spare")
	}

	for _, as := range []string{"alice", "carol"} {
		for spare, unknown := range map[string]string{
			org.ClusterID:                          "1a2b3c4d5e6f7g8h",
			child.ClusterID:                        "1a2b3c4d5e6f7g8h",
			p.OrgPath(org.Name):                    p.OrgPath(uuid.NewString()),
			p.OrgPath(org.Name) + ":" + child.Name: p.OrgPath(uuid.NewString()) + ":" + uuid.NewString(),
		} {
			var answers []framework.Answer
			for _, cluster := range []string{spare, unknown} {
				a, err := hub.Try(call{As: as, Method: http.MethodGet, Path: "/clusters/" + cluster + "/api/v1/namespaces"})
				require.NoError(t, err)
				answers = append(answers, a)
			}
			require.Contains(t, []int{http.StatusForbidden, http.StatusNotFound}, answers[0].Code, "%s as %s: %s", spare, as, answers[0].Raw)
			require.Equal(t, answers[1].Code, answers[0].Code, spare)
			require.Equal(t, answers[1].Text("message"), answers[0].Text("message"), spare)
		}
		for _, path := range []string{"", "/workspaces", "/members"} {
			spare := hub.Do(t, call{As: as, Method: http.MethodGet, Path: "/api/orgs/" + org.Name + path, Org: org.Name}, http.StatusForbidden)
			none := uuid.NewString()
			unknown := hub.Do(t, call{As: as, Method: http.MethodGet, Path: "/api/orgs/" + none + path, Org: none}, http.StatusForbidden)
			require.Equal(t, unknown.Text("message"), spare.Text("message"))
		}
		within := call{As: as, Method: http.MethodGet, Path: "/api/orgs/" + org.Name + "/workspaces/" + child.Name, Org: org.Name, Workspace: child.Name}
		hub.Do(t, within, http.StatusForbidden)
		require.Empty(t, hub.Do(t, call{As: as, Method: http.MethodGet, Path: "/api/orgs"}, http.StatusOK).JSON["items"])
		require.Equal(t, http.StatusForbidden, kcp.Straight(t, as, child.ClusterID, "/api/v1/namespaces"))
		require.Equal(t, http.StatusForbidden, kcp.Straight(t, as, org.ClusterID, "/apis/tenancy.kedge.faros.sh/v1alpha1/memberships"))
	}
	require.Empty(t, hub.Do(t, call{As: "carol", Method: http.MethodGet, Path: "/api/admin/orgs"}, http.StatusOK).JSON["items"])
	held, err := p.MembershipsOf(t, org.Name)
	require.NoError(t, err)
	require.Empty(t, held)
	for series, want := range map[string]string{
		`kedge_spares{kind="organization",state="ready"}`: "1", `kedge_spares{kind="workspace",state="ready"}`: "1",
		`kedge_organizations{phase="Ready"}`: "0", `kedge_organizations{phase="Progressing"}`: "0",
		`kedge_workspaces{phase="Ready"}`: "0", `kedge_workspaces{phase="Progressing"}`: "0",
	} {
		require.Equal(t, want, metric(t, hub, series), series)
	}
}

// A hub with another template, and one that keeps none, throw the spares away that the one before made.
func TestSpares_madeOtherwiseAreThrownAway(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	p := kcp.Platform(t, root)
	hub := framework.StartHub(t, kcp, root, withSpares(1, 1))
	before, _ := spareOrgs(t, p, 1, anySpare)
	hub.Stop(t)

	template := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(template, "motd.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: motd}\ndata: {text: hello}\n"), 0o600))
	hub = framework.StartHub(t, kcp, root, withSpares(1, 1), func(o *server.Options) { o.WorkspaceTemplate = template })
	after, children := spareOrgs(t, p, 1, func(s rules.Spare) error {
		return framework.Check(s.Name != before[0].Name, "the old one is there")
	})
	require.NotEqual(t, before[0].Hash, after[0].Hash)
	require.NoError(t, kcp.Prints(t, children[after[0].Name].ClusterID, "get", "configmap", "motd", "-o", "jsonpath={.data.text}", "hello"))
	require.Equal(t, "1", metric(t, hub, `kedge_spares_discarded_total{reason="outdated"}`))
	hub.Stop(t)

	framework.StartHub(t, kcp, root)
	spareOrgs(t, p, 0, anySpare)
}
