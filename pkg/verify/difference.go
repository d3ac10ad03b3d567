package verify

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/faroshq/kedge-hub/pkg/controller"
)

// The kinds of differences.
const (
	KindMembership     = "membership"
	KindIndex          = "index"
	KindBinding        = "binding"
	KindRole           = "role"
	KindNamespace      = "namespace"
	KindPolicy         = "policy"
	KindAPIBinding     = "apibinding"
	KindBot            = "bot"
	KindBotToken       = "bot token"
	KindSession        = "session"
	KindClaim          = "claim"
	KindOrganization   = "organization"
	KindWorkspace      = "workspace"
	KindLogicalCluster = "logical cluster"
	KindSpare          = "spare"
)

// Nothing is the side of a difference that is not there.
const Nothing = "nothing"

// Difference is one difference between what is wanted and what kcp has.
type Difference struct {
	Kind string `json:"kind"`
	// Place is the path of a workspace of kcp, and Name that of an object in it.
	Place string `json:"place"`
	Name  string `json:"name"`
	// Wanted and Found are the two sides.
	Wanted string `json:"wanted"`
	Found  string `json:"found"`
	// Heals is the controller that mends it. It is empty where ToDo says what a person has to do.
	Heals string `json:"heals,omitempty"`
	ToDo  string `json:"toDo,omitempty"`
	// Key is what the controller is asked for.
	Key controller.Key `json:"-"`
}

// healedBy returns the difference with what mends it.
func (d Difference) healedBy(name string, key controller.Key) Difference {
	d.Heals, d.Key = name, key
	return d
}

func (d Difference) compare(o Difference) int {
	return cmp.Or(
		cmp.Compare(d.Place, o.Place), cmp.Compare(d.Kind, o.Kind), cmp.Compare(d.Name, o.Name),
		cmp.Compare(d.Found, o.Found), cmp.Compare(d.Wanted, o.Wanted),
	)
}

// Report is what a look found.
type Report struct {
	Differences []Difference `json:"differences"`
	// Repaired are those that a repair mended.
	Repaired []Difference `json:"repaired,omitempty"`
	// Unseen says what could not be compared, and why.
	Unseen []string `json:"unseen,omitempty"`
	// Compared is the number of objects that were looked at.
	Compared int `json:"compared"`
}

// Print writes a report as text.
func (r Report) Print(out io.Writer) {
	for _, d := range r.Repaired {
		fmt.Fprintf(out, "%s %s in %s was repaired by the controller %s\n", d.Kind, d.Name, d.Place, d.Heals)
	}
	for _, d := range r.Differences {
		fmt.Fprintf(out, "%s %s in %s\n  wanted: %s\n  found:  %s\n", d.Kind, d.Name, d.Place, d.Wanted, d.Found)
		if d.Heals != "" {
			fmt.Fprintf(out, "  the controller %s heals it\n", d.Heals)
		} else {
			fmt.Fprintf(out, "  by hand: %s\n", d.ToDo)
		}
	}
	for _, why := range r.Unseen {
		fmt.Fprintf(out, "not compared: %s\n", why)
	}
	fmt.Fprintf(out, "%d objects compared, %d differences\n", r.Compared, len(r.Differences))
}

// both returns the differences that are in two lists.
func both(a, b []Difference) []Difference {
	return slices.DeleteFunc(slices.Clone(b), func(d Difference) bool { return !slices.Contains(a, d) })
}
