package bootstrap

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	kcpapisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/config"
)

// schemas applies the APIResourceSchemas and returns what the export serves. Schemas are immutable: a change of the API has
// a schema with another name. A resource that a newer hub serves with more fields stays as it is: kcp would
// prune what that hub has written, and an upgrade that is under way or was rolled back would lose it.
func (b *bootstrapper) schemas(ctx context.Context) ([]kcpapisv1alpha2.ResourceSchema, error) {
	files, err := fs.Glob(config.Schemas, "schemas/apiresourceschema-*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list schemas: %w", err)
	}
	served, err := b.served(ctx)
	if err != nil {
		return nil, err
	}
	resources := make([]kcpapisv1alpha2.ResourceSchema, len(files))
	b.chosenSchemas = make([]*kcpapisv1alpha1.APIResourceSchema, len(files))
	applied, inner := errgroup.WithContext(ctx)
	for i, file := range files {
		raw, err := config.Schemas.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		var schema kcpapisv1alpha1.APIResourceSchema
		if err := yaml.UnmarshalStrict(raw, &schema); err != nil {
			return nil, fmt.Errorf("parse %s: %w", file, err)
		}
		applied.Go(func() error {
			if err := b.applyDocument(inner, b.clusters.Providers, raw); err != nil {
				return fmt.Errorf("schema %s: %w", schema.Name, err)
			}
			chosen, err := b.chosen(inner, &schema, served[schema.Spec.Names.Plural])
			if err != nil {
				return err
			}
			b.chosenSchemas[i], resources[i] = chosen, kcpapisv1alpha2.ResourceSchema{
				Group: schema.Spec.Group, Name: schema.Spec.Names.Plural, Schema: chosen.Name,
				Storage: kcpapisv1alpha2.ResourceSchemaStorage{CRD: &kcpapisv1alpha2.ResourceSchemaStorageCRD{}},
			}
			return nil
		})
	}
	return resources, applied.Wait()
}

// served returns the names of the schemas that the export serves now, by resource.
func (b *bootstrapper) served(ctx context.Context) (map[string]string, error) {
	export, err := b.clients.APIExports(b.clusters.Providers).Get(ctx, v1alpha1.GroupName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the export %s: %w", v1alpha1.GroupName, err)
	}
	names := map[string]string{}
	for _, r := range export.Spec.Resources {
		names[r.Name] = r.Schema
	}
	return names, nil
}

// chosen returns own, or the served schema if that is of a newer hub.
func (b *bootstrapper) chosen(ctx context.Context, own *kcpapisv1alpha1.APIResourceSchema, served string) (*kcpapisv1alpha1.APIResourceSchema, error) {
	if served == "" || served == own.Name {
		return own, nil
	}
	held, err := b.clients.APIResourceSchemas(b.clusters.Providers).Get(ctx, served, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return own, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the schema %s: %w", served, err)
	}
	newer, err := extends(held, own)
	if err != nil {
		return nil, err
	}
	if newer {
		return held, nil
	}
	return own, nil
}

// extends reports whether held is not older than own by the date in its name, and has all fields of own, and more.
func extends(held, own *kcpapisv1alpha1.APIResourceSchema) (bool, error) {
	if made(held) < made(own) {
		return false, nil
	}
	fields, err := fieldsOf(held)
	if err != nil {
		return false, err
	}
	mine, err := fieldsOf(own)
	if err != nil {
		return false, err
	}
	for path, kind := range mine {
		// A field whose values have several types has none in the schema.
		if theirs, ok := fields[path]; !ok || theirs != kind {
			return false, nil
		}
	}
	return len(fields) > len(mine), nil
}

// made is the date in the name of a schema, which is v{yymmdd}-{commit}.{resource}.{group}.
func made(s *kcpapisv1alpha1.APIResourceSchema) string {
	date, _, _ := strings.Cut(s.Name, "-")
	return date
}

// fieldsOf returns the types of all fields of a schema, by version and path.
func fieldsOf(s *kcpapisv1alpha1.APIResourceSchema) (map[string]string, error) {
	fields := map[string]string{}
	for _, v := range s.Spec.Versions {
		var root apiextensionsv1.JSONSchemaProps
		if err := json.Unmarshal(v.Schema.Raw, &root); err != nil {
			return nil, fmt.Errorf("schema %s: version %s: %w", s.Name, v.Name, err)
		}
		collect(&root, v.Name, fields)
	}
	return fields, nil
}

func collect(s *apiextensionsv1.JSONSchemaProps, path string, to map[string]string) {
	to[path] = s.Type
	for name, property := range s.Properties {
		collect(&property, path+"."+name, to)
	}
	if s.Items != nil && s.Items.Schema != nil {
		collect(s.Items.Schema, path+"[]", to)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		collect(s.AdditionalProperties.Schema, path+"{}", to)
	}
}
