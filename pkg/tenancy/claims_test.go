package tenancy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// claimed returns claims: "a" for an existing object, "a?" for one that is to be created.
func claimed(names ...string) []v1alpha1.Claim {
	var claims []v1alpha1.Claim
	for _, name := range names {
		uuid, asked := strings.CutSuffix(name, "?")
		c := v1alpha1.Claim{UUID: uuid}
		if asked {
			c = tenancy.NewClaim(uuid, "Display of "+uuid, "alice", "hash", metav1.Unix(1, 0))
		}
		claims = append(claims, c)
	}
	return claims
}

func TestClaim_takesTheLastPlaceAndNoMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		claims   []v1alpha1.Claim
		existing []string
		own      int32
		uuid     string
		want     []v1alpha1.Claim
		refused  bool
	}{
		"the first":                               {nil, nil, 0, "a", claimed("a?"), false},
		"the last place":                          {claimed("a"), nil, 0, "b", claimed("a", "b?"), false},
		"at the limit, all claimed":               {claimed("a", "b?"), nil, 0, "c", nil, true},
		"at the limit, all existing":              {nil, []string{"a", "b"}, 0, "c", nil, true},
		"at the limit, some of either":            {claimed("a?"), []string{"b"}, 0, "c", nil, true},
		"what is claimed and exists counts once":  {claimed("a"), []string{"a"}, 0, "b", claimed("a", "b?"), false},
		"above the limit":                         {claimed("a", "b", "c"), []string{"d"}, 0, "e", nil, true},
		"above the limit, but claimed":            {claimed("a", "b", "c"), []string{"d"}, 0, "c", nil, false},
		"asked for again":                         {claimed("a?", "b"), nil, 0, "a", nil, false},
		"asked for again after it was made":       {claimed("a", "b"), []string{"a", "b"}, 0, "a", nil, false},
		"asked for again before it was taken up":  {claimed("b"), []string{"a", "b"}, 0, "a", nil, false},
		"their own limit is above":                {claimed("a", "b"), nil, 3, "c", claimed("a", "b", "c?"), false},
		"their own limit is below":                {claimed("a"), nil, 1, "b", nil, true},
		"their own limit was lowered: use as is":  {claimed("a", "b"), nil, 1, "b", nil, false},
		"their own limit was lowered: no one new": {claimed("a", "b"), nil, 1, "c", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &v1alpha1.User{Spec: v1alpha1.UserSpec{OrgClaims: slices.Clone(c.claims), OrgQuota: c.own}}
			o := &v1alpha1.Organization{Spec: v1alpha1.OrganizationSpec{WorkspaceClaims: slices.Clone(c.claims), WorkspaceQuota: c.own}}
			asked := claimed(c.uuid + "?")[0]
			ofUser, userErr := tenancy.ClaimOrg(u, c.existing, 2, asked)
			ofOrg, orgErr := tenancy.ClaimWorkspace(o, c.existing, 2, asked)
			require.Equal(t, c.want, ofUser)
			require.Equal(t, c.want, ofOrg)
			require.Equal(t, c.claims, u.Spec.OrgClaims, "what is shared is not changed")
			for _, err := range []error{userErr, orgErr} {
				if !c.refused {
					require.NoError(t, err)
					continue
				}
				var e *errs.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, errs.Forbidden, e.Code)
				require.Equal(t, tenancy.CauseQuota, e.Causes[0].Type)
			}
		})
	}
}

func TestClaim_doesNotAliasItsInput(t *testing.T) {
	t.Parallel()
	room := append(make([]v1alpha1.Claim, 0, 8), claimed("a")...)
	u := &v1alpha1.User{Spec: v1alpha1.UserSpec{OrgClaims: room}}
	first, err := tenancy.ClaimOrg(u, nil, 9, claimed("b?")[0])
	require.NoError(t, err)
	_, err = tenancy.ClaimOrg(u, nil, 9, claimed("c?")[0])
	require.NoError(t, err)
	require.Equal(t, claimed("a", "b?"), first)
}

func TestUsed_countsClaimsAndObjects(t *testing.T) {
	t.Parallel()
	require.Zero(t, tenancy.Used(nil, nil))
	require.Equal(t, 3, tenancy.Used(claimed("a", "b?"), []string{"b", "c"}))
	require.Equal(t, 2, tenancy.Used(nil, []string{"b", "c"}))
}

