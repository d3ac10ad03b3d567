package tenancy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// MaxDisplayName is the maximum length of a display name, in characters.
const MaxDisplayName = 128

// MaxDescription is the maximum length of a description, in characters.
const MaxDescription = 1024

// maxUserName is the maximum length of the readable part of a User's name. It leaves room
// for "-" and eight digits of a hash in a DNS label, and for "{workspace}." in the name of a
// Membership.
const maxUserName = 54

// maxLabel is the maximum length of a DNS label.
const maxLabel = 63

// CheckDisplayName validates a display name: 1 to 128 characters in NFC, no control
// characters, at least one visible character. The error names field.
func CheckDisplayName(field, name string) error {
	switch n := len([]rune(name)); {
	case strings.TrimSpace(name) == "":
		return errs.InvalidField(field, "must not be empty")
	case n > MaxDisplayName:
		return errs.InvalidField(field, "must have at most 128 characters")
	case !norm.NFC.IsNormalString(name):
		return errs.InvalidField(field, "must be in Unicode normal form C (NFC)")
	}
	if strings.ContainsFunc(name, unprintable) {
		return errs.InvalidField(field, "must not contain control characters")
	}
	if strings.IndexFunc(name, visible) < 0 {
		return errs.InvalidField(field, "must have a character that can be seen")
	}
	return nil
}

// checkText validates a text of several lines with at most that many characters. The errors name field.
func checkText(field, text string, most int) error {
	switch {
	case utf8.RuneCountInString(text) > most:
		return errs.InvalidField(field, fmt.Sprintf("must have at most %d characters", most))
	case !norm.NFC.IsNormalString(text):
		return errs.InvalidField(field, "must be in Unicode normal form C (NFC)")
	case strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && unprintable(r) }):
		return errs.InvalidField(field, "must not contain control characters, except line breaks")
	}
	return nil
}

// unprintable reports whether a character is none that people can see or that orders what they see.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Bidi_Control, r)
}

// CheckDescription returns an error that names field if text is longer than 1024 characters, or has control characters
// other than ends of lines and tabs. Empty is valid.
func CheckDescription(field, text string) error {
	switch {
	case utf8.RuneCountInString(text) > MaxDescription:
		return errs.InvalidField(field, fmt.Sprintf("must have at most %d characters", MaxDescription))
	case strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && unprintable(r)
	}):
		return errs.InvalidField(field, "must not contain control characters other than ends of lines and tabs")
	}
	return nil
}

// visible reports whether a character is visible. Emoji and Persian need invisible
// characters, so a name can contain them but not consist of them. Unassigned code points
// count as visible, because they can be emoji of a newer Unicode version.
func visible(r rune) bool {
	const brailleBlank = '\u2800'
	return r != brailleBlank && !unicode.In(r, unicode.White_Space, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// suffix is the form of the suffixes that UserNames adds. A name of this form has the hash of
// its own identity in it, or nobody gets it.
var suffix = regexp.MustCompile(`-([0-9a-f]{8}|[0-9a-f]{40})$`)

// suffixLength is the number of hexadecimal digits of a short suffix.
const suffixLength = 8

// UserNames returns the candidates for the metadata.name of a new User, in the order in which
// sign-up tries them: a readable one, then the readable one with one part after the other of the
// identity's hash, and with all of it. All are DNS labels derived from the identity, so that two
// hubs that sign one person up try the same names.
//
// A readable name in the form of a suffixed one is left out. So only an identity of the same hash
// can take a suffixed name, and nobody can take all names of another person: the last one has
// 160 bits of the hash.
func UserNames(issuer, subject, preferred, email string) []string {
	base := dnsLabel(preferred)
	if base == "" {
		local, _, _ := strings.Cut(email, "@")
		base = dnsLabel(local)
	}
	if base == "" || base == "me" {
		base = "user"
	}
	var names []string
	if !suffix.MatchString(base) {
		names = append(names, base)
	}
	hash := IdentityHash(issuer, subject)
	for part := range slices.Chunk([]byte(hash), suffixLength) {
		names = append(names, base+"-"+string(part))
	}
	short := strings.TrimRight(base[:min(len(base), maxLabel-len(hash)-1)], "-")
	return append(names, short+"-"+hash)
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

// MembershipName is the name of the Membership of user in the Organization, or in the
// Workspace if workspace is not empty.
func MembershipName(user, workspace string) string {
	if workspace == "" {
		return user
	}
	return workspace + "." + user
}

// NamedFor reports whether the Membership of that name is of the Organization, or of the
// Workspace if workspace is not empty. The schema enforces the form of the name, and names of
// Users contain no dot.
func NamedFor(membership, workspace string) bool {
	if workspace == "" {
		return !strings.Contains(membership, ".")
	}
	of, _, ok := strings.Cut(membership, ".")
	return ok && of == workspace
}

// NewMembership returns the Membership of user in the Organization, or in the Workspace if
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

// NewWorkspaceMembership is NewMembership with the fields that are for scope workspace only.
func NewWorkspaceMembership(user, workspace string, role v1alpha1.Role, roles []v1alpha1.RoleRef, sudo bool) *v1alpha1.Membership {
	m := NewMembership(user, workspace, role)
	m.Spec.Roles, m.Spec.Sudo = roles, sudo
	return m
}

// NewOrganization returns the Organization that a User asks for. The object describes all
// that is to be provisioned, so that one write starts it (O-11).
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

// NewPersonalOrg returns the personal Organization of a User. Its UUID is derived from the
// User's UID.
func NewPersonalOrg(u *v1alpha1.User) *v1alpha1.Organization {
	const suffix = "'s personal"
	name := []rune(u.Spec.DisplayName)
	o := NewOrganization(PersonalOrgOf(u), string(name[:min(len(name), MaxDisplayName-len(suffix))])+suffix, u.Name)
	o.Spec.Personal = true
	return o
}

// NewDefaultWorkspace returns the default Workspace of a personal Organization.
func NewDefaultWorkspace(org Org) Workspace {
	return Workspace{UUID: DefaultWorkspaceOf(org.Organization), OrgUUID: org.UUID(), DisplayName: "default",
		CreatedAt: org.CreationTimestamp, CreatedBy: org.CreatedBy(), Billing: InheritedBilling(org.Organization)}
}

// NewUserSpec returns the spec of a new User. A display name or email address of the identity
// provider that is not valid is replaced instead of refused, so that nobody is locked out by
// it.
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
