package cli

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"text/tabwriter"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/client"
)

// about is what the hub says of a field that it refuses; empty where it says nothing.
func about(refused *client.Error, field string) string {
	for _, c := range refused.Causes {
		if c.Field == field {
			return c.Message
		}
	}
	return ""
}

// ofArgument names the argument instead of the field of the API that it went into.
func ofArgument(err error, field, argument string) error {
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code == http.StatusBadRequest {
		if wrong := about(refused, field); wrong != "" {
			return fmt.Errorf("%s: %s", argument, wrong)
		}
	}
	return err
}

// explained tells people what stands against a removal or a demotion in the
// organization, from the causes of the refusal; any other error stays as it is.
func explained(err error, who, org string) error {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code != http.StatusConflict {
		return err
	}
	var in []client.Cause
	message, sole := refused.Message, false
	for _, c := range refused.Causes {
		switch c.Type {
		case "WorkspaceMembership":
			in = append(in, c)
		case "SoleAdmin":
			sole = true
			if !strings.Contains(message, c.Message) {
				message += "\n" + c.Message
			}
		}
	}
	// What stands behind the only admin is no matter: --cascade would not help.
	if sole {
		return fmt.Errorf("%s\nTo make somebody an admin, run: kedge members set-role USER admin --org %s", message, org)
	}
	if len(in) == 0 {
		return errors.New(message)
	}
	// The hub's own words are about its API: they name a query parameter.
	var text strings.Builder
	fmt.Fprintf(&text, "%s still a member of workspaces in this organization:\n", who)
	w := tabwriter.NewWriter(&text, 0, 8, 3, ' ', 0)
	for _, c := range in {
		fmt.Fprintf(w, "  %s\t%s\n", c.Field, c.Message)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	text.WriteString("Give --cascade to end those memberships, too.")
	return errors.New(text.String())
}
