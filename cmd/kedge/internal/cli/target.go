package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/config"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// target is an organization or, with Workspace, a workspace, by UUID.
type target struct{ Org, Workspace string }

// in returns the requests about what is in a workspace.
func (s *session) in(t target) client.InWorkspace { return s.api.Org(t.Org).Workspace(t.Workspace) }

// inWorkspace opens the session and returns the requests about the workspace that --org and
// --workspace name.
func (a *app) inWorkspace(ctx context.Context, org, workspace string) (w client.InWorkspace, t target, err error) {
	s, err := a.session(ctx)
	if err != nil {
		return w, t, err
	}
	t, err = s.workspace(ctx, org, workspace)
	return s.in(t), t, err
}

// inOrg opens the session and returns the requests about the organization that --org names.
func (a *app) inOrg(ctx context.Context, org string) (o client.Org, t target, err error) {
	s, err := a.session(ctx)
	if err != nil {
		return o, t, err
	}
	t.Org, err = s.organization(ctx, org)
	return s.api.Org(t.Org), t, err
}

// at opens the session and returns the requests about the workspace that --workspace names or, without one,
// about the organization that --org names.
func (a *app) at(ctx context.Context, org, workspace string) (client.Tenant, target, error) {
	if workspace == "" {
		o, t, err := a.inOrg(ctx, org)
		return o.Tenant, t, err
	}
	w, t, err := a.inWorkspace(ctx, org, workspace)
	return w.Tenant, t, err
}

// isUUID tells a UUID from a name. Only UUIDs become part of a path unescaped: a proxy could
// rewrite a path that contains "..".
func isUUID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }

// organization is the UUID of the one that --org names or, without it, the chosen one.
func (s *session) organization(ctx context.Context, given string) (string, error) {
	if given == "" || isUUID(given) {
		return pick(organizations(), "--org", given, s.login.Org)
	}
	orgs, err := s.organizations(ctx)
	if err != nil {
		return "", err
	}
	t, err := organizations().among(orgs, given, "list")
	return t.UUID, err
}

// organizations are those of the person, and those in which they are a member of workspaces only.
func (s *session) organizations(ctx context.Context) ([]tenant, error) {
	orgs, err := tenantsOf(s.api.Orgs().List(ctx))
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, o := range orgs {
		seen[o.UUID] = true
	}
	for m, err := range s.api.Memberships(ctx, false) {
		if err != nil {
			return nil, err
		}
		if !seen[m.OrgUUID] && m.SoftDeletedAt == nil {
			seen[m.OrgUUID] = true
			orgs = append(orgs, tenant{UUID: m.OrgUUID, DisplayName: m.OrgDisplayName, CreatedAt: m.OrgCreatedAt.UTC().Format(time.RFC3339), FirstAdmin: m.OrgFirstAdmin})
		}
	}
	return orgs, nil
}

// workspace is the target that --org and --workspace name or, without them, the chosen one.
func (s *session) workspace(ctx context.Context, givenOrg, given string) (target, error) {
	org, err := s.organization(ctx, givenOrg)
	if err != nil {
		return target{}, err
	}
	chosen := s.login.Workspace
	if org != s.login.Org {
		// The chosen workspace belongs to another organization.
		chosen = ""
	}
	if given != "" && !isUUID(given) {
		t, err := find(workspaces(), s.api.Org(org).Workspaces().List(ctx), given)
		return target{org, t.UUID}, err
	}
	workspace, err := pick(workspaces(), "--workspace", given, chosen)
	return target{org, workspace}, err
}

// pick is the UUID that a flag gives, or the chosen one.
func pick(what naming, flag, given, chosen string) (string, error) {
	switch {
	case given != "":
		return given, nil
	case chosen == "":
		return "", fmt.Errorf("no %s is chosen; give %s, or run: %s use NAME", what.noun, flag, what.command)
	}
	return chosen, nil
}

// choose stores a target as the chosen one.
func (s *session) choose(ctx context.Context, t target) error {
	return s.update(ctx, func(p *config.Profile) { p.Org, p.Workspace = t.Org, t.Workspace })
}

// forget removes the choice of a target that the person is no longer a member of.
func (s *session) forget(ctx context.Context, t target) error {
	switch {
	case s.login.Org != t.Org:
		return nil
	case t.Workspace == "":
		return s.choose(ctx, target{})
	case s.login.Workspace == t.Workspace:
		return s.choose(ctx, target{Org: t.Org})
	}
	return nil
}

// checkPerson refuses the name of a person that is empty or dots, which a proxy could rewrite to the
// path of the list or of its tenant.
func checkPerson(user string) error {
	if user == "" || user == "." || user == ".." {
		return fmt.Errorf("give the person's name, as shown by: kedge users search; %w", errUsage)
	}
	return nil
}
