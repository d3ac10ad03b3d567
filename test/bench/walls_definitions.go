package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/test/framework"
)

// createDefinition creates a CustomResourceDefinition of a name that none had.
func createDefinition(s *flooder, stream, turn int) framework.Call {
	kind := fmt.Sprintf("Thing%dx%d", stream, turn)
	plural := strings.ToLower(kind) + "s"
	schema := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return s.posting("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".example.org"},
		"spec": map[string]any{
			"group": "example.org", "scope": "Cluster",
			"names": map[string]any{"plural": plural, "singular": strings.ToLower(kind), "kind": kind},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": schema},
			}},
		},
	})
}

// exported is the APIExport of the example, which prepareExport makes in the Workspace of the flooder.
const exported = "widgets.example.org"

// prepareExport makes an APIExport that the flooder may bind, as an entry of the catalog lets them.
func prepareExport(s *flooder) error {
	config, err := clientcmd.LoadFromFile(s.Kubeconfig)
	if err != nil {
		return err
	}
	admin, err := clientcmd.NewNonInteractiveClientConfig(*config, "base", nil, nil).ClientConfig()
	if err != nil {
		return err
	}
	clients, err := kcp.NewClients(admin, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := framework.ApplyProvider(ctx, clients, s.Workspace.ClusterID); err != nil {
		return err
	}
	const rbac = "rbac.authorization.k8s.io"
	for _, object := range []map[string]any{
		{
			"apiVersion": rbac + "/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "bind"},
			"rules": []any{map[string]any{
				"apiGroups": []any{"apis.kcp.io"}, "resources": []any{"apiexports"}, "resourceNames": []any{exported}, "verbs": []any{"bind"},
			}},
		},
		{
			"apiVersion": rbac + "/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "bind"},
			"roleRef":  map[string]any{"apiGroup": rbac, "kind": "ClusterRole", "name": "bind"},
			"subjects": []any{map[string]any{"apiGroup": rbac, "kind": "User", "name": flooderName}},
		},
	} {
		if err := framework.Wait(framework.Long, func() error {
			_, err := clients.Apply(ctx, s.Workspace.ClusterID, &unstructured.Unstructured{Object: object})
			return err
		}); err != nil {
			return err
		}
	}
	// kcp's authorizer learns of the role a moment later.
	trial := bindExport(s, 0, 0)
	trial.Path += "?dryRun=All"
	return s.establish(trial)
}

// bindExport binds the export once more. kcp refuses the names of its resources from the second on, in the status.
func bindExport(s *flooder, _, _ int) framework.Call {
	return s.posting("/apis/apis.kcp.io/v1alpha2/apibindings", `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIBinding",`+
		`"metadata":{"generateName":"flood-"},"spec":{"reference":{"export":{"name":"`+exported+`"}}}}`)
}
