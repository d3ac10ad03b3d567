package auth_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/test/doubles/oidctest"
)

// unreadable are usernames that make nobody, by what is wrong with them.
func unreadable() map[string]string {
	return map[string]string{
		"a space": " ", "spaces": " \t ", "a space before": " alice", "a space after": "alice ", "a line end": "alice\n", "NUL inside": "al\x00ice",
		"an escape": "\x1b[31malice", "a C1 control inside": "al\u0085ice", "a no-break space": "alice\u00a0", "an ideographic space": "\u3000alice",
		"a zero width space": "alice\u200b", "a zero width joiner": "\u200dalice", "a byte order mark": "\ufeffalice", "a word joiner": "alice\u2060",
		"a soft hyphen": "alice\u00ad", "a Hangul filler": "\u3164", "a braille blank": "\u2800", "a line separator": "alice\u2028",
		"a right-to-left override": "\u202ealice", "a tag": "alice\U000e0041", "only zero width": "\u200b\u200c",
	}
}

// readable are usernames that the rule must not catch.
func readable() []string {
	return []string{"alice", "alice smith", "a", "alice@example.com", "می\u200cخواهم", "Ünïcode#1", "日本", "o'brien", "0", "-", "a|b"}
}

func TestOIDC_refusesUsernamesThatNobodyCanRead(t *testing.T) {
	t.Parallel()
	for _, claim := range []string{"sub", "email", "preferred_username"} {
		i := newIssuer(t, func(c *auth.OIDCConfig) { c.UsernameClaim = claim }).run(t)
		for what, name := range unreadable() {
			_, ok, err := i.Authenticate(t.Context(), i.Token(oidctest.Claims{claim: name}))
			require.False(t, ok, "%s: %s", claim, what)
			require.True(t, errs.Is(err, errs.Forbidden), "%s: %s: %v", claim, what, err)
			require.ErrorContains(t, err, "username")
		}
		for _, name := range readable() {
			id, ok, err := i.Authenticate(t.Context(), i.Token(oidctest.Claims{claim: name}))
			require.NoError(t, err, name)
			require.True(t, ok)
			require.Equal(t, "kedge:"+name, id.Username)
		}
	}
}

func TestStaticTokens_refuseNamesThatNobodyCanRead(t *testing.T) {
	t.Parallel()
	quoted := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	for what, name := range unreadable() {
		_, err := load(t, "good,bob,1\nhush,"+quoted(name)+",1\n")
		require.ErrorContains(t, err, "line 2", what)
		require.NotContains(t, err.Error(), "hush")
	}
	for _, name := range readable() {
		_, err := load(t, "hush,"+quoted(name)+",1,"+quoted(name+", dev")+"\n")
		require.NoError(t, err, name)
	}
	for _, group := range []string{"dev\u200b", "a\x00b", "ops,\ufeffdev"} {
		_, err := load(t, "hush,alice,1,"+quoted(group)+"\n")
		require.ErrorContains(t, err, "line 1")
	}
}

// The other side is Unicode's own tables.
func TestReadable_agreesWithUnicode(t *testing.T) {
	t.Parallel()
	// All characters of the planes that have invisible ones, and a sample of the others.
	const basic, special = 0x10000, 0xE0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r >= basic && r>>12 != special && r%101 != 0 {
			continue
		}
		invisible := r == '\u2800' || unicode.In(r, unicode.White_Space, unicode.Cc, unicode.Cf, unicode.Z,
			unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
		require.Equal(t, !invisible, auth.Readable(string(r)+"alice"), "%U", r)
	}
}
