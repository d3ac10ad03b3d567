package session_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

func TestDevice_logsInAfterAPersonConfirmed(t *testing.T) {
	t.Parallel()
	f := setup(t)
	device, err := f.StartDevice(t.Context(), session.DeviceRequest{Description: "server\x1b[1m", Peer: "192.0.2.1"})
	require.NoError(t, err)
	require.Regexp(t, "^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$", device.UserCode)
	require.Equal(t, 10*time.Minute, device.ExpiresIn)
	_, err = f.PollDevice(t.Context(), device.DeviceCode)
	requireCode(t, err, session.CodeAuthorizationPending)

	other := f.replica(f.keys...)
	typed := strings.ToLower(strings.ReplaceAll(device.UserCode, "-", " "))
	shown, err := other.Device(t.Context(), typed)
	require.NoError(t, err)
	require.Equal(t, session.DeviceRequest{Description: "server[1m", Peer: "192.0.2.1"}, shown)
	l := f.request("alice")
	require.NoError(t, other.ConfirmDevice(t.Context(), typed, l))
	_, err = other.Device(t.Context(), typed)
	requireCode(t, err, session.CodeExpiredToken)
	requireCode(t, other.ConfirmDevice(t.Context(), typed, f.request("bob")), session.CodeExpiredToken)
	requireCode(t, other.DenyDevice(t.Context(), typed), session.CodeExpiredToken)

	f.pass(5 * time.Second)
	tokens, err := f.PollDevice(t.Context(), device.DeviceCode)
	require.NoError(t, err)
	require.Equal(t, l.Grant.IDToken, tokens.IDToken)
	require.Equal(t, "server[1m", f.sessionOf(tokens.Secret).Spec.Description)
	tokens, err = f.Refresh(t.Context(), tokens.Secret)
	require.NoError(t, err)
	f.requireNoneStored(device.DeviceCode, device.UserCode, strings.ReplaceAll(device.UserCode, "-", ""), tokens.IDToken, tokens.Secret)

	f.pass(5 * time.Second)
	_, err = f.PollDevice(t.Context(), device.DeviceCode)
	requireCode(t, err, session.CodeInvalidGrant)
	require.NotNil(t, f.sessionOf(tokens.Secret).Spec.EndedAt, "a code that is presented again ends the session")
}

// The answer to a poll can be lost on its way.
func TestDevice_getsItsTokensAgainWithinAMinute(t *testing.T) {
	t.Parallel()
	f := setup(t)
	device, err := f.StartDevice(t.Context(), session.DeviceRequest{})
	require.NoError(t, err)
	require.NoError(t, f.ConfirmDevice(t.Context(), device.UserCode, f.request("alice")))
	first, err := f.PollDevice(t.Context(), device.DeviceCode)
	require.NoError(t, err)
	f.pass(59 * time.Second)
	again, err := f.replica(f.keys...).PollDevice(t.Context(), device.DeviceCode)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Nil(t, f.sessionOf(first.Secret).Spec.EndedAt)
	f.pass(time.Second)
	_, err = f.replica(f.keys...).PollDevice(t.Context(), device.DeviceCode)
	requireCode(t, err, session.CodeInvalidGrant)
	require.NotNil(t, f.sessionOf(first.Secret).Spec.EndedAt)
	_, err = f.replica(f.keys...).PollDevice(t.Context(), device.DeviceCode)
	requireCode(t, err, session.CodeInvalidGrant)
	require.ErrorContains(t, err, "kedge login")
}

// A device that has given up on a poll polls again while the hub still answers the first.
func TestDevice_pollsTwiceAtOnce(t *testing.T) {
	t.Parallel()
	f := setup(t)
	device, err := f.StartDevice(t.Context(), session.DeviceRequest{})
	require.NoError(t, err)
	require.NoError(t, f.ConfirmDevice(t.Context(), device.UserCode, f.request("alice")))
	other := f.replica(f.keys...)
	var polled atomic.Bool
	var faster session.Tokens
	f.FailBefore(func(r kcpfake.Request) error {
		if r.Resource == "sessions" && r.Verb == "patch" && polled.CompareAndSwap(false, true) {
			f.pass(time.Second)
			faster, err = other.PollDevice(t.Context(), device.DeviceCode)
		}
		return nil
	})
	tokens, slower := f.PollDevice(t.Context(), device.DeviceCode)
	require.NoError(t, err)
	require.NoError(t, slower)
	require.Equal(t, faster, tokens)
	require.Nil(t, f.sessionOf(tokens.Secret).Spec.EndedAt)
}

func TestDevice_staysOutWhenAPersonDenies(t *testing.T) {
	t.Parallel()
	f := setup(t)
	device, err := f.StartDevice(t.Context(), session.DeviceRequest{})
	require.NoError(t, err)
	require.NoError(t, f.DenyDevice(t.Context(), device.UserCode))
	requireCode(t, f.ConfirmDevice(t.Context(), device.UserCode, f.request("alice")), session.CodeExpiredToken)
	_, err = f.PollDevice(t.Context(), device.DeviceCode)
	requireCode(t, err, session.CodeAccessDenied)
}

func TestDevice_expires(t *testing.T) {
	t.Parallel()
	f := setup(t)
	device, err := f.StartDevice(t.Context(), session.DeviceRequest{})
	require.NoError(t, err)
	f.pass(10 * time.Minute)
	_, err = f.Device(t.Context(), device.UserCode)
	requireCode(t, err, session.CodeExpiredToken)
	requireCode(t, f.ConfirmDevice(t.Context(), device.UserCode, f.request("alice")), session.CodeExpiredToken)
	_, err = f.PollDevice(t.Context(), device.DeviceCode)
	requireCode(t, err, session.CodeExpiredToken)
}

func TestDevice_takesNoCodeThatWasNotGiven(t *testing.T) {
	t.Parallel()
	f := setup(t)
	device, err := f.StartDevice(t.Context(), session.DeviceRequest{})
	require.NoError(t, err)
	f.ForgetRequests()
	for _, code := range []string{"", "BCDF", "AAAA-AAAA", "BCDF-GHJKL", "ＢＣＤＦ-ＧＨＪＫ", "../../secrets/x", strings.Repeat("B", 1<<20)} {
		_, err := f.Device(t.Context(), code)
		requireCode(t, err, session.CodeExpiredToken)
	}
	require.Empty(t, f.Requests())
	another := "BCDF-GHJK"
	if device.UserCode == another {
		another = "BCDF-GHJL"
	}
	_, err = f.Device(t.Context(), another)
	requireCode(t, err, session.CodeExpiredToken)
	_, err = f.Device(t.Context(), device.UserCode)
	require.NoError(t, err)
}

func TestPollDevice_slowsDown(t *testing.T) {
	t.Parallel()
	f := setup(t)
	device, err := f.StartDevice(t.Context(), session.DeviceRequest{})
	require.NoError(t, err)
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, session.CodeAuthorizationPending},
		{5 * time.Second, session.CodeAuthorizationPending},
		{3 * time.Second, session.CodeSlowDown},
		{5 * time.Second, session.CodeSlowDown},
		{15 * time.Second, session.CodeAuthorizationPending},
	} {
		f.pass(step.after)
		_, err := f.PollDevice(t.Context(), device.DeviceCode)
		requireCode(t, err, step.want)
	}
}
