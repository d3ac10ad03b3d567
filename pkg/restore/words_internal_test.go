package restore

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wordsOf returns the keys of the maps in the file with which the portal says what events did.
func wordsOf(t *testing.T) map[string]bool {
	t.Helper()
	raw, err := os.ReadFile("../portal/static/lib/words.js")
	require.NoError(t, err)
	text := string(raw)
	// What is said of requests is said of both places.
	begin := strings.Index(text, "function requests(place)")
	require.Positive(t, begin)
	ofRequests := text[begin:]
	ofRequests = ofRequests[:strings.Index(ofRequests, "\n}\n")]
	words := map[string]bool{}
	for place, of := range map[string]string{"": text[:begin], inOrg: ofRequests, inWorkspace: ofRequests} {
		of = strings.NewReplacer(
			"${one}", place+"/requests/{request}", "${place}", place, "${org}", inOrg, "${ws}", inWorkspace, "${bot}", ofBot,
		).Replace(of)
		for _, found := range regexp.MustCompile("(?m)(?:^ +|, )(?:'([^']+)'|\\[`([^`]+)`\\]|([a-z]+)): '").FindAllStringSubmatch(of, -1) {
			words[found[1]+found[2]+found[3]] = true
		}
	}
	return words
}

func TestActions_haveWordsInThePortal(t *testing.T) {
	t.Parallel()
	words := wordsOf(t)
	for _, of := range []table{actions, families} {
		for name := range of {
			require.True(t, words[name], "pkg/portal/static/lib/words.js has no words for %q", name)
		}
	}
	require.False(t, words["POST /api/orgs/{org}/nothing"])
}

// A route that changes something is an action, and has a row in the authorization matrix.
func TestRoutesOfTheMatrix_haveWordsInThePortal(t *testing.T) {
	t.Parallel()
	words := wordsOf(t)
	raw, err := os.ReadFile("../../test/integration/authorization/matrix_audit_test.go")
	require.NoError(t, err)
	routes := regexp.MustCompile(`(?m)^\t"((?:POST|PUT|PATCH|DELETE) /api/[^"]+)":`).FindAllStringSubmatch(string(raw), -1)
	require.Greater(t, len(routes), 50)
	for _, route := range routes {
		require.True(t, words[route[1]], "pkg/portal/static/lib/words.js has no words for %q", route[1])
	}
}
