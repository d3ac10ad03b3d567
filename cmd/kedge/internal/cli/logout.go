package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/config"
	"github.com/faroshq/kedge-hub/cmd/kedge/internal/oauth"
)

func (a *app) logoutCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "logout", Short: "End the login to a hub and forget it",
		Long: `End the session at the hub and forget the login. The login is forgotten even if the
hub cannot be reached.`,
		Example: "  kedge logout\n  kedge logout --profile work\n  kedge logout --all",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, c, err := a.load(cmd.Context())
			if err != nil {
				return err
			}
			if all {
				if a.profile != "" || a.server != "" {
					return fmt.Errorf("--all: give it without --profile and --server; %w", errUsage)
				}
				for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
					if err := a.logOut(cmd.Context(), path, name); err != nil {
						return err
					}
				}
				return nil
			}
			name, err := a.choose(c)
			if err != nil {
				return err
			}
			return a.logOut(cmd.Context(), path, name)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "end and forget all logins on this computer")
	return cmd
}

// logOut forgets a profile and ends its session.
func (a *app) logOut(ctx context.Context, path, name string) error {
	// A refresh of another kedge would bring a newer secret.
	unlock, err := config.Lock(ctx, refreshLock(path, name))
	if err != nil {
		return err
	}
	defer unlock()
	login, err := forget(ctx, path, name)
	if err != nil || login == nil {
		return err
	}
	if err := a.revoke(ctx, login); err != nil {
		fmt.Fprintf(a.Err, "kedge: the session at %s could not be ended and ends when it expires: %s\n",
			login.Server, printableLines(err.Error()))
	}
	_, err = fmt.Fprintf(a.Out, "Logged out of %s.\n", login.Server)
	return err
}

// forget removes a profile and returns it, or nil if there is none.
func forget(ctx context.Context, path, name string) (login *config.Profile, err error) {
	err = config.Update(ctx, path, func(c *config.Config) error {
		login = c.Profiles[name]
		delete(c.Profiles, name)
		if c.Current == name {
			c.Current = ""
		}
		return nil
	})
	return login, err
}

// revoke ends the session of a login at the hub. A login with a static token has none.
func (a *app) revoke(ctx context.Context, login *config.Profile) error {
	if login.Secret == "" {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, refreshTimeout, errors.New("the hub did not answer in time"))
	defer cancel()
	hub, err := oauth.Discover(ctx, a.oauthConfig(login))
	if err != nil {
		return err
	}
	return hub.RevokeSession(ctx, login.Secret)
}
