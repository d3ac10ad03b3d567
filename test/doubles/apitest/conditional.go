package apitest

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Conditional checks that a route which changes an object honours If-Match. call sends the
// request in a new world, in which kcp has the object in the given version and the caches have
// the first one, and returns the number of writes. code and writes are the status code and
// the number of writes if the precondition holds.
func Conditional(t *testing.T, code, writes int, call func(t *testing.T, header http.Header, version string) (Answer, int)) {
	t.Helper()
	const newer = "43"
	for name, c := range map[string]struct {
		header  http.Header
		version string
		code    int
	}{
		"without a condition":           {nil, FirstVersion, code},
		"without one, memory is behind": {nil, newer, code},
		"as it was read":                {IfMatch(Tag(FirstVersion)), FirstVersion, code},
		"as it was read once":           {IfMatch(`"41", "42"`), FirstVersion, code},
		"as it is, memory is behind":    {IfMatch(Tag(newer)), newer, code},
		"whatever it is":                {IfMatch("*"), newer, code},
		"changed since":                 {IfMatch(Tag(FirstVersion)), newer, http.StatusPreconditionFailed},
		"a version that is yet to come": {IfMatch(Tag(newer)), FirstVersion, http.StatusPreconditionFailed},
		"a weak tag never matches":      {IfMatch("W/" + Tag(FirstVersion)), FirstVersion, http.StatusPreconditionFailed},
		"no tag":                        {IfMatch(FirstVersion), FirstVersion, http.StatusBadRequest},
		"a tag that does not end":       {IfMatch(`"` + FirstVersion), FirstVersion, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, wrote := call(t, c.header, c.version)
			if c.code == code {
				require.Equal(t, code, answer.Code, answer.Body)
				require.Equal(t, writes, wrote)
				return
			}
			require.Zero(t, wrote)
			if c.code == http.StatusBadRequest {
				answer.RefusedField(t, "header:If-Match")
				return
			}
			require.Equal(t, "PreconditionFailed", string(answer.Refused(t, c.code).Reason))
			require.Equal(t, Tag(c.version), answer.Header.Get("ETag"), "what to read it again with")
		})
	}
}

// Tagged checks that an answer has the ETag of that version.
func (a Answer) Tagged(t testing.TB, code int, version string) {
	t.Helper()
	require.Equal(t, code, a.Code, a.Body)
	require.Equal(t, Tag(version), a.Header.Get("ETag"))
}

// Untagged checks that an answer has no ETag, because it is not about one existing object.
func (a Answer) Untagged(t testing.TB, code int) {
	t.Helper()
	require.Equal(t, code, a.Code, a.Body)
	require.Empty(t, a.Header.Values("ETag"))
}
