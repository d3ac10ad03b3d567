package spare

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// kill lets do run in a process that is killed at its n-th write: before the write reaches kcp, or after kcp has carried it
// out. Nothing that the process sends afterwards arrives. It returns the writes up to then.
func (r *race) kill(t *testing.T, n int, after bool, do func(context.Context)) (writes []string) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var mu sync.Mutex
	killed := false
	at := func(late bool) kcpfake.Fault {
		return func(in kcpfake.Request) error {
			mu.Lock()
			defer mu.Unlock()
			if in.Mutating() && !killed {
				if !late {
					writes = append(writes, in.Verb+" "+in.Resource)
				}
				if killed = len(writes) == n && late == after; killed {
					end()
				}
			}
			if killed {
				return errors.New("the process is killed")
			}
			return nil
		}
	}
	r.FailBefore(at(false))
	r.FailAfter(at(true))
	do(ctx)
	r.FailBefore(nil)
	r.FailAfter(nil)
	return writes
}

// A create reserves, claims and, if kcp refuses the claim, gives back; the leader throws away what is left. Wherever the
// process of either is killed, the caller who repeats the request has one Organization or none, and no spare is lost.
func TestSpares_haveOneOwnerOrNoneAfterAKillAtAnyWrite(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		// full says that the quota is used up in kcp, and not yet in the cache.
		full   bool
		writes []string
	}{
		"a create":         {false, []string{"patch workspaces", "patch users"}},
		"a refused create": {true, []string{"patch workspaces", "patch users", "patch workspaces"}},
	} {
		for n := range test.writes {
			for when, after := range map[string]bool{"before": false, "after": true} {
				t.Run(fmt.Sprintf("%s %s write %d", name, when, n+1), func(t *testing.T) {
					t.Parallel()
					r := newRace(t)
					names := r.reset(t)
					u := r.people[0]
					if test.full {
						other := u.DeepCopy()
						claim := tenancy.NewClaim("other", "Other", u.Name, "another key", metav1.NewTime(r.Clock.Now()))
						other.Spec.OrgClaims = append(other.Spec.OrgClaims, claim)
						r.Put(kcptest.Users, other)
					}
					writes := r.kill(t, n+1, after, func(ctx context.Context) {
						require.Error(t, r.create(ctx, &r.hubs[0], u, "the key"))
					})
					require.Equal(t, test.writes[:n+1], writes)

					first := ""
					for range 2 {
						err := r.create(t.Context(), &r.hubs[1], u, "the key")
						require.Equal(t, test.full, errs.Is(err, errs.Forbidden), "%v", err)
						owners := r.owners(t)
						require.Len(t, owners, 1)
						for uuid := range owners {
							require.Contains(t, []string{"", uuid}, first, "the key has made one Organization")
							first = uuid
						}
					}
					require.Equal(t, test.full, first == "other")

					// A minute later, the leader is killed at its write, too.
					r.look(names)
					late := r.leader(racedFor, time.Hour)
					r.kill(t, 1, after, func(ctx context.Context) { _ = late(ctx) })
					r.look(names)
					require.NoError(t, late(t.Context()))
					thrown := 0
					for _, name := range names {
						s, there := r.spare(name)
						require.True(t, there || name != first, "what is claimed is thrown away")
						require.Equal(t, name == first, there && s.Reserved != nil, "%s is reserved for nobody", name)
						if !there {
							thrown++
						}
					}
					require.LessOrEqual(t, thrown, 1, "more than the one that was reserved")
				})
			}
		}
	}
}
