package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// spares has one spare, and counts what was given back.
type spares struct {
	uuid  string
	given []string
}

func (s *spares) ForOrg(context.Context, string) tenancy.ReservedSpare {
	return tenancy.ReservedSpare{UUID: s.uuid}
}

func (s *spares) ForWorkspace(ctx context.Context, _ tenancy.Org, user string) tenancy.ReservedSpare {
	return s.ForOrg(ctx, user)
}

func (s *spares) GiveBack(_ context.Context, o tenancy.ReservedSpare) {
	s.given = append(s.given, o.UUID)
}

func TestTaking_choosesOneUUID(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(apitest.Epoch().Time)
	request := func(uuid, by, hash string) v1alpha1.Claim { return tenancy.NewClaim(uuid, "N", by, hash, now) }
	refused := errs.New(errs.Forbidden, "the quota is used up")
	for name, test := range map[string]struct {
		key   string
		spare string
		// cached and held are the claims in the cache and in kcp, before has those at an earlier attempt.
		cached, before, held []v1alpha1.Claim
		made                 []tenancy.KeyedObject
		refusal              error
		want                 string
		given                []string
	}{
		"a spare":                       {spare: "spare", want: "spare"},
		"none":                          {want: "asked", given: []string{""}},
		"a quota refuses":               {spare: "spare", refusal: refused, given: []string{"spare"}},
		"after the answer was lost":     {spare: "spare", before: nil, held: []v1alpha1.Claim{request("spare", "alice", "")}, want: "spare"},
		"a refusal after a lost answer": {spare: "spare", held: []v1alpha1.Claim{request("spare", "alice", "")}, refusal: refused},
		"the key again": {
			key: "k", spare: "spare", cached: []v1alpha1.Claim{request("first", "alice", "k")}, held: []v1alpha1.Claim{request("first", "alice", "k")},
			want: "first", given: []string{""},
		},
		"the key again, on another hub": {
			key: "k", spare: "spare", held: []v1alpha1.Claim{request("first", "alice", "k")},
			want: "first", given: []string{"spare"},
		},
		"the key of an existing one": {
			key: "k", spare: "spare", made: []tenancy.KeyedObject{{UUID: "first", Hash: "k", CreatedBy: "alice", CreatedAt: now}},
			want: "first", given: []string{""},
		},
		"another person's key": {
			key: "k", spare: "spare", made: []tenancy.KeyedObject{{UUID: "first", Hash: "k", CreatedBy: "bob", CreatedAt: now}},
			want: "spare",
		},
		"of an earlier person so called": {
			key: "k", spare: "spare", made: []tenancy.KeyedObject{{UUID: "first", Hash: "k", CreatedBy: "alice", CreatedAt: metav1.NewTime(now.Add(-time.Hour))}},
			want: "spare",
		},
		"another key": {key: "k", spare: "spare", held: []v1alpha1.Claim{request("first", "alice", "l")}, want: "spare"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &spares{uuid: test.spare}
			d := apitest.NewWorld().Deps(t, nil, "")
			d.Spares = s
			user := apitest.Person("alice")
			taking := d.Taking(user, request("asked", "alice", test.key), test.cached, func() []tenancy.KeyedObject { return test.made })
			taking.Reserve(test.cached, func(s api.Spares) tenancy.ReservedSpare { return s.ForOrg(t.Context(), "alice") })
			wrote := ""
			err := taking.In(httptest.NewRequest(http.MethodPost, "/", http.NoBody), test.held, nil, func(c v1alpha1.Claim) error {
				wrote = c.UUID
				return test.refusal
			})
			taking.End(t.Context())
			require.Equal(t, test.given, s.given)
			if test.refusal != nil {
				require.ErrorIs(t, err, test.refusal)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, wrote)
			require.Equal(t, test.want, taking.Claim.UUID)
		})
	}
}

// A key may belong to something that the cache does not have yet.
func TestTaking_waitsForWhatTheCacheLacks(t *testing.T) {
	t.Parallel()
	d := apitest.NewWorld().Deps(t, nil, "")
	d.FollowTimeout = time.Millisecond
	asked := tenancy.NewClaim("asked", "N", "alice", "k", metav1.NewTime(apitest.Epoch().Time))
	unmade := []v1alpha1.Claim{{UUID: "first"}}
	var made []tenancy.KeyedObject
	in := func() (uuid string, err error) {
		taking := d.Taking(apitest.Person("alice"), asked, nil, func() []tenancy.KeyedObject { return made })
		err = taking.In(httptest.NewRequest(http.MethodPost, "/", http.NoBody), unmade, nil, func(c v1alpha1.Claim) error {
			uuid = c.UUID
			return nil
		})
		return uuid, err
	}
	_, err := in()
	require.True(t, errs.Is(err, errs.Unavailable))
	made = []tenancy.KeyedObject{{UUID: "first", Hash: "k", CreatedBy: "alice", CreatedAt: asked.Request.RequestedAt}}
	uuid, err := in()
	require.NoError(t, err)
	require.Equal(t, "first", uuid)
}
