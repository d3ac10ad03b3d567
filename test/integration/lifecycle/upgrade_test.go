package lifecycle

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	kcpapisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// A hub that starts while an upgrade is under way, or after it was rolled back, keeps what the newer hub has written: were
// the export to serve the older schema again, the next write would prune it.
func TestUpgrade_anOlderHubKeepsTheFieldsOfANewerOne(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	p := newPlatform(t, root)
	org := hub.CreateOrg(t, "alice", "ACME")
	hub.Stop(t)

	providers, newer := root+":providers", "v991231-abcdef0.organizations."+v1alpha1.GroupName
	export, err := p.APIExports(providers).Get(t.Context(), tenancy.ExportTenancy, metav1.GetOptions{})
	require.NoError(t, err)
	resources := export.Spec.Resources
	for i, r := range resources {
		if r.Name != "organizations" {
			continue
		}
		own, err := p.APIResourceSchemas(providers).Get(t.Context(), r.Schema, metav1.GetOptions{})
		require.NoError(t, err)
		made := &kcpapisv1alpha1.APIResourceSchema{ObjectMeta: metav1.ObjectMeta{Name: newer}, Spec: own.Spec}
		var fields apiextensionsv1.JSONSchemaProps
		require.NoError(t, json.Unmarshal(made.Spec.Versions[0].Schema.Raw, &fields))
		fields.Properties["spec"].Properties["later"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		made.Spec.Versions[0].Schema.Raw, err = json.Marshal(fields)
		require.NoError(t, err)
		_, err = p.APIResourceSchemas(providers).Create(t.Context(), made, metav1.CreateOptions{})
		require.NoError(t, err)
		resources[i].Schema = newer
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"resources": resources}})
	require.NoError(t, err)
	_, err = p.APIExports(providers).Patch(t.Context(), tenancy.ExportTenancy, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)

	organizations := p.Organizations(p.OrgsPath())
	later := func() error {
		raw, err := organizations.GetClient().Get().Resource("organizations").Name(org).DoRaw(t.Context())
		if err != nil {
			return err
		}
		var o struct {
			Spec struct {
				Later string `json:"later"`
			} `json:"spec"`
		}
		require.NoError(t, json.Unmarshal(raw, &o))
		return framework.Check(o.Spec.Later == "kept", "spec.later is %q", o.Spec.Later)
	}
	framework.Eventually(t, framework.Long, func() error {
		if _, err := organizations.Patch(t.Context(), org, types.MergePatchType, []byte(`{"spec":{"later":"kept"}}`), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("write as the newer hub: %w", err)
		}
		return later()
	})

	hub = framework.StartHub(t, kcp, root)
	renamed := hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "", map[string]string{"displayName": "ACME Inc."}), http.StatusOK)
	require.Equal(t, "ACME Inc.", renamed.Text("displayName"))
	require.NoError(t, later())
	export, err = p.APIExports(providers).Get(t.Context(), tenancy.ExportTenancy, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, resources, export.Spec.Resources)
}
