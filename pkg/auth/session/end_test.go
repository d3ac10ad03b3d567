package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// A restored hub has a Session as it was, and its client has secrets that were handed out since.
func TestAdvance_takesTheLastSecretAndNoEarlierOne(t *testing.T) {
	t.Parallel()
	f := setup(t)
	first := f.login("alice")
	restored := f.sessionOf(first.Secret).DeepCopy()
	second, err := f.Refresh(t.Context(), first.Secret)
	require.NoError(t, err)
	third, err := f.Refresh(t.Context(), second.Secret)
	require.NoError(t, err)
	f.Put("users", restored)
	for range 2 {
		require.NoError(t, f.Advance(t.Context(), third.Session, third.Generation))
		require.Equal(t, third.Generation, f.sessionOf(first.Secret).Spec.Generation)
	}
	require.NoError(t, f.Advance(t.Context(), third.Session, second.Generation), "an earlier event")
	_, err = f.Refresh(t.Context(), third.Secret)
	require.NoError(t, err)
	_, err = f.Refresh(t.Context(), first.Secret)
	requireEnded(t, err, first.Session)
	require.True(t, errs.Is(f.Advance(t.Context(), "other", 1), errs.NotFound))
}

func TestEnd_endsOnlyTheOwnersSession(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.login("alice")
	name := f.sessionOf(tokens.Secret).Name
	for _, err := range []error{f.End(t.Context(), "bob", name), f.End(t.Context(), "alice", "019ab000-0000-7000-8000-000000000000")} {
		require.True(t, errs.Is(err, errs.NotFound))
		require.EqualError(t, err, "there is no such session")
	}
	require.Nil(t, f.sessionOf(tokens.Secret).Spec.EndedAt)
	require.NoError(t, f.End(t.Context(), "alice", name))
	ended := f.sessionOf(tokens.Secret)
	require.Equal(t, f.clock.Now().Unix(), ended.Spec.EndedAt.Unix())
	require.Len(t, ended.Spec.Tokens, 1, "its tokens are known until they expire")
	f.pass(time.Second)
	require.NoError(t, f.End(t.Context(), "alice", name))
	require.Equal(t, ended.Spec.EndedAt.Unix(), f.sessionOf(tokens.Secret).Spec.EndedAt.Unix())
	_, err := f.Refresh(t.Context(), tokens.Secret)
	requireCode(t, err, session.CodeInvalidGrant)
}

func TestEndAll_signsOutEverywhere(t *testing.T) {
	t.Parallel()
	f := setup(t)
	cli, other := f.login("alice"), f.login("bob")
	cookie, _, err := f.LogIn(t.Context(), f.request("alice"))
	require.NoError(t, err)
	f.pass(time.Minute)
	require.NoError(t, f.EndAll(t.Context(), "alice"))
	require.Equal(t, f.clock.Now().Unix(), f.user("alice").Spec.TokensValidAfter.Unix())
	require.NotNil(t, f.sessionOf(cli.Secret).Spec.EndedAt)
	require.NotNil(t, f.sessionOf(cookie).Spec.EndedAt)
	_, err = f.Refresh(t.Context(), cli.Secret)
	requireCode(t, err, session.CodeInvalidGrant)

	_, err = f.Refresh(t.Context(), other.Secret)
	require.NoError(t, err)
	f.pass(time.Second)
	again := f.login("alice")
	_, err = f.Refresh(t.Context(), again.Secret)
	require.NoError(t, err)
	require.True(t, errs.Is(f.EndAll(t.Context(), "nobody"), errs.NotFound))
}

// A soft-delete ends Sessions by rule. What is withdrawn must not begin them again.
func TestWriteEnds_endsWhatTheRuleEnded(t *testing.T) {
	t.Parallel()
	f := setup(t)
	old, other := f.login("alice"), f.login("bob")
	require.NoError(t, f.WriteEnds(t.Context(), "alice"))
	require.Nil(t, f.sessionOf(old.Secret).Spec.EndedAt)
	f.pass(time.Minute)
	alice, deleted := f.user("alice"), metav1.NewTime(f.clock.Now())
	alice.Status.DeletionRequestedAt = &deleted
	f.Put("users", alice)
	f.pass(time.Minute)
	fresh := f.login("alice")
	require.NoError(t, f.WriteEnds(t.Context(), "alice"))
	require.NotNil(t, f.sessionOf(old.Secret).Spec.EndedAt)
	require.Nil(t, f.sessionOf(fresh.Secret).Spec.EndedAt, "it began after the deletion")
	require.Nil(t, f.sessionOf(other.Secret).Spec.EndedAt)
	require.True(t, errs.Is(f.WriteEnds(t.Context(), "nobody"), errs.NotFound))
}

func TestRevoke_endsTheSessionOfAnOlderSecretToo(t *testing.T) {
	t.Parallel()
	f := setup(t)
	first := f.login("alice")
	second, err := f.Refresh(t.Context(), first.Secret)
	require.NoError(t, err)
	f.pass(time.Hour)
	require.NoError(t, f.Revoke(t.Context(), first.Secret))
	require.NoError(t, f.Revoke(t.Context(), first.Secret))
	_, err = f.Refresh(t.Context(), second.Secret)
	requireCode(t, err, session.CodeInvalidGrant)
}
