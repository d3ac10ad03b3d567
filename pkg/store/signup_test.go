package store_test

import (
	"context"
	"errors"
	"net/http"
	"path"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// kcp is a fake that accepts each name once and shows its Users as the cache.
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

func (k *kcp) ChangeUser(context.Context, *v1alpha1.User, store.Match, func(context.Context, *v1alpha1.User) error) (*v1alpha1.User, error) {
	return nil, errs.New(errs.Forbidden, "signing up changes nobody")
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

func (k *kcp) ByUsername(username string) (*v1alpha1.User, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, u := range k.users {
		if u.Spec.RBACIdentity == username {
			return u, true
		}
	}
	return nil, false
}

func (k *kcp) Await(ctx context.Context, _ []tenancy.Ref, cond func() bool) error {
	if cond() {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func spec(subject, username string) v1alpha1.UserSpec {
	return v1alpha1.UserSpec{Issuer: "i", Subject: subject, RBACIdentity: username, DisplayName: subject}
}

func anyName(_, _ string) bool { return false }

func TestSignUp_onTwoHubsCreatesOneUser(t *testing.T) {
	t.Parallel()
	k := &kcp{users: map[string]*v1alpha1.User{}}
	hubs := []*store.SignUp{store.NewSignUp(k, k, anyName, nil), store.NewSignUp(k, k, anyName, nil)}
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

func TestSignUp_addsASuffixToATakenName(t *testing.T) {
	t.Parallel()
	k := &kcp{users: map[string]*v1alpha1.User{}}
	s := store.NewSignUp(k, k, anyName, nil)
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

// An answer is lost and the name belongs to another person: the retry looks as if the
// first attempt had created the User.
func TestSignUp_checksWhoHasTheNameAfterALostAnswer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	weak := 1
	s.refuse = func(method string) *apierrors.StatusError {
		if weak--; weak == 0 && method == http.MethodPost {
			return apierrors.NewServiceUnavailable("a moment")
		}
		return nil
	}
	s.made(aliceAt, "uid", &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "alice"}, Spec: spec("1", "kedge:1")})
	k := &viewed{server: s}
	u, err := store.NewSignUp(s.store(), k, anyName, nil).Ensure(t.Context(), spec("2", "kedge:2"), "alice")
	require.NoError(t, err)
	require.Regexp(t, `^alice-[0-9a-f]{8}$`, u.Name)
}

// viewed is a cache of the Users on a server that is always up to date.
type viewed struct{ *server }

func (v *viewed) ByIdentity(issuer, subject string) (*v1alpha1.User, bool) {
	for _, o := range v.List("users", v1alpha1.GroupName, "users") {
		u := &v1alpha1.User{}
		if v.held(path.Join(path.Dir(aliceAt), o.GetName()), u) && u.Spec.Issuer == issuer && u.Spec.Subject == subject {
			return u, true
		}
	}
	return nil, false
}

func (v *viewed) ByUsername(username string) (*v1alpha1.User, bool) {
	for _, o := range v.List("users", v1alpha1.GroupName, "users") {
		u := &v1alpha1.User{}
		if v.held(path.Join(path.Dir(aliceAt), o.GetName()), u) && u.Spec.RBACIdentity == username {
			return u, true
		}
	}
	return nil, false
}

func (v *viewed) Await(ctx context.Context, _ []tenancy.Ref, cond func() bool) error {
	if cond() {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// A User who was rejected meanwhile is not approved because of an outdated cache.
func TestApprove_changesPendingUsersOnly(t *testing.T) {
	t.Parallel()
	for now, want := range map[v1alpha1.Registration]v1alpha1.Registration{
		v1alpha1.RegistrationPending:  v1alpha1.RegistrationApproved,
		v1alpha1.RegistrationApproved: v1alpha1.RegistrationApproved,
		v1alpha1.RegistrationRejected: v1alpha1.RegistrationRejected,
	} {
		s := newServer(t)
		alice := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "alice"}, Spec: spec("1", "kedge:1")}
		alice.Spec.Registration = v1alpha1.RegistrationPending
		s.made(aliceAt, "uid", alice)
		k := &viewed{server: s}
		waiting, ok := k.ByIdentity("i", "1")
		require.True(t, ok)
		alice.Spec.Registration = now
		s.made(aliceAt, "uid", alice)
		u, err := store.NewSignUp(s.store(), k, anyName, nil).Approve(t.Context(), waiting)
		require.NoError(t, err)
		require.Equal(t, want, u.Spec.Registration, now)
		held, ok := k.ByIdentity("i", "1")
		require.True(t, ok)
		require.Equal(t, want, held.Spec.Registration, now)
	}
}

// Two people with the same username in kcp must not share rights.
func TestSignUp_refusesASecondPersonWithOneUsername(t *testing.T) {
	t.Parallel()
	k := &kcp{users: map[string]*v1alpha1.User{}}
	s := store.NewSignUp(k, k, anyName, nil)
	_, err := s.Ensure(t.Context(), spec("1", "kedge:alice"), "alice")
	require.NoError(t, err)
	for _, preferred := range []string{"alice", "bob"} {
		_, err = s.Ensure(t.Context(), spec("2", "kedge:alice"), preferred)
		require.True(t, errs.Is(err, errs.Forbidden), preferred)
	}
	require.Equal(t, 1, k.creates)
}

// Another replica's cache does not have the first person yet.
func TestSignUp_refusesAUsernameThatTheCacheLacks(t *testing.T) {
	t.Parallel()
	k := &kcp{users: map[string]*v1alpha1.User{}}
	_, err := store.NewSignUp(k, k, anyName, nil).Ensure(t.Context(), spec("1", "kedge:alice"), "alice")
	require.NoError(t, err)
	_, err = store.NewSignUp(k, blind{k}, anyName, nil).Ensure(t.Context(), spec("2", "kedge:alice"), "alice")
	require.True(t, errs.Is(err, errs.Forbidden))
}

// blind is a cache that finds nobody by username.
type blind struct{ *kcp }

func (blind) ByUsername(string) (*v1alpha1.User, bool) { return nil, false }

func TestSignUp_givesNobodyAReservedName(t *testing.T) {
	t.Parallel()
	k := &kcp{users: map[string]*v1alpha1.User{}}
	s := store.NewSignUp(k, k, func(issuer, name string) bool { return issuer == "i" && name == "heidi" }, nil)
	u, err := s.Ensure(t.Context(), spec("1", "kedge:1"), "heidi")
	require.NoError(t, err)
	require.Regexp(t, `^heidi-[0-9a-f]{8}$`, u.Name)
	static := spec("heidi", "heidi")
	static.Issuer = "static"
	u, err = s.Ensure(t.Context(), static, "heidi")
	require.NoError(t, err)
	require.Equal(t, "heidi", u.Name)
}

func TestSignUp_oneSubjectOfTwoIssuersIsTwoPeople(t *testing.T) {
	t.Parallel()
	k := &kcp{users: map[string]*v1alpha1.User{}}
	s := store.NewSignUp(k, k, anyName, nil)
	first, err := s.Ensure(t.Context(), spec("alice", "a:alice"), "alice")
	require.NoError(t, err)
	other := spec("alice", "b:alice")
	other.Issuer = "other"
	second, err := s.Ensure(t.Context(), other, "alice")
	require.NoError(t, err)
	require.NotEqual(t, first.Name, second.Name)
	again, err := s.Ensure(t.Context(), other, "alice")
	require.NoError(t, err)
	require.Equal(t, second.Name, again.Name)
}

// If the User with the name is deleted meanwhile, or kcp does not answer, no other User is
// returned in its place.
func TestSignUp_returnsAFailedRead(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.made(aliceAt, "uid", &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "alice"}, Spec: spec("1", "kedge:1")})
	s.before = func(method string) {
		if method == http.MethodGet {
			s.remove(aliceAt)
		}
	}
	signUp := store.NewSignUp(s.store(), &viewed{server: s}, anyName, nil)
	_, err := signUp.Ensure(t.Context(), spec("2", "kedge:2"), "alice")
	require.True(t, errs.Is(err, errs.NotFound), "%v", err)
	u, err := signUp.Ensure(t.Context(), spec("2", "kedge:2"), "alice")
	require.NoError(t, err)
	require.Equal(t, "alice", u.Name)
}

// Two accounts take the readable name of a third person and try to take its suffix.
func TestSignUp_ofThirdPersonSurvivesTwoWhoTakeTheirNames(t *testing.T) {
	t.Parallel()
	k := &kcp{users: map[string]*v1alpha1.User{}}
	s := store.NewSignUp(k, k, anyName, nil)
	names := tenancy.UserNames("i", "victim", "alice", "")
	for i, preferred := range names {
		subject := strconv.Itoa(i)
		u, err := s.Ensure(t.Context(), spec(subject, "kedge:"+subject), preferred)
		require.NoError(t, err)
		require.Equal(t, i == 0, u.Name == preferred, "%s is the name of %s", u.Name, preferred)
	}
	u, err := s.Ensure(t.Context(), spec("victim", "kedge:victim"), "alice")
	require.NoError(t, err)
	require.Equal(t, names[1], u.Name)
}

// All names but the last belong to other people; 1000 rounds of two hubs make one User each.
func TestSignUp_onTwoHubsCreatesOneUserWhateverNamesAreTaken(t *testing.T) {
	t.Parallel()
	for round := range 1000 {
		subject := strconv.Itoa(round)
		k := &kcp{users: map[string]*v1alpha1.User{}}
		names := tenancy.UserNames("i", subject, "alice", "")
		taken := round % (len(names) + 1)
		for _, name := range names[:taken] {
			k.users[name] = &v1alpha1.User{Spec: spec("owner of "+name, "kedge:"+name)}
		}
		hubs := []*store.SignUp{store.NewSignUp(k, k, anyName, nil), store.NewSignUp(k, k, anyName, nil)}
		var all sync.WaitGroup
		failures := make([]error, 4)
		for i := range failures {
			all.Go(func() { _, failures[i] = hubs[i%2].Ensure(t.Context(), spec(subject, "kedge:"+subject), "alice") })
		}
		all.Wait()
		for _, err := range failures {
			if taken < len(names) {
				require.NoError(t, err)
				continue
			}
			var e *errs.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, errs.Unavailable, e.Code)
			require.NotZero(t, e.RetryAfter)
		}
		require.Equal(t, min(1, len(names)-taken), k.creates)
	}
}

func TestSignUp_returnsAndForgetsFailuresOfKCP(t *testing.T) {
	t.Parallel()
	k := &kcp{users: map[string]*v1alpha1.User{}, failure: errs.Wrap(errs.Unavailable, errors.New("down"), "try again")}
	s := store.NewSignUp(k, k, anyName, nil)
	_, err := s.Ensure(t.Context(), spec("1", "kedge:1"), "alice")
	require.True(t, errs.Is(err, errs.Unavailable))
	k.mu.Lock()
	k.failure = nil
	k.mu.Unlock()
	_, err = s.Ensure(t.Context(), spec("1", "kedge:1"), "alice")
	require.NoError(t, err)
}

func TestSignUp_outlivesACancelledCaller(t *testing.T) {
	t.Parallel()
	k := &kcp{users: map[string]*v1alpha1.User{}}
	s := store.NewSignUp(k, k, anyName, nil)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = s.Ensure(gone, spec("1", "kedge:1"), "alice")
	u, err := s.Ensure(t.Context(), spec("1", "kedge:1"), "alice")
	require.NoError(t, err)
	require.Equal(t, "alice", u.Name)
	require.Equal(t, 1, k.creates)
}
