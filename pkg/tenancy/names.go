package tenancy

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// MaxDisplayName is the length of the longest display name, in characters.
const MaxDisplayName = 128

// maxUserName leaves room for "-" and eight digits of a hash in a DNS label, and
// for "{workspace}." before it in a Membership's name.
const maxUserName = 54

// CheckDisplayName refuses what a display name may not be: 1 to 128 characters
// in NFC without control characters, one of which can be seen. field is named in the
// error.
func CheckDisplayName(field, name string) error {
	switch n := len([]rune(name)); {
	case strings.TrimSpace(name) == "":
		return errs.InvalidField(field, "must not be empty")
	case n > MaxDisplayName:
		return errs.InvalidField(field, "must have at most 128 characters")
	case !norm.NFC.IsNormalString(name):
		return errs.InvalidField(field, "must be in Unicode normal form C (NFC)")
	}
	for _, r := range name {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Bidi_Control, r) {
			return errs.InvalidField(field, "must not contain control characters")
		}
	}
	if strings.IndexFunc(name, visible) < 0 {
		return errs.InvalidField(field, "must have a character that can be seen")
	}
	return nil
}

// visible tells whether a character shows. Those that do not may be in a name, where
// emoji and Persian need them, but a name of them alone looks like none. What Unicode
// has yet to assign counts as visible: newer emoji are that here.
func visible(r rune) bool {
	const brailleBlank = '\u2800'
	return r != brailleBlank && !unicode.In(r, unicode.White_Space, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// UserNames returns the metadata.name that a new User gets: the first is
// readable, the second is for when the first belongs to somebody else. Both are
// DNS labels and follow from the identity alone.
func UserNames(issuer, subject, preferred, email string) (name, onCollision string) {
	base := dnsLabel(preferred)
	if base == "" {
		local, _, _ := strings.Cut(email, "@")
		base = dnsLabel(local)
	}
	if base == "" || base == "me" {
		base = "user"
	}
	return base, base + "-" + IdentityHash(issuer, subject)[:8]
}

func dnsLabel(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= maxUserName {
			break
		}
	}
	return strings.Trim(b.String(), "-")
}

// MembershipName is the name of the Membership of user in the Org, or in the
// Workspace where workspace is not empty.
func MembershipName(user, workspace string) string {
	if workspace == "" {
		return user
	}
	return workspace + "." + user
}

// NamedFor tells of the name of a Membership, which its schema sees to, whether it is
// of the Org, or of the Workspace where workspace is not empty. No User's name has a
// dot in it.
func NamedFor(membership, workspace string) bool {
	if workspace == "" {
		return !strings.Contains(membership, ".")
	}
	of, _, ok := strings.Cut(membership, ".")
	return ok && of == workspace
}

// NewMembership is the Membership of user in the Org, or in the Workspace where
// workspace is not empty.
func NewMembership(user, workspace string, role v1alpha1.Role) *v1alpha1.Membership {
	m := &v1alpha1.Membership{}
	m.Name = MembershipName(user, workspace)
	m.Spec = v1alpha1.MembershipSpec{UserRef: v1alpha1.NamedRef{Name: user}, Scope: v1alpha1.ScopeOrg, Role: role}
	if workspace != "" {
		m.Spec.Scope = v1alpha1.ScopeWorkspace
		m.Spec.WorkspaceRef = &v1alpha1.NamedRef{Name: workspace}
	}
	return m
}

// NewWorkspaceMembership is NewMembership with what only a Membership in a
// Workspace has.
func NewWorkspaceMembership(user, workspace string, role v1alpha1.Role, roles []v1alpha1.NamedRef, sudo bool) *v1alpha1.Membership {
	m := NewMembership(user, workspace, role)
	m.Spec.Roles, m.Spec.Sudo = roles, sudo
	return m
}

// NewOrganization is the Organization that a User asks for. It holds the whole
// plan, so that one write is enough to begin (O-11).
func NewOrganization(uuid, displayName, createdBy string) *v1alpha1.Organization {
	o := &v1alpha1.Organization{Spec: v1alpha1.OrganizationSpec{
		DisplayName:       displayName,
		WorkspaceCreation: v1alpha1.WhoMembers, CatalogEntryCreation: v1alpha1.WhoMembers,
		DefaultAccess: v1alpha1.DefaultAccessNone,
	}}
	o.Name = uuid
	o.Finalizers = []string{v1alpha1.CascadeFinalizer}
	o.Annotations = map[string]string{v1alpha1.CreatedByAnnotation: createdBy}
	return o
}

// NewPersonalOrg is the Org that the hub makes for a person. Its UUID follows from
// the User's UID.
func NewPersonalOrg(u *v1alpha1.User) *v1alpha1.Organization {
	const suffix = "'s personal"
	name := []rune(u.Spec.DisplayName)
	o := NewOrganization(PersonalOrgUUID(string(u.UID)), string(name[:min(len(name), MaxDisplayName-len(suffix))])+suffix, u.Name)
	o.Spec.Personal = true
	return o
}

// NewDefaultWorkspace is the Workspace that the hub makes in a person's own Org.
func NewDefaultWorkspace(org Org) Workspace {
	return Workspace{UUID: DefaultWorkspaceUUID(string(org.UID)), OrgUUID: org.UUID(), DisplayName: "default", CreatedBy: org.CreatedBy()}
}

// NewUserSpec is the spec of a User whose identity is seen for the first time.
// What an identity provider says of a name is cleaned, never refused: a person
// must not be locked out by it.
func NewUserSpec(issuer, subject, username, displayName, email string) v1alpha1.UserSpec {
	name := norm.NFC.String(displayName)
	if CheckDisplayName("", name) != nil {
		name = username
	}
	if CheckDisplayName("", name) != nil {
		name = "user"
	}
	if len(email) > 320 {
		email = ""
	}
	return v1alpha1.UserSpec{
		Email: email, DisplayName: name, Issuer: issuer, Subject: subject, RBACIdentity: username,
		Registration: v1alpha1.RegistrationApproved,
	}
}
