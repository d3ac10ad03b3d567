package tenancy

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

const widgets = "widgets.widgets.example.com"

// exampleTemplate copies the example template of config/, with the provider in another
// workspace.
func exampleTemplate(t *testing.T, provider string) func(*server.Options) {
	t.Helper()
	from, dir := filepath.Join("..", "..", "..", "config", "example-template", "workspace"), t.TempDir()
	files, err := os.ReadDir(from)
	require.NoError(t, err)
	for _, f := range files {
		raw, err := os.ReadFile(filepath.Join(from, f.Name()))
		require.NoError(t, err)
		raw = []byte(strings.ReplaceAll(string(raw), "root:widgets", provider))
		require.NoError(t, os.WriteFile(filepath.Join(dir, f.Name()), raw, 0o600))
	}
	const own = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: motd}\ndata: {text: hello}\n---\n" +
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: tools}\n---\n" +
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gizmos.example.com}\nspec: {group: example.com, scope: Cluster, " +
		"names: {plural: gizmos, kind: Gizmo}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "own.yaml"), []byte(own), 0o600))
	return func(o *server.Options) { o.WorkspaceTemplate, o.CreateTimeout = dir, 30*time.Second }
}

// provide creates the provider of the example in a workspace of its own.
func provide(t *testing.T, path string) {
	t.Helper()
	name := strings.TrimPrefix(path, "root:")
	_, errOut, err := kcp.Kubectl(t, "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nmetadata: {name: "+name+"}\nspec: {type: {name: universal, path: root}}", "root", "apply", "-f", "-")
	require.NoError(t, err, errOut)
	framework.Eventually(t, framework.Long, func() error {
		_, errOut, err := kcp.Kubectl(t, "", path, "apply", "-f", filepath.Join("..", "..", "..", "config", "example-template", "provider"))
		if err != nil {
			err = errors.New(errOut)
		}
		return err
	})
}

// colored checks that the Workspace has the object of the template with the field of the
// template.
func colored(hub *framework.Hub, t *testing.T, cluster string) error {
	t.Helper()
	out, errOut, err := hub.Kubectl(t, "alice", cluster, "get", widgets, "hello", "-o", "jsonpath={.spec.color}")
	if err != nil {
		return errors.New(errOut)
	}
	if out != "green" {
		return fmt.Errorf("the widget is %q", out)
	}
	return nil
}

