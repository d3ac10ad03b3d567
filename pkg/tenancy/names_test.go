package tenancy_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestCheckDisplayName_acceptsAndRefuses(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"ACME": true, "Müller & Söhne": true, "日本": true, "a": true, strings.Repeat("ü", 128): true, `"; DROP TABLE`: true,
		"": false, "   ": false, strings.Repeat("a", 129): false, "a\x00b": false, "a\nb": false, "a\x1b[31m": false,
		"u\u0308": false, "\u202eevil": false, "\ufffd": false,
	} {
		err := tenancy.CheckDisplayName("displayName", name)
		if good {
			require.NoError(t, err, "%q", name)
			continue
		}
		var e *errs.Error
		require.ErrorAs(t, err, &e, "%q", name)
		require.Equal(t, errs.Invalid, e.Code)
		require.Equal(t, "displayName", e.Causes[0].Field)
	}
}

// An invisible name could not be told apart from others in lists.
func TestCheckDisplayName_refusesInvisibleNames(t *testing.T) {
	t.Parallel()
	for what, hidden := range map[string]string{
		"zero width space": "\u200b", "byte order mark": "\ufeff", "word joiner": "\u2060", "joiners": "\u200c\u200d",
		"soft hyphen": "\u00ad", "no-break space": "\u00a0", "ideographic space": "\u3000", "spaces and formats": " \u200b \ufeff\u2003",
		"Hangul fillers": "\u3164\u115f\u1160\uffa0", "combining grapheme joiner": "\u034f", "braille blank": "\u2800",
		"variation selectors": "\ufe0f\U000e0100", "Mongolian separators": "\u180b\u180e", "invisible times": "\u2062",
		"tags": "\U000e0041\U000e007f", "line separator": "\u2028",
	} {
		var e *errs.Error
		require.ErrorAs(t, tenancy.CheckDisplayName("displayName", hidden), &e, what)
		require.Equal(t, errs.Invalid, e.Code, what)
		require.Equal(t, "displayName", e.Causes[0].Field, what)
		require.Equal(t, "user", tenancy.NewUserSpec("i", "s", hidden, hidden, "").DisplayName, what)
	}
	for _, seen := range []string{"می\u200cخواهم", "👩\u200d💻", "❤\ufe0f", "🏴\U000e0067\U000e0062\U000e007f", "क\u094d\u200dष", "\u200ba", "⠀⠁", "\ue000"} {
		require.NoError(t, tenancy.CheckDisplayName("displayName", seen), "%q", seen)
	}
}

func FuzzDisplayName(f *testing.F) {
	for _, s := range []string{"ACME", "", "\x00", "u\u0308", strings.Repeat("x", 200)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if tenancy.CheckDisplayName("f", s) == nil {
			require.NotEmpty(t, strings.TrimSpace(s))
			require.LessOrEqual(t, len([]rune(s)), 128)
			require.NotContains(t, s, "\x00")
		}
		spec := tenancy.NewUserSpec("i", "s", s, s, s)
		require.NoError(t, tenancy.CheckDisplayName("f", spec.DisplayName), "sign-up always finds a name to show")
	})
}

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func TestUserNames_areReadableDNSLabels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ preferred, email, want string }{
		{"alice", "", "alice"}, {"Alice.Smith", "", "alice-smith"}, {"", "bob@example.com", "bob"},
		{"", "", "user"}, {"---", "", "user"}, {"日本", "", "user"}, {"me", "", "user"},
		{strings.Repeat("a", 100), "", strings.Repeat("a", 54)}, {"a@b", "", "a-b"}, {"-x-", "", "x"},
	} {
		names := tenancy.UserNames("issuer", "subject", c.preferred, c.email)
		require.Len(t, names, 7)
		require.Equal(t, c.want, names[0])
		for i, name := range names {
			require.Regexp(t, dnsLabel, name)
			require.NotContains(t, names[:i], name)
		}
		require.Regexp(t, "^"+c.want+"-[0-9a-f]{8}$", names[1])
		require.Regexp(t, "-"+tenancy.IdentityHash("issuer", "subject")+"$", names[6])
		require.Equal(t, names, tenancy.UserNames("issuer", "subject", c.preferred, c.email), "a retry finds the same names")
		others := tenancy.UserNames("issuer", "another", c.preferred, c.email)
		require.Equal(t, names[0], others[0])
		for _, name := range names[1:] {
			require.NotContains(t, others, name)
		}
	}
}

// A person cannot take the names that another one gets when the readable name is taken.
func TestUserNames_giveTheFormOfASuffixToNobody(t *testing.T) {
	t.Parallel()
	for _, name := range tenancy.UserNames("issuer", "victim", "alice", "")[1:] {
		for _, taking := range tenancy.UserNames("issuer", "attacker", name, "") {
			require.NotEqual(t, name, taking)
			require.Regexp(t, dnsLabel, taking)
		}
	}
	for preferred, readable := range map[string]bool{
		"alice-1a2b3c4d": false, "Alice.1A2B3C4D": false, "alice-" + strings.Repeat("a", 40): false,
		"alice-1a2b3c4": true, "alice-1a2b3c4d5": true, "alice-1a2b3c4g": true, "1a2b3c4d": true, "alice1a2b3c4d": true,
	} {
		require.Equal(t, readable, len(tenancy.UserNames("issuer", "subject", preferred, "")) == 7, preferred)
	}
}

