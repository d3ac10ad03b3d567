package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// ways are the ways in which a login becomes a Session.
func (f *fixture) ways() map[string]func(l session.Login) error {
	return map[string]func(session.Login) error{
		"the command line": func(l session.Login) error { _, err := f.Authorize(f.t.Context(), l); return err },
		"the portal":       func(l session.Login) error { _, _, err := f.LogIn(f.t.Context(), l); return err },
		"a device": func(l session.Login) error {
			device, err := f.StartDevice(f.t.Context(), session.DeviceRequest{})
			require.NoError(f.t, err)
			err = f.ConfirmDevice(f.t.Context(), device.UserCode, l)
			_, polled := f.PollDevice(f.t.Context(), device.DeviceCode)
			require.Equal(f.t, err == nil, polled == nil, "a device gets tokens of a login that was accepted")
			return err
		},
	}
}

// living counts the Sessions in kcp that have not ended.
func (f *fixture) living() (n int) {
	for _, o := range f.List("users", v1alpha1.GroupName, "sessions") {
		spec := o.Object["spec"].(map[string]any)
		if _, ended := spec["endedAt"]; !ended {
			n++
		}
	}
	return n
}

// An attacker begins a login in the browser of a person, stops at the page that waits for a click, and
// clicks after the person has signed out everywhere.
func TestLogin_thatWaitsForItsClickDoesNotSurviveASignOut(t *testing.T) {
	t.Parallel()
	for name := range setup(t).ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			way := f.ways()[name]
			waiting, ahead := f.request("alice"), f.request("alice")
			ahead.BeganAt = f.clock.Now()
			ahead.Grant.Identity.IssuedAt = f.clock.Now().Add(2 * time.Minute)
			f.pass(time.Minute)
			require.NoError(t, f.EndAll(t.Context(), "alice"))
			f.pass(time.Minute)
			for _, l := range []session.Login{waiting, ahead} {
				err := way(l)
				require.True(t, errs.Is(err, errs.Forbidden), "%v", err)
				require.ErrorContains(t, err, "signed out everywhere")
				require.Zero(t, f.living())
			}
			require.NoError(t, way(f.request("alice")), "a login after the sign-out")
			require.Equal(t, 1, f.living())
		})
	}
}

// The sign-out comes at any moment of a login that is on its way.
func TestLogin_onItsWayDoesNotSurviveASignOut(t *testing.T) {
	t.Parallel()
	verb := func(verb, resource string) func(kcpfake.Request) bool {
		return func(r kcpfake.Request) bool { return r.Verb == verb && r.Resource == resource }
	}
	for name, at := range map[string]struct {
		after bool
		of    func(kcpfake.Request) bool
	}{
		"before the session is written":   {of: verb("create", "sessions")},
		"after the session is written":    {after: true, of: verb("create", "sessions")},
		"before the person is read again": {of: verb("get", "users")},
		"after the person was read again": {after: true, of: verb("get", "users")},
	} {
		for _, way := range []string{"the command line", "the portal"} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				f := setup(t)
				l, other, done := f.request("alice"), f.replica(f.keys...), false
				signOut := func(r kcpfake.Request) error {
					if !done && at.of(r) {
						done = true
						f.pass(2 * time.Second)
						require.NoError(t, other.EndAll(t.Context(), "alice"))
						f.pass(2 * time.Second)
					}
					return nil
				}
				if at.after {
					f.FailAfter(signOut)
				} else {
					f.FailBefore(signOut)
				}
				_ = f.ways()[way](l)
				require.True(t, done)
				require.Zero(t, f.living())
			})
		}
	}
}

// A login whose end cannot be written is not handed out, and says that it can be tried again.
func TestLogin_isRefusedIfNothingTellsWhetherThePersonSignedOut(t *testing.T) {
	t.Parallel()
	f := setup(t)
	l := f.request("alice")
	f.FailBefore(func(r kcpfake.Request) error {
		if r.Verb == "get" && r.Resource == "users" {
			return errs.New(errs.Unavailable, "kcp is unavailable")
		}
		return nil
	})
	_, err := f.Authorize(t.Context(), l)
	requireUnavailable(t, err)
	require.Zero(t, f.living())
}
