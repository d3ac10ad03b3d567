package restore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// refusing runs Steps while kcp refuses all that is not read of a resource. It does so for two passes, and each takes longer than
// the patience.
func refusing(t *testing.T, resource string, refusal error, steps ...restore.Step) restore.Report {
	w := newWorld(t)
	passes := 0
	w.FailBefore(func(r kcpfake.Request) error {
		if r.Resource == resource && r.Verb != "get" && passes < 2 {
			return refusal
		}
		return nil
	})
	w.applier.Waiting = func(left int, _ error) {
		w.carryOut()
		if left > 0 {
			passes++
			w.clock.SetTime(w.clock.Now().Add(61 * time.Second))
		}
	}
	return w.run(steps...)
}

// kcp answers so for good for a logical cluster that no shard has, where shards were restored from different times.
func TestRun_givesUpWhatKCPRefusesForGood(t *testing.T) {
	t.Parallel()
	bots, sessions := restore.Step{Kind: restore.DeleteBot, Workspace: ws, Object: bot}, restore.Step{Kind: restore.EndSessions, Object: "bob"}
	for name, c := range map[string]struct {
		resource string
		step     restore.Step
		refusal  error
	}{
		"forbidden":                        {"bots", bots, apierrors.NewForbidden(schema.GroupResource{Resource: "bots"}, bot, errors.New("access denied"))},
		"an internal error":                {"bots", bots, apierrors.NewInternalError(errors.New("conversion webhook"))},
		"a session, forbidden":             {"sessions", sessions, apierrors.NewForbidden(schema.GroupResource{}, "one", errors.New("access denied"))},
		"a session, never":                 {"sessions", sessions, apierrors.NewBadRequest("never")},
		"a person of sessions, never":      {"users", sessions, apierrors.NewBadRequest("never")},
		"a person of sessions, not served": {"users", sessions, apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "users"}, "patch")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := refusing(t, c.resource, c.refusal, c.step, restore.Step{Kind: restore.DeleteWorkspace, Workspace: ws})
			require.Len(t, r.GivenUp(), 1)
			require.Equal(t, c.step.Kind, r.GivenUp()[0].Kind)
			require.Len(t, r.Done, 1, "the other one")
		})
	}
}

// Nobody gets a right back because what kcp needs is down for longer than the patience.
func TestRun_outlastsAnOutage(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{
		"the hub's credential": apierrors.NewUnauthorized("Unauthorized"),
		"a shard, behind the front proxy": apierrors.NewGenericServerResponse(
			http.StatusBadGateway, "delete", schema.GroupResource{Resource: "bots"}, bot, "", 0, true),
		"etcd without a leader": apierrors.NewInternalError(errors.New("etcdserver: no leader")),
		"etcd":                  apierrors.NewInternalError(errors.New("rpc error: code = Unavailable desc = connection error")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := refusing(t, "bots", refusal, restore.Step{Kind: restore.DeleteBot, Workspace: ws, Object: bot})
			require.Empty(t, r.GivenUp())
			require.Len(t, r.Done, 1)
		})
	}
}

// kcp lets nobody in for a moment after it has activated a logical cluster. A Step that gave up at once would deactivate it, and
// find the same at the next pass.
func TestRun_waitsUntilKCPLetsItIntoWhatIsActivated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.organization()
	o.Status.DeletionRequestedAt = &metav1.Time{Time: then}
	w.Put(orgs, o)
	// The Store tries nine times.
	refused := 0
	w.FailBefore(func(r kcpfake.Request) error {
		if r.Resource == "catalogentries" && r.Verb == "delete" && refused < 10 {
			refused++
			return apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource}, r.Name, errors.New("logical cluster is marked inactive"))
		}
		return nil
	})
	w.applier.Waiting = func(left int, why error) { require.Zero(t, left, why) }
	r := w.run(restore.Step{Kind: restore.DeleteEntry, Object: "entry"})
	require.Len(t, r.Done, 1)
	require.Equal(t, 10, refused)
	require.Equal(t, []string{inOrg}, w.activated)
}

// The hub asks each shard where a logical cluster is, to activate it. One of them is down.
func TestRun_outlastsAShardThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	within, passes := w.applier.Within, 0
	w.applier.Within = func(ctx context.Context, cluster string, deactivated func() bool, do func() error) error {
		switch passes {
		case 0:
			refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			return errors.Join(fmt.Errorf("ask the shard: %w", &url.Error{Op: "Get", URL: "https://shard", Err: refused}))
		case 1:
			return fmt.Errorf("ask the shard: %w", &url.Error{Op: "Get", URL: "https://shard", Err: io.EOF})
		}
		return within(ctx, cluster, deactivated, do)
	}
	w.applier.Waiting = func(left int, _ error) {
		if left > 0 {
			passes++
			w.clock.SetTime(w.clock.Now().Add(61 * time.Second))
		}
	}
	r := w.run(restore.Step{Kind: restore.DisableProvider, Workspace: ws, Object: provided})
	require.Equal(t, 2, passes)
	require.Empty(t, r.Impossible)
	require.Len(t, r.Done, 1)
}
