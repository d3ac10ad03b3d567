package bootstrap

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"text/template"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/config"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// exportKCP is kcp's APIExport of Workspaces, in its root workspace.
const exportKCP = "tenancy.kcp.io"

// values are the values of the templates in config/kcp.
type values struct {
	Tree            tenancy.Tree
	TenancyIdentity string
	// Resources is spec.resources of the export as JSON.
	Resources string
}

// identity returns the values for this kcp but the resources of the export.
func (b *bootstrapper) identity(ctx context.Context) (values, error) {
	export, err := b.clients.APIExports("root").Get(ctx, exportKCP, metav1.GetOptions{})
	if err != nil {
		return values{}, fmt.Errorf("get kcp's own export tenancy.kcp.io: %w", err)
	}
	if export.Status.IdentityHash == "" {
		return values{}, fmt.Errorf("kcp's own export tenancy.kcp.io has no identity yet")
	}
	return values{Tree: b.tree, TenancyIdentity: export.Status.IdentityHash}, nil
}

// values returns the values for this kcp. It applies the schemas first.
func (b *bootstrapper) values(ctx context.Context) (values, error) {
	v, err := b.identity(ctx)
	if err != nil {
		return values{}, err
	}
	resources, err := b.schemas(ctx)
	if err != nil {
		return values{}, err
	}
	raw, err := json.Marshal(resources)
	if err != nil {
		return values{}, fmt.Errorf("encode the export's resources: %w", err)
	}
	v.Resources = string(raw)
	return v, nil
}

// apply renders a file of config/kcp and applies its documents in a logical cluster.
func (b *bootstrapper) apply(ctx context.Context, cluster string, v values, file string) error {
	documents, err := render(file, v)
	if err != nil {
		return err
	}
	for _, document := range documents {
		if err := b.applyDocument(ctx, cluster, document); err != nil {
			return fmt.Errorf("apply %s in %s: %w", file, cluster, err)
		}
	}
	return nil
}

// applyDocument applies a document, unless kcp holds it as an earlier start has applied it. After its start kcp builds the
// OpenAPI of a logical cluster for the first apply there, which takes longer than everything that is read here.
func (b *bootstrapper) applyDocument(ctx context.Context, cluster string, document []byte) error {
	o, err := kcp.Parse(document)
	if err != nil {
		return err
	}
	// A field that another version has applied and this one does not name is not seen by a comparison.
	sum := sha256.Sum256(document)
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AppliedAnnotation] = hex.EncodeToString(sum[:8])
	o.SetAnnotations(annotations)
	if held, err := b.clients.Held(ctx, cluster, o); err == nil && has(held.Object, o.Object) {
		return nil
	}
	_, err = b.clients.Apply(ctx, cluster, o)
	return err
}

// has reports whether a value has all that is wanted: the same fields, and perhaps others, with the same lists.
func has(held, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		fields, ok := held.(map[string]any)
		for name, value := range wanted {
			if !ok || !has(fields[name], value) {
				return false
			}
		}
		return ok || len(wanted) == 0
	case []any:
		items, ok := held.([]any)
		if !ok || len(items) != len(wanted) {
			return held == nil && len(wanted) == 0
		}
		for i, item := range wanted {
			if !has(items[i], item) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(held, wanted)
	}
}

func render(file string, v values) ([][]byte, error) {
	t, err := template.ParseFS(config.KCP, "kcp/"+file)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", file, err)
	}
	var out bytes.Buffer
	if err := t.Option("missingkey=error").Execute(&out, v); err != nil {
		return nil, fmt.Errorf("fill in %s: %w", file, err)
	}
	return kcp.Documents(out.Bytes()), nil
}

// orgBindings are the bindings of the workspace of an Organization: kcp's tenancy API and the
// hub's.
func orgBindings(v values, providers string) ([]*kcpapisv1alpha2.APIBinding, error) {
	kcps := &kcpapisv1alpha2.APIBinding{}
	kcps.Name = exportKCP
	kcps.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Path: "root", Name: exportKCP}
	kcps.Status.APIExportClusterName = "root"
	ours, err := bindings("binding-tenancy.yaml", v, providers)
	return append([]*kcpapisv1alpha2.APIBinding{kcps}, ours...), err
}

// bindings returns the APIBindings in a file of config/kcp. Their exports are in providers.
func bindings(file string, v values, providers string) (all []*kcpapisv1alpha2.APIBinding, err error) {
	documents, err := render(file, v)
	if err != nil {
		return nil, err
	}
	for _, document := range documents {
		b := &kcpapisv1alpha2.APIBinding{}
		if err := yaml.UnmarshalStrict(document, b); err != nil {
			return nil, fmt.Errorf("parse %s: %w", file, err)
		}
		b.Status.APIExportClusterName = providers
		all = append(all, b)
	}
	return all, nil
}
