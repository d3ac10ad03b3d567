package chart

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// cluster is what the templates learn of a cluster.
type cluster struct {
	// apis are those beside the ones that every cluster has.
	apis []string
	// version is that of Kubernetes, and v1.37.2 if it is empty.
	version string
	// objects are those of the release, one of a kind.
	objects map[string]*unstructured.Unstructured
}

// GetClientFor returns a client that finds the object of a kind.
func (in cluster) GetClientFor(_, kind string) (client dynamic.NamespaceableResourceInterface, namespaced bool, err error) {
	return finder{object: in.objects[kind]}, true, nil
}

// finder is a client that finds one object, or none.
type finder struct {
	dynamic.NamespaceableResourceInterface
	object *unstructured.Unstructured
}

func (f finder) Namespace(string) dynamic.ResourceInterface { return f }

func (f finder) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	if f.object == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
	}
	return f.object, nil
}

// A Pod that a bad upgrade broke is replaced by the next upgrade or rollback.
func TestChart_replacesAPodThatDoesNotStart(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{"embedded": embedded, "external": external + "persistence: {perReplica: true}\n"} {
		old := func(policy string) cluster {
			return cluster{objects: map[string]*unstructured.Unstructured{"StatefulSet": {Object: map[string]any{
				"spec": map[string]any{"podManagementPolicy": policy},
			}}}}
		}
		objects, notes, err := old("Parallel").render(values)
		require.NoError(t, err, name)
		var set appsv1.StatefulSet
		require.NoError(t, yaml.UnmarshalStrict(objects["StatefulSet/prod-kedge-hub"], &set))
		require.Equal(t, appsv1.ParallelPodManagement, set.Spec.PodManagementPolicy, name)
		require.Contains(t, notes, " logs -l app.kubernetes.io/name=kedge-hub,app.kubernetes.io/instance=prod --previous", name)
		_, _, err = old("OrderedReady").render(values)
		require.ErrorContains(t, err, "kubectl -n kedge delete statefulset prod-kedge-hub --cascade=orphan", name)
	}
	_, _, err := cluster{objects: map[string]*unstructured.Unstructured{"StatefulSet": {Object: map[string]any{
		"spec": map[string]any{"podManagementPolicy": "OrderedReady"},
	}}}}.render(external)
	require.NoError(t, err, "a Deployment takes the place of the StatefulSet")
}

// podOf returns the Pod of the Deployment or the StatefulSet.
func podOf(t *testing.T, objects map[string][]byte) corev1.PodSpec {
	t.Helper()
	var workload struct {
		Spec struct{ Template corev1.PodTemplateSpec }
	}
	raw, ok := objects["StatefulSet/prod-kedge-hub"]
	if !ok {
		raw = objects["Deployment/prod-kedge-hub"]
	}
	require.NoError(t, yaml.Unmarshal(raw, &workload))
	require.Len(t, workload.Spec.Template.Spec.Containers, 1)
	return workload.Spec.Template.Spec
}

// A rolling update and the drain of a node refuse no connection.
func TestChart_servesUntilProxiesKnowThatAPodEnds(t *testing.T) {
	t.Parallel()
	const volumes = external + "persistence: {perReplica: true}\n"
	for name, c := range map[string]struct {
		values, version string
		grace           int64
		waits           bool
	}{
		"replicas":                       {values: external, grace: 100, waits: true},
		"replicas with volumes":          {values: volumes, grace: 100, waits: true},
		"a time of your own":             {values: external + "terminationGracePeriodSeconds: 30\n", grace: 40, waits: true},
		"one, beside its successor":      {values: external + "replicaCount: 1\n", grace: 100, waits: true},
		"one with a volume":              {values: volumes + "replicaCount: 1\n", grace: 90},
		"embedded":                       {values: embedded, grace: 90},
		"Kubernetes that can wait":       {values: external, version: "v1.30.1-gke.1200", grace: 100, waits: true},
		"Kubernetes that cannot wait":    {values: external, version: "v1.29.9", grace: 90},
		"Kubernetes with another suffix": {values: external, version: "v1.29.9-eks-1234", grace: 90},
	} {
		objects, _, err := cluster{version: c.version}.render(c.values)
		require.NoError(t, err, name)
		pod := podOf(t, objects)
		require.Equal(t, c.grace, *pod.TerminationGracePeriodSeconds, name)
		if !c.waits {
			require.Nil(t, pod.Containers[0].Lifecycle, name)
			continue
		}
		want := &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 10}}}
		require.Equal(t, want, pod.Containers[0].Lifecycle, name)
	}
}

// The only replica can be evicted: a budget that keeps it forbids the drain of its node for ever.
func TestChart_letsTheOnlyReplicaGo(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]bool{
		embedded:                       false,
		external:                       true,
		external + "replicaCount: 3\n": true,
		external + "replicaCount: 1\n": false,
		external + "replicaCount: 1\npersistence: {perReplica: true}\n": false,
		external + "podDisruptionBudget: {enabled: false}\n":            false,
	} {
		objects, _, err := render(values)
		require.NoError(t, err, values)
		require.Equal(t, want, objects["PodDisruptionBudget/prod-kedge-hub"] != nil, values)
	}
}

// The commands of the guide name the claim and the StatefulSet of the release hub.
func TestChart_guideEnlargesTheVolume(t *testing.T) {
	t.Parallel()
	objects, _, err := render(embedded)
	require.NoError(t, err)
	var set appsv1.StatefulSet
	require.NoError(t, yaml.UnmarshalStrict(objects["StatefulSet/prod-kedge-hub"], &set))
	name := strings.Replace(set.Name, "prod", "hub", 1)
	guide, err := os.ReadFile("../../deploy/README.md")
	require.NoError(t, err)
	require.Contains(t, string(guide), "\n$ kubectl -n kedge delete statefulset "+name+" --cascade=orphan\n")
	claim := set.Spec.VolumeClaimTemplates[0].Name + "-" + name + "-0"
	patch := regexp.MustCompile(`(?m)^\$ kubectl -n kedge patch pvc ` + claim + ` --patch '(.+)'$`).FindSubmatch(guide)
	require.Len(t, patch, 2)
	var patched corev1.PersistentVolumeClaim
	require.NoError(t, yaml.UnmarshalStrict(patch[1], &patched))
	size := patched.Spec.Resources.Requests.Storage().String()
	require.Contains(t, string(guide), " --reuse-values --set persistence.size="+size+"\n")
	objects, _, err = render(embedded + "persistence: {size: " + size + "}\n")
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(objects["StatefulSet/prod-kedge-hub"], &set))
	require.Equal(t, size, set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String())
}
