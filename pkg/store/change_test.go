package store_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	aliceAt = "/clusters/users/apis/tenancy.kedge.faros.sh/v1alpha1/users/alice"
	orgAt   = "/clusters/orgs/apis/tenancy.kedge.faros.sh/v1alpha1/organizations/o"
)

// alice returns a server that has the User alice, and that User.
func alice(t testing.TB) (*server, *v1alpha1.User) {
	s := newServer(t)
	u := &v1alpha1.User{}
	u.Name = "alice"
	s.made(aliceAt, "uid", u)
	require.True(t, s.held(aliceAt, u))
	return s, u
}

// claiming returns a change that adds one claim if it is absent.
func claiming(uuid string) func(context.Context, *v1alpha1.User) error {
	return func(_ context.Context, u *v1alpha1.User) error {
		claims, err := tenancy.ClaimOrg(u, nil, 10, v1alpha1.Claim{UUID: uuid})
		if claims != nil {
			u.Spec.OrgClaims = claims
		}
		return err
	}
}

func uuid(i int) string { return fmt.Sprintf("11111111-1111-4111-8111-%012d", i) }

func uuids(u *v1alpha1.User) []string {
	var out []string
	for _, c := range u.Spec.OrgClaims {
		out = append(out, c.UUID)
	}
	return out
}

func TestChange_isOneWriteWithoutConflict(t *testing.T) {
	t.Parallel()
	s, held := alice(t)
	u, err := s.store().ChangeUser(t.Context(), held, nil, claiming(uuid(1)))
	require.NoError(t, err)
	require.Equal(t, []string{uuid(1)}, uuids(u))
	require.Equal(t, []string{http.MethodPatch}, s.took(), "what the caller knows is not read again")
	require.Empty(t, uuids(held), "what memory holds is shared")

	o := tenancy.NewOrganization("o", "O", "alice")
	s.made(orgAt, "uid", o)
	require.True(t, s.held(orgAt, o))
	changed, err := s.store().ChangeOrganization(t.Context(), o, nil, func(_ context.Context, o *v1alpha1.Organization) error {
		o.Spec.WorkspaceQuota = 7
		return nil
	})
	require.NoError(t, err)
	require.EqualValues(t, 7, changed.Spec.WorkspaceQuota)
	require.Equal(t, "O", changed.Spec.DisplayName)
}

func TestChange_writesNothingForNoChangeOrRefusal(t *testing.T) {
	t.Parallel()
	s, held := alice(t)
	u, err := s.store().ChangeUser(t.Context(), held, nil, func(context.Context, *v1alpha1.User) error { return nil })
	require.NoError(t, err)
	require.Equal(t, held.Spec, u.Spec)
	require.Equal(t, []string{http.MethodGet}, s.took(), "what the caller knows may be out of date")
	refusal := errs.New(errs.Forbidden, "no")
	_, err = s.store().ChangeUser(t.Context(), held, nil, func(context.Context, *v1alpha1.User) error { return refusal })
	require.Equal(t, refusal, err)
	require.Empty(t, s.took())
}

func TestChange_decidesAgainAfterAConflict(t *testing.T) {
	t.Parallel()
	s, held := alice(t)
	rival := held.DeepCopy()
	rival.Spec.OrgClaims = []v1alpha1.Claim{{UUID: uuid(9)}}
	faster := 3
	s.before = func(method string) {
		if method == http.MethodPatch && faster > 0 {
			faster--
			s.made(aliceAt, "uid", rival)
		}
	}
	var saw [][]string
	u, err := s.store().ChangeUser(t.Context(), held, nil, func(ctx context.Context, u *v1alpha1.User) error {
		saw = append(saw, uuids(u))
		return claiming(uuid(1))(ctx, u)
	})
	require.NoError(t, err)
	require.Equal(t, []string{uuid(9), uuid(1)}, uuids(u))
	require.Equal(t, [][]string{nil, {uuid(9)}, {uuid(9)}, {uuid(9)}}, saw)
}

