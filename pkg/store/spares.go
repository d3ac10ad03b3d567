package store

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// reserveTimeout limits the time that a create spends on a spare. It works without one.
	reserveTimeout = 2 * time.Second
	// maxReservations is the number of spares that a create tries to reserve.
	maxReservations = 3
)

// Spares reserves workspaces that nobody owns, each for one claim. The claim has the name of the spare
// as UUID. A reservation is a compare-and-swap, so of two hubs one gets the spare.
type Spares struct {
	store *Store
	// in returns the spares in a logical cluster, from the cache.
	in func(cluster string) []tenancy.Spare
	// hash identifies what this hub makes spares with.
	hash string
	now  func() time.Time

	mu sync.Mutex
	// tried are the spares that this process asked for, and when. The cache shows them as free for a
	// moment.
	tried map[types.UID]time.Time
}

// NewSpares returns Spares that reserve what in returns.
func NewSpares(s *Store, in func(cluster string) []tenancy.Spare, hash string, now func() time.Time) *Spares {
	return &Spares{store: s, in: in, hash: hash, now: now, tried: map[types.UID]time.Time{}}
}

// ForOrg reserves the workspace of an Organization that a User creates. The UUID is empty if there is no
// spare.
func (s *Spares) ForOrg(ctx context.Context, user string) tenancy.ReservedSpare {
	return s.reserve(ctx, s.store.orgs, "", tenancy.Reservation{User: user})
}

// ForSignUp is ForOrg for the personal Organization of a person who signs up.
func (s *Spares) ForSignUp(ctx context.Context, identity string) tenancy.ReservedSpare {
	return s.reserve(ctx, s.store.orgs, "", tenancy.Reservation{Identity: identity})
}

// ForWorkspace is ForOrg for a child Workspace. It leaves the default Workspace of a personal
// Organization to its person.
func (s *Spares) ForWorkspace(ctx context.Context, org tenancy.Org, user string) tenancy.ReservedSpare {
	return s.reserve(ctx, org.ClusterID, tenancy.DefaultWorkspaceOf(org.Organization), tenancy.Reservation{User: user})
}

func (s *Spares) reserve(ctx context.Context, cluster, not string, r tenancy.Reservation) tenancy.ReservedSpare {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reserveTimeout)
	defer cancel()
	r.At = metav1.NewTime(s.now())
	raw, err := json.Marshal(r)
	if err != nil {
		return tenancy.ReservedSpare{}
	}
	for range maxReservations {
		spare, ok := s.choose(cluster, not)
		if !ok {
			break
		}
		version, err := s.annotate(ctx, cluster, spare.Name, spare.UID, spare.ResourceVersion, string(raw))
		if err == nil {
			return tenancy.ReservedSpare{Cluster: cluster, UUID: spare.Name, UID: spare.UID, Version: version}
		}
	}
	return tenancy.ReservedSpare{}
}

// choose returns the oldest spare that this process has not asked for.
func (s *Spares) choose(cluster, not string) (tenancy.Spare, bool) {
	all := s.in(cluster)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	maps.DeleteFunc(s.tried, func(_ types.UID, at time.Time) bool { return now.Sub(at) > tenancy.ReservationTTL })
	for _, spare := range all {
		if _, tried := s.tried[spare.UID]; !tried && spare.Takeable(s.hash) && spare.Name != not {
			s.tried[spare.UID] = now
			return spare, true
		}
	}
	return tenancy.Spare{}, false
}

// GiveBack makes a reserved spare free again. It is called when no claim has the name of the spare and
// none will have it. A spare that cannot be given back is thrown away by the leader.
func (s *Spares) GiveBack(ctx context.Context, spare tenancy.ReservedSpare) {
	if spare.UUID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reserveTimeout)
	defer cancel()
	if _, err := s.annotate(ctx, spare.Cluster, spare.UUID, spare.UID, spare.Version, nil); err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tried, spare.UID)
}

// annotate sets the reservation of just this version of a spare, or removes it. It is not repeated: an
// answer that was lost leaves a reservation without a claim.
func (s *Spares) annotate(ctx context.Context, cluster, name string, uid types.UID, version string, reservation any) (string, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": uid, "resourceVersion": version, "annotations": map[string]any{v1alpha1.SpareReservedAnnotation: reservation},
	}})
	if err != nil {
		return "", err
	}
	ws, err := s.store.clients.Workspaces(cluster).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kcp.FieldManager})
	if err != nil {
		return "", err
	}
	return ws.ResourceVersion, nil
}
