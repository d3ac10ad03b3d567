package log_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// The logger of a context has its fields and those of the context around it, also where many ask for it at once.
func TestFrom_hasTheFieldsOfItsContext(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zapcore.InfoLevel)
	outer := log.Into(t.Context(), zap.New(core), zap.String("request", "r"))
	inner := log.Into(outer, log.From(outer), zap.String("controller", "c"))
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() { log.From(outer).Info("outer") })
		asking.Go(func() { log.From(inner).Info("inner") })
	}
	asking.Wait()
	for message, fields := range map[string]map[string]any{"outer": {"request": "r"}, "inner": {"request": "r", "controller": "c"}} {
		entries := logged.FilterMessage(message).All()
		require.Len(t, entries, 20)
		for _, e := range entries {
			require.Equal(t, fields, e.ContextMap())
		}
	}
}

func TestFrom_ofAContextWithoutOneWritesNothing(t *testing.T) {
	t.Parallel()
	require.NotPanics(t, func() { log.From(t.Context()).Error("nobody hears this") })
}
