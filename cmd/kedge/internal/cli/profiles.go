package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/config"
)

// profileView is a profile as it is printed.
type profileView struct {
	Name    string `json:"name"`
	Hub     string `json:"hub"`
	Person  string `json:"person"`
	Current bool   `json:"current"`
}

func (a *app) profilesCommand() *cobra.Command {
	var output format
	list := func(cmd *cobra.Command, _ []string) error {
		_, c, err := a.load(cmd.Context())
		if err != nil {
			return err
		}
		views := []profileView{}
		for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
			p := c.Profiles[name]
			views = append(views, profileView{Name: name, Hub: p.Server, Person: p.Person, Current: name == c.Current})
		}
		return a.printValue(output, map[string]any{"items": views}, table{{"NAME", "name"}, {"HUB", "hub"}, {"PERSON", "person"}, {"CURRENT", "current"}})
	}
	cmd := &cobra.Command{
		Use: "profiles", Aliases: []string{"profile"}, Short: "List the logins on this computer, and choose one",
		Long: `List the logins on this computer. Each is a profile with a name, so that you can be
logged in to several hubs, and to one hub as several people. kedge login --profile
makes one; --profile and $KEDGE_PROFILE choose one for a command.`,
		Example: "  kedge profiles\n  kedge profiles use work",
		RunE:    list,
	}
	output.flag(cmd)
	use := &cobra.Command{
		Use: "use NAME", Short: "Choose the login that other commands use", Args: oneArg("the name of a profile"), ValidArgsFunction: inOrder(a.completeProfile),
		Example: "  kedge profiles use work",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := config.Path(a.configFile, a.Getenv)
			if err != nil {
				return err
			}
			var chosen *config.Profile
			err = config.Update(cmd.Context(), path, func(c *config.Config) error {
				if chosen = c.Profiles[args[0]]; chosen == nil {
					return fmt.Errorf("there is no profile %q; to see what there is, run: kedge profiles", args[0])
				}
				c.Current = args[0]
				return nil
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "Working at %s as %s.\n", chosen.Server, chosen.Person)
			return err
		},
	}
	cmd.AddCommand(use)
	return cmd
}
