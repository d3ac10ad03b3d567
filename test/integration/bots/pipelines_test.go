package bots

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/doubles/oidctest"
	"github.com/faroshq/kedge-hub/test/framework"
)

// gitlabJob returns an ID token with the claims that GitLab publishes.
func (c ci) gitlabJob(idp *oidctest.Provider, change oidctest.Claims) string {
	claims := oidctest.Claims{
		"jti": framework.NewRoot(), "sub": "project_path:octo/app:ref_type:branch:ref:main", "aud": c.audience,
		"namespace_id": "72", "namespace_path": "octo", "project_id": "20", "project_path": "octo/app", "user_id": "1", "user_login": "sam", "user_email": "sam@example.com",
		"pipeline_id": "574", "pipeline_source": "push", "job_id": "302", "ref": "main", "ref_type": "branch", "ref_path": "refs/heads/main", "ref_protected": "true",
		"environment": "production", "environment_protected": "true", "deployment_tier": "production", "runner_id": 1, "runner_environment": "self-hosted",
		"sha": "714a629c0b401fdce83e847fc9589983fc6f46bc", "ci_config_ref_uri": "gitlab.example.com/octo/app//.gitlab-ci.yml@refs/heads/main",
		"preferred_username": nil, "name": nil, "email": nil, "email_verified": nil, "nbf": time.Now().Add(-time.Minute).Unix(),
	}
	maps.Copy(claims, change)
	return idp.Token(claims)
}

// judgesGitLab presents jobs of the GitLab, right and wrong, and lets its keys rotate and its servers fail.
func (c ci) judgesGitLab(t *testing.T) {
	t.Helper()
	claims := map[string]string{"project_path": "octo/app", "project_id": "20", "environment": "production", "ref_protected": "true"}
	body := map[string]any{"issuer": c.gitlab.URL(), "audience": c.audience, "claims": claims}
	c.hub.Do(t, c.call("alice", http.MethodPost, "/serviceaccounts/"+c.bot+"/trust", body), http.StatusCreated)
	given := func(what, job string, code int) {
		t.Helper()
		a := c.exchange(t, c.hub, c.bot, job)
		require.Equal(t, code, a.Code, "%s: %s", what, a.Raw)
	}
	given("the control", c.gitlabJob(c.gitlab, nil), http.StatusOK)
	for what, job := range map[string]string{
		"a merge request":        c.gitlabJob(c.gitlab, oidctest.Claims{"pipeline_source": "merge_request_event"}),
		"another project":        c.gitlabJob(c.gitlab, oidctest.Claims{"project_id": "21", "project_path": "octo/other"}),
		"a new one of its name":  c.gitlabJob(c.gitlab, oidctest.Claims{"project_id": "21"}),
		"another environment":    c.gitlabJob(c.gitlab, oidctest.Claims{"environment": "review"}),
		"no environment":         c.gitlabJob(c.gitlab, oidctest.Claims{"environment": nil}),
		"not yet valid":          c.gitlabJob(c.gitlab, oidctest.Claims{"nbf": time.Now().Add(5 * time.Minute).Unix()}),
		"a branch for everybody": c.gitlabJob(c.gitlab, oidctest.Claims{"ref_protected": "false"}),
		"another audience":       c.gitlabJob(c.gitlab, oidctest.Claims{"aud": "https://gitlab.example.com"}),
		"expired":                c.gitlabJob(c.gitlab, oidctest.Claims{"exp": time.Now().Add(-time.Second).Unix()}),
		"of the other issuer":    c.gitlabJob(c.idp, nil),
	} {
		given(what, job, http.StatusBadRequest)
	}

	c.gitlab.SetDown(true)
	given("known keys go on while the issuer is down", c.gitlabJob(c.gitlab, nil), http.StatusOK)
	c.gitlab.Rotate()
	given("a new key cannot be read", c.gitlabJob(c.gitlab, nil), http.StatusServiceUnavailable)
	c.gitlab.SetDown(false)
	framework.Eventually(t, framework.Long, func() error {
		a := c.exchange(t, c.hub, c.bot, c.gitlabJob(c.gitlab, nil))
		return framework.Check(a.Code == http.StatusOK, "%d %s", a.Code, a.Raw)
	})
}

// runsPipeline does in a script what a person and the jobs of their project do.
func (c ci) runsPipeline(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "token"), []byte(framework.Token("alice")))
	write(t, filepath.Join(dir, "ca.crt"), c.ca(t))
	write(t, filepath.Join(dir, "manifest.json"), []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"built"}}`))
	script := `
