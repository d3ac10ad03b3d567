package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	kcpclients "github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// defaultGrace is the default of --deletion-grace.
const defaultGrace = 720 * time.Hour

// credentialAt returns the request body for a credential, as the kubectl exec plugin
// sends it.
func credentialAt(hub *framework.Hub, cluster string) string {
	return strings.ReplaceAll(framework.ExecCredential(cluster), "{hub}", hub.URL)
}

// age sets the time of a deletion request.
func (p platform) age(t testing.TB, user, org, ws string, at time.Time) {
	t.Helper()
	status := fmt.Appendf(nil, `{"status":{"deletionRequestedAt":%q}}`, at.UTC().Format(time.RFC3339))
	var err error
	switch {
	case user != "":
		_, err = p.Users(p.UsersPath()).Patch(t.Context(), user, types.MergePatchType, status, metav1.PatchOptions{}, "status")
	case ws != "":
		mark := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.DeletionRequestedAtAnnotation, at.UTC().Format(time.RFC3339))
		_, err = p.Workspaces(p.OrgPath(org)).Patch(t.Context(), ws, types.MergePatchType, mark, metav1.PatchOptions{})
	default:
		_, err = p.Organizations(p.OrgsPath()).Patch(t.Context(), org, types.MergePatchType, status, metav1.PatchOptions{}, "status")
	}
	require.NoError(t, err)
}

// over returns a request time at which the grace period has just ended.
func over() time.Time { return time.Now().Add(-defaultGrace - time.Second) }

// gone waits until kcp has no object of that name.
func gone[T kcpclients.Object](t testing.TB, client *kcpclients.Client[T], name string) {
	t.Helper()
	framework.NowAndThen(t, func() error {
		_, err := client.Get(t.Context(), name, metav1.GetOptions{})
		switch {
		case err == nil:
			return fmt.Errorf("%s is still there", name)
		case !apierrors.IsNotFound(err):
			return err
		}
		return nil
	})
}

// orgGone waits until kcp has neither the Organization nor its workspace.
func (p platform) orgGone(t testing.TB, org string) {
	t.Helper()
	gone(t, p.Organizations(p.OrgsPath()), org)
	gone(t, p.Workspaces(p.OrgsPath()), org)
}

// logicalClusters returns the IDs of all logical clusters of kcp, inactive ones included.
func logicalClusters(t testing.TB) map[string]bool {
	t.Helper()
	out, errOut, err := framework.Kubectl(t, "", "--kubeconfig", kcp.Kubeconfig, "--context", "shard-base", "get", "--raw", "/clusters/*/apis/core.kcp.io/v1alpha1/logicalclusters")
	require.NoError(t, err, errOut)
	var list struct {
		Items []struct{ Metadata metav1.ObjectMeta }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	require.NotEmpty(t, list.Items)
	ids := map[string]bool{}
	for _, lc := range list.Items {
		ids[lc.Metadata.Annotations["kcp.io/cluster"]] = true
	}
	return ids
}

// noneLeft waits until kcp has none of the logical clusters.
func noneLeft(t testing.TB, clusters ...string) {
	t.Helper()
	framework.NowAndThen(t, func() error {
		left := logicalClusters(t)
		for _, cluster := range clusters {
			if left[cluster] {
				return fmt.Errorf("the logical cluster %s is left", cluster)
			}
		}
		return nil
	})
}

// auditing sets the file of the audit log.
func auditing(file string) func(*server.Options) {
	return func(o *server.Options) { o.AuditLogFile = file }
}

// purges returns the counts that the audit log has for purged objects, by object name.
func purges(t testing.TB, file string) map[string]map[string]int {
	t.Helper()
	out := map[string]map[string]int{}
	for _, e := range framework.AuditEvents(t, file) {
		if e.Action != "purge" {
			continue
		}
		require.Equal(t, audit.Actor{Kind: audit.ActorHub}, e.Actor)
		what := e.Object
		if what == "" {
			what = e.Workspace
		}
		if what == "" {
			what = e.Org
		}
		require.NotContains(t, out, what, "purged once")
		out[what] = e.Facts.Counts
	}
	return out
}

// pending returns the deletion requests that a platform admin can list, by kind and name.
func pending(t testing.TB, hub *framework.Hub) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	items, _ := hub.Do(t, call{As: "heidi", Method: http.MethodGet, Path: "/api/admin/deletions"}, http.StatusOK).JSON["items"].([]any)
	for _, item := range items {
		d := item.(map[string]any)
		out[fmt.Sprint(d["kind"], "/", d["name"])] = d
	}
	return out
}

