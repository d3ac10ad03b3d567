package lifecycle

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	kcpapisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
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

	resources := servesSchema(t, p, "v991231-abcdef0", "organizations", func(spec map[string]apiextensionsv1.JSONSchemaProps) {
		spec["later"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	})

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
	export, err := p.APIExports(root+":providers").Get(t.Context(), tenancy.ExportTenancy, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, resources, export.Spec.Resources)
}

// servesSchema has the export serve a kind as another hub does, with the fields of spec that change makes, and returns
// the resources of the export.
func servesSchema(
	t *testing.T, p platform, version, resource string, change func(spec map[string]apiextensionsv1.JSONSchemaProps),
) []kcpapisv1alpha2.ResourceSchema {
	t.Helper()
	providers := p.Root + ":providers"
	export, err := p.APIExports(providers).Get(t.Context(), tenancy.ExportTenancy, metav1.GetOptions{})
	require.NoError(t, err)
	resources := export.Spec.Resources
	for i, r := range resources {
		if r.Name != resource {
			continue
		}
		own, err := p.APIResourceSchemas(providers).Get(t.Context(), r.Schema, metav1.GetOptions{})
		require.NoError(t, err)
		made := &kcpapisv1alpha1.APIResourceSchema{ObjectMeta: metav1.ObjectMeta{Name: version + "." + resource + "." + v1alpha1.GroupName}, Spec: own.Spec}
		var fields apiextensionsv1.JSONSchemaProps
		require.NoError(t, json.Unmarshal(made.Spec.Versions[0].Schema.Raw, &fields))
		change(fields.Properties["spec"].Properties)
		made.Spec.Versions[0].Schema.Raw, err = json.Marshal(fields)
		require.NoError(t, err)
		_, err = p.APIResourceSchemas(providers).Create(t.Context(), made, metav1.CreateOptions{})
		require.NoError(t, err)
		resources[i].Schema = made.Name
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"resources": resources}})
	require.NoError(t, err)
	_, err = p.APIExports(providers).Patch(t.Context(), tenancy.ExportTenancy, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	return resources
}

// A hub that is upgraded reads its new fields from the first moment on: the watches that it begins with would prune them
// for as long as they last, were they older than the schemas that it gives to kcp.
func TestUpgrade_aNewerHubReadsItsNewFieldsAtOnce(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	p := newPlatform(t, root)
	org := hub.CreateOrg(t, "alice", "ACME")
	framework.SignUp(t, hub, "bob")
	hub.Stop(t)
	for _, resource := range []string{"users", "organizations"} {
		servesSchema(t, p, "v260101-abcdef0", resource, func(spec map[string]apiextensionsv1.JSONSchemaProps) { delete(spec, "groups") })
	}
	// kcp serves what the older hub knows.
	framework.Eventually(t, framework.Long, func() error {
		raw, err := p.Users(p.UsersPath()).GetClient().Get().Resource("users").Name("bob").DoRaw(t.Context())
		return framework.Check(err == nil && !strings.Contains(string(raw), `"hashes"`), "%s: %v", raw, err)
	})

	hub = framework.StartHub(t, kcp, root)
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/groups", map[string]string{"group": "dev", "role": "member"}), http.StatusCreated)
	framework.Eventually(t, framework.Long, func() error {
		a, err := hub.Try(framework.InOrg("bob", http.MethodGet, org, "", nil))
		return framework.Check(err == nil && a.Code == http.StatusOK, "the group does not let bob in: %d %v", a.Code, err)
	})
}
