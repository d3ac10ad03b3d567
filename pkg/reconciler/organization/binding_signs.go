package organization

import (
	"context"
	"sync"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// BindingsConfig is what Bindings read and write.
type BindingsConfig struct {
	Clock clock.PassiveClock
	// Wanted are the bindings of every Org's own workspace, with the claims that they
	// accept. Their names are those of bindings that are made anew.
	Wanted []*kcpapisv1alpha2.APIBinding
	// Org is the logical cluster of an Org that is Ready, or was, and that nobody
	// deleted.
	Org func(uuid string) (cluster string, ok bool)
	// List asks kcp itself.
	List func(ctx context.Context, cluster string) ([]kcpapisv1alpha2.APIBinding, error)
	// Write makes a binding, or replaces the one whose resource version it carries.
	Write func(ctx context.Context, cluster string, b *kcpapisv1alpha2.APIBinding) error
	// Wake brings an Org back.
	Wake func(org string)
}

// Bindings are those of the Orgs' own workspaces. No watch of the hub sees them, but
// what becomes of an Org without them does not go unseen: this keeps of which Orgs
// something like that was seen, and so of which kcp is to be asked.
type Bindings struct {
	config BindingsConfig

	mu sync.Mutex
	// suspects are the Orgs that are to be looked at.
	suspects map[string]struct{}
	// hidden are the Orgs that a Workspace is out of sight in, and since when.
	hidden map[string]time.Time
}

// NewBindings returns Bindings that suspect nothing.
func NewBindings(c BindingsConfig) *Bindings {
	return &Bindings{config: c, suspects: map[string]struct{}{}, hidden: map[string]time.Time{}}
}

// Suspect has the next pass over the Org ask kcp for its bindings.
func (b *Bindings) Suspect(org string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.suspects[org] = struct{}{}
}

// suspected takes the suspicion off an Org. What is out of sight is none at first;
// after is for how long that is so.
func (b *Bindings) suspected(org string, outOfSight bool) (after time.Duration, now bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, now = b.suspects[org]
	delete(b.suspects, org)
	if !outOfSight {
		delete(b.hidden, org)
		return 0, now
	}
	since, ok := b.hidden[org]
	if !ok {
		since = b.config.Clock.Now()
		b.hidden[org] = since
	}
	if after = unseen - b.config.Clock.Since(since); after > 0 {
		return after, now
	}
	delete(b.hidden, org)
	return 0, true
}

// Saw tells whether a change of a Workspace in an Org is a sign that a binding is not
// as it should be, and suspects the Org then: without the hub's claim a Workspace is
// out of sight, though nobody deleted it, and without kcp's API it is deleted, though
// nobody asked the hub for that.
func (b *Bindings) Saw(org tenancy.Org, old, new *kcptenancyv1alpha1.Workspace) bool {
	if org.Organization == nil || org.Deleted() || old == nil || !old.DeletionTimestamp.IsZero() {
		return false
	}
	if new != nil {
		if _, asked := new.Annotations[v1alpha1.DeletionRequestedAtAnnotation]; asked || new.DeletionTimestamp.IsZero() {
			return false
		}
	}
	b.Suspect(org.UUID())
	return true
}

// Look asks kcp for the bindings of an Org in whose state nothing hints at damage: an
// Org without Workspaces loses none.
func (b *Bindings) Look(ctx context.Context, key controller.Key) (controller.Result, error) {
	cluster, ok := b.config.Org(key.Name)
	if !ok {
		return controller.Result{}, nil
	}
	held, err := b.config.List(ctx, cluster)
	if err != nil {
		return controller.Result{}, err
	}
	for _, want := range b.config.Wanted {
		if _, waiting := compare(want, held); waiting != "" {
			b.Suspect(key.Name)
			b.config.Wake(key.Name)
			break
		}
	}
	return controller.Result{}, nil
}

// repair writes what is not as it should be and says what is not there yet.
func (b *Bindings) repair(ctx context.Context, cluster string) (waiting string, err error) {
	held, err := b.config.List(ctx, cluster)
	if err != nil {
		return "", err
	}
	for _, want := range b.config.Wanted {
		write, lacks := compare(want, held)
		if lacks != "" && waiting == "" {
			waiting = lacks
		}
		if write != nil {
			if err := b.config.Write(ctx, cluster, write); err != nil {
				return waiting, err
			}
		}
	}
	return waiting, nil
}