// Before a new Workspace is Ready, it has the API of the template's provider, with
// exactly the claims that the template accepts, and the template's object.
func TestTemplate_isThereBeforeTheWorkspaceIsReady(t *testing.T) {
	t.Parallel()
	provider := framework.NewRoot()
	provide(t, provider)
	root := framework.NewRoot()
	hubs := framework.StartHubs(t, kcp, root, 2, exampleTemplate(t, provider))
	org := hubs[0].CreateOrg(t, "alice", "ACME")
	made, orgPath := hubs[0].CreateWorkspace(t, "alice", org, "dev"), root+":orgs:"+org
	cluster := made.Text("clusterID")
	require.NoError(t, colored(hubs[0], t, cluster))
	require.NoError(t, kcp.Prints(t, cluster, "get", "apibinding", "widgets.example.com", "-o",
		`jsonpath={range .spec.permissionClaims[*]}{.resource}={.state}:{.verbs}{end}`, `configmaps=Accepted:["get","list","watch"]`))
	// The provider's other claims are not accepted.
	require.NoError(t, kcp.Prints(t, cluster, "get", "apibinding", "widgets.example.com", "-o",
		`jsonpath={.status.exportPermissionClaims[*].resource}/{.status.appliedPermissionClaims[*].resource}`, "configmaps secrets/configmaps"))
	for i, hub := range hubs {
		for name, damage := range map[string]func() (stdout, stderr string, err error){
			"altered by a tenant": func() (string, string, error) {
				return hub.Kubectl(t, "alice", cluster, "patch", widgets, "hello", "--type=merge", "-p", `{"spec":{"color":"red"}}`)
			},
			"deleted by a tenant": func() (string, string, error) {
				return hub.Kubectl(t, "alice", cluster, "delete", widgets, "hello")
			},
			"deleted with all others by a tenant": func() (string, string, error) {
				return hub.Kubectl(t, "alice", cluster, "delete", widgets, "--all")
			},
			"gone with its API, unbound by a tenant": func() (string, string, error) {
				return hub.Kubectl(t, "alice", cluster, "delete", "apibinding", "widgets.example.com")
			},
		} {
			_, errOut, err := damage()
			require.NoError(t, err, "%s: %s", name, errOut)
			if !strings.HasPrefix(name, "gone with its API") {
				// The hub applies objects of a bound API again every nine minutes.
				_, errOut, err = kcp.Kubectl(t, "", orgPath, "annotate", "workspaces.tenancy.kcp.io", made.Text("uuid"), v1alpha1.OperationAnnotation+"="+v1alpha1.OperationReconcile)
				require.NoError(t, err, "%s: %s", name, errOut)
			}
			framework.Eventually(t, framework.Long, func() error {
				if err := colored(hub, t, cluster); err != nil {
					return fmt.Errorf("%s, hub %d: %w", name, i, err)
				}
				return nil
			})
		}
	}
	// The policy keeps tenants from objects of kcp's own kinds, and lets them have others.
	for _, args := range []string{
		`patch configmap motd --type=merge -p {"data":{"text":"bye"}}`, "label configmap motd mine=yes", "label configmap motd " + v1alpha1.TemplateLabel + "-",
		"delete configmap motd", "delete namespace tools", "label namespace tools mine=yes", "delete crd gizmos.example.com",
		`replace --raw /api/v1/namespaces/default/configmaps/motd -f -`, "delete configmaps --all",
	} {
		_, errOut, err := framework.Kubectl(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"motd","namespace":"default"}}`, append([]string{
			"--server", hubs[0].URL + "/clusters/" + cluster, "--certificate-authority", hubs[0].CA, "--token", framework.Token("alice"),
		}, strings.Fields(args)...)...)
		require.Error(t, err, args)
		require.Contains(t, errOut, "the hub keeps this object", args)
	}
	require.NoError(t, kcp.Prints(t, cluster, "get", "configmap", "motd", "-o", "jsonpath={.data.text}", "hello"))
	for _, args := range []string{"create configmap mine", "delete configmap mine", "create configmap other -n tools"} {
		_, errOut, err := hubs[0].Kubectl(t, "alice", cluster, strings.Fields(args)...)
		require.NoError(t, err, errOut)
	}
	// A tenant may change fields of others that the template does not set.
	_, errOut, err := hubs[0].Kubectl(t, "alice", cluster, "label", widgets, "hello", "mine=yes")
	require.NoError(t, err, errOut)
	framework.Eventually(t, framework.Long, func() error {
		return kcp.Prints(t, cluster, "get", widgets, "hello", "-o", "jsonpath={.metadata.labels.mine} {.spec.color}", "yes green")
	})
}

func TestTemplate_reportsWhatIsBrokenAndHealsWhenFixed(t *testing.T) {
	t.Parallel()
	provider := framework.NewRoot()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), exampleTemplate(t, provider))
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.Do(t, call{
		As: "alice", Method: http.MethodPost, Path: "/api/orgs/" + org + "/workspaces", Org: org, Body: map[string]string{"displayName": "dev"},
		Header: http.Header{"Prefer": {"respond-async"}},
	}, http.StatusAccepted)
	read := call{As: "alice", Method: http.MethodGet, Path: "/api/orgs/" + org + "/workspaces/" + made.Text("uuid"), Org: org, Workspace: made.Text("uuid")}
	framework.Eventually(t, framework.Long, func() error {
		a, err := hub.Try(read)
		if err != nil {
			return err
		}
		if a.Text("phase") == "Ready" {
			return errors.New("it is Ready without what the template asks for")
		}
		if !strings.Contains(string(a.Raw), "is there an APIExport widgets.example.com in "+provider) {
			return fmt.Errorf("nobody is told: %s", a.Raw)
		}
		return nil
	})
	provide(t, provider)
	var cluster string
	framework.Eventually(t, framework.Long, func() error {
		a, err := hub.Try(read)
		if err == nil && a.Text("phase") != "Ready" {
			err = fmt.Errorf("it is %s: %s", a.Text("phase"), a.Raw)
		}
		cluster = a.Text("clusterID")
		return err
	})
	require.NoError(t, colored(hub, t, cluster))
}
