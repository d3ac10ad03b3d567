package kcpfake_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

const cluster = "root:kedge:users"

func user(name string) *v1alpha1.User {
	return &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.UserSpec{DisplayName: "Alice"}}
}

func patch(t *testing.T, fields any) []byte {
	t.Helper()
	raw, err := json.Marshal(fields)
	require.NoError(t, err)
	return raw
}

type object = map[string]any

func TestServer_keepsWhatIsCreated(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	users := s.Clients().Users(cluster)
	u := user("alice")
	u.Status.Phase = "Ready"
	made, err := users.Create(t.Context(), u, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, made.UID)
	require.NotEmpty(t, made.ResourceVersion)
	require.Equal(t, int64(1), made.Generation)
	require.False(t, made.CreationTimestamp.IsZero())
	require.Equal(t, cluster, kcpClusterOf(made))
	require.Empty(t, made.Status.Phase, "the status is written through its subresource")
	_, err = users.Create(t.Context(), user("alice"), metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
	got, err := users.Get(t.Context(), "alice", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, made, got)
	_, err = s.Clients().Users("root:other").Get(t.Context(), "alice", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	generated, err := users.Create(t.Context(), &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{GenerateName: "bob-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Regexp(t, `^bob-\d{5}$`, generated.Name)
	_, err = users.Create(t.Context(), &v1alpha1.User{}, metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
}

func kcpClusterOf(o metav1.Object) string { return o.GetAnnotations()["kcp.io/cluster"] }

func TestServer_countsVersionsAndGenerations(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	users := s.Clients().Users(cluster)
	s.Put(cluster, user("alice"))
	first, err := users.Get(t.Context(), "alice", metav1.GetOptions{})
	require.NoError(t, err)
	for _, tc := range []struct {
		name                string
		patch               object
		subresource         []string
		version, generation bool
	}{
		{"nothing", object{}, nil, false, false},
		{"a status through the main path", object{"status": object{"phase": "Ready"}}, nil, false, false},
		{"a spec through the status", object{"spec": object{"displayName": "Bob"}}, []string{"status"}, false, false},
		{"a label", object{"metadata": object{"labels": object{"a": "b"}}}, nil, true, false},
		{"a status", object{"status": object{"phase": "Ready"}}, []string{"status"}, true, false},
		{"a spec", object{"spec": object{"displayName": "Bob"}}, nil, true, true},
	} {
		next, err := users.Patch(t.Context(), "alice", types.MergePatchType, patch(t, tc.patch), metav1.PatchOptions{}, tc.subresource...)
		require.NoError(t, err, tc.name)
		require.Equal(t, tc.version, next.ResourceVersion != first.ResourceVersion, tc.name)
		require.Equal(t, tc.generation, next.Generation != first.Generation, tc.name)
		first = next
	}
	require.Equal(t, "Bob", first.Spec.DisplayName)
	require.Equal(t, v1alpha1.Phase("Ready"), first.Status.Phase)
}

func TestServer_refusesWritesWithStalePreconditions(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	users := s.Clients().Users(cluster)
	s.Put(cluster, user("alice"))
	stale, err := users.Get(t.Context(), "alice", metav1.GetOptions{})
	require.NoError(t, err)
	fresh, err := users.Patch(t.Context(), "alice", types.MergePatchType, patch(t, object{"spec": object{"displayName": "Bob"}}), metav1.PatchOptions{})
	require.NoError(t, err)
	for name, write := range map[string]func() error{
		"update": func() error {
			o := stale.DeepCopy()
			o.Spec.DisplayName = "Carol"
			_, err := users.Update(t.Context(), o, metav1.UpdateOptions{})
			return err
		},
		"patch by version": func() error {
			_, err := users.Patch(t.Context(), "alice", types.MergePatchType, patch(t, object{"metadata": object{"resourceVersion": stale.ResourceVersion}}), metav1.PatchOptions{})
			return err
		},
		"patch by UID": func() error {
			_, err := users.Patch(t.Context(), "alice", types.MergePatchType, patch(t, object{"metadata": object{"uid": "other"}}), metav1.PatchOptions{})
			return err
		},
		"delete by version": func() error {
			return users.Delete(t.Context(), "alice", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &stale.ResourceVersion}})
		},
		"delete by UID": func() error {
			return users.Delete(t.Context(), "alice", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID("other"))}})
		},
	} {
		require.True(t, apierrors.IsConflict(write()), name)
	}
	require.NoError(t, users.Delete(t.Context(), "alice", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &fresh.UID, ResourceVersion: &fresh.ResourceVersion}}))
	require.False(t, s.Read(cluster, user("alice")))
}

