package cli

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/config"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// A target is an organization or a workspace as a request without a method: its path and the
// tenancy headers.

func organizationAt(org string) client.Request {
	return one(client.Request{Path: "/api/orgs"}, org)
}

func workspacesOf(org string) client.Request {
	r := organizationAt(org)
	r.Path += "/workspaces"
	return r
}

// one is the target of an item in the list at r.
func one(r client.Request, uuid string) client.Request {
	r.Path += "/" + url.PathEscape(uuid)
	if r.Org == "" {
		r.Org = uuid
	} else {
		r.Workspace = uuid
	}
	return r
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
	orgs, err := s.tenants(ctx, client.Request{Path: "/api/orgs"})
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, o := range orgs {
		seen[o.UUID] = true
	}
	for m, err := range client.ListWithoutLimit[client.Membership](ctx, s, client.Request{Path: "/api/users/me/memberships"}) {
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
func (s *session) workspace(ctx context.Context, givenOrg, given string) (client.Request, error) {
	org, err := s.organization(ctx, givenOrg)
	if err != nil {
		return client.Request{}, err
	}
	chosen := s.login.Workspace
	if org != s.login.Org {
		// The chosen workspace belongs to another organization.
		chosen = ""
	}
	if given != "" && !isUUID(given) {
		t, err := s.find(ctx, workspaces(), workspacesOf(org), given)
		return one(workspacesOf(org), t.UUID), err
	}
	workspace, err := pick(workspaces(), "--workspace", given, chosen)
	return one(workspacesOf(org), workspace), err
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
func (s *session) choose(ctx context.Context, target client.Request) error {
	return s.update(ctx, func(p *config.Profile) { p.Org, p.Workspace = target.Org, target.Workspace })
}

// forget removes the choice of a target that the person is no longer a member of.
func (s *session) forget(ctx context.Context, target client.Request) error {
	switch {
	case s.login.Org != target.Org:
		return nil
	case target.Workspace == "":
		return s.choose(ctx, client.Request{})
	case s.login.Workspace == target.Workspace:
		return s.choose(ctx, client.Request{Org: target.Org})
	}
	return nil
}

// personAt is the path segment of a person. It refuses empty names and dots, which a proxy could
// rewrite to the path of the list or of its tenant.
func personAt(user string) (string, error) {
	if user == "" || user == "." || user == ".." {
		return "", fmt.Errorf("give the person's name, as shown by: kedge users search; %w", errUsage)
	}
	return url.PathEscape(user), nil
}
