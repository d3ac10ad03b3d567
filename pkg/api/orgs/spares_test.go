package orgs_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/orgs"
	"github.com/faroshq/kedge-hub/pkg/audit"
	kcpstore "github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

const (
	spare = "55555555-5555-4555-8555-555555555555"
	first = "66666666-6666-4666-8666-666666666666"
)

// oneSpare are spares of which there is one. It has what was given back.
type oneSpare struct{ given []string }

func (*oneSpare) ForOrg(context.Context, string) tenancy.ReservedSpare {
	return tenancy.ReservedSpare{UUID: spare}
}

func (s *oneSpare) ForWorkspace(ctx context.Context, _ tenancy.Org, user string) tenancy.ReservedSpare {
	return s.ForOrg(ctx, user)
}

func (s *oneSpare) GiveBack(_ context.Context, o tenancy.ReservedSpare) {
	s.given = append(s.given, o.UUID)
}

// The audit log of an Organization is read by its UUID. That of a spare which a request gives back is the next person's:
// their log must not have the request. The person of these requests has claimed an Organization with the key k since the
// cache was filled.
func TestCreate_leavesNoEventToTheNextOwnerOfASpare(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		key     string
		quota   int
		code    int
		claimed string
		given   []string
	}{
		"it takes the spare":       {key: "l", quota: 2, code: http.StatusAccepted, claimed: spare},
		"the quota is used up":     {key: "l", quota: 1, code: http.StatusForbidden, given: []string{spare}},
		"it was made by this key":  {key: "k", quota: 2, code: http.StatusAccepted, claimed: first, given: []string{spare}},
		"that is the whole quota":  {key: "k", quota: 1, code: http.StatusAccepted, claimed: first, given: []string{spare}},
		"no answer comes from kcp": {key: "l", quota: 2, code: http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kcp := kcpfake.NewAt(t, func() time.Time { return apitest.Epoch().Time })
			u := apitest.Person("paula")
			u.ResourceVersion = ""
			kcp.Put("users", u)
			require.True(t, kcp.Read("users", u))
			world := apitest.NewWorld()
			world.PutUser(u.DeepCopy())
			sum := sha256.Sum256([]byte("k"))
			claim := tenancy.NewClaim(first, "First", u.Name, hex.EncodeToString(sum[:20]), metav1.NewTime(apitest.Epoch().Time))
			u.Spec.OrgClaims = []v1alpha1.Claim{claim}
			kcp.Put("users", u)
			if test.code == http.StatusServiceUnavailable {
				kcp.FailBefore(func(in kcpfake.Request) error {
					if in.Mutating() {
						return errors.New("kcp does not answer")
					}
					return nil
				})
			}
			spares := &oneSpare{}
			h := &orgs.Handler{Deps: world.Deps(t, kcpstore.New(kcp.Clients(), apitest.Tree(t), "users", "orgs"), made)}
			h.Spares, h.DefaultOrgQuota = spares, test.quota
			h.CreateTimeout, h.FollowTimeout = time.Millisecond, time.Millisecond
			call := keyed(u.Name, test.key)
			answer := call.Do(apitest.Router(world, h.Mount))
			require.Equal(t, test.code, answer.Code, answer.Body)
			require.Equal(t, test.given, spares.given)

			shown := map[string][]audit.Stage{}
			events := world.Events()
			require.Len(t, events, 2)
			for _, e := range events {
				if !e.Outsider {
					shown[e.Org] = append(shown[e.Org], e.Stage)
				}
			}
			want := map[string][]audit.Stage{}
			if test.claimed != "" {
				want[test.claimed] = []audit.Stage{audit.StageOutcome}
			}
			require.Equal(t, want, shown, "what the admins of Organizations see")
		})
	}
}
