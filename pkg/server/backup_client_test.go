package server

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func takenFrom(ctx context.Context, from io.Reader, rateInBytes int64, notes io.Writer) *taken {
	return &taken{ReadCloser: io.NopCloser(from), ctx: ctx, rate: limiterOf(rateInBytes), notes: notes, told: time.Now()}
}

// A backup that takes all that the hub can send makes everybody wait.
func TestBackup_takesNoMoreThanItsRate(t *testing.T) {
	t.Parallel()
	const size = 4 * taking
	began := time.Now()
	n, err := io.Copy(io.Discard, takenFrom(t.Context(), io.LimitReader(endless{}, size), 1<<20, io.Discard))
	require.NoError(t, err)
	require.EqualValues(t, size, n)
	// The first part needs no time.
	require.GreaterOrEqual(t, time.Since(began), time.Second*(size-taking)/(1<<20)-time.Millisecond)
}

func TestBackup_withoutARateTakesAll(t *testing.T) {
	t.Parallel()
	const size = 1 << 30
	n, err := io.Copy(io.Discard, takenFrom(t.Context(), io.LimitReader(endless{}, size), 0, io.Discard))
	require.NoError(t, err)
	require.EqualValues(t, size, n)
}

func TestBackup_endsWhileItWaitsForItsRate(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	slow := takenFrom(ctx, endless{}, 1, io.Discard)
	n, err := slow.Read(make([]byte, taking))
	require.NoError(t, err)
	require.Equal(t, taking, n)
	cancel()
	_, err = slow.Read(make([]byte, taking))
	require.ErrorIs(t, err, context.Canceled)
}

func TestBackup_saysHowFarItIs(t *testing.T) {
	t.Parallel()
	notes := &bytes.Buffer{}
	from := takenFrom(t.Context(), endless{}, 0, notes)
	from.bytes, from.told = 41<<20, time.Now().Add(-tellEvery)
	for range 20 {
		_, err := from.Read(make([]byte, taking))
		require.NoError(t, err)
	}
	require.Equal(t, "41 MiB so far\n", notes.String(), "once in a while")
}
