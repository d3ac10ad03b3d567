package bootstrap

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"text/template"

	kcpapisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/config"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// exportKCP is kcp's own export of Workspaces, in its root.
const exportKCP = "tenancy.kcp.io"

// values fill the templates of config/kcp in.
type values struct {
	Tree            tenancy.Tree
	TenancyIdentity string
	// Resources is the JSON of the export's resources.
	Resources string
}

// values reads what only this kcp knows, and applies the schemas on the way.
func (b *bootstrapper) values(ctx context.Context) (values, error) {
	export, err := b.clients.APIExports("root").Get(ctx, exportKCP, metav1.GetOptions{})
	if err != nil {
		return values{}, fmt.Errorf("get kcp's own export tenancy.kcp.io: %w", err)
	}
	if export.Status.IdentityHash == "" {
		return values{}, fmt.Errorf("kcp's own export tenancy.kcp.io has no identity yet")
	}
	resources, err := b.schemas(ctx)
	if err != nil {
		return values{}, err
	}
	raw, err := json.Marshal(resources)
	if err != nil {
		return values{}, fmt.Errorf("encode the export's resources: %w", err)
	}
	return values{Tree: b.tree, TenancyIdentity: export.Status.IdentityHash, Resources: string(raw)}, nil
}

// schemas applies the APIResourceSchemas. They are immutable: a change of the
// objects makes a schema of another name.
func (b *bootstrapper) schemas(ctx context.Context) ([]kcpapisv1alpha2.ResourceSchema, error) {
	files, err := fs.Glob(config.Schemas, "schemas/apiresourceschema-*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list schemas: %w", err)
	}
	resources := make([]kcpapisv1alpha2.ResourceSchema, 0, len(files))
	for _, file := range files {
		raw, err := config.Schemas.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		var schema kcpapisv1alpha1.APIResourceSchema
		if err := yaml.UnmarshalStrict(raw, &schema); err != nil {
			return nil, fmt.Errorf("parse %s: %w", file, err)
		}
		if err := b.applyDocument(ctx, b.clusters.Providers, raw); err != nil {
			return nil, fmt.Errorf("schema %s: %w", schema.Name, err)
		}
		resources = append(resources, kcpapisv1alpha2.ResourceSchema{
			Group: schema.Spec.Group, Name: schema.Spec.Names.Plural, Schema: schema.Name,
			Storage: kcpapisv1alpha2.ResourceSchemaStorage{CRD: &kcpapisv1alpha2.ResourceSchemaStorageCRD{}},
		})
	}
	return resources, nil
}

// apply fills a file of config/kcp in and applies its documents in a cluster.
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

func (b *bootstrapper) applyDocument(ctx context.Context, cluster string, document []byte) error {
	o, err := kcp.Parse(document)
	if err != nil {
		return err
	}
	_, err = b.clients.Apply(ctx, cluster, o)
	return err
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

// orgBindings are what the type of an Org's own workspace binds: kcp's API, and the
// tenancy model as the hub's own workspaces have it.
func orgBindings(v values, providers string) ([]*kcpapisv1alpha2.APIBinding, error) {
	kcps := &kcpapisv1alpha2.APIBinding{}
	kcps.Name = exportKCP
	kcps.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Path: "root", Name: exportKCP}
	kcps.Status.APIExportClusterName = "root"
	ours, err := bindings("binding-tenancy.yaml", v, providers)
	return append([]*kcpapisv1alpha2.APIBinding{kcps}, ours...), err
}

// bindings are those in a file of config/kcp, of exports in providers.
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
