package kcpfake_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// list lists Users, which the typed clients do not.
func list(t *testing.T, s *kcpfake.Server, cluster string, o metav1.ListOptions) *v1alpha1.UserList {
	t.Helper()
	query, err := metav1.ParameterCodec.EncodeParameters(&o, metav1.SchemeGroupVersion)
	require.NoError(t, err)
	client, url := s.Clients().HTTP()
	response, err := client.Get(url + "/clusters/" + cluster + "/apis/" + v1alpha1.SchemeGroupVersion.String() + "/users?" + query.Encode())
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	var l v1alpha1.UserList
	require.NoError(t, json.NewDecoder(response.Body).Decode(&l))
	require.Equal(t, "UserList", l.Kind)
	return &l
}

func TestServer_listsBySelectorAndPage(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	for _, name := range []string{"c", "a", "b", "d"} {
		u := user(name)
		u.Labels = map[string]string{"odd": map[bool]string{true: "yes", false: "no"}[name == "a" || name == "c"]}
		s.Put(cluster, u)
	}
	s.Put("root:other", user("e"))
	names := func(cluster string, o metav1.ListOptions) (names []string, more string) {
		t.Helper()
		l := list(t, s, cluster, o)
		for _, u := range l.Items {
			names = append(names, u.Name)
		}
		return names, l.Continue
	}
	all, more := names(cluster, metav1.ListOptions{})
	require.Equal(t, []string{"a", "b", "c", "d"}, all)
	require.Empty(t, more)
	everywhere, _ := names("*", metav1.ListOptions{})
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, everywhere)
	odd, _ := names(cluster, metav1.ListOptions{LabelSelector: "odd=yes"})
	require.Equal(t, []string{"a", "c"}, odd)
	one, _ := names(cluster, metav1.ListOptions{FieldSelector: "metadata.name=b"})
	require.Equal(t, []string{"b"}, one)
	page, more := names(cluster, metav1.ListOptions{Limit: 3})
	require.Equal(t, []string{"a", "b", "c"}, page)
	page, more = names(cluster, metav1.ListOptions{Limit: 3, Continue: more})
	require.Equal(t, []string{"d"}, page)
	require.Empty(t, more)
	none, _ := names("root:none", metav1.ListOptions{})
	require.Empty(t, none)
}

func next(t *testing.T, w watch.Interface) (watch.EventType, string) {
	t.Helper()
	select {
	case e := <-w.ResultChan():
		u, ok := e.Object.(*v1alpha1.User)
		if !ok {
			return e.Type, ""
		}
		return e.Type, u.Name
	case <-time.After(30 * time.Second):
		require.FailNow(t, "no event")
		return "", ""
	}
}

func TestServer_streamsChanges(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	clients := s.Clients()
	s.Put(cluster, user("old"))
	version := list(t, s, "*", metav1.ListOptions{}).ResourceVersion
	w, err := clients.Users("*").Watch(t.Context(), metav1.ListOptions{ResourceVersion: version, LabelSelector: "in=yes"})
	require.NoError(t, err)
	defer w.Stop()
	expect := func(want watch.EventType, name string) {
		t.Helper()
		kind, of := next(t, w)
		require.Equal(t, want, kind)
		require.Equal(t, name, of)
	}
	u := user("alice")
	s.Put(cluster, u)
	for _, step := range []struct {
		in   string
		name string
		want watch.EventType
	}{{"yes", "Alice", watch.Added}, {"yes", "Bob", watch.Modified}, {"no", "Bob", watch.Deleted}} {
		u.Labels, u.Spec.DisplayName = map[string]string{"in": step.in}, step.name
		s.Put(cluster, u)
		expect(step.want, "alice")
	}
	u.Labels = map[string]string{"in": "yes"}
	s.Put("root:other", u)
	expect(watch.Added, "alice")
	s.Remove("root:other", u)
	expect(watch.Deleted, "alice")
	s.Expire()
	_, ended := <-w.ResultChan()
	require.False(t, ended)
	_, err = clients.Users("*").Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	fresh, err := clients.Users("*").Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer fresh.Stop()
	_, name := next(t, fresh)
	require.Equal(t, "alice", name)
}
