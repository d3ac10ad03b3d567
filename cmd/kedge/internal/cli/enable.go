package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// answers are the flags of kedge providers enable.
type answers struct {
	consent
	accept, reject []string
	dryRun         bool
}

func (p *providers) enableCommand() *cobra.Command {
	w := answers{consent: consent{app: p.app}}
	cmd := &cobra.Command{
		Use: "enable SLUG|UUID", Short: "Bind an API into the workspace", Args: oneArg("the slug or the UUID of a provider"), ValidArgsFunction: p.complete,
		Long: `Bind an API of the catalog into the workspace, with your own rights. The provider may
request access to objects of the workspace, as a list of claims. You accept or reject
each claim with a flag or when you are asked. A claim that is marked as dangerous gives
the provider far-reaching rights: only its name accepts it, and --yes rejects it. If
the provider adds claims later, run the command again.`,
		Example: `  kedge providers enable widgets --dry-run
  kedge providers enable widgets
  kedge providers enable widgets --accept-claim configmaps --reject-claim secrets
  kedge providers enable widgets --yes --accept-claim secrets`,
		RunE: func(cmd *cobra.Command, args []string) error {
			in, found, err := p.provider(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return p.enable(cmd.Context(), in, found, &w)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&w.accept, "accept-claim", nil, "claim to accept, as GROUP/RESOURCE, or RESOURCE in the core group; repeatable")
	flags.StringSliceVar(&w.reject, "reject-claim", nil, "claim to reject, likewise")
	flags.BoolVarP(&w.yes, "yes", "y", false, "do not ask: accept the claims that are not dangerous, reject the others")
	flags.BoolVar(&w.dryRun, "dry-run", false, "show what would happen, and change nothing")
	p.output.flag(cmd)
	return cmd
}

func (p *providers) enable(ctx context.Context, in client.InWorkspace, found *rest.Provider, w *answers) error {
	decision, err := w.decide(ctx, found)
	if err != nil {
		return err
	}
	if w.dryRun {
		would, err := in.Enable(ctx, found.UUID, decision, client.DryRun())
		if err != nil {
			return err
		}
		fmt.Fprintf(p.Err, "This is what enabling %s would do; nothing was changed.\n", found.Slug)
		return p.show(would, providerColumns)
	}
	enabled, err := in.Enable(ctx, found.UUID, decision, p.telling("being enabled"))
	if err != nil {
		return err
	}
	if err := p.show(enabled, providerColumns); err != nil {
		return err
	}
	if enabled.State == rest.StateFailing {
		return fmt.Errorf("%s does not work in this workspace: %s", found.Slug, enabled.Message)
	}
	return nil
}

// decide answers every claim: as the flags say, as the workspace answered before, or as the
// person says.
func (w *answers) decide(ctx context.Context, p *rest.Provider) (rest.EnableProviderRequest, error) {
	said := map[string]bool{}
	for _, flag := range []struct {
		name   string
		claims []string
		accept bool
	}{{"--accept-claim", w.accept, true}, {"--reject-claim", w.reject, false}} {
		for _, claim := range flag.claims {
			name, ok := asked(p.Claims, claim)
			if !ok {
				return rest.EnableProviderRequest{}, fmt.Errorf("%s: %s does not ask for %s, but for: %s; %w", flag.name, p.Slug, name, namesOf(p.Claims), errUsage)
			}
			if before, twice := said[name]; twice && before != flag.accept {
				return rest.EnableProviderRequest{}, fmt.Errorf("the claim %s is accepted and rejected; give one of --accept-claim and --reject-claim; %w", name, errUsage)
			}
			said[name] = flag.accept
		}
	}
	var open []rest.ProviderClaim
	for _, c := range p.Claims {
		_, decided := said[c.String()]
		switch {
		case decided:
		case c.State == "Accepted":
			said[c.String()] = true
		case c.State == "Rejected":
			said[c.String()] = false
		default:
			open = append(open, c)
		}
	}
	if err := w.ask(ctx, p, open, said); err != nil {
		return rest.EnableProviderRequest{}, err
	}
	var d rest.EnableProviderRequest
	for _, c := range p.Claims {
		if said[c.String()] {
			d.AcceptClaims = append(d.AcceptClaims, c.GroupResource)
		} else {
			d.RejectClaims = append(d.RejectClaims, c.GroupResource)
		}
	}
	return d, nil
}

// ask asks about the claims that nothing else has answered.
func (w *answers) ask(ctx context.Context, p *rest.Provider, open []rest.ProviderClaim, said map[string]bool) error {
	if len(open) == 0 {
		return nil
	}
	if !w.yes && !w.dryRun {
		if !w.Terminal {
			return fmt.Errorf("%s asks for %s; standard input is not a terminal, so say what to do with --accept-claim, --reject-claim or --yes; %w", p.Slug, namesOf(open), errUsage)
		}
		fmt.Fprintf(w.Err, "%s asks for rights in this workspace:\n", p.Slug)
		if err := w.claims(open); err != nil {
			return err
		}
	}
	var harmless, dangerous []rest.ProviderClaim
	for _, c := range open {
		if c.Dangerous {
			dangerous = append(dangerous, c)
		} else {
			harmless = append(harmless, c)
		}
	}
	if len(harmless) > 0 {
		if !w.dryRun {
			if err := w.agreed(ctx, "Accept "+namesOf(harmless)+"?"); err != nil {
				return err
			}
		}
		for _, c := range harmless {
			said[c.String()] = true
		}
	}
	for _, c := range dangerous {
		said[c.String()] = false
		if !w.yes && !w.dryRun {
			reply, err := w.reply(ctx, "The claim "+c.String()+" is dangerous. To accept it, type "+c.String()+"; anything else rejects it: ")
			if err != nil {
				return err
			}
			said[c.String()] = reply == c.String()
		}
		if !said[c.String()] {
			fmt.Fprintf(w.Err, "The dangerous claim %s is rejected; to accept it, give --accept-claim %s.\n", c, c)
		}
	}
	return nil
}

// asked finds a claim that a flag names, as GROUP/RESOURCE or RESOURCE.GROUP.
func asked(claims []rest.ProviderClaim, name string) (claim string, ok bool) {
	name = strings.TrimPrefix(name, "/")
	for _, c := range claims {
		if c.String() == name || c.Resource+"."+c.Group == name {
			return c.String(), true
		}
	}
	return name, false
}

func namesOf(claims []rest.ProviderClaim) string {
	names := make([]string, len(claims))
	for i, c := range claims {
		names[i] = c.String()
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// claims prints a table of claims to the error stream, where questions are.
func (a *app) claims(all []rest.ProviderClaim) error {
	w := tabwriter.NewWriter(a.Err, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "CLAIM\tVERBS\tDANGEROUS")
	for _, c := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c, printable(strings.Join(c.Verbs, ",")), mark(c.Dangerous))
	}
	return w.Flush()
}

func mark(dangerous bool) string {
	if dangerous {
		return "DANGEROUS"
	}
	return ""
}

// describe prints what a provider asks for and has.
func (a *app) describe(o object) error {
	p := as[rest.Provider](o)
	w := tabwriter.NewWriter(a.Out, 0, 8, 3, ' ', 0)
	if len(p.Claims) > 0 {
		fmt.Fprintln(w, "\nCLAIM\tVERBS\tDANGEROUS\tSTATE")
		for _, c := range p.Claims {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c, printable(strings.Join(c.Verbs, ",")), mark(c.Dangerous), c.State)
		}
	}
	if len(p.Resources) > 0 {
		count := map[rest.GroupResource]string{}
		for _, l := range p.WouldLose {
			count[l.GroupResource] = "unknown"
			if l.Count != nil {
				count[l.GroupResource] = fmt.Sprint(*l.Count)
			}
		}
		fmt.Fprintln(w, "\nRESOURCE\tOBJECTS")
		for _, r := range p.Resources {
			fmt.Fprintf(w, "%s\t%s\n", r, count[r])
		}
	}
	return w.Flush()
}
