package v1

import (
	"strings"
	"unicode"
)

// maxNamePart is the maximum length, in characters, of a display name in the name of a context.
const maxNamePart = 63

// ContextName returns the name of the context for a workspace in a kubeconfig, from display names. Where another
// workspace has the same one, DistinctContextName is used.
func ContextName(org, workspace string) string { return safeName(org) + "/" + safeName(workspace) }

// DistinctContextName adds the first part of the UUID of the workspace to a name.
func DistinctContextName(name, uuid string) string { return name + "-" + uuid[:min(len(uuid), 8)] }

// safeName makes a display name a part of a name that no shell and no URL treats specially. Letters of
// all scripts stay.
func safeName(name string) string {
	parts := strings.FieldsFunc(name, func(r rune) bool {
		return !unicode.In(r, unicode.Letter, unicode.Mark, unicode.Digit) && r != '_' && r != '.'
	})
	runes := []rune(strings.Trim(strings.Join(parts, "-"), ".-"))
	if len(runes) == 0 {
		return "unnamed"
	}
	return strings.TrimRight(string(runes[:min(len(runes), maxNamePart)]), "-.")
}
