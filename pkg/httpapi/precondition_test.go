package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

func conditional(lines ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPatch, "/", nil)
	r.Header["If-Match"] = lines
	return r
}

func TestIfMatch_admitsTheNamedVersionsOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines   []string
		matches bool
	}{
		"it":                         {[]string{`"42"`}, true},
		"it, with spaces":            {[]string{"  \"42\"\t"}, true},
		"it, among others":           {[]string{`"41", "42","43"`}, true},
		"it, in a second line":       {[]string{`"41"`, `"42"`}, true},
		"it, among weak ones":        {[]string{`W/"41", "42"`}, true},
		"it, among commas":           {[]string{`, ,"42",,`}, true},
		"it, beside one with commas": {[]string{`"a,b", "42"`}, true},
		"another":                    {[]string{`"41"`}, false},
		"others":                     {[]string{`"4", "2", "421", "042"`}, false},
		"a weak one":                 {[]string{`W/"42"`}, false},
		"within another":             {[]string{`"a,42,b"`}, false},
		"one of nothing":             {[]string{`""`}, false},
		"one in another writing":     {[]string{`"ä42"`}, false},
	} {
		match, err := httpapi.IfMatch(conditional(c.lines...))
		require.NoError(t, err, name)
		require.NotNil(t, match, name)
		err = match("42")
		require.Equal(t, c.matches, err == nil, name)
		if err != nil {
			require.True(t, errs.Is(err, errs.PreconditionFailed), name)
		}
	}
}

func TestIfMatch_withoutTheHeaderAllMatches(t *testing.T) {
	t.Parallel()
	for _, r := range []*http.Request{httptest.NewRequest(http.MethodPatch, "/", nil), conditional("*"), conditional(" * ")} {
		match, err := httpapi.IfMatch(r)
		require.NoError(t, err)
		require.Nil(t, match)
	}
}

// A condition that cannot be read must not be taken for one that holds.
func TestIfMatch_refusesWhatIsNoListOfETags(t *testing.T) {
	t.Parallel()
	for _, bad := range [][]string{
		{""}, {" "}, {","}, {"42"}, {`"42`}, {`42"`}, {`"42" "43"`}, {`"42"x`}, {`'42'`}, {`w/"42"`}, {`W/42`}, {`W/`}, {`"`},
		{"*", `"42"`}, {`"42", *`}, {"**"}, {`"4 2"`}, {"\"4\x012\""}, {"\"4\x7f2\""}, {`"42", 43`}, {`W/W/"42"`},
	} {
		_, err := httpapi.IfMatch(conditional(bad...))
		require.True(t, errs.Is(err, errs.Invalid), "%q: %v", bad, err)
		var e *errs.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "header:If-Match", e.Causes[0].Field)
	}
}

func TestIfMatch_aFailureHasTheCurrentETag(t *testing.T) {
	t.Parallel()
	for version, tag := range map[string]string{"43": `"43"`, "": ""} {
		w := httptest.NewRecorder()
		httpapi.WriteError(w, conditional(`"42"`), httpapi.Changed(version))
		require.Equal(t, http.StatusPreconditionFailed, w.Code)
		require.Equal(t, tag, w.Header().Get("ETag"))
		require.Contains(t, w.Body.String(), `"reason":"PreconditionFailed"`)
		require.Contains(t, w.Body.String(), "read it again")
	}
}

func TestTag_ofWhatIsNotMadeYetIsEmpty(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	httpapi.Tag(w, "")
	require.NotContains(t, w.Header(), "Etag")
	httpapi.Tag(w, "42")
	require.Equal(t, `"42"`, w.Header().Get("ETag"))
}

func FuzzIfMatch(f *testing.F) {
	for _, seed := range []string{`"42"`, `*`, `W/"42", "43"`, `"a,b"`, `"`, `,,`, "\"\x00\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		match, err := httpapi.IfMatch(conditional(header))
		switch {
		case err != nil:
			require.True(t, errs.Is(err, errs.Invalid))
		case match != nil && match("42") == nil:
			require.Contains(t, header, `"42"`)
		}
	})
}
