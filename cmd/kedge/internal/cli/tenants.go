package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/client"
)

var tenantColumns = table{{"UUID", "uuid"}, {"DISPLAY NAME", "displayName"}, {"ROLE", "role"}, {"PHASE", "phase"}, {"CREATED", "createdAt"}}

// pollEvery is how often something is asked for that is still being made.
const pollEvery = 500 * time.Millisecond

type tenant struct {
	UUID        string `json:"uuid"`
	DisplayName string `json:"displayName"`
	Phase       string `json:"phase"`
}

func (a *app) orgsCommand() *cobra.Command {
	var output format
	list := func(cmd *cobra.Command, _ []string) error {
		s, err := a.session()
		if err != nil {
			return err
		}
		raw, err := listAll(cmd.Context(), s, client.Request{Path: "/api/orgs"})
		if err != nil {
			return err
		}
		return a.print(output, raw, tenantColumns)
	}
	cmd := &cobra.Command{Use: "orgs", Aliases: []string{"org", "organizations"}, Short: "List and create organizations, and choose the one to work in", Args: noArgs, RunE: list}
	listCmd := &cobra.Command{Use: "list", Short: "List your organizations", Args: noArgs, RunE: list}
	create := &cobra.Command{
		Use: "create NAME", Short: "Create an organization and choose it", Args: oneArg("the new organization's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.session()
			if err != nil {
				return err
			}
			raw, made, err := a.create(cmd.Context(), s, "organization", client.Request{Path: "/api/orgs"}, args[0])
			if err != nil {
				return err
			}
			s.server.Org, s.server.Workspace = made.UUID, ""
			if err := s.save(); err != nil {
				return err
			}
			return a.print(output, raw, tenantColumns)
		},
	}
	use := &cobra.Command{
		Use: "use UUID|NAME", Short: "Choose the organization that other commands work in", Args: oneArg("the UUID or the name of an organization"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.session()
			if err != nil {
				return err
			}
			chosen, err := find(cmd.Context(), s, client.Request{Path: "/api/orgs"}, args[0])
			if err != nil {
				return err
			}
			s.server.Org, s.server.Workspace = chosen.UUID, ""
			if err := s.save(); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "Working in organization %s (%s).\n", chosen.DisplayName, chosen.UUID)
			return err
		},
	}
	for _, c := range []*cobra.Command{cmd, listCmd, create} {
		output.flag(c)
	}
	cmd.AddCommand(listCmd, create, use)
	return cmd
}

func (a *app) workspacesCommand() *cobra.Command {
	var output format
	var org string
	in := func() (*session, client.Request, error) {
		s, err := a.session()
		if err != nil {
			return nil, client.Request{}, err
		}
		chosen := org
		if chosen == "" {
			chosen = s.server.Org
		}
		if chosen == "" {
			return nil, client.Request{}, errors.New("no organization is chosen; run: kedge orgs use UUID")
		}
		return s, client.Request{Path: "/api/orgs/" + url.PathEscape(chosen) + "/workspaces", Org: chosen}, nil
	}
	list := func(cmd *cobra.Command, _ []string) error {
		s, r, err := in()
		if err != nil {
			return err
		}
		raw, err := listAll(cmd.Context(), s, r)
		if err != nil {
			return err
		}
		return a.print(output, raw, tenantColumns)
	}
	cmd := &cobra.Command{Use: "workspaces", Aliases: []string{"workspace", "ws"}, Short: "List and create workspaces, and choose the one to work in", Args: noArgs, RunE: list}
	cmd.PersistentFlags().StringVar(&org, "org", "", "UUID of the organization (default: the one chosen with kedge orgs use)")
	listCmd := &cobra.Command{Use: "list", Short: "List the workspaces that you can enter", Args: noArgs, RunE: list}
	create := &cobra.Command{
		Use: "create NAME", Short: "Create a workspace and choose it", Args: oneArg("the new workspace's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, r, err := in()
			if err != nil {
				return err
			}
			raw, made, err := a.create(cmd.Context(), s, "workspace", r, args[0])
			if err != nil {
				return err
			}
			s.server.Org, s.server.Workspace = r.Org, made.UUID
			if err := s.save(); err != nil {
				return err
			}
			return a.print(output, raw, tenantColumns)
		},
	}
	use := &cobra.Command{
		Use: "use UUID|NAME", Short: "Choose the workspace that other commands work in", Args: oneArg("the UUID or the name of a workspace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, r, err := in()
			if err != nil {
				return err
			}
			chosen, err := find(cmd.Context(), s, r, args[0])
			if err != nil {
				return err
			}
			s.server.Org, s.server.Workspace = r.Org, chosen.UUID
			if err := s.save(); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "Working in workspace %s (%s).\n", chosen.DisplayName, chosen.UUID)
			return err
		},
	}
	for _, c := range []*cobra.Command{cmd, listCmd, create} {
		output.flag(c)
	}
	cmd.AddCommand(listCmd, create, use)
	return cmd
}

