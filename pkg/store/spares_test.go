package store_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

const sparesCluster = "orgscluster"

// keptSpares is a fake kcp with spares, and what a cache has of them.
type keptSpares struct {
	*kcpfake.Server
	cached []tenancy.Spare
}

func newKeptSpares(t *testing.T, names ...string) *keptSpares {
	t.Helper()
	k := &keptSpares{Server: kcpfake.New(t)}
	for _, name := range names {
		ws := &kcptenancyv1alpha1.Workspace{}
		ws.Name, ws.Labels = name, map[string]string{v1alpha1.SpareLabel: "hash"}
		k.Put(sparesCluster, ws)
		k.cached = append(k.cached, k.spare(t, name))
	}
	return k
}

// spare reads a spare from kcp, as a whole one.
func (k *keptSpares) spare(t *testing.T, name string) tenancy.Spare {
	t.Helper()
	ws := &kcptenancyv1alpha1.Workspace{}
	ws.Name = name
	require.True(t, k.Read(sparesCluster, ws))
	s := tenancy.SpareOf(ws)
	s.Whole = true
	return s
}

func (k *keptSpares) hub(t *testing.T) *store.Spares {
	t.Helper()
	tree, err := tenancy.NewTree("root:kedge")
	require.NoError(t, err)
	return store.NewSpares(store.New(k.Clients(), tree, "users", sparesCluster), func(string) []tenancy.Spare { return k.cached }, "hash", time.Now)
}

func TestSpares_areReservedForOne(t *testing.T) {
	t.Parallel()
	k := newKeptSpares(t, "a", "b")
	hubs := []*store.Spares{k.hub(t), k.hub(t)}
	got := make([]tenancy.ReservedSpare, 8)
	var asking sync.WaitGroup
	for i := range got {
		asking.Go(func() { got[i] = hubs[i%2].ForOrg(t.Context(), "alice") })
	}
	asking.Wait()
	count := map[string]int{}
	for _, r := range got {
		count[r.UUID]++
	}
	require.Equal(t, map[string]int{"a": 1, "b": 1, "": 6}, count, "the cache shows them as free all the time")
	raw, err := json.Marshal(k.spare(t, "a").Reserved)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"user":"alice"`)
}

func TestSpares_givenBackAreReservedAgain(t *testing.T) {
	t.Parallel()
	k := newKeptSpares(t, "a")
	hub := k.hub(t)
	first := hub.ForSignUp(t.Context(), "identity")
	require.Equal(t, "a", first.UUID)
	require.Equal(t, "identity", k.spare(t, "a").Reserved.Identity)
	hub.GiveBack(t.Context(), first)
	require.Nil(t, k.spare(t, "a").Reserved)
	k.cached = []tenancy.Spare{k.spare(t, "a")}
	second := hub.ForOrg(t.Context(), "bob")
	require.Equal(t, "a", second.UUID)

	// The first one does not take away what the second one has.
	hub.GiveBack(t.Context(), first)
	require.Equal(t, "bob", k.spare(t, "a").Reserved.User)
	hub.GiveBack(t.Context(), tenancy.ReservedSpare{})
}

func TestSpares_areNotTakenUnlessFitting(t *testing.T) {
	t.Parallel()
	personal := tenancy.Org{Organization: tenancy.NewOrganization("o", "O", "alice"), ClusterID: sparesCluster}
	const uuid = "44444444-4444-4444-8444-444444444444"
	personal.Annotations[v1alpha1.DefaultWorkspaceAnnotation] = uuid
	k := newKeptSpares(t, uuid)
	hub := k.hub(t)
	require.Empty(t, hub.ForWorkspace(t.Context(), personal, "bob").UUID, "it is alice's default Workspace")
	for name, change := range map[string]func(*tenancy.Spare){
		"not whole":       func(s *tenancy.Spare) { s.Whole = false },
		"of another hash": func(s *tenancy.Spare) { s.Hash = "another" },
		"reserved":        func(s *tenancy.Spare) { s.Reserved = &tenancy.Reservation{User: "carol"} },
		"being deleted":   func(s *tenancy.Spare) { s.Terminating = true },
	} {
		k.cached = []tenancy.Spare{k.spare(t, uuid)}
		change(&k.cached[0])
		require.Empty(t, hub.ForOrg(t.Context(), "bob").UUID, name)
	}
	require.Empty(t, k.Writes())
	k.cached = []tenancy.Spare{k.spare(t, uuid)}
	require.Equal(t, uuid, hub.ForOrg(t.Context(), "bob").UUID)
}

// A create works without a spare when kcp does not answer.
func TestSpares_areNotWaitedFor(t *testing.T) {
	t.Parallel()
	k := newKeptSpares(t, "a", "b", "c", "d", "e")
	k.FailBefore(func(r kcpfake.Request) error {
		if r.Verb == "patch" {
			return errors.New("no")
		}
		return nil
	})
	require.Empty(t, k.hub(t).ForOrg(t.Context(), "alice").UUID)
	require.Len(t, k.Writes(), 3)
}
