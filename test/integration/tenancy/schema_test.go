package tenancy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// kcp refuses invalid objects by schema, so kubectl cannot create them either.
func TestSchemas_refuseBadObjects(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	org := hub.CreateOrg(t, "alice", "ACME")
	const (
		uuid = "11111111-2222-4333-8444-555555555555"
		api  = "apiVersion: tenancy.kedge.faros.sh/v1alpha1\n"
	)
	users, orgs, home := root+":users", root+":orgs", root+":orgs:"+org
	good := map[string][2]string{
		"user":         {users, api + "kind: User\nmetadata: {name: zoe}\nspec: {displayName: Zoe, issuer: i, subject: s, rbacIdentity: 'kedge:zoe'}"},
		"organization": {orgs, api + "kind: Organization\nmetadata: {name: " + uuid + ", annotations: {tenancy.kedge.faros.sh/operation: ignore}}\nspec: {displayName: O}"},
		"membership":   {home, api + "kind: Membership\nmetadata: {name: zoe}\nspec: {userRef: {name: zoe}, scope: org, role: member}"},
		"in workspace": {home, api + "kind: Membership\nmetadata: {name: " + uuid + ".zoe}\nspec: {userRef: {name: zoe}, scope: workspace, workspaceRef: {name: " + uuid + "}, role: member, sudo: true}"},
		"invitation": {home, api + "kind: Invitation\nmetadata: {name: " + uuid + "}\nspec: {role: member, scope: org, invitedBy: {name: alice, membershipUID: u}, " +
			"expiresAt: '2126-01-01T00:00:00Z', secretHash: " + strings.Repeat("a", 64) + "}"},
		"catalogentry": {root + ":providers", api + "kind: CatalogEntry\nmetadata: {name: 6ba7b810-9dad-41d1-80b4-00c04fd430c8}\nspec: {displayName: E, slug: e, apiExport: {path: 'root:x', name: widgets}}"},
	}
	for name, o := range good {
		_, errOut, err := kcp.Kubectl(t, o[1], o[0], "create", "-f", "-")
		require.NoError(t, err, "%s: %s", name, errOut)
	}
	change := func(kind, from, to string) [2]string {
		o := good[kind]
		require.Contains(t, o[1], from)
		return [2]string{o[0], strings.Replace(o[1], from, to, 1)}
	}
	for name, c := range map[string]struct {
		object [2]string
		verb   string
		says   string
	}{
		"an Organization that is no UUID":       {change("organization", "name: "+uuid, "name: acme"), "create", "UUID"},
		"an unknown workspaceCreation":          {change("organization", "displayName: O}", "displayName: O, workspaceCreation: everybody}"), "apply", "workspaceCreation"},
		"no display name":                       {change("organization", "displayName: O}", "displayName: ''}"), "apply", "displayName"},
		"a negative quota":                      {change("organization", "displayName: O}", "displayName: O, workspaceQuota: -1}"), "apply", "workspaceQuota"},
		"personal is immutable":                 {change("organization", "displayName: O}", "displayName: O, personal: true}"), "apply", "personal is immutable"},
		"another subject":                       {change("user", "subject: s", "subject: t"), "apply", "subject is immutable"},
		"another issuer":                        {change("user", "issuer: i", "issuer: j"), "apply", "issuer is immutable"},
		"an unknown registration":               {change("user", "displayName: Zoe", "displayName: Zoe, registration: Maybe"), "apply", "registration"},
		"an unknown role":                       {change("membership", "role: member", "role: owner"), "apply", "role"},
		"an unknown scope":                      {change("membership", "scope: org", "scope: galaxy"), "apply", "scope"},
		"another user":                          {change("membership", "userRef: {name: zoe}", "userRef: {name: bob}"), "apply", "immutable"},
		"a name that is not the user's":         {change("membership", "metadata: {name: zoe}", "metadata: {name: bob}"), "create", "a Membership is named"},
		"a workspaceRef in the scope of an Org": {change("membership", "scope: org", "scope: org, workspaceRef: {name: "+uuid+"}"), "apply", "workspaceRef"},
		"no workspaceRef in a Workspace's":      {change("in workspace", "workspaceRef: {name: "+uuid+"}, ", ""), "replace", "workspaceRef"},
		"an Invitation that is no UUID":         {change("invitation", "name: "+uuid, "name: jane"), "create", "UUID"},
		"an Invitation with another role":       {change("invitation", "role: member", "role: admin"), "apply", "immutable"},
		"an Invitation with another end":        {change("invitation", "expiresAt:", "membershipExpiresAt: '2126-02-01T00:00:00Z', expiresAt:"), "apply", "immutable"},
		"an Invitation of an unknown role":      {change("invitation", "role: member", "role: owner"), "apply", "role"},
		"a secret that is no hash":              {change("invitation", "secretHash: a", "secretHash: X"), "apply", "secretHash"},
		"an Invitation to an Org's Workspace":   {change("invitation", "scope: org", "scope: org, workspaceRef: {name: "+uuid+"}"), "apply", "workspaceRef"},
		"a manager of an Org":                   {change("membership", "role: member", "role: member, manager: true"), "apply", "manager"},
		"neither a role nor a manager":          {change("in workspace", "role: member, sudo: true", "sudo: false"), "replace", "role is required"},
		"sudo of a manager without a role":      {change("in workspace", "role: member, sudo: true", "manager: true, sudo: true"), "replace", "need a role"},
		"sudo of an Org on request":             {change("membership", "role: member", "role: member, extra: [{source: 'request:r', sudo: true}]"), "apply", "sudo is for scope workspace"},
		"a part of an unknown source":           {change("membership", "role: member", "role: member, extra: [{source: hand, role: admin}]"), "apply", "source"},
		"a part that gives nothing":             {change("membership", "role: member", "role: member, extra: [{source: 'request:r'}]"), "apply", "either a role or sudo"},
		"two parts of one source":               {change("membership", "role: member", "role: member, extra: [{source: 'group:g', role: admin}, {source: 'group:g', role: viewer}]"), "apply", "Duplicate"},
		"sudo by hand beside a part, no role":   {change("in workspace", "role: member, sudo: true", "sudo: true, extra: [{source: 'request:r', role: admin}]"), "replace", "sudo and roles need a role"},
		"sudo in the scope of an Org":           {change("membership", "role: member", "role: member, sudo: true"), "apply", "sudo"},
		"a slug in upper case":                  {change("catalogentry", "slug: e", "slug: E"), "apply", "slug"},
		"another slug":                          {change("catalogentry", "slug: e", "slug: f"), "apply", "slug is immutable"},
		"another export":                        {change("catalogentry", "name: widgets}", "name: gadgets}"), "apply", "apiExport is immutable"},
		"a backend where there was none":        {change("catalogentry", "slug: e", "slug: e, backend: {url: 'https://x.example.com'}"), "apply", "backend.url is immutable"},
		"an entry that is no UUID":              {change("catalogentry", "6ba7b810-9dad-41d1-80b4-00c04fd430c8", "e"), "create", "UUID"},
	} {
		_, errOut, err := kcp.Kubectl(t, c.object[1], c.object[0], c.verb, "-f", "-")
		require.Error(t, err, name)
		require.Contains(t, errOut, c.says, name)
	}
}