// Two different pairs must not have the same encoding.
func TestIdentityHash_separatesIssuerAndSubject(t *testing.T) {
	t.Parallel()
	require.NotEqual(t, tenancy.IdentityHash("ab", "c"), tenancy.IdentityHash("a", "bc"))
	require.Len(t, tenancy.IdentityHash("a", "b"), 40)
}

// UUIDs are accepted in canonical lower case only (O-1).
func TestIsUUID_acceptsCanonicalOnly(t *testing.T) {
	t.Parallel()
	for s, good := range map[string]bool{
		"231a151a-434e-4623-ad6e-69406abb9387": true, "231A151A-434E-4623-AD6E-69406ABB9387": false,
		"{231a151a-434e-4623-ad6e-69406abb9387}": false, "231a151a434e4623ad6e69406abb9387": false,
		"231a151a-434e-4623-ad6e-69406abb9387\n": false, "": false, "urn:uuid:231a151a-434e-4623-ad6e-69406abb9387": false,
	} {
		require.Equal(t, good, tenancy.IsUUID(s), "%q", s)
	}
	// The same as the pattern that kcp's policies have.
	pattern := regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	for i := range 36 {
		for c := range 256 {
			s := []byte("231a151a-434e-4623-ad6e-69406abb9387")
			s[i] = byte(c)
			require.Equal(t, pattern.Match(s), tenancy.IsUUID(string(s)), "%q", s)
		}
	}
	require.True(t, tenancy.IsUUID(tenancy.PersonalOrgUUID("uid")))
	require.NotEqual(t, tenancy.PersonalOrgUUID("uid"), tenancy.DefaultWorkspaceUUID("uid"))
}

func TestMembershipName_isDeterministic(t *testing.T) {
	t.Parallel()
	org := tenancy.NewMembership("bob", "", v1alpha1.RoleMember)
	require.Equal(t, "bob", org.Name)
	require.Equal(t, v1alpha1.ScopeOrg, org.Spec.Scope)
	require.Nil(t, org.Spec.WorkspaceRef)
	ws := tenancy.NewMembership("bob", "231a151a-434e-4623-ad6e-69406abb9387", v1alpha1.RoleAdmin)
	require.Equal(t, "231a151a-434e-4623-ad6e-69406abb9387.bob", ws.Name)
	require.Equal(t, v1alpha1.ScopeWorkspace, ws.Spec.Scope)
	for _, tc := range []struct {
		of   string
		want []bool
	}{{"", []bool{true, false}}, {"231a151a-434e-4623-ad6e-69406abb9387", []bool{false, true}}, {"231a151a", []bool{false, false}}, {"bob", []bool{false, false}}} {
		require.Equal(t, tc.want, []bool{tenancy.NamedFor(org.Name, tc.of), tenancy.NamedFor(ws.Name, tc.of)}, tc.of)
	}
}

func TestTree_derivesPaths(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "kedge", "root", "root:", "root:Kedge", "root:a:", "root:*", "root:a/b", "root:system:x y"} {
		_, err := tenancy.NewTree(bad)
		require.Error(t, err, bad)
	}
	tree, err := tenancy.NewTree("root:platform:kedge")
	require.NoError(t, err)
	org, ws := "231a151a-434e-4623-ad6e-69406abb9387", "9acbf567-a188-4c75-9c40-3c3bec1a775f"
	gotOrg, gotWS, ok := tree.ParseWorkspacePath(tree.Workspace(org, ws))
	require.True(t, ok)
	require.Equal(t, []string{org, ws}, []string{gotOrg, gotWS})
	for _, bad := range []string{tree.Org(org), tree.Orgs(), tree.Workspace(org, ws) + ":x", "root:kedge:orgs:" + org + ":" + ws, tree.Workspace(org, strings.ToUpper(ws))} {
		_, _, ok := tree.ParseWorkspacePath(bad)
		require.False(t, ok, bad)
	}
	for path, hub := range map[string]bool{
		tree.Root(): true, tree.Users(): true, tree.Orgs(): true, tree.Providers(): true, tree.Org(org): true,
		tree.Workspace(org, ws): false, "root:other": false,
	} {
		require.Equal(t, hub, tree.IsHubPath(path), path)
	}
	for path, held := range map[string]bool{
		tree.Root(): true, tree.Users(): true, tree.Workspace(org, ws): true,
		"root:platform": false, "root:platform:kedge2": false, "root": false, "": false,
	} {
		require.Equal(t, held, tree.Holds(path), path)
	}
	for path, above := range map[string]bool{"root": true, "root:platform": true, "root:plat": false, tree.Root(): false} {
		require.Equal(t, above, tree.IsAbovePath(path), path)
	}
}
