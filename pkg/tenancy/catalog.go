package tenancy

import (
	"cmp"
	"strings"

	"github.com/google/uuid"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// CatalogEntryName is the name of the entry with that slug in an Organization, or of the
// Global one if org is empty. It is derived from these, so that kcp itself refuses a second
// entry with the slug in one place.
func CatalogEntryName(org, slug string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://tenancy.kedge.faros.sh/catalog/"+cmp.Or(org, "global")+"/"+slug)).String()
}

// NewCatalogEntry returns an entry of an Organization, or a Global one if org is empty, that a
// person publishes. keyHash is the hash of the Idempotency-Key of the request, or empty.
func NewCatalogEntry(org string, spec v1alpha1.CatalogEntrySpec, by *v1alpha1.User, keyHash string) *v1alpha1.CatalogEntry {
	e := &v1alpha1.CatalogEntry{Spec: spec}
	e.Spec.PublishedBy = PublishedBy(org, by)
	e.Name = CatalogEntryName(org, spec.Slug)
	e.Annotations = map[string]string{v1alpha1.CreatedByAnnotation: by.Name}
	e.Labels = map[string]string{v1alpha1.CatalogSlugLabel: SlugHash(spec.Slug)}
	if keyHash != "" {
		e.Labels[v1alpha1.IdempotencyKeyLabel] = keyHash
	}
	return e
}

// SlugHash is the value of CatalogSlugLabel: a slug may end with a hyphen, which a label may not.
func SlugHash(slug string) string { return IdentityHash("slug", slug) }

// CatalogScopeOf is the scope of the entries of an Organization.
func CatalogScopeOf(org Org) v1alpha1.CatalogScope {
	if org.Spec.Personal {
		return v1alpha1.CatalogPersonal
	}
	return v1alpha1.CatalogOrg
}

// NoSuchCatalogEntry is the one answer for an entry that does not exist and for one that the
// caller cannot see.
func NoSuchCatalogEntry() error {
	return errs.New(errs.NotFound, "there is no catalog entry of that ID here")
}

// ScopedEntry is a CatalogEntry and whether it is Global.
type ScopedEntry struct {
	Entry  *v1alpha1.CatalogEntry
	Global bool
}

// CatalogClash returns the entry that has the slug of e and comes before it; ok is false if e
// can be shown. others are the entries of the place of e and of those in its way: the Global
// ones for an entry of an Organization, those of all Organizations for a Global one.
func CatalogClash(e ScopedEntry, others []ScopedEntry) (first ScopedEntry, ok bool) {
	for _, o := range others {
		if o.Entry.UID == e.Entry.UID || o.Entry.Spec.Slug != e.Entry.Spec.Slug || !o.Entry.DeletionTimestamp.IsZero() {
			continue
		}
		if o.Compare(e) < 0 && (!ok || o.Compare(first) < 0) {
			first, ok = o, true
		}
	}
	return first, ok
}

// Compare orders entries: Global ones first, because a tenant who takes a slug must not hide an
// entry from everybody, then by their age. Of two that are equally old the lesser name comes first.
func (p ScopedEntry) Compare(o ScopedEntry) int {
	if p.Global != o.Global {
		if p.Global {
			return -1
		}
		return 1
	}
	if by := p.Entry.CreationTimestamp.Compare(o.Entry.CreationTimestamp.Time); by != 0 {
		return by
	}
	return cmp.Or(strings.Compare(p.Entry.Name, o.Entry.Name), strings.Compare(string(p.Entry.UID), string(o.Entry.UID)))
}

// ResourceName is a resource as people write it: "widgets.example.org", or "secrets" for one of
// the core group.
func ResourceName(group, resource string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}

// RequirePublish refuses callers to whom spec.catalogEntryCreation does not permit to create
// CatalogEntries (O-7).
func (s Scope) RequirePublish() error {
	switch {
	case s.OrgRole.AtLeast(s.Org.Spec.CatalogEntryCreation.Least()):
		return nil
	case s.OrgRole.AtLeast(v1alpha1.RoleMember):
		return RoleTooLow("in this organization only admins may publish catalog entries (catalogEntryCreation: admin); ask one of its admins")
	}
	return RoleTooLow("only members of this organization may publish catalog entries in it, and viewers may not; ask one of its admins")
}

// RequireChange refuses callers who may not change or delete an entry of the Organization:
// admins may all, and members who may publish may their own. caller is the User of the scope.
func (s Scope) RequireChange(caller *v1alpha1.User, e *v1alpha1.CatalogEntry) error {
	if err := s.RequirePublish(); err != nil || s.OrgRole.AtLeast(v1alpha1.RoleAdmin) {
		return err
	}
	if e.Annotations[v1alpha1.CreatedByAnnotation] == caller.Name && MayHaveMade(caller, e.CreationTimestamp) {
		return nil
	}
	return RoleTooLow("only the person who published this catalog entry and the admins of the organization may change it; ask one of them")
}
