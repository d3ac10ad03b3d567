package cli

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

type me struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	Email       string `json:"email"`
	// Registration is Approved, Pending or Rejected.
	Registration string `json:"registration,omitempty"`
	// DeletionRequestedAt is set while the account is soft-deleted.
	DeletionRequestedAt string `json:"deletionRequestedAt,omitempty"`
	PurgeAt             string `json:"purgeAt,omitempty"`
}

func whoami(ctx context.Context, api *client.Client) (*rest.Me, error) {
	who, err := api.Me(ctx)
	if err == nil && who.Name == "" && (who.Kind != botKind || who.UUID == "" || who.ExpiresAt == nil) {
		err = errNoHub
	}
	return who, err
}

// whoColumns are those of kedge whoami.
var whoColumns = table{{"NAME", "name"}, {"DISPLAY NAME", "displayName"}, {"EMAIL", "email"},
	{"HUB", "hub"}, {"PROFILE", "profile"}, {"LOGIN EXPIRES", "loginExpiresAt"}, {"ADMIN USER", "adminUser", wide}}

// staticIssuer is the issuer of the people of a token file.
const staticIssuer = "static"

// botWhoColumns are those for a bot.
var botWhoColumns = table{{"BOT", "uuid"}, {"ROLE", "role"}, {"WORKSPACE", "workspace"}, {"ORGANIZATION", "org"}, {"HUB", "hub"}, {"PROFILE", "profile"}, {"LOGIN EXPIRES", "loginExpiresAt"}}

func (a *app) whoamiCommand() *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use: "whoami", Short: "Show who you are, to which hub, and until when", Args: noArgs,
		Long:    "Show who you are, to which hub, and until when. With -o wide it shows the name by which the\noperator of the hub can make you a platform admin (--admin-user).",
		Example: "  kedge whoami\n  kedge whoami -o wide\n  kedge whoami -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.session(cmd.Context())
			if err != nil {
				return err
			}
			person, err := whoami(cmd.Context(), s.api)
			if err != nil {
				return err
			}
			who := as[map[string]any](person)
			who["hub"], who["profile"] = s.login.Server, s.name
			if who["loginExpiresAt"], err = s.expiry(cmd.Context(), who["expiresAt"]); err != nil {
				return err
			}
			if person.Kind == botKind {
				a.warnBot(person)
				return a.printValue(output, who, botWhoColumns)
			}
			switch {
			case person.Issuer == staticIssuer:
				who["adminUser"] = person.Subject
			case person.Subject != "":
				who["adminUser"] = person.Issuer + "#" + person.Subject
			}
			return a.printValue(output, who, whoColumns)
		},
	}
	output.flag(cmd)
	return cmd
}

// expiry is the time at which the login ends: that of the session or, for a login without one,
// that of the token.
func (s *session) expiry(ctx context.Context, token any) (any, error) {
	if s.login.Secret == "" {
		return token, nil
	}
	for current, err := range s.api.Sessions().List(ctx) {
		switch {
		case is(err, http.StatusForbidden):
			// A deleted person may not list sessions.
			return token, nil
		case err != nil:
			return nil, err
		case current.Current:
			return when(&current.ExpiresAt), nil
		}
	}
	return token, nil
}
