package session_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

var errLost = errors.New("lost")

func TestRefresh_asksTheProviderOnceForTwentyAtOnce(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.login("alice")
	replicas := []*session.Service{f.Service, f.replica(f.keys...)}
	f.pass(56 * time.Minute)
	var all sync.WaitGroup
	got := make([]session.Tokens, 20)
	for i := range got {
		all.Go(func() {
			var err error
			got[i], err = replicas[i%2].Refresh(t.Context(), tokens.Secret)
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, g := range got {
		require.Equal(t, got[0], g)
	}
	require.NotEqual(t, tokens.IDToken, got[0].IDToken)
	require.NotEqual(t, tokens.Secret, got[0].Secret)
	require.Equal(t, 1, f.provider.asked())
	require.Len(t, f.sessionOf(tokens.Secret).Spec.Tokens, 2)
	f.requireNoneStored(got[0].IDToken, got[0].Secret, f.provider.valid["alice"])
}

// Who leaves a group loses it with the refresh, before the token is handed out.
func TestRefresh_tellsWhatTheProviderSaysNow(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.login("alice")
	var heard []string
	var failure error
	f.Heard = func(_ context.Context, u *v1alpha1.User, id *auth.Identity) error {
		heard = append(heard, u.Name+" "+id.Subject)
		return failure
	}
	f.pass(56 * time.Minute)
	failure = errs.New(errs.Unavailable, "kcp is away")
	_, err := f.Refresh(t.Context(), tokens.Secret)
	require.True(t, errs.Is(err, errs.Unavailable))
	failure = nil
	_, err = f.Refresh(t.Context(), tokens.Secret)
	require.NoError(t, err)
	require.Equal(t, []string{"alice alice", "alice alice"}, heard)
}

func TestRefresh_handsTheTokenOutAgainWhileItIsFresh(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.login("alice")
	f.pass(54 * time.Minute)
	next, err := f.Refresh(t.Context(), tokens.Secret)
	require.NoError(t, err)
	require.Equal(t, tokens.IDToken, next.IDToken)
	require.Zero(t, f.provider.asked())
	f.pass(2 * time.Minute)
	later, err := f.Refresh(t.Context(), next.Secret)
	require.NoError(t, err)
	require.NotEqual(t, tokens.IDToken, later.IDToken)
	require.Equal(t, 1, f.provider.asked())

	// The margin of a token that lives a minute is half its life.
	f.provider.set(func(p *provider) { p.life = time.Minute })
	short := f.login("bob")
	f.pass(29 * time.Second)
	again, err := f.Refresh(t.Context(), short.Secret)
	require.NoError(t, err)
	require.Equal(t, short.IDToken, again.IDToken)
	f.pass(2 * time.Second)
	again, err = f.Refresh(t.Context(), again.Secret)
	require.NoError(t, err)
	require.NotEqual(t, short.IDToken, again.IDToken)
}

func TestRefresh_takesAnOlderSecretForAMinute(t *testing.T) {
	t.Parallel()
	f := setup(t)
	first := f.login("alice").Secret
	second, err := f.Refresh(t.Context(), first)
	require.NoError(t, err)
	f.pass(50 * time.Second)
	third, err := f.Refresh(t.Context(), second.Secret)
	require.NoError(t, err)
	newest, err := f.Refresh(t.Context(), first)
	require.NoError(t, err)
	require.Equal(t, third, newest, "an older secret gets the newest one")
	again, err := f.replica(f.keys...).Refresh(t.Context(), second.Secret)
	require.NoError(t, err)
	require.Equal(t, third, again)
	require.Nil(t, f.sessionOf(first).Spec.EndedAt)
}

func TestRefresh_endsTheSessionOfAStolenSecret(t *testing.T) {
	t.Parallel()
	f := setup(t)
	first := f.login("alice").Secret
	second, err := f.Refresh(t.Context(), first)
	require.NoError(t, err)
	f.pass(time.Minute)
	require.Equal(t, f.sessionOf(first).Name, second.Session)
	require.Equal(t, f.sessionOf(first).Spec.Generation, second.Generation)
	_, err = f.Refresh(t.Context(), first)
	requireCode(t, err, session.CodeInvalidGrant)
	requireEnded(t, err, second.Session)
	require.NotNil(t, f.sessionOf(first).Spec.EndedAt)
	_, err = f.Refresh(t.Context(), second.Secret)
	requireCode(t, err, session.CodeInvalidGrant)
	requireEnded(t, err, "")
}

func TestRefresh_boundsTheSecretsOfAMinute(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.login("alice")
	for range 40 {
		var err error
		tokens, err = f.Refresh(t.Context(), tokens.Secret)
		require.NoError(t, err)
	}
	held := f.sessionOf(tokens.Secret)
	require.Len(t, held.Spec.Rotations, 32)
	require.EqualValues(t, 32, held.Spec.Generation)
	f.pass(2 * time.Minute)
	_, err := f.Refresh(t.Context(), tokens.Secret)
	require.NoError(t, err)
	require.Len(t, f.sessionOf(tokens.Secret).Spec.Rotations, 1)
}

func TestRefresh_keepsBothSessionsOfAPerson(t *testing.T) {
	t.Parallel()
	f := setup(t)
	first := f.login("alice")
	second := f.login("alice")
	_, _, err := f.LogIn(t.Context(), f.request("alice"))
	require.NoError(t, err)
	f.pass(56 * time.Minute)
	for _, tokens := range []session.Tokens{first, second} {
		next, err := f.Refresh(t.Context(), tokens.Secret)
		require.NoError(t, err)
		require.NotEqual(t, tokens.IDToken, next.IDToken)
	}
}

// A login elsewhere ends the refresh token while a refresh presents it, and stores its own a
// moment later.
func TestRefresh_triesTheGrantOfANewerLogin(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.login("alice")
	f.pass(56 * time.Minute)
	var login session.Login
	saved := make(chan error, 1)
	f.provider.set(func(p *provider) {
		p.during = sync.OnceFunc(func() {
			login = f.request("alice")
			go func() {
				_, err := f.Authorize(context.WithoutCancel(t.Context()), login)
				saved <- err
			}()
		})
	})
	next, err := f.Refresh(t.Context(), tokens.Secret)
	require.NoError(t, err)
	require.NoError(t, <-saved)
	require.NotEqual(t, tokens.IDToken, next.IDToken)
	require.Equal(t, 2, f.provider.asked())
}

func TestRefresh_endsWhatTheProviderRefuses(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.login("alice")
	other := f.login("bob")
	f.pass(56 * time.Minute)
	f.provider.set(func(p *provider) { delete(p.valid, "alice") })
	_, err := f.Refresh(t.Context(), tokens.Secret)
	requireCode(t, err, session.CodeInvalidGrant)
	require.ErrorContains(t, err, "kedge login")
	requireEnded(t, err, tokens.Session)
	require.NotNil(t, f.sessionOf(tokens.Secret).Spec.EndedAt)
	_, err = f.Refresh(t.Context(), other.Secret)
	require.NoError(t, err)
}

func TestRefresh_keepsTheSessionWhileTheProviderIsDown(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.login("alice")
	f.pass(56 * time.Minute)
	for _, failure := range []error{errs.New(errs.Unavailable, "429"), errLost, context.DeadlineExceeded} {
		f.provider.set(func(p *provider) { p.fails = failure })
		_, err := f.Refresh(t.Context(), tokens.Secret)
		if errs.Is(failure, errs.Unavailable) {
			require.ErrorIs(t, err, failure)
		} else {
			requireUnavailable(t, err)
		}
	}
	require.Nil(t, f.sessionOf(tokens.Secret).Spec.EndedAt)
	f.provider.set(func(p *provider) { p.fails = nil })
	_, err := f.Refresh(t.Context(), tokens.Secret)
	require.NoError(t, err)
}

// The provider has replaced the refresh token, and its new key cannot be fetched.
func TestRefresh_keepsTheGrantOfAnUnverifiedToken(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.login("alice")
	f.pass(56 * time.Minute)
	f.provider.set(func(p *provider) { p.unverified = errs.New(errs.Unavailable, "the key is not known") })
	_, err := f.Refresh(t.Context(), tokens.Secret)
	require.True(t, errs.Is(err, errs.Unavailable), err)
	f.provider.set(func(p *provider) { p.unverified = errs.New(errs.Forbidden, "the group is reserved") })
	_, err = f.Refresh(t.Context(), tokens.Secret)
	requireCode(t, err, session.CodeInvalidGrant)
	require.EqualError(t, err, "the group is reserved")
	require.Nil(t, f.sessionOf(tokens.Secret).Spec.EndedAt)
	f.provider.set(func(p *provider) { p.unverified = nil })
	next, err := f.Refresh(t.Context(), tokens.Secret)
	require.NoError(t, err)
	require.NotEqual(t, tokens.IDToken, next.IDToken)
}

func TestRefresh_refusesTheTokenOfAnotherPerson(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.login("alice")
	f.pass(56 * time.Minute)
	f.provider.set(func(p *provider) { p.subject = "mallory" })
	_, err := f.Refresh(t.Context(), tokens.Secret)
	requireCode(t, err, session.CodeInvalidGrant)
	require.NotNil(t, f.sessionOf(tokens.Secret).Spec.EndedAt)
}

func TestRefresh_completesWithoutItsClient(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.login("alice")
	f.pass(56 * time.Minute)
	ctx, leave := context.WithCancel(t.Context())
	asked, answer := make(chan struct{}), make(chan struct{})
	f.provider.set(func(p *provider) {
		p.during = sync.OnceFunc(func() { close(asked); <-answer })
	})
	left := make(chan error, 1)
	go func() {
		_, err := f.Refresh(ctx, tokens.Secret)
		left <- err
	}()
	<-asked
	leave()
	requireUnavailable(t, <-left)
	close(answer)
	next, err := f.Refresh(t.Context(), tokens.Secret)
	require.NoError(t, err)
	require.NotEqual(t, tokens.IDToken, next.IDToken)
	require.Equal(t, 1, f.provider.asked())
}

func TestRefresh_takesTheLeaseOfADeadReplica(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.login("alice")
	f.pass(56 * time.Minute)
	// The other replica dies while it waits for the provider: it writes nothing more.
	dead := make(chan struct{})
	asked := make(chan struct{})
	var first atomic.Bool
	f.provider.set(func(p *provider) {
		p.during = func() {
			if first.CompareAndSwap(false, true) {
				close(asked)
				<-dead
			}
		}
	})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = f.replica(f.keys...).Refresh(t.Context(), tokens.Secret)
	}()
	<-asked
	f.pass(21 * time.Second)
	_, err := f.Refresh(t.Context(), tokens.Secret)
	require.NoError(t, err)
	close(dead)
	<-gone
}

func TestRefresh_survivesLostAnswers(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.login("alice")
	f.pass(56 * time.Minute)
	seen := map[string]bool{}
	var mu sync.Mutex
	f.FailAfter(func(r kcpfake.Request) error {
		mu.Lock()
		defer mu.Unlock()
		if key := string(r.Body); r.Verb == "patch" && !seen[key] {
			seen[key] = true
			return apierrors.NewInternalError(errLost)
		}
		return nil
	})
	next, err := f.Refresh(t.Context(), tokens.Secret)
	require.NoError(t, err)
	require.Equal(t, 1, f.provider.asked())
	held := f.sessionOf(tokens.Secret)
	require.EqualValues(t, 2, held.Spec.Generation)
	require.Len(t, held.Spec.Tokens, 2)
	later, err := f.Refresh(t.Context(), next.Secret)
	require.NoError(t, err)
	require.Equal(t, next.IDToken, later.IDToken)
}

func TestRefresh_followsARotationOfTheKeys(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.login("alice")
	added := newKey(t)
	rotated := f.replica(added, f.keys[0])
	next, err := rotated.Refresh(t.Context(), tokens.Secret)
	require.NoError(t, err)
	require.Equal(t, tokens.IDToken, next.IDToken)
	f.pass(56 * time.Minute)
	next, err = rotated.Refresh(t.Context(), next.Secret)
	require.NoError(t, err)
	// The older key is dropped when everything was sealed with the newer one.
	dropped := f.replica(added)
	next, err = dropped.Refresh(t.Context(), next.Secret)
	require.NoError(t, err)
	_, err = f.replica(newKey(t)).Refresh(t.Context(), next.Secret)
	requireCode(t, err, session.CodeInvalidGrant)
	require.Nil(t, f.sessionOf(next.Secret).Spec.EndedAt)
}

// The provider gives no other refresh token, so the stored one must not stay encrypted with the
// key that is about to be removed.
func TestRefresh_encryptsAKeptRefreshTokenAnew(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.login("alice")
	f.provider.set(func(p *provider) { p.keeps = true })
	added := newKey(t)
	rotated, dropped := f.replica(added, f.keys[0]), f.replica(added)
	f.pass(56 * time.Minute)
	next, err := rotated.Refresh(t.Context(), tokens.Secret)
	require.NoError(t, err)
	f.pass(56 * time.Minute)
	later, err := dropped.Refresh(t.Context(), next.Secret)
	require.NoError(t, err)
	require.NotEqual(t, next.IDToken, later.IDToken)
	require.Equal(t, 2, f.provider.asked())

	// It is written once, not at every refresh.
	f.pass(56 * time.Minute)
	before := f.grant("alice")
	_, err = dropped.Refresh(t.Context(), later.Secret)
	require.NoError(t, err)
	require.Equal(t, before.Sealed, f.grant("alice").Sealed)
}

func TestRefresh_endsWithoutARefreshToken(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens, err := f.Refresh(t.Context(), f.loginWithoutRefresh("alice").Secret)
	require.NoError(t, err)
	f.pass(56 * time.Minute)
	_, err = f.Refresh(t.Context(), tokens.Secret)
	requireCode(t, err, session.CodeInvalidGrant)
}

func TestRefresh_refusesSessionsThatEndedByRule(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(f *fixture){
		"idle": func(f *fixture) { f.pass(idle) },
		"rejected": func(f *fixture) {
			u := f.user("alice")
			u.Spec.Registration = v1alpha1.RegistrationRejected
			f.Put("users", u)
		},
		"removed": func(f *fixture) { f.Remove("users", f.user("alice")) },
		"soft-deleted": func(f *fixture) {
			u := f.user("alice")
			now := metav1.NewTime(f.clock.Now())
			u.Status.DeletionRequestedAt = &now
			f.Put("users", u)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			tokens := f.login("alice")
			tokens, err := f.Refresh(t.Context(), tokens.Secret)
			require.NoError(t, err)
			end(f)
			_, err = f.Refresh(t.Context(), tokens.Secret)
			requireCode(t, err, session.CodeInvalidGrant)
			require.Zero(t, f.provider.asked())
		})
	}
}

func TestTouch_writesOnceInFiveMinutes(t *testing.T) {
	t.Parallel()
	f := setup(t)
	cookie, _, err := f.LogIn(t.Context(), f.request("alice"))
	require.NoError(t, err)
	name := f.sessionOf(cookie).Name
	began := f.clock.Now()
	f.pass(4 * time.Minute)
	require.NoError(t, f.Touch(t.Context(), name))
	require.Equal(t, began.Unix(), f.sessionOf(cookie).Spec.LastUsedAt.Unix())
	f.pass(time.Minute)
	require.NoError(t, f.Touch(t.Context(), name))
	require.Equal(t, f.clock.Now().Unix(), f.sessionOf(cookie).Spec.LastUsedAt.Unix())
}

// A device login that nobody confirms has ended the older refresh token at the provider.
func TestRefresh_survivesALoginThatBecomesNoSession(t *testing.T) {
	t.Parallel()
	for kept, want := range map[bool]string{true: "", false: session.CodeInvalidGrant} {
		f := setup(t)
		tokens := f.login("alice")
		f.pass(56 * time.Minute)
		unconfirmed := f.request("alice")
		if kept {
			require.NoError(t, f.KeepGrant(t.Context(), unconfirmed.User, unconfirmed.Grant))
		}
		_, err := f.Refresh(t.Context(), tokens.Secret)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		var refused *session.Error
		require.ErrorAs(t, err, &refused, "the control")
		require.Equal(t, want, refused.Code)
	}
}

// The reserve of a full store is for what ends something.
func TestRefresh_writesNothingIntoTheReserve(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.login("alice")
	full := errs.New(errs.InsufficientStorage, "full")
	var room error
	f.Room = func() error { return room }
	f.pass(30 * time.Minute)
	room = full
	before := f.sessionOf(tokens.Secret)
	got, err := f.Refresh(t.Context(), tokens.Secret)
	require.NoError(t, err)
	require.Equal(t, tokens, got, "the token that is stored, and the same secret")
	require.ErrorIs(t, f.Touch(t.Context(), before.Name), full)
	f.pass(26 * time.Minute)
	_, err = f.Refresh(t.Context(), tokens.Secret)
	require.ErrorIs(t, err, full)
	require.Zero(t, f.provider.asked())
	require.Equal(t, before.ResourceVersion, f.sessionOf(tokens.Secret).ResourceVersion)
	room = nil
	got, err = f.Refresh(t.Context(), tokens.Secret)
	require.NoError(t, err)
	require.NotEqual(t, tokens.IDToken, got.IDToken)
	require.NotEqual(t, tokens.Secret, got.Secret)
}
