package catalogentry

import (
	"testing"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// kcp says NotFound for an export, for the workspace of a path, and while it starts for every
// path.
func TestFindExport_saysWhyThereIsNone(t *testing.T) {
	t.Parallel()
	const (
		at     = "root:kedge:providers:acme:eu"
		export = "widgets.example.org"
	)
	noPath := apierrors.NewNotFound(kcptenancyv1alpha1.Resource("workspaces"), at)
	for name, test := range map[string]struct {
		export     bool
		answer     error
		workspaces map[string]string
		absence    Absence
		retried    bool
	}{
		"there is one":                      {export: true},
		"no export":                         {absence: ExportGone},
		"not served":                        {answer: apierrors.NewForbidden(kcpapisv1alpha2.Resource("apiexports"), export, nil), absence: WorkspaceInactive},
		"no workspace":                      {answer: noPath, absence: WorkspaceGone},
		"no workspace at the end":           {answer: noPath, workspaces: map[string]string{"providers": "acme"}, absence: WorkspaceGone},
		"a path that kcp does not know yet": {answer: noPath, workspaces: map[string]string{"providers": "acme", "c-acme": "eu"}, retried: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := kcpfake.New(t)
			if test.export {
				s.Put(at, &kcpapisv1alpha2.APIExport{ObjectMeta: metav1.ObjectMeta{Name: export}})
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
			tree, err := tenancy.NewTree("root:kedge")
			require.NoError(t, err)
			d := reconciler.Deps{Clients: s.Clients(), Clusters: bootstrap.Clusters{Providers: "providers"}, Settings: reconciler.Settings{Tree: tree}}
			found, absence, err := findExport(t.Context(), d, at, export)
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
