package config

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

const (
	// EnvironmentPrefix begins the variables of the environment.
	EnvironmentPrefix = "KEDGE_HUB_"

	// apiVersion and kind are those of the file.
	apiVersion = "config.kedge.faros.sh/v1alpha1"
	kind       = "HubConfiguration"

	flagName = "config"
)

// AddFlag defines --config in fs.
func AddFlag(fs *pflag.FlagSet) {
	fs.String(flagName, "", "YAML file with flags: apiVersion "+apiVersion+", kind "+kind+", and the names of flags as keys. Flags win over the environment ("+EnvironmentPrefix+"{FLAG}), and the environment over the file.")
}

// Variable returns the variable of the environment for a flag.
func Variable(flag string) string {
	return EnvironmentPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Load sets the flags of fs that the command line does not give: those of environ, which has the
// form of os.Environ, and then those of the file that --config names. The error names every
// mistake.
func Load(fs *pflag.FlagSet, environ []string) error {
	var bad []error
	given := map[string]bool{"help": true}
	fs.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	flags := map[string]string{}
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			flags[Variable(f.Name)] = f.Name
		}
	})
	for _, entry := range environ {
		variable, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(variable, EnvironmentPrefix) {
			continue
		}
		flag, ok := flags[variable]
		if !ok && ofService(variable) {
			continue
		}
		if !ok {
			if near, distance := nearest(variable, keysOf(flags)); distance <= 2 {
				bad = append(bad, fmt.Errorf("%s: there is no such flag; is it %s?", variable, near))
			}
			continue
		}
		if given[flag] {
			continue
		}
		given[flag] = true
		if err := setText(fs.Lookup(flag), value); err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", variable, err))
		}
	}
	if f := fs.Lookup(flagName); f != nil && f.Value.String() != "" {
		bad = append(bad, loadFile(fs, f.Value.String(), given)...)
	}
	return errors.Join(bad...)
}

// ofService reports whether Kubernetes sets a variable in every Pod beside a Service called
// kedge-hub.
func ofService(variable string) bool {
	name := strings.TrimPrefix(variable, EnvironmentPrefix)
	return name == "PORT" || strings.HasPrefix(name, "PORT_") || strings.HasPrefix(name, "SERVICE_")
}

func loadFile(fs *pflag.FlagSet, path string, given map[string]bool) (bad []error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return []error{fmt.Errorf("--%s: %w; name a file that the hub can read", flagName, err)}
	}
	fail := func(line int, format string, args ...any) {
		bad = append(bad, fmt.Errorf("%s:%d: %s", path, line, fmt.Sprintf(format, args...)))
	}
	var document yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(string(raw)))
	if err := decoder.Decode(&document); err != nil {
		return []error{fmt.Errorf("%s: it is not a YAML document: %w", path, err)}
	}
	if decoder.Decode(&yaml.Node{}) == nil {
		return []error{fmt.Errorf("%s: it has more than one YAML document; leave one", path)}
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		fail(root.Line, "it is not a map of flags")
		return bad
	}
	names := []string{"apiVersion", "kind"}
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Name != flagName && f.Name != "help" {
			names = append(names, f.Name)
		}
	})
	seen := map[string]bool{}
	head := map[string]string{"apiVersion": apiVersion, "kind": kind}
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if seen[key.Value] {
			fail(key.Line, "%s is given twice", key.Value)
			continue
		}
		seen[key.Value] = true
		if want, ok := head[key.Value]; ok {
			if value.Value != want {
				fail(key.Line, "%s is %q; it must be %s", key.Value, value.Value, want)
			}
			continue
		}
		f := fs.Lookup(key.Value)
		if near, distance := nearest(key.Value, names); f == nil || distance > 0 {
			fail(key.Line, "%q is not a flag; the nearest is %s", key.Value, near)
			continue
		}
		if err := setNode(f, value, given[f.Name]); err != nil {
			fail(value.Line, "%s: %v", key.Value, err)
		}
	}
	for _, key := range []string{"apiVersion", "kind"} {
		if !seen[key] {
			fail(root.Line, "%s is missing; it must be %s", key, head[key])
		}
	}
	return bad
}

// setNode sets a flag to a value of the file. A flag that is given elsewhere is left, and the form
// of the value is checked in both cases.
func setNode(f *pflag.Flag, value *yaml.Node, given bool) error {
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	list, isList := f.Value.(pflag.SliceValue)
	switch {
	case isList && value.Kind != yaml.SequenceNode:
		return errors.New("give a list")
	case !isList && (value.Kind != yaml.ScalarNode || value.Tag == "!!null"):
		return fmt.Errorf("give a %s", f.Value.Type())
	case !isList && given:
		return nil
	case !isList:
		return setValue(f, value.Value)
	}
	items := make([]string, 0, len(value.Content))
	for _, item := range value.Content {
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			return errors.New("give a list of words")
		}
		items = append(items, item.Value)
	}
	if given {
		return nil
	}
	return list.Replace(items)
}

// setText sets a flag to a value of the environment.
func setText(f *pflag.Flag, value string) error {
	list, ok := f.Value.(pflag.SliceValue)
	if !ok {
		return setValue(f, value)
	}
	if value == "" {
		return list.Replace(nil)
	}
	items, err := csv.NewReader(strings.NewReader(value)).Read()
	if err != nil {
		return fmt.Errorf("%q is not a list with commas", value)
	}
	return list.Replace(items)
}

func setValue(f *pflag.Flag, value string) error {
	if err := f.Value.Set(value); err != nil {
		return fmt.Errorf("%q is not a %s", value, f.Value.Type())
	}
	return nil
}

// Arguments returns the arguments of a command line that set a flag to its value.
func Arguments(f *pflag.Flag) (args []string) {
	list, ok := f.Value.(pflag.SliceValue)
	switch {
	case !ok:
		return []string{"--" + f.Name + "=" + f.Value.String()}
	case f.Value.Type() != "stringArray":
		var line strings.Builder
		w := csv.NewWriter(&line)
		// A builder takes everything.
		_ = w.Write(list.GetSlice())
		w.Flush()
		return []string{"--" + f.Name + "=" + strings.TrimSuffix(line.String(), "\n")}
	}
	for _, item := range list.GetSlice() {
		args = append(args, "--"+f.Name+"="+item)
	}
	return args
}