// create makes an organization or a workspace and waits until it is ready.
func (a *app) create(ctx context.Context, s *session, what string, r client.Request, name string) ([]byte, tenant, error) {
	var made tenant
	r.Method, r.Body = http.MethodPost, map[string]string{"displayName": name}
	fmt.Fprintf(a.Err, "Creating %s %q ...\n", what, name)
	code, raw, err := s.Do(ctx, r)
	if err != nil {
		return nil, made, err
	}
	if err := json.Unmarshal(raw, &made); err != nil || made.UUID == "" {
		return nil, made, errors.New("the server's answer is not a kedge-hub's")
	}
	poll := client.Request{Method: http.MethodGet, Path: r.Path + "/" + made.UUID, Org: r.Org, Workspace: made.UUID}
	if r.Org == "" {
		poll.Org, poll.Workspace = made.UUID, ""
	}
	for code == http.StatusAccepted && made.Phase != "Ready" {
		fmt.Fprintf(a.Err, "%s %s is still being made; Ctrl-C stops waiting, not the making ...\n", what, made.UUID)
		select {
		case <-ctx.Done():
			return nil, made, ctx.Err()
		case <-time.After(pollEvery):
		}
		_, answer, err := s.Do(ctx, poll)
		var status *client.Error
		if errors.As(err, &status) && status.Code == http.StatusForbidden {
			// The membership that lets the creator see it is being made, too.
			continue
		}
		if err != nil {
			return nil, made, err
		}
		raw = answer
		if err := json.Unmarshal(raw, &made); err != nil {
			return nil, made, err
		}
	}
	return raw, made, nil
}

// listAll reads every page of a list.
func listAll(ctx context.Context, s *session, r client.Request) ([]byte, error) {
	r.Method = http.MethodGet
	path := r.Path
	all := []json.RawMessage{}
	for next := ""; ; {
		r.Path = path + "?limit=500&continue=" + url.QueryEscape(next)
		_, raw, err := s.Do(ctx, r)
		if err != nil {
			return nil, err
		}
		var page struct {
			Items    []json.RawMessage `json:"items"`
			Continue string            `json:"continue"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		all = append(all, page.Items...)
		if next = page.Continue; next == "" {
			return json.Marshal(map[string]any{"items": all})
		}
	}
}

// find finds one of a list by UUID, or by display name where that is unique.
func find(ctx context.Context, s *session, r client.Request, arg string) (tenant, error) {
	raw, err := listAll(ctx, s, r)
	if err != nil {
		return tenant{}, err
	}
	var list struct {
		Items []tenant `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return tenant{}, err
	}
	var found []tenant
	for _, t := range list.Items {
		if t.UUID == arg {
			return t, nil
		}
		if t.DisplayName == arg {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return tenant{}, fmt.Errorf("there is none with the UUID or the name %q", arg)
	case 1:
		return found[0], nil
	}
	return tenant{}, fmt.Errorf("%d have the name %q; give the UUID", len(found), arg)
}
