package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/controller"
)

// worked enqueues keys while the only worker of a loop is busy, and returns them in the order of their
// passes. Keys are cluster/name; a name that begins with "!" is urgent, and one that ends with "@x" is
// enqueued by the owner x.
func worked(t *testing.T, work controller.Func, keys ...string) (order []string) {
	t.Helper()
	busy := make(chan struct{})
	l := newLoop(t, controller.Options{Workers: 1}, func(ctx context.Context, key controller.Key) (controller.Result, error) {
		if key == acme {
			<-busy
			return controller.Result{}, nil
		}
		order = append(order, key.Cluster+"/"+key.Name)
		return work(ctx, key)
	}).start()
	defer l.stop()
	l.enqueue(acme)
	for _, key := range keys {
		cluster, name, _ := strings.Cut(key, "/")
		name, owner, _ := strings.Cut(name, "@")
		enqueue := l.Enqueue
		name, urgent := strings.CutPrefix(name, "!")
		switch {
		case owner != "":
			enqueue = func(key controller.Key) { l.EnqueueFor(owner, key, urgent) }
		case urgent:
			enqueue = l.EnqueueUrgent
		}
		enqueue(controller.Key{Cluster: cluster, Name: name})
	}
	synctest.Wait()
	distinct := map[string]bool{}
	for _, key := range keys {
		key, _, _ = strings.Cut(key, "@")
		distinct[strings.Replace(key, "!", "", 1)] = true
	}
	require.InDelta(t, len(distinct), l.metric("kedge_controller_queue_depth"), 0)
	close(busy)
	after(time.Minute)
	return order
}

func done(context.Context, controller.Key) (controller.Result, error) {
	return controller.Result{}, nil
}

func TestQueue_order(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ keys, want string }{
		"as enqueued":                     {"a/1 a/2 a/3", "a/1 a/2 a/3"},
		"clusters take turns":             {"m/1 m/2 m/3 m/4 a/1", "m/1 a/1 m/2 m/3 m/4"},
		"an urgent key is first":          {"m/1 m/2 a/1 a/!2", "a/2 m/1 a/1 m/2"},
		"a waiting key becomes urgent":    {"m/1 m/2 m/3 m/!3", "m/3 m/1 m/2"},
		"and stays it":                    {"m/1 m/2 m/!2 m/2 m/!2", "m/2 m/1"},
		"owners take turns":               {"u/1@m u/2@m u/3@m u/4@a u/5", "u/1 u/4 u/5 u/2 u/3"},
		"a key waits for each owner":      {"u/1@m u/2@m u/3@m u/3@a u/2@m", "u/1 u/3 u/2"},
		"owners of urgent keys as well":   {"u/!1@m u/!2@m u/3@a u/!4@a", "u/1 u/4 u/2 u/3"},
		"an urgent owner is enough":       {"u/1@m u/2@m u/!2@a", "u/2 u/1"},
		"clusters of urgent keys as well": {"m/!1 m/!2 m/!3 a/!1 b/1", "m/1 a/1 m/2 m/3 b/1"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				require.Equal(t, c.want, strings.Join(worked(t, done, strings.Fields(c.keys)...), " "))
			})
		})
	}
}

// A removal whose first attempt meets a conflict is not delayed by a flood either.
func TestQueue_aFailedUrgentKeyStaysUrgent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		keys := []string{"a/!1"}
		for i := range 50 {
			keys = append(keys, fmt.Sprintf("a/flood-%d", i))
		}
		failed := false
		order := worked(t, func(_ context.Context, key controller.Key) (controller.Result, error) {
			after(time.Millisecond)
			if key.Name == "1" && !failed {
				failed = true
				return controller.Result{}, errors.New("conflict")
			}
			return controller.Result{}, nil
		}, keys...)
		require.Equal(t, "a/1", order[0])
		require.Less(t, slices.Index(order[1:], "a/1"), 10, "it is tried again after 5 to 10 ms")
		require.Len(t, order, 52)
	})
}

// An owner of a thousand keys delays the keys of another by one key for each worker, also those that wait
// in its own line already.
func TestQueue_aThousandKeysOfOneOwnerDelayNobodyElse(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var keys []string
		for i := range 1000 {
			keys = append(keys, fmt.Sprintf("users/%d@flood", i))
		}
		order := worked(t, done, append(keys, "users/neighbour@other", "users/999@other")...)
		require.Len(t, order, 1001)
		require.Less(t, slices.Index(order, "users/neighbour"), 3)
		require.Less(t, slices.Index(order, "users/999"), 5)
	})
}
