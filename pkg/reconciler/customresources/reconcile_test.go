package customresources_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/customresources"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

var place = controller.Key{Cluster: "org", Name: "w"}

// definitions is a fake Workspace with the custom resources that its tenants define.
type definitions struct {
	*customresources.CustomResources
	clock  *clocktesting.FakePassiveClock
	ws     *kcptenancyv1alpha1.Workspace
	names  []string
	listed int
	wrote  int
	err    error
	// meanwhile runs between the list and the write.
	meanwhile func()
}

func newDefinitions() *definitions {
	d := &definitions{clock: clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0)), ws: &kcptenancyv1alpha1.Workspace{}}
	d.ws.Spec.Cluster, d.ws.ResourceVersion = "c", "1"
	d.CustomResources = customresources.New(customresources.Config{
		Clock:     d.clock,
		Workspace: func(controller.Key) (*kcptenancyv1alpha1.Workspace, bool) { return d.ws, d.ws != nil },
		List: func(context.Context, string) ([]string, error) {
			d.listed++
			names := d.names
			if d.meanwhile != nil {
				d.meanwhile()
			}
			return names, d.err
		},
		Annotate: func(_ context.Context, _ controller.Key, ws *kcptenancyv1alpha1.Workspace, value string) error {
			if ws.ResourceVersion != d.ws.ResourceVersion {
				return controller.ErrRetry
			}
			d.annotate(value)
			return nil
		},
	})
	return d
}

func (d *definitions) annotate(value string) {
	d.wrote++
	ws := d.ws.DeepCopy()
	ws.ResourceVersion = strconv.Itoa(d.wrote + 1)
	ws.Annotations = map[string]string{tenancy.CustomResourcesAnnotation: value}
	d.ws = ws
}

func (d *definitions) known() string { return d.ws.Annotations[tenancy.CustomResourcesAnnotation] }

func (d *definitions) follow(t *testing.T) time.Duration {
	t.Helper()
	result, err := d.Follow(t.Context(), place)
	require.NoError(t, err)
	return result.RequeueAfter
}

func TestReconcile_recordsDefinitionsOnTheWorkspace(t *testing.T) {
	t.Parallel()
	d := newDefinitions()
	look := func() {
		_, err := d.Look(t.Context(), place)
		require.NoError(t, err)
	}
	look()
	require.Zero(t, d.wrote, "nothing is written where there is nothing")
	d.names = []string{"widgets.example.com", "logicalclusters.core.kcp.io"}
	look()
	require.Equal(t, "widgets.example.com", d.known())
	look()
	require.Equal(t, 1, d.wrote, "what is right is left alone")
	d.err = errors.New("kcp cannot be reached")
	d.names = nil
	_, err := d.Look(t.Context(), place)
	require.Error(t, err)
	require.Equal(t, "widgets.example.com", d.known(), "a list that failed takes nothing away")
	d.err = nil
	look()
	require.Empty(t, d.known())

	d.ws = nil
	listed := d.listed
	look()
	require.Equal(t, listed, d.listed, "what is not in use is not asked")
}

func TestReconcile_neverWritesAnOlderList(t *testing.T) {
	t.Parallel()
	d := newDefinitions()
	d.names = []string{"old.example.com"}
	d.meanwhile = func() {
		d.meanwhile = nil
		d.names = []string{"new.example.com"}
		d.annotate("new.example.com")
	}
	_, err := d.Look(t.Context(), place)
	require.ErrorIs(t, err, controller.ErrRetry)
	require.Equal(t, "new.example.com", d.known())
	_, err = d.Look(t.Context(), place)
	require.NoError(t, err)
	require.Equal(t, "new.example.com", d.known())
}

// A deleted CRD is listed until all its objects are gone, so a single list after a write
// is not enough.
func TestFollower_looksEverMoreRarelyAfterAWrite(t *testing.T) {
	t.Parallel()
	d := newDefinitions()
	require.Zero(t, d.follow(t), "nobody wrote")
	d.listed = 0
	d.Written(place)
	began := d.clock.Now()
	for after := d.follow(t); after > 0; after = d.follow(t) {
		require.GreaterOrEqual(t, after, 500*time.Millisecond)
		require.LessOrEqual(t, after, max(500*time.Millisecond, d.clock.Since(began)))
		d.clock.SetTime(d.clock.Now().Add(after))
		require.Less(t, d.listed, 20)
	}
	require.Greater(t, d.clock.Since(began), 4*time.Minute)
	require.Greater(t, d.listed, 5)
}

func TestFollower_limitsRequestsToKCPUnderConstantWrites(t *testing.T) {
	t.Parallel()
	d := newDefinitions()
	for range 1000 {
		d.Written(place)
		require.Positive(t, d.follow(t), "the last write is looked at")
		d.clock.SetTime(d.clock.Now().Add(time.Millisecond))
	}
	require.Equal(t, 2, d.listed)
	d.names = []string{"widgets.example.com"}
	d.clock.SetTime(d.clock.Now().Add(500 * time.Millisecond))
	d.follow(t)
	require.Equal(t, "widgets.example.com", d.known())
}

func TestFollower_repeatsAFailedLook(t *testing.T) {
	t.Parallel()
	d := newDefinitions()
	d.names, d.err = []string{"widgets.example.com"}, errors.New("kcp cannot be reached")
	d.Written(place)
	_, err := d.Follow(t.Context(), place)
	require.Error(t, err)
	d.err = nil
	wait := d.follow(t)
	require.Positive(t, wait)
	d.clock.SetTime(d.clock.Now().Add(wait))
	require.Positive(t, d.follow(t))
	require.Equal(t, "widgets.example.com", d.known())
}
