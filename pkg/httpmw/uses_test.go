package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

func TestUses_writeEachSessionOnceAtATime(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	begun, goOn, done := make(chan string), make(chan struct{}), make(chan struct{})
	u := httpmw.NewUses(func(ctx context.Context, session string) error {
		_, limited := ctx.Deadline()
		begun <- fmt.Sprint(session, limited)
		<-goOn
		return errors.New("kcp is down")
	})
	go func() {
		defer close(done)
		u.Run(ctx)
	}()
	u.Record("a")
	require.Equal(t, "atrue", <-begun)
	for range 3 {
		u.Record("a")
		u.Record("b")
	}
	goOn <- struct{}{}
	require.Equal(t, "btrue", <-begun, "a was being written")
	u.Record("a")
	goOn <- struct{}{}
	require.Equal(t, "atrue", <-begun)
	goOn <- struct{}{}
	cancel()
	<-done
}

func TestUses_recordNeverBlocks(t *testing.T) {
	t.Parallel()
	u := httpmw.NewUses(func(context.Context, string) error { return nil })
	for i := range 100_000 {
		u.Record(fmt.Sprint(i))
	}
}
