package framework

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// UndocumentedMetrics returns an error for the first metric of the hub that the package comment of pkg/metrics
// does not list with the same labels. doc is the path of that comment from the directory of the test,
// and exposition is the answer of /metrics.
func UndocumentedMetrics(doc string, exposition []byte) error {
	raw, err := os.ReadFile(doc)
	if err != nil {
		return err
	}
	known := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^//   - (kedge_\w+)(?:\{([^}]*)\})?:`).FindAllStringSubmatch(string(raw), -1) {
		known[m[1]] = slices.Sorted(strings.SplitSeq(m[2], ","))
	}
	label, series := regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`), regexp.MustCompile(`^(kedge_\w+)(?:\{(.*)\})? `)
	kinds := map[string]string{}
	for line := range bytes.Lines(exposition) {
		if kind, ok := bytes.CutPrefix(line, []byte("# TYPE kedge_")); ok {
			name, what, _ := strings.Cut(strings.TrimSpace(string(kind)), " ")
			kinds["kedge_"+name] = what
			continue
		}
		m := series.FindSubmatch(line)
		if m == nil {
			continue
		}
		name := string(m[1])
		if kinds[name] == "" {
			name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		}
		has := []string{}
		for _, l := range label.FindAllSubmatch(m[2], -1) {
			if string(l[1]) != "le" || kinds[name] != "histogram" {
				has = append(has, string(l[1]))
			}
		}
		slices.Sort(has)
		if want, ok := known[name]; !ok || strings.Join(want, ",") != strings.Join(has, ",") {
			return fmt.Errorf("pkg/metrics/doc.go does not list %s with the labels %q", name, has)
		}
	}
	if len(kinds) < 20 {
		return fmt.Errorf("there are only %d metrics", len(kinds))
	}
	return nil
}