// A request that is carried out twice would create two objects; a claim that is kept after
// its object is deleted would use up the quota.
func TestSettleClaims_createsAndCleansUp(t *testing.T) {
	t.Parallel()
	down := errors.New("kcp cannot be reached")
	for name, c := range map[string]struct {
		claims   []v1alpha1.Claim
		existing []string
		// fails is the UUID for which Make and Exists fail; kcp holds the objects that the
		// cache lacks.
		fails string
		// now are the claims in kcp if the cache is outdated; unread is the error of reading
		// them.
		now    []v1alpha1.Claim
		unread error
		kcp    []string
		want   []v1alpha1.Claim
		made   []string
		asked  []string
	}{
		"nothing":                           {want: nil},
		"asked for":                         {claims: claimed("a?", "b?"), want: claimed("a", "b"), made: []string{"a", "b"}},
		"asked for and there already":       {claims: claimed("a?"), existing: []string{"a"}, want: claimed("a")},
		"made a moment ago, and not seen":   {claims: claimed("a"), kcp: []string{"a"}, want: claimed("a"), asked: []string{"a"}},
		"gone":                              {claims: claimed("a", "b"), existing: []string{"b"}, want: claimed("b"), asked: []string{"a"}},
		"made by somebody else":             {existing: []string{"b", "a"}, want: claimed("a", "b")},
		"made by somebody else, beside own": {claims: claimed("c"), existing: []string{"c", "a"}, want: claimed("c", "a")},
		"the making fails":                  {claims: claimed("a?", "b?"), fails: "b", want: claimed("a", "b?"), made: []string{"a"}},
		"kcp does not say whether it is gone": {
			claims: claimed("a", "b"), existing: []string{"b"}, fails: "a", want: claimed("a", "b"),
		},
		"made by another, and memory is behind": {
			claims: claimed("a?", "b?"), now: claimed("a", "b?"), want: claimed("a?", "b"), made: []string{"b"},
		},
		"made and deleted, and memory is behind": {claims: claimed("a?"), now: claimed("c"), want: claimed("a?")},
		"kcp does not say what is asked for":     {claims: claimed("a?", "b"), unread: down, want: claimed("a?", "b")},
		"what memory knows is settled after a failure, too": {
			claims: claimed("a?"), existing: []string{"d"}, fails: "a", want: claimed("a?", "d"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var made, asked []string
			before, existing := slices.Clone(c.claims), slices.Clone(c.existing)
			got, err := tenancy.SettleClaims(c.claims, c.existing, tenancy.Claimed{Claims: func() ([]v1alpha1.Claim, error) {
				if c.now == nil {
					return c.claims, c.unread
				}
				return c.now, c.unread
			}, Make: func(claim v1alpha1.Claim) error {
				require.NotNil(t, claim.Request)
				if claim.UUID == c.fails {
					return down
				}
				made = append(made, claim.UUID)
				return nil
			}, Exists: func(uuid string) (bool, error) {
				if uuid == c.fails {
					return false, down
				}
				asked = append(asked, uuid)
				return slices.Contains(c.kcp, uuid), nil
			}})
			if c.fails == "" && c.unread == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, down)
			}
			require.Equal(t, c.want, got)
			require.Equal(t, c.made, made)
			require.Equal(t, c.asked, asked)
			require.Equal(t, before, c.claims, "what memory holds is shared")
			require.Equal(t, existing, c.existing)
		})
	}
}

func TestClaim_describesTheWholeObject(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Unix(1_000, 999))
	c := tenancy.NewClaim("u", "Ünïted ☂", "alice", "hash", at)
	require.Equal(t, int64(1_000), c.Request.RequestedAt.UnixNano()/1_000_000_000)
	require.Zero(t, c.Request.RequestedAt.Nanosecond(), "as it is when it is read again")

	o := tenancy.ClaimedOrg(c)
	require.Equal(t, "u", o.Name)
	require.Equal(t, "Ünïted ☂", o.Spec.DisplayName)
	require.Equal(t, map[string]string{v1alpha1.CreatedByAnnotation: "alice"}, o.Annotations)
	require.Equal(t, map[string]string{v1alpha1.IdempotencyKeyLabel: "hash"}, o.Labels)

	w := tenancy.ClaimedWorkspace("o", c)
	require.Equal(t, "u", w.UUID)
	require.Equal(t, "o", w.OrgUUID)
	require.Equal(t, "alice", w.CreatedBy)
	require.Equal(t, map[string]string{v1alpha1.IdempotencyKeyLabel: "hash"}, w.Labels)
	require.Equal(t, v1alpha1.PhaseProgressing, w.Status.Phase)

	plain := tenancy.NewClaim("u", "U", "alice", "", at)
	require.Nil(t, tenancy.ClaimedOrg(plain).Labels)
	require.Nil(t, tenancy.ClaimedWorkspace("o", plain).Labels)
}

// The key of another caller must neither return nor create that caller's object.
func TestKeyedUUID_differsByCallerPlaceAndKey(t *testing.T) {
	t.Parallel()
	const user, other, org = "0a4a2a1e-0000-4000-8000-000000000001", "0a4a2a1e-0000-4000-8000-000000000002", "11111111-1111-4111-8111-111111111111"
	seen := map[string][]string{}
	for _, c := range [][]string{
		{user, "", "k"},
		{other, "", "k"},
		{user, org, "k"},
		{other, org, "k"},
		{user, "", "K"},
		{user, "", org + "/k"},
		{user, "", "/" + org + "/k"},
		{user, org, "/k"},
		{user, "", "k/"},
	} {
		uuid := tenancy.KeyedUUID(c[0], c[1], c[2])
		require.True(t, tenancy.IsUUID(uuid))
		require.Equal(t, uuid, tenancy.KeyedUUID(c[0], c[1], c[2]), "on every replica the same")
		require.NotContains(t, seen, uuid, "%v and %v", c, seen[uuid])
		seen[uuid] = c
	}
	require.NotContains(t, seen, tenancy.PersonalOrgUUID(user))
	require.NotContains(t, seen, tenancy.DefaultWorkspaceUUID(org))
}
