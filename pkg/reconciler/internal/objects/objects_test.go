package objects_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

const cluster = "c1"

type stored = objects.Repository[*rbacv1.ClusterRoleBinding]

func binding(role string) *rbacv1.ClusterRoleBinding {
	b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	return b
}

// fixture returns a fake kcp with the binding, which the test has read; nil for no
// binding.
func fixture(t *testing.T, have *rbacv1.ClusterRoleBinding) (*kcpfake.Server, stored, *rbacv1.ClusterRoleBinding) {
	t.Helper()
	s := kcpfake.New(t)
	client := objects.Of("clusterrolebindings", s.Clients().ClusterRoleBindings, nil)
	if have == nil {
		return s, client, nil
	}
	s.Put(cluster, have)
	read, err := client.Read(t.Context(), cluster, have.Name)
	require.NoError(t, err)
	s.ForgetRequests()
	return s, client, read
}

// touch changes the binding as another client does.
func touch(s *kcpfake.Server, b *rbacv1.ClusterRoleBinding) {
	b = b.DeepCopy()
	b.Labels = map[string]string{"touched": "true"}
	s.Put(cluster, b)
}

// immutable refuses to change the roleRef, as kcp does.
func immutable(r kcpfake.Request) error {
	var b rbacv1.ClusterRoleBinding
	if r.Verb == "update" && json.Unmarshal(r.Body, &b) == nil && b.RoleRef.Name != "old" {
		return apierrors.NewInvalid(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding").GroupKind(), b.Name, nil)
	}
	return nil
}

func writes(s *kcpfake.Server) (verbs []string) {
	for _, w := range s.Writes() {
		verbs = append(verbs, w.Verb)
	}
	return verbs
}

func TestCreate_keepsAnExistingObject(t *testing.T) {
	t.Parallel()
	s, client, _ := fixture(t, nil)
	require.NoError(t, client.Create(t.Context(), cluster, binding("first")))
	require.NoError(t, client.Create(t.Context(), cluster, binding("second")))
	got := binding("")
	require.True(t, s.Read(cluster, got))
	require.Equal(t, "first", got.RoleRef.Name)
}

func TestPut_replacesOnlyTheVersionItRead(t *testing.T) {
	t.Parallel()
	s, client, read := fixture(t, binding("old"))
	read.Labels = map[string]string{"a": "b"}
	require.NoError(t, client.Put(t.Context(), cluster, read))
	require.ErrorIs(t, client.Put(t.Context(), cluster, read), controller.ErrRetry, "it carries the version before")
	require.ErrorIs(t, client.Put(t.Context(), cluster, binding("new")), controller.ErrRetry, "it exists")
	got := binding("")
	require.True(t, s.Read(cluster, got))
	require.Equal(t, map[string]string{"a": "b"}, got.Labels)
}

func TestReplace_overcomesWhatTenantsAltered(t *testing.T) {
	t.Parallel()
	held := binding("old")
	held.Finalizers = []string{"example.com/tenant"}
	for _, test := range []struct {
		name string
		have *rbacv1.ClusterRoleBinding
		// cached is true if the cache has the binding.
		cached bool
		want   string
		writes []string
	}{
		{name: "missing", want: "new", writes: []string{"create"}},
		{name: "without the label", have: binding("old"), want: "old", writes: []string{"create", "update"}},
		{name: "with another role", have: binding("other"), cached: true, want: "new", writes: []string{"update", "patch", "delete", "create"}},
		{name: "with a finalizer", have: held, cached: true, want: "new", writes: []string{"update", "patch", "delete", "create"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, client, read := fixture(t, test.have)
			s.FailBefore(immutable)
			want := binding(test.want)
			if test.cached {
				want.ResourceVersion = read.ResourceVersion
			}
			require.NoError(t, client.Replace(t.Context(), cluster, want))
			require.Equal(t, test.writes, writes(s))
			got := binding("")
			require.True(t, s.Read(cluster, got))
			require.Equal(t, test.want, got.RoleRef.Name)
			require.Empty(t, got.Finalizers)
		})
	}
}

func TestReplace_givesWayToAnotherWriter(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"update", "patch", "delete"} {
		s, client, read := fixture(t, binding("old"))
		s.FailBefore(func(r kcpfake.Request) error {
			if r.Verb == at {
				touch(s, read)
			}
			return immutable(r)
		})
		want := binding("new")
		want.ResourceVersion = read.ResourceVersion
		err := client.Replace(t.Context(), cluster, want)
		if at == "update" {
			// kcp refuses the change of the roleRef before it checks the resource
			// version. The patch then fails with the conflict.
			require.Equal(t, []string{"update", "patch"}, writes(s))
		}
		require.ErrorIs(t, err, controller.ErrRetry, at)
		got := binding("")
		require.True(t, s.Read(cluster, got), at)
		require.Equal(t, "old", got.RoleRef.Name, at)
	}
}

