package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

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

func whoami(ctx context.Context, api client.Doer) (me, error) {
	var out me
	answer, err := api.Do(ctx, client.Request{Method: http.MethodGet, Path: "/api/users/me"})
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(answer.Body, &out); err != nil || out.Name == "" {
		return out, errNoHub
	}
	return out, nil
}

// whoColumns are those of kedge whoami.
var whoColumns = table{{"NAME", "name"}, {"DISPLAY NAME", "displayName"}, {"EMAIL", "email"}, {"HUB", "hub"}, {"PROFILE", "profile"}, {"LOGIN EXPIRES", "loginExpiresAt"}}

func (a *app) whoamiCommand() *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use: "whoami", Short: "Show who you are, to which hub, and until when", Args: noArgs,
		Example: "  kedge whoami\n  kedge whoami -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.session(cmd.Context())
			if err != nil {
				return err
			}
			_, raw, err := s.send(cmd.Context(), client.Request{Method: http.MethodGet, Path: "/api/users/me"})
			if err != nil {
				return err
			}
			var who map[string]any
			if err := json.Unmarshal(raw, &who); err != nil || who["name"] == nil {
				return errNoHub
			}
			who["hub"], who["profile"] = s.login.Server, s.name
			if who["loginExpiresAt"], err = s.expiry(cmd.Context(), who["expiresAt"]); err != nil {
				return err
			}
			if raw, err = json.Marshal(who); err != nil {
				return err
			}
			return a.print(output, raw, whoColumns)
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
	raw, err := listAll(ctx, s, client.Request{Path: sessionsPath})
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code() == http.StatusForbidden {
		// A deleted person may not list sessions.
		return token, nil
	}
	if err != nil {
		return nil, err
	}
	items, err := itemsOf(raw)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if item["current"] == true {
			return item["expiresAt"], nil
		}
	}
	return token, nil
}