// graceOf requires that purgeAt is one grace period after deletionRequestedAt, and
// returns deletionRequestedAt.
func graceOf(t testing.TB, fields map[string]any, grace time.Duration) time.Time {
	t.Helper()
	requested, err := time.Parse(time.RFC3339, fmt.Sprint(fields["deletionRequestedAt"]))
	require.NoError(t, err)
	purge, err := time.Parse(time.RFC3339, fmt.Sprint(fields["purgeAt"]))
	require.NoError(t, err)
	require.Equal(t, grace, purge.Sub(requested))
	return requested
}

// namesIn returns one field of all items of a list.
func namesIn(a framework.Answer, field string) []string {
	var out []string
	items, _ := a.JSON["items"].([]any)
	for _, item := range items {
		m, _ := item.(map[string]any)
		if v, _ := m[field].(string); v != "" {
			out = append(out, v)
		}
	}
	return out
}

// shownAs checks how a hub shows an Org and a Workspace to a person, in REST, in the
// switcher and through the proxy. Each is expected to be either live or deleted.
func shownAs(hub *framework.Hub, as, org, ws, cluster string, orgLives, wsLives bool) error {
	code := func(lives bool, gone int) int {
		if lives {
			return http.StatusOK
		}
		return gone
	}
	// Deleting an Org hides its Workspaces.
	wsLives = wsLives && orgLives
	for what, c := range map[string]struct {
		call
		code int
	}{
		"the Org":       {framework.InOrg(as, http.MethodGet, org, "", nil), code(orgLives, http.StatusNotFound)},
		"its members":   {framework.InOrg(as, http.MethodGet, org, "/members", nil), code(orgLives, http.StatusNotFound)},
		"the Workspace": {framework.InWorkspace(as, http.MethodGet, org, ws, "", nil), code(wsLives, http.StatusNotFound)},
		"a kubeconfig":  {framework.InWorkspace(as, http.MethodGet, org, ws, "/kubeconfig", nil), code(wsLives, http.StatusNotFound)},
		"a credential":  {call{As: as, Method: http.MethodPost, Path: "/api/credentials", Body: credentialAt(hub, cluster)}, code(wsLives, http.StatusForbidden)},
		"the proxy":     {call{As: as, Method: http.MethodGet, Path: "/clusters/" + cluster + "/api/v1/namespaces"}, code(wsLives, http.StatusForbidden)},
	} {
		a, err := hub.Try(c.call)
		if err != nil {
			return err
		}
		if a.Code != c.code {
			return fmt.Errorf("%s for %s: %d instead of %d: %s", what, as, a.Code, c.code, a.Raw)
		}
		if c.code != http.StatusOK && !strings.Contains(a.Text("message"), "deleted") {
			return fmt.Errorf("%s for %s does not say why: %s", what, as, a.Raw)
		}
	}
	lists := map[string]struct {
		call
		field, name string
		want        bool
	}{
		"the list of Orgs":        {call{Path: "/api/orgs"}, "uuid", org, orgLives},
		"the switcher's Orgs":     {call{Path: "/api/users/me/memberships"}, "orgUUID", org, orgLives},
		"the switcher":            {call{Path: "/api/users/me/memberships"}, "workspaceUUID", ws, wsLives},
		"the switcher of deleted": {call{Path: "/api/users/me/memberships?deleted=true"}, "workspaceUUID", ws, true},
	}
	if orgLives {
		for query, want := range map[string]bool{"": wsLives, "?deleted=true": !wsLives} {
			lists["the list of Workspaces"+query] = struct {
				call
				field, name string
				want        bool
			}{call{Path: "/api/orgs/" + org + "/workspaces" + query, Org: org}, "uuid", ws, want}
		}
	}
	for what, l := range lists {
		l.As, l.Method = as, http.MethodGet
		a, err := hub.Try(l.call)
		if err == nil {
			err = framework.Equal(http.StatusOK, a.Code)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if slices.Contains(namesIn(a, l.field), l.name) != l.want {
			return fmt.Errorf("%s of %s: %s", what, as, a.Raw)
		}
	}
	return nil
}

// watchAs opens a watch through a hub and returns a channel that is closed when the watch
// ends.
func watchAs(t testing.TB, hub *framework.Hub, as, cluster string) <-chan struct{} {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hub.URL+"/clusters/"+cluster+"/api/v1/configmaps?watch=true", http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+framework.Token(as))
	response, err := (&http.Client{Transport: hub.HTTP.Transport}).Do(request)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}()
	return ended
}

// unlike returns the difference between two sets of bindings as an error.
func unlike(before, after map[string]string) error {
	if !maps.Equal(before, after) {
		return errors.New(fmt.Sprint("bindings were ", before, " and are ", after))
	}
	return nil
}
