package main

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseBackup(t *testing.T) {
	t.Parallel()
	o, err := parseBackup(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, backupOptions{size: 1024, lasting: 20 * time.Second, rounds: 3}, o)
	o, err = parseBackup([]string{"--size", "256", "--seconds=5", "--rounds", "1"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, backupOptions{size: 256, lasting: 5 * time.Second, rounds: 1}, o)
	for _, args := range [][]string{{"--size=0"}, {"--seconds=0"}, {"--rounds=0"}, {"1024"}, {"--size=1Gi"}} {
		_, err := parseBackup(args, io.Discard)
		require.Error(t, err, args)
	}
}

func TestObserved_add(t *testing.T) {
	t.Parallel()
	all := seen(time.Second)
	later := seen(2 * time.Second)
	later.failures = []string{"one"}
	all.add(later)
	require.Equal(t, []time.Duration{time.Second, time.Second, 2 * time.Second, 2 * time.Second}, all.took[getOrg])
	require.Equal(t, []string{"one"}, all.failures)
}
