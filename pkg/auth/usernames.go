package auth

import "regexp"

// invisible is a character class in the syntax of RE2: white space, control and format
// characters, and the other characters without a shape of their own, by Unicode's
// Default_Ignorable_Code_Point. Format characters include the zero-width ones and the byte order
// mark.
const invisible = `[\p{Z}\p{Cc}\p{Cf}` +
	`\x{034F}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180B}-\x{180F}\x{2065}\x{2800}\x{3164}\x{FE00}-\x{FE0F}\x{FFA0}\x{FFF0}-\x{FFF8}\x{E0000}-\x{E0FFF}]`

// unreadable matches what is no username: the empty and the blank one, one that begins or ends with
// an invisible character, and one with a control character. Nobody can tell such a name from
// another one in a list, and programs that trim names take it for another one. The embedded kcp
// has the same expression in its rules (JWTAuthenticator).
const unreadable = `^$|^` + invisible + `|` + invisible + `$|\p{Cc}`

var unreadablePattern = regexp.MustCompile(unreadable)

// Readable reports whether a name that a claim or a token file gives is one that people can read:
// neither blank, nor with a control character, nor with an invisible character at an end.
func Readable(name string) bool { return !unreadablePattern.MatchString(name) }
