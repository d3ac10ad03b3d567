package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSettled_rechecksStreamsBeforeItHolds(t *testing.T) {
	t.Parallel()
	var calls []string
	holds := false
	followed := settled(func(org, workspace, user string) bool {
		calls = append(calls, "ask "+org+" "+workspace+" "+user)
		return holds
	}, func(user string) { calls = append(calls, "recheck "+user) })
	require.False(t, followed("acme", "w1", "bob"))
	holds = true
	require.True(t, followed("acme", "w1", "bob"))
	require.Equal(t, []string{"ask acme w1 bob", "ask acme w1 bob", "recheck bob"}, calls)
}
