package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// hearing is a kcp in which Users change, unless it fails.
type hearing struct {
	*kcp
	failure error
	writes  int
}

func (h *hearing) ChangeUser(ctx context.Context, held *v1alpha1.User, _ store.Match,
	edit store.Edit[*v1alpha1.User],
) (*v1alpha1.User, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failure != nil {
		return nil, h.failure
	}
	u := h.users[held.Name].DeepCopy()
	if err := edit(ctx, u); err != nil {
		return nil, err
	}
	h.users[u.Name], h.writes = u, h.writes+1
	return u, nil
}

func newHearing(t *testing.T, room error) (*hearing, *store.Groups, func() *v1alpha1.User) {
	t.Helper()
	u := &v1alpha1.User{}
	u.Name, u.Spec.Issuer, u.Spec.Subject = "bob", "https://issuer.example.com", "bob"
	h := &hearing{kcp: &kcp{users: map[string]*v1alpha1.User{"bob": u}}}
	g, err := store.NewGroups(store.GroupsConfig{
		Store: h, People: h, Room: func() error { return room }, Now: time.Now, MaxAge: 24 * time.Hour, Metrics: prometheus.NewRegistry(),
	})
	require.NoError(t, err)
	return h, g, func() *v1alpha1.User {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.users["bob"]
	}
}

func says(ago time.Duration, groups ...string) tenancy.HeardGroups {
	return tenancy.HeardGroups{Groups: groups, IssuedAt: time.Now().Add(-ago)}
}

func TestGroups_newestCredentialIsWrittenOnce(t *testing.T) {
	t.Parallel()
	h, g, bob := newHearing(t, nil)
	require.NoError(t, g.Hear(t.Context(), bob(), says(time.Hour, "kedge:dev")))
	require.Equal(t, []v1alpha1.GroupHash{tenancy.HashGroup("kedge:dev")}, bob().Spec.Groups.Hashes)
	for range 3 {
		require.NoError(t, g.Hear(t.Context(), bob(), says(time.Hour, "kedge:dev")))
	}
	require.Equal(t, 1, h.writes)
	stale := bob()
	require.NoError(t, g.Hear(t.Context(), bob(), says(time.Minute)))
	require.Empty(t, bob().Spec.Groups.Hashes)
	require.NoError(t, g.Hear(t.Context(), stale, says(30*time.Minute, "kedge:dev", "kedge:ops")))
	require.Empty(t, bob().Spec.Groups.Hashes, "a cache that is behind lets no older credential give groups back")
}

// A group that ended must not go on giving rights because kcp did not answer.
func TestGroups_whatIsLostIsWrittenOrRefused(t *testing.T) {
	t.Parallel()
	h, g, bob := newHearing(t, errs.New(errs.InsufficientStorage, "full"))
	require.NoError(t, g.Hear(t.Context(), bob(), says(time.Hour, "kedge:dev")))
	require.Nil(t, bob().Spec.Groups, "what is gained waits for room")
	known := bob().DeepCopy()
	known.Spec.Groups = tenancy.HeardGroups{Groups: []string{"kedge:dev"}, IssuedAt: time.Now().Add(-time.Hour)}.Learn(nil, time.Now(), 24*time.Hour)
	h.users["bob"] = known
	require.NoError(t, g.Hear(t.Context(), bob(), says(time.Minute)))
	require.Empty(t, bob().Spec.Groups.Hashes, "what is lost does not")
	h.users["bob"], h.failure = known, errs.New(errs.Unavailable, "kcp is away")
	require.True(t, errs.Is(g.Hear(t.Context(), bob(), says(time.Minute)), errs.Unavailable))
	require.NoError(t, g.Hear(t.Context(), bob(), says(time.Minute, "kedge:dev", "kedge:ops")), "nothing is lost: the request goes on")
}