func TestDelete_takesThePreconditionsItNames(t *testing.T) {
	t.Parallel()
	type del func(stored, *rbacv1.ClusterRoleBinding) error
	byUID := func(t *testing.T) del {
		return func(c stored, b *rbacv1.ClusterRoleBinding) error {
			return c.Delete(t.Context(), cluster, b)
		}
	}
	unchanged := func(t *testing.T) del {
		return func(c stored, b *rbacv1.ClusterRoleBinding) error {
			return c.DeleteUnchanged(t.Context(), cluster, b)
		}
	}
	for _, test := range []struct {
		name    string
		del     func(*testing.T) del
		before  func(*kcpfake.Server, *rbacv1.ClusterRoleBinding)
		retried bool
		left    bool
	}{
		{name: "any version", del: byUID, before: touch},
		{name: "any version of another object", del: byUID, before: func(s *kcpfake.Server, b *rbacv1.ClusterRoleBinding) {
			s.Remove(cluster, b)
			s.Put(cluster, binding("old"))
		}, retried: true, left: true},
		{name: "this version", del: unchanged, before: func(*kcpfake.Server, *rbacv1.ClusterRoleBinding) {}},
		{name: "this version of a changed object", del: unchanged, before: touch, retried: true, left: true},
		{name: "an object that is gone", del: unchanged, before: func(s *kcpfake.Server, b *rbacv1.ClusterRoleBinding) { s.Remove(cluster, b) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, client, read := fixture(t, binding("old"))
			test.before(s, read)
			err := test.del(t)(client, read)
			if test.retried {
				require.ErrorIs(t, err, controller.ErrRetry)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, test.left, s.Read(cluster, binding("")))
		})
	}
}

func TestMerge_appliesToTheVersionItRead(t *testing.T) {
	t.Parallel()
	s, client, read := fixture(t, binding("old"))
	require.NoError(t, client.Annotate(t.Context(), cluster, read, "example.com/a", `"quoted" \ and {braces}`))
	got := binding("")
	require.True(t, s.Read(cluster, got))
	require.Equal(t, `"quoted" \ and {braces}`, got.Annotations["example.com/a"])
	require.ErrorIs(t, client.Annotate(t.Context(), cluster, read, "example.com/a", ""), controller.ErrRetry)

	read, ok, err := client.Find(t.Context(), cluster, "b")
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, client.Annotate(t.Context(), cluster, read, "example.com/a", ""))
	fresh := binding("")
	require.True(t, s.Read(cluster, fresh))
	require.Empty(t, fresh.Annotations["example.com/a"])
}

func TestFind_tellsMissingFromFailed(t *testing.T) {
	t.Parallel()
	s, client, _ := fixture(t, binding("old"))
	ok, err := client.Exists(t.Context(), cluster, "b")
	require.NoError(t, err)
	require.True(t, ok)
	ok, err = client.Exists(t.Context(), cluster, "another")
	require.NoError(t, err)
	require.False(t, ok)
	_, err = client.Read(t.Context(), cluster, "another")
	require.ErrorIs(t, err, controller.ErrRetry)

	list, err := client.List(t.Context(), cluster)
	require.NoError(t, err)
	require.Len(t, list, 1)

	s.FailBefore(func(kcpfake.Request) error {
		return apierrors.NewForbidden(rbacv1.Resource("clusterrolebindings"), "b", errors.New("no"))
	})
	_, err = client.Exists(t.Context(), cluster, "b")
	require.True(t, apierrors.IsForbidden(err))
}

func TestEach_readsPages(t *testing.T) {
	t.Parallel()
	s, client, _ := fixture(t, binding("old"))
	want := map[string]bool{}
	for i := range 1001 {
		b := binding("old")
		b.Name, b.Labels = fmt.Sprintf("b-%04d", i), map[string]string{"example.com/each": "yes"}
		s.Put(cluster, b)
		want[b.Name] = true
	}
	got := map[string]bool{}
	s.ForgetRequests()
	require.NoError(t, client.Each(t.Context(), cluster, "example.com/each", func(b *rbacv1.ClusterRoleBinding) error {
		got[b.Name] = true
		return nil
	}))
	require.Equal(t, want, got)
	require.Len(t, s.Requests(), 3)
	failure := errors.New("no")
	require.ErrorIs(t, client.Each(t.Context(), cluster, "", func(*rbacv1.ClusterRoleBinding) error { return failure }), failure)
}

func TestCommit_sendsThePatchOfAPass(t *testing.T) {
	t.Parallel()
	s, _, _ := fixture(t, binding("old"))
	commit := objects.Of("clusterrolebindings", s.Clients().ClusterRoleBindings, nil).Commit
	require.NoError(t, commit(t.Context(), controller.Key{Cluster: cluster, Name: "b"}, []byte(`{"metadata":{"labels":{"a":"b"}}}`), ""))
	got := binding("")
	require.True(t, s.Read(cluster, got))
	require.Equal(t, "b", got.Labels["a"])
	err := commit(t.Context(), controller.Key{Cluster: cluster, Name: "another"}, []byte(`{}`), "status")
	require.True(t, apierrors.IsNotFound(err))
}
