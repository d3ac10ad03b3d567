package options

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/pkg/config"
)

const deployDir = "../../../deploy"

func read(t *testing.T, path ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(raw)
}

func flagsOf(o *Options) *pflag.FlagSet {
	fs := pflag.NewFlagSet("kedge-hub", pflag.ContinueOnError)
	config.AddFlag(fs)
	o.AddFlags(fs)
	return fs
}

// cell is a text in a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

func flagTable() string {
	b := &strings.Builder{}
	b.WriteString("| flag | default | |\n|---|---|---|\n")
	flagsOf(New()).VisitAll(func(f *pflag.Flag) {
		value := ""
		if f.DefValue != "" && f.DefValue != "[]" {
			value = "`" + f.DefValue + "`"
		}
		fmt.Fprintf(b, "| `--%s` | %s | %s |\n", f.Name, value, cell(f.Usage))
	})
	return b.String()
}

// listed returns the metrics that the package comment of pkg/metrics lists, with their meaning.
func listed(t *testing.T) [][]string {
	t.Helper()
	text := regexp.MustCompile(`(?m)^//( |$)`).ReplaceAllString(read(t, "../../metrics/doc.go"), "")
	return regexp.MustCompile(`(?m)^  - (kedge_\w+)(\{[^}]*\})?: ((?:.+\n)(?:    .+\n)*)`).FindAllStringSubmatch(text, -1)
}

func metricTable(t *testing.T) string {
	t.Helper()
	b := &strings.Builder{}
	b.WriteString("| metric | |\n|---|---|\n")
	for _, m := range listed(t) {
		fmt.Fprintf(b, "| `%s%s` | %s |\n", m[1], m[2], cell(m[3]))
	}
	return b.String()
}

func conditionTable(t *testing.T) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../../apis/tenancy/v1alpha1/constants.go", nil, parser.ParseComments)
	require.NoError(t, err)
	b := &strings.Builder{}
	b.WriteString("| condition | |\n|---|---|\n")
	ast.Inspect(file, func(n ast.Node) bool {
		if c, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(c.Names[0].Name, "Condition") && len(c.Values) == 1 {
			text := strings.TrimLeft(strings.TrimPrefix(c.Doc.Text(), c.Names[0].Name), ", ")
			text = regexp.MustCompile(` \([A-Z]-\d+\)`).ReplaceAllString(text, "")
			fmt.Fprintf(b, "| `%s` | %s |\n", strings.TrimPrefix(c.Names[0].Name, "Condition"), cell(text))
		}
		return true
	})
	return b.String()
}

// KEDGE_TEST_UPDATE=1 writes the tables instead.
func TestDeployReadme_listsFlagsMetricsAndConditions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(deployDir, "README.md")
	old := read(t, path)
	want := old
	for name, table := range map[string]string{"flags": flagTable(), "metrics": metricTable(t), "conditions": conditionTable(t)} {
		begin := "<!-- " + name + " -->\n"
		before, rest, ok := strings.Cut(want, begin)
		require.True(t, ok, name)
		_, after, ok := strings.Cut(rest, "<!-- end -->")
		require.True(t, ok, name)
		want = before + begin + table + "<!-- end -->" + after
	}
	if os.Getenv("KEDGE_TEST_UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, old, "run KEDGE_TEST_UPDATE=1 go test ./pkg/server/options -run TestDeployReadme")
}

func TestAlerts_useMetricsThatExistAndAreExplained(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, m := range listed(t) {
		known[m[1]] = true
	}
	require.Greater(t, len(known), 20)
	var alerts []struct{ Alert, Expr, For, Severity, Summary string }
	require.NoError(t, yaml.UnmarshalStrict([]byte(read(t, deployDir, "chart", "alerts.yaml")), &alerts))
	require.NotEmpty(t, alerts)
	playbook := read(t, deployDir, "README.md")
	for _, a := range alerts {
		used := regexp.MustCompile(`kedge_\w+`).FindAllString(a.Expr, -1)
		require.NotEmpty(t, used, a.Alert)
		for _, name := range used {
			require.True(t, known[regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")], "%s: %s", a.Alert, name)
		}
		require.Contains(t, playbook, "### "+a.Alert+"\n")
		require.Regexp(t, "^(critical|warning)$", a.Severity)
		require.NotEmpty(t, a.For)
		require.NotEmpty(t, a.Summary)
	}
}

func TestExamples_nameFlagsThatExist(t *testing.T) {
	t.Parallel()
	o := New()
	fs := flagsOf(o)
	require.NoError(t, fs.Parse([]string{"--config", filepath.Join(deployDir, "examples", "hub.yaml")}))
	require.NoError(t, config.Load(fs, nil))
	require.Equal(t, []string{"kedge:platform"}, o.AdminGroups)
	variables := map[string]bool{}
	fs.VisitAll(func(f *pflag.Flag) { variables[config.Variable(f.Name)] = true })
	named := regexp.MustCompile(`(?m)^#?(KEDGE_HUB_\w+)=`).FindAllStringSubmatch(read(t, deployDir, "systemd", "environment"), -1)
	require.NotEmpty(t, named)
	for _, m := range named {
		require.True(t, variables[m[1]], m[1])
	}
}