func TestServer_appliesJSONPatches(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	users := s.Clients().Users(cluster)
	s.Put(cluster, user("alice"))
	for _, tc := range []struct {
		was, want string
	}{{"Bob", "Alice"}, {"Alice", "Bob"}} {
		_, err := users.Patch(t.Context(), "alice", types.JSONPatchType, patch(t, []object{
			{"op": "test", "path": "/spec/displayName", "value": tc.was}, {"op": "replace", "path": "/spec/displayName", "value": "Bob"},
		}), metav1.PatchOptions{})
		require.Equal(t, tc.want == "Alice", apierrors.IsInvalid(err), "%v", err)
		got := user("alice")
		require.True(t, s.Read(cluster, got))
		require.Equal(t, tc.want, got.Spec.DisplayName)
	}
	_, err := users.Patch(t.Context(), "alice", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{})
	require.True(t, apierrors.IsUnsupportedMediaType(err), "%v", err)
}

func TestServer_appliesServerSide(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	roles := s.Clients().ClusterRoles(cluster)
	apply := func(o object) *rbacv1.ClusterRole {
		t.Helper()
		o["apiVersion"], o["kind"] = "rbac.authorization.k8s.io/v1", "ClusterRole"
		got, err := roles.Patch(t.Context(), "r", types.ApplyPatchType, patch(t, o), metav1.PatchOptions{FieldManager: "hub", Force: ptr.To(true)})
		require.NoError(t, err)
		return got
	}
	first := apply(object{"metadata": object{"name": "r", "labels": object{"a": "1", "b": "1"}}})
	require.NotEmpty(t, first.UID)
	_, err := roles.Patch(t.Context(), "r", types.MergePatchType, patch(t, object{"metadata": object{"labels": object{"theirs": "1"}}}), metav1.PatchOptions{})
	require.NoError(t, err)
	next := apply(object{"metadata": object{"name": "r", "labels": object{"a": "2"}}, "rules": []object{{"verbs": []string{"get"}}}})
	require.Equal(t, map[string]string{"a": "2", "theirs": "1"}, next.Labels)
	require.Len(t, next.Rules, 1)
	require.Equal(t, next.ResourceVersion, apply(object{"metadata": object{"name": "r", "labels": object{"a": "2"}}, "rules": []object{{"verbs": []string{"get"}}}}).ResourceVersion)
	_, err = roles.Patch(t.Context(), "r", types.ApplyPatchType, []byte(`{}`), metav1.PatchOptions{FieldManager: "hub"})
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
}

func TestServer_deletesAfterTheLastFinalizer(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := kcpfake.NewAt(t, func() time.Time { return now })
	users := s.Clients().Users(cluster)
	u := user("alice")
	u.Finalizers = []string{"example.com/a"}
	s.Put(cluster, u)
	require.NoError(t, users.Delete(t.Context(), "alice", metav1.DeleteOptions{}))
	require.NoError(t, users.Delete(t.Context(), "alice", metav1.DeleteOptions{}))
	got, err := users.Get(t.Context(), "alice", metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, now.Equal(got.DeletionTimestamp.Time))
	finalizers := func(names ...string) error {
		_, err := users.Patch(t.Context(), "alice", types.MergePatchType, patch(t, object{"metadata": object{"finalizers": names}}), metav1.PatchOptions{})
		return err
	}
	require.True(t, apierrors.IsInvalid(finalizers("example.com/a", "example.com/b")))
	require.NoError(t, finalizers())
	require.False(t, s.Read(cluster, user("alice")))
	require.True(t, apierrors.IsNotFound(users.Delete(t.Context(), "alice", metav1.DeleteOptions{})))
}

func TestServer_failsRequestsAsAsked(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	users := s.Clients().Users(cluster)
	creates := func(err error) kcpfake.Fault {
		return func(r kcpfake.Request) error {
			if r.Verb == "create" {
				return err
			}
			return nil
		}
	}
	s.FailBefore(creates(apierrors.NewTooManyRequests("wait", 0)))
	_, err := users.Create(t.Context(), user("alice"), metav1.CreateOptions{})
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	require.False(t, s.Read(cluster, user("alice")))
	s.FailBefore(nil)
	s.FailAfter(creates(errors.New("the connection breaks")))
	_, err = users.Create(t.Context(), user("alice"), metav1.CreateOptions{})
	require.Error(t, err)
	require.True(t, s.Read(cluster, user("alice")), "the answer was lost, not the write")
	_, err = users.Get(t.Context(), "alice", metav1.GetOptions{})
	require.NoError(t, err)
	var did []string
	for _, w := range s.Writes() {
		did = append(did, w.String())
	}
	require.Equal(t, []string{"create users in " + cluster, "create users in " + cluster}, did)
	require.Len(t, s.Requests(), 3)
	s.ForgetRequests()
	require.Empty(t, s.Requests())
}

