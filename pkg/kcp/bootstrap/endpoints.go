package bootstrap

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	kcpapisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	"go.uber.org/zap"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/log"
)

const (
	// answers is for how long an endpoint of the export may give no answer. That of a shard which is down gives none.
	answers = 5 * time.Second
	// followed is for how long an endpoint may lag behind the export. After that the hub starts all the same: without its
	// newest fields it is better than no hub.
	followed = time.Minute
)

// follows waits until the virtual workspaces of the export serve its schemas. Until then they prune the fields that
// are new, and a watch that has begun before prunes them for as long as it lasts.
func (b *bootstrapper) follows(ctx context.Context) error {
	began, lag := time.Now(), ""
	err := wait.PollUntilContextTimeout(ctx, poll, followed, true, func(ctx context.Context) (bool, error) {
		urls, err := b.endpoints(ctx)
		if err != nil {
			return false, err
		}
		before := lag
		lag = ""
		for _, url := range urls {
			lacks, err := b.lacks(ctx, url)
			switch {
			case err == nil && lacks != "":
				lag = url + " does not serve " + lacks
			case err != nil && time.Since(began) < answers:
				lag = url + " does not answer: " + err.Error()
			case err != nil:
				log.From(ctx).Warn("an endpoint of the hub's export does not say which schemas it serves", zap.String("url", url), zap.Error(err))
			}
		}
		if lag != "" && before == "" {
			log.From(ctx).Info("waiting until kcp serves the schemas of this version", zap.String("endpoint", lag))
		}
		return lag == "", nil
	})
	if lag != "" && ctx.Err() == nil {
		log.From(ctx).Warn("an endpoint of the hub's export lags behind: new fields are unseen for some minutes", zap.String("endpoint", lag))
		return nil
	}
	return err
}

// endpoints returns the URLs of the export's virtual workspaces. A new export has none.
func (b *bootstrapper) endpoints(ctx context.Context) (urls []string, err error) {
	slice, err := b.clients.EndpointSlices(b.clusters.Providers).Get(ctx, v1alpha1.GroupName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the endpoints of the export %s: %w", v1alpha1.GroupName, err)
	}
	for _, endpoint := range slice.Status.APIExportEndpoints {
		urls = append(urls, endpoint.URL)
	}
	return urls, nil
}

// lacks returns a field of the export's schemas that an endpoint does not serve, or "".
func (b *bootstrapper) lacks(ctx context.Context, url string) (string, error) {
	raw, err := b.clients.REST(url+"/clusters/*", v1alpha1.SchemeGroupVersion).Get().
		AbsPath("openapi", "v3", "apis", v1alpha1.GroupName, v1alpha1.SchemeGroupVersion.Version).SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return "", err
	}
	served, err := documented(raw)
	if err != nil {
		return "", err
	}
	return missing(b.chosenSchemas, served)
}

// documented returns the fields in the OpenAPI v3 document of one version, by kind and path.
func documented(raw []byte) (map[string]map[string]string, error) {
	var document struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return nil, fmt.Errorf("parse the OpenAPI document: %w", err)
	}
	kinds := map[string]map[string]string{}
	for name, schema := range document.Components.Schemas {
		var of struct {
			Kinds []metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
		}
		var root apiextensionsv1.JSONSchemaProps
		if json.Unmarshal(schema, &of) != nil || len(of.Kinds) != 1 {
			continue
		}
		if err := json.Unmarshal(schema, &root); err != nil {
			return nil, fmt.Errorf("parse %s in the OpenAPI document: %w", name, err)
		}
		kinds[of.Kinds[0].Kind] = map[string]string{}
		collect(&root, of.Kinds[0].Version, kinds[of.Kinds[0].Kind])
	}
	return kinds, nil
}

// missing returns a field of the schemas that is not served, or "".
func missing(schemas []*kcpapisv1alpha1.APIResourceSchema, served map[string]map[string]string) (string, error) {
	for _, s := range schemas {
		fields, err := fieldsOf(s)
		if err != nil {
			return "", err
		}
		for path := range fields {
			if _, ok := served[s.Spec.Names.Kind][path]; !ok {
				_, field, _ := strings.Cut(path, ".")
				return s.Name + ": " + field, nil
			}
		}
	}
	return "", nil
}
