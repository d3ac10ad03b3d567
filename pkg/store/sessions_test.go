package store_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

func sessionOf(user, name string) *v1alpha1.Session {
	s := &v1alpha1.Session{Spec: v1alpha1.SessionSpec{UserRef: v1alpha1.NamedRef{Name: user}, Client: v1alpha1.SessionCLI}}
	s.Name, s.Labels = name, map[string]string{v1alpha1.UserLabel: user}
	return s
}

func TestListSessions_returnsThoseOfTheUser(t *testing.T) {
	t.Parallel()
	s := newServer(t).store()
	for _, o := range []*v1alpha1.Session{sessionOf("alice", "a1"), sessionOf("bob", "b1"), sessionOf("alice", "a2")} {
		_, err := s.CreateSession(t.Context(), o)
		require.NoError(t, err)
	}
	all, err := s.ListSessions(t.Context(), "alice")
	require.NoError(t, err)
	require.Len(t, all, 2)
	for _, o := range all {
		require.Equal(t, "alice", o.Spec.UserRef.Name)
	}
	_, err = s.GetSession(t.Context(), "a3")
	require.True(t, errs.Is(err, errs.NotFound))
}

// A person with many Sessions costs several small requests, and none is left out, also where kcp
// has forgotten the state of the first page.
func TestListSessions_readsAllPages(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	const sessions = 1100
	for i := range sessions {
		server.Put("users", sessionOf("alice", fmt.Sprintf("a%04d", i)))
	}
	expired := false
	server.FailBefore(func(r kcpfake.Request) error {
		if r.Query.Get("limit") != "500" {
			t.Errorf("a page of %q", r.Query.Get("limit"))
		}
		if r.Query.Get("continue") != "" && !expired {
			expired = true
			return apierrors.NewResourceExpired("compacted")
		}
		return nil
	})
	all, err := server.store().ListSessions(t.Context(), "alice")
	require.NoError(t, err)
	names := map[string]bool{}
	for _, o := range all {
		names[o.Name] = true
	}
	require.Len(t, all, sessions)
	require.Len(t, names, sessions)
	require.Len(t, server.Requests(), 5)
}

func TestChangeSession_redeemsACodeOnce(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	o := sessionOf("alice", "a1")
	o.Spec.Code = &v1alpha1.SessionCode{Hash: "h"}
	held, err := server.store().CreateSession(t.Context(), o)
	require.NoError(t, err)
	replicas := []*store.Store{server.store(), server.store()}
	used := errors.New("used")
	var redeemed atomic.Int32
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			_, err := replicas[i%2].ChangeSession(t.Context(), held, func(_ context.Context, o *v1alpha1.Session) error {
				if o.Spec.Code == nil {
					return used
				}
				o.Spec.Code, o.Spec.Generation = nil, 1
				return nil
			})
			switch {
			case err == nil:
				redeemed.Add(1)
			case !errors.Is(err, used):
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, redeemed.Load())
}

func TestSaveGrant_keepsTheLeaseOfARefresh(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	s, now := server.store(), time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)
	_, err := s.GetGrant(t.Context(), "alice")
	require.True(t, errs.Is(err, errs.NotFound))
	require.NoError(t, s.SaveGrant(t.Context(), tenancy.ProviderGrant{User: "alice", Sealed: []byte("one"), SavedAt: now}))
	leased, err := s.ChangeGrant(t.Context(), "alice", func(g tenancy.ProviderGrant) (tenancy.ProviderGrant, error) {
		g.Holder, g.HeldUntil = "me", now.Add(time.Second)
		return g, nil
	})
	require.NoError(t, err)
	require.True(t, leased.HeldByOther("you", now))
	require.False(t, leased.HeldByOther("me", now))
	require.False(t, leased.HeldByOther("you", now.Add(time.Second)))
	require.NoError(t, s.SaveGrant(t.Context(), tenancy.ProviderGrant{User: "alice", Sealed: []byte("two"), SavedAt: now.Add(time.Second)}))
	g, err := s.GetGrant(t.Context(), "alice")
	require.NoError(t, err)
	require.Equal(t, tenancy.ProviderGrant{User: "alice", Sealed: []byte("two"), SavedAt: now.Add(time.Second), Holder: "me", HeldUntil: now.Add(time.Second)}, g)

	// A login that was earlier at the provider is stored late.
	g.IssuedAt = now.Add(time.Second)
	g.Sealed = []byte("three")
	require.NoError(t, s.SaveGrant(t.Context(), g))
	require.NoError(t, s.SaveGrant(t.Context(), tenancy.ProviderGrant{User: "alice", Sealed: []byte("late"), IssuedAt: now}))
	g, err = s.GetGrant(t.Context(), "alice")
	require.NoError(t, err)
	require.Equal(t, "three", string(g.Sealed))

	server.ForgetRequests()
	_, err = s.ChangeGrant(t.Context(), "alice", func(g tenancy.ProviderGrant) (tenancy.ProviderGrant, error) { return g, nil })
	require.NoError(t, err)
	require.Empty(t, server.Writes())
}