func TestServer_refusesInactiveClusters(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	clients := s.Clients()
	s.Put(cluster, user("alice"))
	lc := &kcpcorev1alpha1.LogicalCluster{ObjectMeta: metav1.ObjectMeta{Name: kcpcorev1alpha1.LogicalClusterName}}
	s.Put(cluster, lc)
	mark := func(value any) {
		t.Helper()
		_, err := clients.LogicalClusters(clients.ClusterURL(cluster)).Patch(t.Context(), kcpcorev1alpha1.LogicalClusterName, types.MergePatchType,
			patch(t, object{"metadata": object{"annotations": object{kcpcorev1alpha1.LogicalClusterInactiveAnnotationKey: value}}}), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	mark("true")
	_, err := clients.Users(cluster).Get(t.Context(), "alice", metav1.GetOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = clients.Users(cluster).Watch(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	mark(nil)
	_, err = clients.Users(cluster).Get(t.Context(), "alice", metav1.GetOptions{})
	require.NoError(t, err)
}

func TestServer_servesVirtualWorkspacesAndUnknownKinds(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	clients := s.Clients()
	s.Put("abc", &kcpcorev1alpha1.LogicalCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}})
	lc, err := clients.LogicalClusters(s.URL()+"/services/initializingworkspaces/x/clusters/abc").Get(t.Context(), "cluster", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "abc", kcpClusterOf(lc))

	s.Put(cluster, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default"}})
	s.Put(cluster, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "default"}})
	_, err = clients.RoleBindings(cluster, "default").Get(t.Context(), "b", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = clients.RoleBindings(cluster, "other").Get(t.Context(), "b", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	gizmo := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: object{"apiVersion": "example.com/v1", "kind": "Gizmo", "metadata": object{"name": name}}}
	}
	s.Put(cluster, gizmo("g"))
	require.Len(t, s.List(cluster, "example.com", "gizmos"), 1)
	got, err := clients.Apply(t.Context(), cluster, gizmo("h"))
	require.NoError(t, err)
	require.NotEmpty(t, got.GetUID())
	require.Len(t, s.List(cluster, "example.com", "gizmos"), 2)
}

func TestServer_answersTablesOfNames(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	for _, name := range []string{"a.example.com", "b.example.com", "c.example.com"} {
		s.Put(cluster, &unstructured.Unstructured{Object: object{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": name},
		}})
	}
	names, more, err := s.Clients().CustomResourceDefinitions(t.Context(), cluster, 2)
	require.NoError(t, err)
	require.True(t, more)
	require.Equal(t, []string{"a.example.com", "b.example.com"}, names)
}

func TestServer_answersReadyz(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	client, url := s.Clients().HTTP()
	for path, want := range map[string]int{"/readyz": http.StatusOK, "/nothing": http.StatusNotFound, "/clusters/x/apis/none.example.com/v1": http.StatusNotFound} {
		response, err := client.Get(url + path)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.StatusCode, path)
	}
}

func TestServer_editsObjectsByPath(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	const path = "/clusters/" + cluster + "/apis/tenancy.kedge.faros.sh/v1alpha1/users/alice"
	require.Nil(t, s.Get(path))
	require.False(t, s.Edit(path, func(*unstructured.Unstructured) { require.Fail(t, "there is none") }))
	s.Put(cluster, user("alice"))
	before := s.Get(path)
	require.True(t, s.Edit(path, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"a": "b"}) }))
	after := s.Get(path)
	require.Equal(t, map[string]string{"a": "b"}, after.GetLabels())
	require.Equal(t, before.GetUID(), after.GetUID())
	require.NotEqual(t, before.GetResourceVersion(), after.GetResourceVersion())
}

func TestServer_answersWithAnotherHandler(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	s.Put(cluster, user("alice"))
	users := s.Clients().Users(cluster)
	s.ServeWith(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	_, err := users.Get(t.Context(), "alice", metav1.GetOptions{})
	require.Error(t, err)
	s.ServeWith(nil)
	_, err = users.Get(t.Context(), "alice", metav1.GetOptions{})
	require.NoError(t, err)
	s.Close()
	_, err = users.Get(t.Context(), "alice", metav1.GetOptions{})
	require.Error(t, err)
}
