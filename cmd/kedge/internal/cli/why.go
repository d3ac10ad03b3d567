package cli

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// whyColumns are those of -o name and of tables in other formats.
var whyColumns = table{{"ALLOWED", "allowed"}, {"USER", "user"}, {"BOT", "bot"}, {"VERB", "verb"}, {"RESOURCE", "resource"}, {"ROLE", "role"}}

// whyCommand is kedge why.
func (a *app) whyCommand() *cobra.Command {
	var org, workspace string
	var q client.WhyQuery
	var output format
	cmd := &cobra.Command{
		Use: "why VERB RESOURCE[.GROUP][/SUBRESOURCE] [NAME]", Short: "Say whether somebody may do something in the chosen workspace, and why",
		Long: `Say whether you may do something in the chosen workspace, where your access comes
from, what is missing, and which command would mend it. The resource is named in the
plural, as kubectl api-resources lists it. Admins of the workspace may ask about other
people, with --as, and about bots, with --bot. Without --namespace the question is about
all namespaces.`,
		Example: `  kedge why get widgets
  kedge why delete secrets --workspace Shop --as bob
  kedge why create serviceaccounts/token default --namespace default`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 || len(args) > 3 {
				return fmt.Errorf("%s needs a verb and a resource, such as: kedge why get widgets; %w", cmd.CommandPath(), errUsage)
			}
			return exclusive(cmd, "as", "bot")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Verb = args[0]
			q.Resource, q.Subresource, _ = strings.Cut(args[1], "/")
			if resource, group, ok := strings.Cut(q.Resource, "."); ok {
				q.Resource, q.Group = resource, &group
			}
			if len(args) > 2 {
				q.Name = args[2]
			}
			in, t, err := a.inWorkspace(cmd.Context(), org, workspace)
			if err != nil {
				return err
			}
			v, err := in.Why(cmd.Context(), q)
			if err != nil {
				return err
			}
			if !output.isTable() {
				return a.print(output, v.Raw, whyColumns)
			}
			_, err = fmt.Fprintln(a.Out, strings.Join(whySentences(v, t, q.User == "" && q.Bot == "", time.Now()), "\n"))
			return err
		},
	}
	a.placeFlags(cmd, &org, &workspace)
	cmd.Flags().StringVar(&q.User, "as", "", "the name of the person to ask about (default: you)")
	cmd.Flags().StringVar(&q.Bot, "bot", "", "the UUID of a bot to ask about")
	cmd.Flags().StringVarP(&q.Namespace, "namespace", "n", "", "the namespace (default: all of them)")
	output.flag(cmd)
	a.completeWhy(cmd, &org, &workspace)
	return cmd
}

// completeWhy completes the people and the bots to ask about.
func (a *app) completeWhy(cmd *cobra.Command, org, workspace *string) {
	// They fail only for a flag that the command does not have.
	_ = cmd.RegisterFlagCompletionFunc("as", ids(a, func(cmd *cobra.Command, _ []string) (iter.Seq2[rest.Member, error], error) {
		in, _, err := a.inWorkspace(cmd.Context(), *org, *workspace)
		return in.Members().List(cmd.Context()), err
	}, func(m rest.Member) (string, string) { return m.User, m.DisplayName }))
	_ = cmd.RegisterFlagCompletionFunc("bot", ids(a, func(cmd *cobra.Command, _ []string) (iter.Seq2[rest.Bot, error], error) {
		in, _, err := a.inWorkspace(cmd.Context(), *org, *workspace)
		return in.Bots().List(cmd.Context()), err
	}, func(b rest.Bot) (string, string) { return b.UUID, b.DisplayName }))
}

// whySentences are the verdict, where the access comes from, what is missing, and how to mend it.
func whySentences(v *rest.Why, t target, oneself bool, now time.Time) []string {
	person := v.User
	if v.Bot != "" {
		person = "the bot " + v.Bot
	}
	may := "may not"
	if v.Allowed {
		may = "may"
	}
	action := v.Verb + " " + v.Resource
	if v.Group != "" {
		action += "." + v.Group
	}
	if v.Subresource != "" {
		action += "/" + v.Subresource
	}
	if v.Name != "" {
		action += " " + v.Name
	}
	where := "in this workspace"
	if v.Namespace != "" {
		where = "in the namespace " + v.Namespace + " of this workspace"
	}
	all := []string{printable(fmt.Sprintf("%s %s %s %s.", person, may, action, where))}
	if len(v.Through) > 0 {
		all = append(all, "The role there is "+string(v.Role)+", "+throughText(v.Through[0], now)+".")
	}
	for _, m := range v.Missing {
		all = append(all, printable(m.Code+": "+m.Message+"."))
		if command := mending(v, m, t); command != "" {
			advice := "To change that, run: "
			if oneself && (m.Code == "RoleTooLow" || m.Code == "ProviderNotEnabled" || m.Code == "ClaimPending") && v.Role != rest.RoleAdmin {
				advice = "An admin of the workspace can change that with: "
			}
			all = append(all, printable(advice+command))
		}
	}
	return all
}

func throughText(s rest.AccessSource, now time.Time) string {
	text := map[string]string{
		"OrgAdmin": "as an admin of the organization", "Membership": "by a membership in the workspace",
		"Group": "by a group of the identity provider", "Request": "by a request that was approved",
		"DefaultAccess": "by the default access of the organization", "Bot": "as the bot has it",
	}[s.Through]
	if text == "" {
		text = "through " + printable(s.Through)
	}
	if s.ExpiresAt != nil {
		at := s.ExpiresAt.UTC().Format(time.RFC3339)
		end := endIn(at, now)
		if end == at {
			end = "ends at " + at
		}
		text += ", which " + end
	}
	return text
}

// mending is the command that would give what is missing, or empty.
func mending(v *rest.Why, m rest.Missing, t target) string {
	at := " --org " + t.Org + " --workspace " + t.Workspace
	switch {
	case m.Code == "NotAMember" && v.User != "":
		return "kedge workspaces members add " + v.User + at
	case m.Code == "RoleTooLow" && m.Role != "" && v.Bot != "":
		return "kedge bots set-role " + v.Bot + " " + string(m.Role) + at
	case m.Code == "RoleTooLow" && m.Role != "" && len(v.Through) > 0 && v.Through[0].Through == "Membership":
		return "kedge workspaces members set-role " + v.User + " " + string(m.Role) + at
	case m.Code == "RoleTooLow" && m.Role != "":
		return "kedge workspaces members add " + v.User + " --role " + string(m.Role) + at
	case m.Code == "NeedsSudo":
		return "kedge sudo" + at + " -- kubectl " + v.Verb + " " + v.Resource
	case (m.Code == "ProviderNotEnabled" || m.Code == "ClaimPending") && m.Slug != "":
		return "kedge providers enable " + m.Slug + at
	}
	return ""
}
