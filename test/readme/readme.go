// Package readme has the lines that the documents tell people to type, for the tests that run them.
package readme

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// Block returns the block of README.md that follows the mark with a name.
func Block(t testing.TB, name string) string {
	t.Helper()
	return BlockOf(t, "README.md", name)
}

// BlockOf returns the block of a document, named from the root of the project, that follows the mark with a name.
func BlockOf(t testing.TB, document, name string) string {
	t.Helper()
	// A test runs in the directory of its package.
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		require.NotEqual(t, filepath.Dir(dir), dir, "the test is in no module")
		dir = filepath.Dir(dir)
	}
	raw, err := os.ReadFile(filepath.Join(dir, document))
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)<!-- " + name + " -->\n```\\w+\n(.*?)```").FindSubmatch(raw)
	require.NotNil(t, block, "%s has the block %q between its marks", document, name)
	return string(block[1])
}

// Pipeline is a job with an ID token.
type Pipeline struct {
	// Script are the lines of the job.
	Script []string
	// Variable has the ID token. It is empty for GitHub, where the job asks the runner for it.
	Variable string
}

// Audience is the audience of the ID token in the lines for GitLab: where the hub is of those who paste them.
const Audience = "https://hub.example.com"

// Pipelines returns the jobs for GitHub Actions and for GitLab CI.
func Pipelines(t testing.TB) (github, gitlab Pipeline) {
	t.Helper()
	first, second, ok := strings.Cut(Block(t, "pipelines"), "---\n")
	require.True(t, ok)
	var action struct {
		Permissions map[string]string
		Steps       []struct{ Run string }
	}
	require.NoError(t, yaml.Unmarshal([]byte(first), &action))
	require.Equal(t, map[string]string{"id-token": "write"}, action.Permissions)
	require.Len(t, action.Steps, 1)
	github.Script = strings.Split(strings.TrimSpace(action.Steps[0].Run), "\n")
	var pipeline struct {
		Deploy struct {
			IDTokens map[string]struct{ Aud string } `json:"id_tokens"`
			Script   []string
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(second), &pipeline))
	require.Len(t, pipeline.Deploy.IDTokens, 1)
	gitlab.Script = pipeline.Deploy.Script
	for variable, token := range pipeline.Deploy.IDTokens {
		require.Equal(t, Audience, token.Aud)
		gitlab.Variable = variable
	}
	require.Len(t, github.Script, 3)
	require.Len(t, gitlab.Script, 3)
	return github, gitlab
}