// A retry must neither repeat a change that was made nor report it as failed.
func TestChange_isMadeOnceWhenTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	s, held := alice(t)
	lost := 2
	s.lose = func(method string) bool {
		lost--
		return method == http.MethodPatch && lost >= 0
	}
	u, err := s.store().ChangeUser(t.Context(), held, nil, claiming(uuid(1)))
	require.NoError(t, err)
	require.Equal(t, []string{uuid(1)}, uuids(u))
	calls := s.took()
	require.Greater(t, len(calls), 2, "the control: an answer was lost")
	require.Equal(t, http.MethodGet, calls[len(calls)-1])
}

// Permission to change an object does not extend to a later object of the same name.
func TestChange_leavesAnotherUIDAlone(t *testing.T) {
	t.Parallel()
	s, held := alice(t)
	s.remove(aliceAt)
	s.made(aliceAt, "another uid", held)
	asked := 0
	_, err := s.store().ChangeUser(t.Context(), held, nil, func(ctx context.Context, u *v1alpha1.User) error {
		asked++
		return claiming(uuid(1))(ctx, u)
	})
	require.True(t, errs.Is(err, errs.NotFound), "%v", err)
	require.Equal(t, 1, asked)
	var now v1alpha1.User
	require.True(t, s.held(aliceAt, &now))
	require.Empty(t, uuids(&now))

	_, err = s.store().ChangeUser(t.Context(), &now, nil, claiming(uuid(1)))
	require.NoError(t, err)
}

func TestChange_ofADeletedObjectIsNotFound(t *testing.T) {
	t.Parallel()
	s, held := alice(t)
	s.remove(aliceAt)
	_, err := s.store().ChangeUser(t.Context(), held, nil, claiming(uuid(1)))
	require.True(t, errs.Is(err, errs.NotFound), "%v", err)
}

func TestChange_retriesShortFailuresOnly(t *testing.T) {
	t.Parallel()
	s, held := alice(t)
	weak := 3
	s.refuse = func(string) *apierrors.StatusError {
		if weak--; weak >= 0 {
			return apierrors.NewServiceUnavailable("a moment")
		}
		return nil
	}
	u, err := s.store().ChangeUser(t.Context(), held, nil, claiming(uuid(1)))
	require.NoError(t, err)
	weak = 1 << 20
	_, err = s.store().ChangeUser(t.Context(), u, nil, claiming(uuid(2)))
	require.True(t, errs.Is(err, errs.Unavailable), "%v", err)
}

func TestChange_endsWithItsContext(t *testing.T) {
	t.Parallel()
	s, held := alice(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tries := 0
	s.refuse = func(method string) *apierrors.StatusError {
		if method == http.MethodPatch {
			if tries++; tries == 3 {
				cancel()
			}
			return apierrors.NewConflict(v1alpha1.SchemeGroupVersion.WithResource("users").GroupResource(), "alice", errors.New("changed"))
		}
		return nil
	}
	_, err := s.store().ChangeUser(ctx, held, nil, claiming(uuid(1)))
	require.True(t, errs.Is(err, errs.Unavailable), "%v", err)
	require.Equal(t, 3, tries, "until then it tries, and no longer")
}

// 64 concurrent creates on two hubs against a quota of 10 leave exactly 10 (O-5).
func TestClaims_onTwoHubsNeverExceedTheQuota(t *testing.T) {
	t.Parallel()
	s, held := alice(t)
	hubs := []*store.Store{s.store(), s.store()}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	results := make([]error, 64)
	for i := range results {
		all.Go(func() { _, results[i] = hubs[i%2].ChangeUser(ctx, held, nil, claiming(uuid(i))) })
	}
	all.Wait()
	made := 0
	for _, err := range results {
		if err == nil {
			made++
			continue
		}
		require.True(t, errs.Is(err, errs.Forbidden), "%v", err)
	}
	require.Equal(t, 10, made)
	var now v1alpha1.User
	require.True(t, s.held(aliceAt, &now))
	require.Len(t, now.Spec.OrgClaims, 10)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(uuids(&now)))), 10)
}