func TestChangeGrant_givesTheLeaseToOne(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	require.NoError(t, server.store().SaveGrant(t.Context(), tenancy.ProviderGrant{User: "alice", Sealed: []byte("x")}))
	replicas, taken, now := []*store.Store{server.store(), server.store()}, errors.New("taken"), time.Now()
	var holders atomic.Int32
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			holder := string(rune('a' + i))
			_, err := replicas[i%2].ChangeGrant(t.Context(), "alice", func(g tenancy.ProviderGrant) (tenancy.ProviderGrant, error) {
				if g.HeldByOther(holder, now) {
					return g, taken
				}
				g.Holder, g.HeldUntil = holder, now.Add(time.Minute)
				return g, nil
			})
			switch {
			case err == nil:
				holders.Add(1)
			case !errors.Is(err, taken):
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, holders.Load())
}

func TestCreateDevice_createsTheNamespace(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	missing := true
	server.FailBefore(func(r kcpfake.Request) error {
		switch {
		case r.Resource == "namespaces":
			missing = false
		case r.Method == http.MethodPost && missing:
			return apierrors.NewNotFound(corev1.Resource("namespaces"), "default")
		}
		return nil
	})
	s, d := server.store(), tenancy.DeviceLogin{ID: "x", CodeHash: "h", Description: "host", Peer: "192.0.2.1", ExpiresAt: time.Unix(1_800_000_000, 0).UTC()}
	require.NoError(t, s.CreateDevice(t.Context(), d))
	require.True(t, server.Read("users", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}))
	require.True(t, errs.Is(s.CreateDevice(t.Context(), d), errs.AlreadyExists))
	held, err := s.GetDevice(t.Context(), "x")
	require.NoError(t, err)
	require.Equal(t, d, held)
	for _, denied := range []bool{true, true} {
		held, err = s.ChangeDevice(t.Context(), "x", func(d tenancy.DeviceLogin) (tenancy.DeviceLogin, error) {
			d.Denied = denied
			return d, nil
		})
		require.NoError(t, err)
		require.True(t, held.Denied)
	}
	_, err = s.ChangeDevice(t.Context(), "y", nil)
	require.True(t, errs.Is(err, errs.NotFound))
}

// The change of a User writes Sessions, which must not wait for the lock of that User.
func TestChangeSession_withinTheChangeOfAUser(t *testing.T) {
	t.Parallel()
	server, u := alice(t)
	session := sessionOf("alice", "a1")
	// One lock has both: it goes by the UID.
	server.made("/clusters/users/apis/tenancy.kedge.faros.sh/v1alpha1/sessions/a1", string(u.UID), session)
	s := server.store()
	session, err := s.GetSession(t.Context(), "a1")
	require.NoError(t, err)
	require.Equal(t, u.UID, session.UID)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = s.ChangeUser(ctx, u, nil, func(ctx context.Context, u *v1alpha1.User) error {
		_, err := s.ChangeSession(ctx, session, func(_ context.Context, o *v1alpha1.Session) error {
			o.Spec.Description = "changed"
			return nil
		})
		u.Spec.DisplayName = "Alice"
		return err
	})
	require.NoError(t, err)
}
