package metrics_test

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The package comment is the list that operators read.
func TestDoc_listsEveryMetric(t *testing.T) {
	t.Parallel()
	declared := names(t, regexp.MustCompile(`"(kedge_[a-z_]+)"`), func(file string) bool {
		return strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go")
	})
	listed := names(t, regexp.MustCompile(`//   - (kedge_[a-z_]+)`), func(file string) bool { return file == "metrics/doc.go" })
	require.NotEmpty(t, declared)
	require.Equal(t, declared, listed)
}

// An operator looks here for the limit by which a person was refused.
func TestDoc_listsEveryLimit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	found := regexp.MustCompile(`kedge_limited_total\{limit\}: [^:]+:([^.]+)\.`).FindSubmatch(text)
	require.NotNil(t, found)
	listed := regexp.MustCompile(`[a-z_]+`).FindAllString(string(found[1]), -1)
	code := func(file string) bool { return strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") }
	counted := names(t, regexp.MustCompile(`"([a-z_]+_per_(?:peer|person|session|org|workspace|object))"`), code)
	require.Subset(t, listed, counted)
	require.Greater(t, len(counted), 15)
	require.Subset(t, names(t, regexp.MustCompile(`"([a-z_]+)"`), code), listed, "each is in the code")
}

// names returns the matches of pattern in the selected files of pkg/, sorted.
func names(t *testing.T, pattern *regexp.Regexp, selected func(file string) bool) []string {
	t.Helper()
	var found []string
	pkg := os.DirFS("..")
	require.NoError(t, fs.WalkDir(pkg, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !selected(file) {
			return err
		}
		raw, err := fs.ReadFile(pkg, file)
		for _, match := range pattern.FindAllStringSubmatch(string(raw), -1) {
			found = append(found, match[1])
		}
		return err
	}))
	slices.Sort(found)
	return slices.Compact(found)
}
