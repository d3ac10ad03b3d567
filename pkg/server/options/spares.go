package options

import "github.com/spf13/pflag"

// SpareOptions are the flags of workspaces that are kept ready for the next create.
type SpareOptions struct {
	// Organizations (--spare-organizations) is the number of spare Organizations, each with a spare
	// Workspace in it. Default 2; 0 keeps none.
	Organizations int
	// Workspaces (--spare-workspaces) is the number of spare Workspaces in every Organization in which
	// somebody created one within a day. Default 1; 0 keeps none.
	Workspaces int
}

func newSpareOptions() SpareOptions { return SpareOptions{Organizations: 2, Workspaces: 1} }

func (o *SpareOptions) addFlags(fs *pflag.FlagSet) {
	fs.IntVar(&o.Organizations, "spare-organizations", o.Organizations, "Number of organizations, each with a workspace, that are kept ready for the next people who create one or sign up. 0 keeps none.")
	fs.IntVar(&o.Workspaces, "spare-workspaces", o.Workspaces, "Number of workspaces that are kept ready in every organization in which somebody created one within a day. 0 keeps none.")
}

func (o *SpareOptions) complete(fail func(flag, format string, args ...any)) {
	const most = 100
	for flag, n := range map[string]int{"spare-organizations": o.Organizations, "spare-workspaces": o.Workspaces} {
		if n < 0 || n > most {
			fail(flag, "%d is not a number from 0 to %d", n, most)
		}
	}
}