kedge login --server "$HUB" --ca-file ca.crt --token-file token --profile person
kedge orgs use "$ORG"
kedge workspaces create --ttl 8h Preview -o json > workspace
kedge bots create Preview -o name > bot
kedge bots trust add "$(cat bot)" --issuer "$ISSUER" --claim project_id=20 --claim ref=main --audience "$HUB"
kedge login --ci --server "$HUB" --ca-file ca.crt --bot "$(cat bot)" --profile job
kedge kubeconfig > kubeconfig
kubectl --kubeconfig kubeconfig apply -f manifest.json
kedge bots tokens rotate --grace 0s
kubectl --kubeconfig kubeconfig get configmap built
kedge --profile person bots tokens list "$(cat bot)"
kedge --profile person workspaces list
`
	out, err := c.types(t, dir, script, "ORG="+c.org, "ISSUER="+c.gitlab.URL(), "KEDGE_ID_TOKEN="+c.gitlabJob(c.gitlab, nil))
	require.NoError(t, err, out)
	for _, said := range []string{"configmap/built created", "Replaced token", "octo/app", "ends in 7 hours", "set-expiry"} {
		require.Contains(t, out, said)
	}
	require.NotContains(t, out, "eyJ", "no token is shown")
	require.NotContains(t, out, framework.Token("alice"))
	raw, err := os.ReadFile(filepath.Join(dir, "workspace"))
	require.NoError(t, err)
	var made struct {
		UUID      string
		ClusterID string
		ExpiresAt time.Time
	}
	require.NoError(t, json.Unmarshal(raw, &made))
	require.InDelta(t, 8*time.Hour, time.Until(made.ExpiresAt), float64(time.Minute))

	// What it all was for ends by itself.
	preview := c.scene
	preview.ws, preview.cluster = made.UUID, made.ClusterID
	end := preview.endsIn(t, 2*time.Second)
	framework.Eventually(t, framework.Long, func() error {
		out, err := c.types(t, dir, "kubectl --kubeconfig kubeconfig get configmap built")
		return framework.Check(err != nil && strings.Contains(out, "was over at "+end), "%v %s", err, out)
	})
}

// endsIn gives the Workspace an end that is nearer than people may give it, and returns it.
func (s scene) endsIn(t testing.TB, in time.Duration) string {
	t.Helper()
	end := time.Now().Add(in).UTC().Truncate(time.Second).Format(time.RFC3339)
	patch := `{"metadata":{"annotations":{"` + v1alpha1.ExpiresAtAnnotation + `":"` + end + `"}}}`
	_, err := s.Workspaces(s.OrgPath(s.org)).Patch(t.Context(), s.ws, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
	return end
}

// roleLowered lowers the role of the bot while watches of a job are open on two hubs.
func (c ci) roleLowered(t *testing.T, other *framework.Hub, secret string) {
	t.Helper()
	watch, elsewhere := c.watches(t, c.hub, secret), c.watches(t, other, secret)
	began := time.Now()
	c.hub.Do(t, c.call("alice", http.MethodPatch, "/serviceaccounts/"+c.bot, `{"role":"viewer"}`), http.StatusOK)
	c.cut(t, watch, began)
	c.cut(t, elsewhere, began)
	c.works(t, other, secret)
	write := c.as(t, other, secret, http.MethodPost, configMaps, `{"metadata":{"name":"late"}}`)
	require.Equal(t, http.StatusForbidden, write.Code, "%s", write.Raw)
}

// workspaceEnds lets the time of the Workspace be over while watches of a job are open on two hubs.
func (c ci) workspaceEnds(t *testing.T, other *framework.Hub, secret string) {
	t.Helper()
	watch, elsewhere := c.watches(t, c.hub, secret), c.watches(t, other, secret)
	end, err := time.Parse(time.RFC3339, c.endsIn(t, 4*time.Second))
	require.NoError(t, err)
	for _, ended := range []<-chan time.Time{watch, elsewhere} {
		select {
		case at := <-ended:
			require.False(t, at.Before(end), "%s early", end.Sub(at))
			require.WithinDuration(t, end, at, time.Second)
		case <-time.After(framework.Long):
			require.Fail(t, "the watch is still open")
		}
	}
	for _, hub := range []*framework.Hub{c.hub, other} {
		c.refused(t, hub, secret, http.StatusForbidden, time.Now())
		gone := hub.Do(t, c.call("alice", http.MethodGet, "", nil), http.StatusNotFound)
		require.Contains(t, string(gone.Raw), "was over at "+end.Format(time.RFC3339))
	}
	require.Equal(t, http.StatusBadRequest, c.exchange(t, other, c.bot, c.job(nil)).Code, "and no job gets in")
	framework.Eventually(t, framework.Long, func() error {
		ws := c.WorkspacesOf(t, c.org)[c.ws]
		return framework.Check(ws.Annotations[v1alpha1.DeletionRequestedAtAnnotation] == end.Format(time.RFC3339), "%v", ws.Annotations)
	})
	back := c.hub.Do(t, c.call("alice", http.MethodPost, "/undelete", nil), http.StatusOK, http.StatusAccepted)
	require.Empty(t, back.Text("expiresAt"), "an undelete takes the time off")
	c.works(t, c.hub, secret)
}
