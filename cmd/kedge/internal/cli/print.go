package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// word is the value of a flag that is one of some words.
type word struct {
	value string
	words []string
}

func (w *word) String() string { return w.value }

// Type implements pflag.Value.
func (w *word) Type() string { return strings.Join(w.words, "|") }

// choices are what a shell offers.
func (w *word) choices() []string { return w.words }

// Set implements pflag.Value.
func (w *word) Set(s string) error {
	if !slices.Contains(w.words, s) {
		last := len(w.words) - 1
		return fmt.Errorf("give %s or %s", strings.Join(w.words[:last], ", "), w.words[last])
	}
	w.value = s
	return nil
}

// format is the value of -o.
type format struct{ word }

// isTable is true for the formats that people read.
func (f *format) isTable() bool { return f.value == "table" || f.value == wide }

func (f *format) flag(cmd *cobra.Command) {
	f.word = word{"table", []string{"table", wide, "json", "yaml", "name"}}
	cmd.Flags().VarP(f, "output", "o", "how to print: table, wide, json, yaml or name")
}

// wide is the format that shows all columns.
const wide = "wide"

// table lists the columns: header, field of the object and, for those that -o wide adds, wide.
type table [][3]string

// all returns the table with all columns in each format.
func (t table) all() table { return t.of(format{word{value: wide}}) }

// of returns the columns of a format.
func (t table) of(f format) table {
	shown := table{}
	for _, c := range t {
		if c[2] == "" || f.value == wide {
			shown = append(shown, [3]string{c[0], c[1]})
		}
	}
	return shown
}

// print prints an object, or the items of a list, that the hub answered, if it answered any.
func (a *app) print(f format, raw []byte, columns table) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	switch f.value {
	case "json":
		var b bytes.Buffer
		if err := json.Indent(&b, bytes.TrimSpace(raw), "", "  "); err != nil {
			return err
		}
		_, err := fmt.Fprintln(a.Out, b.String())
		return err
	case "yaml":
		out, err := yaml.JSONToYAML(raw)
		if err != nil {
			return err
		}
		_, err = a.Out.Write(out)
		return err
	}
	items, err := itemsOf(raw)
	if err != nil {
		return err
	}
	if f.value == "name" {
		for _, item := range items {
			if _, err := fmt.Fprintln(a.Out, cell(nameOf(item))); err != nil {
				return err
			}
		}
		return nil
	}
	columns = columns.of(f)
	w := tabwriter.NewWriter(a.Out, 0, 8, 3, ' ', 0)
	headers := make([]string, len(columns))
	for i, c := range columns {
		headers[i] = c[0]
	}
	fmt.Fprintln(w, strings.Join(headers, "\t"))
	for _, item := range items {
		row := make([]string, len(columns))
		for i, c := range columns {
			value := item[c[1]]
			if text, ok := value.(string); ok && c == descriptionColumn() {
				// A description has paragraphs, and a cell one line.
				value = strings.Join(strings.Fields(text), " ")
			}
			switch row[i] = cell(value); c {
			case endColumn():
				row[i] = endIn(row[i], time.Now())
			case leftColumn():
				row[i] = leftUntil(row[i], time.Now())
			case roleColumn():
				if row[i] == "" && item["manager"] == true {
					row[i] = "manager"
				}
			}
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// tell reports what was done: a sentence in table format, the object in other formats.
func (a *app) tell(f format, sentence string, to any) error {
	sentence = printableLines(sentence)
	if f.isTable() {
		_, err := fmt.Fprintln(a.Out, sentence)
		return err
	}
	fmt.Fprintln(a.Err, sentence)
	return a.printValue(f, to, nil)
}

// printValue prints what did not come from the hub as it is.
func (a *app) printValue(f format, value any, columns table) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return a.print(f, raw, columns)
}

// printable replaces the characters that move the cursor or hide text. A provider writes the verbs
// of its claims as it likes, and could otherwise change what a person reads before an answer.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// printableLines is printable for a text of several lines.
func printableLines(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = printable(strings.ReplaceAll(line, "\t", " "))
	}
	return strings.Join(lines, "\n")
}

// printableCell is printable for a cell: a second line would be a row that the hub did not answer.
func printableCell(text string) string {
	return printable(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		return r
	}, text))
}

// cell formats a value for a table. Objects are shown by name.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = cell(v[i])
		}
		return strings.Join(parts, ",")
	case map[string]any:
		if limit, ok := v["limit"]; ok {
			return cell(v["used"]) + "/" + cell(limit)
		}
		if labels, ok := v["labels"].(map[string]any); ok {
			return strings.Trim(cell(v["costCenter"])+","+pairs(labels), ",")
		}
		for _, field := range []string{"path", "name", "costCenter", "source"} {
			if named, ok := v[field]; ok {
				return cell(named)
			}
		}
		if _, ok := v["workspaceBytes"]; ok {
			// The limits of storage are texts and numbers.
			limits := make([]string, 0, len(v))
			for _, name := range slices.Sorted(maps.Keys(v)) {
				limits = append(limits, name+"="+cell(v[name]))
			}
			return strings.Join(limits, ",")
		}
		return pairs(v)
	case float64:
		// Numbers of JSON; large ones have no exponent.
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return printableCell(fmt.Sprint(v))
	}
}

// pairs formats texts by name. It is empty for an object that has anything else.
func pairs(object map[string]any) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		text, ok := object[name].(string)
		if !ok {
			return ""
		}
		all = append(all, printableCell(name+"="+text))
	}
	return strings.Join(all, ",")
}

// nameOf is the name of an item for other commands.
func nameOf(item map[string]any) any {
	for _, field := range []string{"uuid", "user", "workspaceUUID", "orgUUID", "id"} {
		if name, ok := item[field]; ok {
			return name
		}
	}
	return item["name"]
}

func itemsOf(raw []byte) ([]map[string]any, error) {
	var list struct {
		Items *[]map[string]any `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if list.Items != nil {
		return *list.Items, nil
	}
	var item map[string]any
	if err := json.Unmarshal(raw, &item); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return []map[string]any{item}, nil
}
