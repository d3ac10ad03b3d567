package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/client"
	"github.com/faroshq/kedge-hub/cmd/kedge/internal/config"
)

func (a *app) loginCommand() *cobra.Command {
	var caFile, tokenFile string
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Log in to a hub with a token",
		Long: `Log in to a hub. The token is read from --token-file ("-" for standard input) or
from $KEDGE_TOKEN, never from the command line, where others could see it. It is
kept in a file that only you can read, after the hub has accepted it.`,
		Example: `  kedge login --server https://127.0.0.1:9443 --ca-file ca.crt --token-file token`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.login(cmd, caFile, tokenFile)
		},
	}
	cmd.Flags().StringVar(&caFile, "ca-file", "", "PEM file of the CA that signs the hub's certificate (default: the system's)")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", `file that holds the token, "-" for standard input (default: $KEDGE_TOKEN)`)
	return cmd
}

func (a *app) login(cmd *cobra.Command, caFile, tokenFile string) error {
	server := a.givenServer()
	if u, err := url.Parse(server); err != nil || u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("--server: give the https URL of the hub; %w", errUsage)
	}
	token, err := a.token(tokenFile)
	if err != nil {
		return err
	}
	var ca []byte
	if caFile != "" {
		if ca, err = os.ReadFile(caFile); err != nil {
			return fmt.Errorf("--ca-file: %w", err)
		}
	}
	api, err := client.New(server, token, agent(), ca)
	if err != nil {
		return err
	}
	me, err := whoami(cmd, api)
	var away *client.UnreachableError
	if errors.As(err, &away) {
		return fmt.Errorf("%w; check that it is running, and what --server says", err)
	}
	if err != nil {
		return err
	}
	login := &config.Profile{Server: server, CA: ca, Person: me.Name, Token: token}
	if _, err := a.keep(cmd.Context(), login); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "Logged in to %s as %s.\n", server, me.Name)
	return err
}

// keep stores a login as the current profile and returns its name. The profile is the given one,
// else the one for the same hub, else a new one. The choice of an organization and a workspace
// stays if the person is the same.
func (a *app) keep(ctx context.Context, login *config.Profile) (name string, err error) {
	path, err := config.Path(a.configFile, a.getenv)
	if err != nil {
		return "", err
	}
	if _, err := config.Load(ctx, path); errors.As(err, new(*config.BrokenError)) {
		fmt.Fprintln(a.Err, "kedge:", err)
	}
	return name, config.Update(ctx, path, func(c *config.Config) error {
		if name, err = a.profileFor(c, login.Server); err != nil {
			return err
		}
		if before := c.Profiles[name]; before != nil && before.Server == login.Server && before.Person == login.Person {
			login.Org, login.Workspace = before.Org, before.Workspace
		}
		c.Current, c.Profiles[name] = name, login
		return nil
	})
}

// profileFor is the profile in which a login to a hub is stored.
func (a *app) profileFor(c *config.Config, server string) (string, error) {
	name, err := a.givenProfile()
	switch {
	case err != nil:
		return "", err
	case name != "":
		if p := c.Profiles[name]; p != nil && p.Server != server {
			return "", fmt.Errorf("the profile %s is a login to %s; give --profile with another name, or run: kedge logout --profile %s", name, p.Server, name)
		}
		return name, nil
	case len(c.At(server)) == 0:
		return c.NewName(server), nil
	}
	return chooseAt(c, server)
}

func (a *app) token(file string) (string, error) {
	var raw []byte
	var err error
	switch file {
	case "":
		raw = []byte(a.getenv("KEDGE_TOKEN"))
	case "-":
		raw, err = io.ReadAll(io.LimitReader(a.In, 1<<20))
	default:
		raw, err = os.ReadFile(file)
	}
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" {
		return "", fmt.Errorf("no token: give --token-file or $KEDGE_TOKEN; %w", errUsage)
	}
	return token, nil
}

func (a *app) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use: "logout", Short: "Forget the login to a hub", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.session(cmd.Context())
			if err != nil {
				return err
			}
			err = config.Update(cmd.Context(), s.path, func(c *config.Config) error {
				delete(c.Profiles, s.name)
				if c.Current == s.name {
					c.Current = ""
				}
				return nil
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "Logged out of %s.\n", s.login.Server)
			return err
		},
	}
}

type me struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	Email       string `json:"email"`
	// DeletionRequestedAt is set while the account is soft-deleted.
	DeletionRequestedAt string `json:"deletionRequestedAt,omitempty"`
	PurgeAt             string `json:"purgeAt,omitempty"`
}

// hub sends requests: a client, or a session.
type hub interface {
	Do(ctx context.Context, r client.Request) (int, []byte, error)
}

func whoami(cmd *cobra.Command, api hub) (me, error) {
	var out me
	_, raw, err := api.Do(cmd.Context(), client.Request{Method: http.MethodGet, Path: "/api/users/me"})
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(raw, &out); err != nil || out.Name == "" {
		return out, errors.New("the server's answer is not a kedge-hub's")
	}
	return out, nil
}

func (a *app) whoamiCommand() *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use: "whoami", Short: "Show who you are to the hub", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.session(cmd.Context())
			if err != nil {
				return err
			}
			_, raw, err := s.Do(cmd.Context(), client.Request{Method: http.MethodGet, Path: "/api/users/me"})
			if err != nil {
				return err
			}
			return a.print(output, raw, meColumns)
		},
	}
	output.flag(cmd)
	return cmd
}
