package transport_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
)

func TestHealths_areUnavailableWhileOneIs(t *testing.T) {
	t.Parallel()
	kcp, cache := transport.NewHealth(), transport.NewHealth()
	both := transport.Healths{kcp, cache}
	calls := 0
	both.OnUnavailable(func() { calls++ })
	require.NoError(t, both.Err())
	require.NoError(t, both.Wait(t.Context()))
	for n, h := range both {
		h.Lose()
		require.True(t, errs.Is(both.Err(), errs.Unavailable))
		require.True(t, errs.Is(both.Wait(t.Context()), errs.Unavailable))
		require.Equal(t, n+1, calls)
		h.Recover()
		require.NoError(t, both.Err())
	}
}

func TestHealths_runOnlyWhileAllAreAvailable(t *testing.T) {
	t.Parallel()
	kcp, cache := transport.NewHealth(), transport.NewHealth()
	ctx, stop := context.WithCancel(t.Context())
	began, ended, returned := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(returned)
		transport.Healths{kcp, cache}.RunWhileAvailable(ctx, func(ctx context.Context) {
			began <- struct{}{}
			<-ctx.Done()
			ended <- struct{}{}
		})
	}()
	await(t, began)
	for _, h := range []*transport.Health{kcp, cache} {
		h.Lose()
		await(t, ended)
		h.Recover()
		await(t, began)
	}
	stop()
	await(t, ended)
	await(t, returned)
}
