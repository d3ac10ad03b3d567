package kcp

import (
	"bytes"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// FieldManager is the hub's name as a server-side applier.
const FieldManager = "kedge-hub"

// resourceOf knows the kinds that Apply takes; a REST mapping would cost a
// discovery of every workspace.
func resourceOf(kind string) (string, bool) {
	resource, ok := map[string]string{
		"APIBinding": "apibindings", "APIExport": "apiexports", "APIResourceSchema": "apiresourceschemas",
		"WorkspaceType": "workspacetypes", "Namespace": "namespaces",
		"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings",
	}[kind]
	return resource, ok
}

// Apply applies one cluster-scoped object, as YAML or JSON, in a logical
// cluster, server-side and by force: what the hub wants there, it owns.
func (c *Clients) Apply(ctx context.Context, cluster string, document []byte) error {
	raw, err := yaml.YAMLToJSON(document)
	if err != nil {
		return fmt.Errorf("parse the object: %w", err)
	}
	var o unstructured.Unstructured
	if err := o.UnmarshalJSON(raw); err != nil {
		return fmt.Errorf("parse the object: %w", err)
	}
	resource, ok := resourceOf(o.GetKind())
	if !ok {
		return fmt.Errorf("objects of kind %s are not applied by the hub", o.GetKind())
	}
	gv, err := schema.ParseGroupVersion(o.GetAPIVersion())
	if err != nil {
		return fmt.Errorf("parse apiVersion: %w", err)
	}
	return c.REST(c.ClusterURL(cluster), gv).Patch(types.ApplyPatchType).
		Resource(resource).Name(o.GetName()).
		Param("fieldManager", FieldManager).Param("force", "true").
		Body(raw).Do(ctx).Error()
}

// Documents splits a YAML stream at its "---" lines and leaves out what holds
// nothing but comments.
func Documents(stream []byte) [][]byte {
	var out [][]byte
	for _, document := range bytes.Split(stream, []byte("\n---\n")) {
		var any map[string]any
		if err := yaml.Unmarshal(document, &any); err != nil || len(any) > 0 {
			out = append(out, document)
		}
	}
	return out
}
