package cli

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/client"
)

// about returns the message of the hub about a refused field, or the empty string.
func about(refused *client.Error, field string) string {
	for _, c := range refused.Causes() {
		if c.Field == field {
			return c.Message
		}
	}
	return ""
}

// ofArgument replaces the field of the API in an error by the argument.
func ofArgument(err error, field, argument string) error {
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code() == http.StatusBadRequest {
		if wrong := about(refused, field); wrong != "" {
			return fmt.Errorf("%s: %s", argument, wrong)
		}
	}
	return err
}

// explained converts the causes of a refused removal or demotion to advice about commands. Other
// errors stay as they are.
func explained(err error, who, org string) error {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code() != http.StatusConflict {
		return err
	}
	var in []metav1.StatusCause
	message, sole := refused.ErrStatus.Message, false
	for _, c := range refused.Causes() {
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
	// Further causes do not matter for the only admin: --cascade would not help.
	if sole {
		return fmt.Errorf("%s\nTo make somebody an admin, run: kedge members set-role USER admin --org %s", message, org)
	}
	if len(in) == 0 {
		return errors.New(message)
	}
	// The message of the hub names a query parameter of its API.
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
