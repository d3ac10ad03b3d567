package tenancy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const catalogOrg = "aaaaaaaa-0000-4000-8000-000000000001"

func TestCatalogEntryName_isOneForEachPlaceAndSlug(t *testing.T) {
	t.Parallel()
	name := tenancy.CatalogEntryName(catalogOrg, "widgets")
	require.True(t, tenancy.IsUUID(name))
	require.Equal(t, name, tenancy.CatalogEntryName(catalogOrg, "widgets"))
	require.NotEqual(t, name, tenancy.CatalogEntryName("", "widgets"))
	require.NotEqual(t, name, tenancy.CatalogEntryName(catalogOrg, "gadgets"))
	e := tenancy.NewCatalogEntry(catalogOrg, v1alpha1.CatalogEntrySpec{Slug: "widgets-"}, publisherNamed("alice"), "hash")
	require.Equal(t, tenancy.CatalogEntryName(catalogOrg, "widgets-"), e.Name)
	require.Equal(t, "alice", e.Annotations[v1alpha1.CreatedByAnnotation])
	require.Equal(t, map[string]string{v1alpha1.CatalogSlugLabel: tenancy.SlugHash("widgets-"), v1alpha1.IdempotencyKeyLabel: "hash"}, e.Labels)
}

func TestCatalogScope_isThatOfTheOrg(t *testing.T) {
	t.Parallel()
	o := tenancy.Org{Organization: &v1alpha1.Organization{}}
	require.Equal(t, v1alpha1.CatalogOrg, tenancy.CatalogScopeOf(o))
	o.Spec.Personal = true
	require.Equal(t, v1alpha1.CatalogPersonal, tenancy.CatalogScopeOf(o))
}

func placedEntry(name, slug string, age time.Duration, global bool) tenancy.ScopedEntry {
	e := &v1alpha1.CatalogEntry{Spec: v1alpha1.CatalogEntrySpec{Slug: slug}}
	e.Name, e.UID = name, types.UID(name)
	e.CreationTimestamp = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(-age))
	return tenancy.ScopedEntry{Entry: e, Global: global}
}

func TestCatalogClash_aGlobalOrOlderEntryComesFirst(t *testing.T) {
	t.Parallel()
	own := placedEntry("own", "widgets", time.Minute, false)
	deleted := placedEntry("gone", "widgets", time.Hour, true)
	deleted.Entry.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for name, c := range map[string]struct {
		others []tenancy.ScopedEntry
		first  string
	}{
		"alone":                      {},
		"itself":                     {[]tenancy.ScopedEntry{own}, ""},
		"another slug":               {[]tenancy.ScopedEntry{placedEntry("a", "gadgets", time.Hour, true)}, ""},
		"a younger one":              {[]tenancy.ScopedEntry{placedEntry("a", "widgets", time.Second, false)}, ""},
		"a younger Global one":       {[]tenancy.ScopedEntry{placedEntry("z", "widgets", time.Second, true)}, "z"},
		"an older and a Global one":  {[]tenancy.ScopedEntry{placedEntry("a", "widgets", time.Hour, false), placedEntry("z", "widgets", time.Second, true)}, "z"},
		"one that is being deleted":  {[]tenancy.ScopedEntry{deleted}, ""},
		"an older one":               {[]tenancy.ScopedEntry{placedEntry("a", "widgets", time.Hour, false)}, "a"},
		"the oldest":                 {[]tenancy.ScopedEntry{placedEntry("a", "widgets", time.Hour, false), placedEntry("b", "widgets", 2*time.Hour, false)}, "b"},
		"a Global one of its age":    {[]tenancy.ScopedEntry{placedEntry("z", "widgets", time.Minute, true)}, "z"},
		"a lesser name of its age":   {[]tenancy.ScopedEntry{placedEntry("a", "widgets", time.Minute, false)}, "a"},
		"a greater name of its age":  {[]tenancy.ScopedEntry{placedEntry("z", "widgets", time.Minute, false)}, ""},
		"two of its age, one Global": {[]tenancy.ScopedEntry{placedEntry("a", "widgets", time.Minute, false), placedEntry("z", "widgets", time.Minute, true)}, "z"},
	} {
		first, ok := tenancy.CatalogClash(own, c.others)
		require.Equal(t, c.first != "", ok, name)
		if ok {
			require.Equal(t, c.first, first.Entry.Name, name)
			_, back := tenancy.CatalogClash(first, []tenancy.ScopedEntry{own})
			require.False(t, back, "%s: one of the two is shown", name)
		}
	}
}

func TestCatalog_whoPublishesAndChanges(t *testing.T) {
	t.Parallel()
	alice := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "alice"}}
	entry := tenancy.NewCatalogEntry(catalogOrg, v1alpha1.CatalogEntrySpec{}, publisherNamed("alice"), "")
	entry.CreationTimestamp = metav1.NewTime(time.Unix(1000, 0))
	foreign := tenancy.NewCatalogEntry(catalogOrg, v1alpha1.CatalogEntrySpec{}, publisherNamed("bob"), "")
	// newcomer has the name of the publisher, who is gone.
	newcomer := alice.DeepCopy()
	newcomer.CreationTimestamp = metav1.NewTime(time.Unix(2000, 0))
	for name, c := range map[string]struct {
		role                           v1alpha1.Role
		who                            v1alpha1.Who
		publish, own, others, newcomer bool
	}{
		"an admin":                          {v1alpha1.RoleAdmin, v1alpha1.WhoMembers, true, true, true, true},
		"an admin where only admins may":    {v1alpha1.RoleAdmin, v1alpha1.WhoAdmin, true, true, true, true},
		"a member":                          {v1alpha1.RoleMember, v1alpha1.WhoMembers, true, true, false, false},
		"a member where only admins may":    {v1alpha1.RoleMember, v1alpha1.WhoAdmin, false, false, false, false},
		"somebody of one of its Workspaces": {"", v1alpha1.WhoMembers, false, false, false, false},
	} {
		s := tenancy.Scope{User: "alice", OrgRole: c.role, Org: tenancy.Org{Organization: &v1alpha1.Organization{Spec: v1alpha1.OrganizationSpec{CatalogEntryCreation: c.who}}}}
		for what, err := range map[string]error{
			"publish": s.RequirePublish(), "own": s.RequireChange(alice, entry), "others": s.RequireChange(alice, foreign), "newcomer": s.RequireChange(newcomer, entry),
		} {
			allowed := map[string]bool{"publish": c.publish, "own": c.own, "others": c.others, "newcomer": c.newcomer}[what]
			require.Equal(t, allowed, err == nil, "%s: %s", name, what)
			require.True(t, err == nil || errs.Is(err, errs.Forbidden))
		}
	}
}

func publisherNamed(name string) *v1alpha1.User {
	return &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
}
