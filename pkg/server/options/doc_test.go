package options

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func TestOptions_documentEveryField(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, path := range files {
		if path == "doc.go" || path == "nextsteps.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		// Fields that are declared line by line below one comment share it.
		fields := 0
		ast.Inspect(file, func(n ast.Node) bool {
			declared, ok := n.(*ast.TypeSpec)
			if !ok || !strings.HasSuffix(declared.Name.Name, "Options") {
				return true
			}
			text := ""
			for _, field := range declared.Type.(*ast.StructType).Fields.List {
				if field.Doc != nil {
					text = field.Doc.Text()
				}
				for _, name := range field.Names {
					fields++
					require.Contains(t, text, name.Name, "the comment of %s.%s", declared.Name.Name, name.Name)
				}
			}
			return false
		})
		require.Equal(t, !strings.HasSuffix(path, "_test.go"), fields > 0, path)
	}
}

// People read --help and do not have the list of rules.
func TestFlags_haveUsagesThatCiteNoRules(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("kedge-hub", pflag.ContinueOnError)
	New().AddFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		require.NotEmpty(t, f.Usage, f.Name)
		require.NotRegexp(t, `\b[OP]-\d`, f.Usage, f.Name)
	})
}
