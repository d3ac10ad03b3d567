package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/store"
)

// kcp gives a name away once, as the real one does, and shows it in the view.
type kcp struct {
	mu      sync.Mutex
	users   map[string]*v1alpha1.User
	creates int
	failure error
}

func (k *kcp) CreateUser(_ context.Context, u *v1alpha1.User) (*v1alpha1.User, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failure != nil {
		return nil, k.failure
	}
	if _, ok := k.users[u.Name]; ok {
		return nil, errs.New(errs.AlreadyExists, "taken")
	}
	k.users[u.Name] = u
	k.creates++
	return u, nil
}

func (k *kcp) GetUser(_ context.Context, name string) (*v1alpha1.User, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if u, ok := k.users[name]; ok {
		return u, nil
	}
	return nil, errs.New(errs.NotFound, "gone")
}

func (k *kcp) ByIdentity(issuer, subject string) (*v1alpha1.User, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, u := range k.users {
		if u.Spec.Issuer == issuer && u.Spec.Subject == subject {
			return u, true
		}
	}
	return nil, false
}

func (k *kcp) Await(ctx context.Context, cond func() bool) error {
	if cond() {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func spec(subject, username string) v1alpha1.UserSpec {
	return v1alpha1.UserSpec{Issuer: "i", Subject: subject, RBACIdentity: username, DisplayName: subject}
}

func TestEightFirstSightsAtOnceOnTwoHubsMakeOneUser(t *testing.T) {
	t.Parallel()
	k := &kcp{users: map[string]*v1alpha1.User{}}
	hubs := []*store.SignUp{store.NewSignUp(k, k), store.NewSignUp(k, k)}
	var all sync.WaitGroup
	names := make([]string, 8)
	for i := range names {
		all.Go(func() {
			u, err := hubs[i%2].Ensure(t.Context(), spec("alice", "kedge:alice"), "alice")
			if err == nil {
				names[i] = u.Name
			}
		})
	}
	all.Wait()
	require.Equal(t, 1, k.creates)
	for _, name := range names {
		require.Equal(t, "alice", name)
	}
}

func TestANameThatIsTakenGetsASuffix(t *testing.T) {
	t.Parallel()
	k := &kcp{users: map[string]*v1alpha1.User{}}
	s := store.NewSignUp(k, k)
	first, err := s.Ensure(t.Context(), spec("1", "kedge:1"), "alice")
	require.NoError(t, err)
	second, err := s.Ensure(t.Context(), spec("2", "kedge:2"), "alice")
	require.NoError(t, err)
	require.Equal(t, "alice", first.Name)
	require.Regexp(t, `^alice-[0-9a-f]{8}$`, second.Name)
	again, err := s.Ensure(t.Context(), spec("2", "kedge:2"), "alice")
	require.NoError(t, err)
	require.Equal(t, second.Name, again.Name)
}

// Two people whom kcp could not tell apart must not share their rights.
func TestASecondPersonWithTheSameUsernameInKCPIsRefused(t *testing.T) {
	t.Parallel()
	k := &kcp{users: map[string]*v1alpha1.User{}}
	s := store.NewSignUp(k, k)
	_, err := s.Ensure(t.Context(), spec("1", "kedge:alice"), "alice")
	require.NoError(t, err)
	_, err = s.Ensure(t.Context(), spec("2", "kedge:alice"), "alice")
	require.True(t, errs.Is(err, errs.Forbidden))
	require.Equal(t, 1, k.creates)
}

func TestAFailureOfKCPIsPassedOnAndForgotten(t *testing.T) {
	t.Parallel()
	k := &kcp{users: map[string]*v1alpha1.User{}, failure: errs.Wrap(errs.Unavailable, errors.New("down"), "try again")}
	s := store.NewSignUp(k, k)
	_, err := s.Ensure(t.Context(), spec("1", "kedge:1"), "alice")
	require.True(t, errs.Is(err, errs.Unavailable))
	k.mu.Lock()
	k.failure = nil
	k.mu.Unlock()
	_, err = s.Ensure(t.Context(), spec("1", "kedge:1"), "alice")
	require.NoError(t, err)
}

func TestACallerThatGoesAwayDoesNotTakeTheOthersAlong(t *testing.T) {
	t.Parallel()
	k := &kcp{users: map[string]*v1alpha1.User{}}
	s := store.NewSignUp(k, k)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = s.Ensure(gone, spec("1", "kedge:1"), "alice")
	u, err := s.Ensure(t.Context(), spec("1", "kedge:1"), "alice")
	require.NoError(t, err)
	require.Equal(t, "alice", u.Name)
	require.Equal(t, 1, k.creates)
}
