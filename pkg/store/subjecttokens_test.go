package store_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

func TestUseSubjectToken_succeedsOnceOnAllReplicas(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	one, two := s.store(), s.store()
	until := time.Now().Add(time.Hour)
	var used atomic.Int32
	var all sync.WaitGroup
	for i := range 50 {
		replica := one
		if i%2 == 0 {
			replica = two
		}
		all.Go(func() {
			err := replica.UseSubjectToken(t.Context(), "abc", until)
			if err == nil {
				used.Add(1)
			} else if !errs.Is(err, errs.Conflict) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, used.Load())
	require.NoError(t, one.UseSubjectToken(t.Context(), "another", until))
	require.NoError(t, two.ReleaseSubjectToken(t.Context(), "abc"))
	require.NoError(t, two.ReleaseSubjectToken(t.Context(), "abc"), "it is released already")
	require.NoError(t, one.UseSubjectToken(t.Context(), "abc", until), "a use that led to nothing")
}

func TestForgetSubjectTokens_keepsThoseThatCouldBeReplayed(t *testing.T) {
	t.Parallel()
	s := newServer(t).store()
	now := time.Now()
	require.NoError(t, s.UseSubjectToken(t.Context(), "expired", now.Add(-time.Minute)))
	require.NoError(t, s.UseSubjectToken(t.Context(), "living", now.Add(time.Minute)))
	require.NoError(t, s.ForgetSubjectTokens(t.Context(), now))
	require.NoError(t, s.UseSubjectToken(t.Context(), "expired", now))
	require.True(t, errs.Is(s.UseSubjectToken(t.Context(), "living", now), errs.Conflict))
}
