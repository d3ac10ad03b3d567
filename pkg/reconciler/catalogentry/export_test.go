package catalogentry

import (
	"testing"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// kcp says NotFound for an export, for the workspace of a path, and while it starts for every
// path.
func TestFindExport_saysWhyThereIsNone(t *testing.T) {
	t.Parallel()
	const at = provider + ":eu"
	noPath := apierrors.NewNotFound(kcptenancyv1alpha1.Resource("workspaces"), at)
	inactive := apierrors.NewForbidden(kcpapisv1alpha2.Resource("apiexports"), exportName, nil)
	for name, test := range map[string]struct {
		export     bool
		answer     error
		workspaces map[string]string
		absence    absence
		retried    bool
	}{
		"there is one":            {export: true},
		"no export":               {absence: exportGone},
		"not served":              {answer: inactive, absence: workspaceInactive},
		"no workspace":            {answer: noPath, absence: workspaceGone},
		"no workspace at the end": {answer: noPath, workspaces: map[string]string{providers: "acme"}, absence: workspaceGone},
		"a path that kcp does not know yet": {
			answer: noPath, workspaces: map[string]string{providers: "acme", "c-acme": "eu"}, retried: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := kcptest.New(t)
			if test.export {
				s.Put(at, &kcpapisv1alpha2.APIExport{ObjectMeta: metav1.ObjectMeta{Name: exportName}})
			}
			for cluster, name := range test.workspaces {
				ws := &kcptenancyv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: name}}
				ws.Spec.Cluster = "c-" + name
				s.Put(cluster, ws)
			}
			s.FailBefore(func(r kcpfake.Request) error {
				if r.Resource == "apiexports" {
					return test.answer
				}
				return nil
			})
			step := &export{exports: objects.Of("apiexports", s.Clients().APIExports, nil)}
			step.locations = locations{tree: s.Tree, providers: providers, workspaces: s.Stored.Workspaces}
			found, absence, err := step.find(t.Context(), at, exportName)
			if test.retried {
				require.ErrorIs(t, err, controller.ErrRetry)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.absence, absence)
			require.Equal(t, test.export, found != nil)
		})
	}
}
