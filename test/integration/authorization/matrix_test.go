package authorization

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// The positions of callers, in the order of the columns of the matrix.
const (
	asAnonymous = iota
	// Pending, rejected and deleted callers are admins of every Org and Workspace, so that
	// only their state can cause a refusal.
	asPending
	asRejected
	asDeleted
	asNobody
	asForeignAdmin
	asPlatformAdmin
	asWorkspaceMember
	asWorkspaceAdmin
	asOrgMember
	asOrgAdmin
	// These are ServiceAccounts that somebody made by hand, with a role in the Workspace: kcp
	// accepts their tokens, the hub does not.
	asAccountMember
	asAccountAdmin
	// These are bots of the Workspace of the row.
	asBotMember
	asBotAdmin
	asBotViewer
	asWorkspaceViewer
	asOrgViewer
	// A manager of the Workspace has no role in it.
	asWorkspaceManager
	// An auditor of the hub has no role anywhere.
	asAuditor
	matrixPositions
)

const (
	// matrixColumns is the number of codes in matrixRow.gets.
	matrixColumns = asBotMember
	// matrixBots is the number of bots.
	matrixBots = asWorkspaceViewer - asBotMember
)

// isBot reports whether a position is that of a bot.
func isBot(position int) bool { return position >= asBotMember && position < asBotMember+matrixBots }

var matrixPositionNames = [matrixPositions]string{
	"anonymous", "pending", "rejected", "deleted", "nobody", "foreign admin", "platform admin",
	"workspace member", "workspace admin", "org member", "org admin", "account member", "account admin", "bot member", "bot admin",
	"bot viewer", "workspace viewer", "org viewer", "workspace manager", "auditor",
}

// matrixRow lists the codes of one route for all positions.
type matrixRow struct {
	// route is a method and a pattern of the router. "|" joins methods; * stands for
	// every method of a catch-all.
	route string
	// about distinguishes the rows of one route.
	about string
	// gets has one code for each position but bots and viewers, or one code for all. 2xx is any success.
	gets string
	// bots has the codes of the two bots, and that of a viewer bot where it is not the member's. Where
	// it is empty, a bot may not make the request.
	bots string
	// viewers has the codes of a viewer of the Workspace and one of the Org, where they are not those
	// of the members.
	viewers string
	// manager has the code of a manager of the Workspace. Where it is empty, that is a 403 for what is in a
	// Workspace, and else the code of a member of it.
	manager string
	// auditor has the code of an auditor of the hub. Where it is empty, that is the code of nobody.
	auditor string
	// at names the Org of the row, where the row has side effects on others or needs
	// special settings. The other rows share the Org without a name.
	at string
	// rest replaces the * of the pattern. query, body and header are part of every
	// request. The pattern, rest, query and body may contain placeholders.
	rest, query, body string
	header            http.Header
	// before restores the state that the request consumes.
	before func(s *matrixScene) error
	// check inspects a successful answer.
	check func(s *matrixScene, t *testing.T, a framework.Answer)
}

// matrixRows is the authorization matrix. Its columns are
//
//	anonymous, pending, rejected, deleted; nobody, foreign admin, platform admin;
//	workspace member and admin; Org member and admin; member and admin by a ServiceAccount
var matrixRows = []matrixRow{
	{route: "* /api", gets: "404"},
	{route: "* /api/v1", gets: "404"},
	{route: "* /api/v1/*", gets: "404", rest: "namespaces/default/secrets"},
	{route: "* /apis", gets: "404"},
	{route: "* /apis/*", gets: "404", rest: "tenancy.kedge.faros.sh/v1alpha1/organizations"},
	{route: "* /services", gets: "404"},
	{route: "* /services/*", gets: "404", rest: "apiexport/root/tenancy.kedge.faros.sh/clusters/*/api"},

	{route: "GET /api/users", query: "?q=alice", gets: "401 403 403 403  200 200 200  200 200  200 200  401 401"},
	{route: "GET /api/users/me", bots: "200 200", gets: "401 200 200 200  200 200 200  200 200  200 200  401 401", check: (*matrixScene).isCaller},
	{route: "PATCH /api/users/me", body: `{"displayName":"{caller}"}`, gets: "401 403 403 403  200 200 200  200 200  200 200  401 401", check: (*matrixScene).isCaller},
	{route: "GET /api/users/me/memberships", gets: "401 403 403 403  200 200 200  200 200  200 200  401 401", check: (*matrixScene).hasOwnRowsOnly},
	// Static tokens belong to no session. What becomes of sessions is in test/integration/identity.
	{route: "GET /api/users/me/sessions", gets: "401 403 403 403  200 200 200  200 200  200 200  401 401"},
	{route: "DELETE /api/users/me/sessions", query: "?all=true", gets: "401 403 403 403  204 204 204  204 204  204 204  401 401"},
	{route: "DELETE /api/users/me/sessions/{session}", gets: "401 403 403 403  404 404 404  404 404  404 404  401 401"},
	{route: "DELETE /api/users/{name}", before: (*matrixScene).liveUser, gets: "401 403 403 403  403 403 202  403 403  403 403  401 401"},
	{route: "POST /api/users/{name}/undelete", before: (*matrixScene).deletedUser, gets: "401 403 403 403  403 403 2xx  403 403  403 403  401 401"},

	{route: "GET /api/admin/users", auditor: "200", gets: "401 403 403 403  403 403 200  403 403  403 403  401 401"},
	{route: "GET /api/admin/users/{name}", auditor: "200", gets: "401 403 403 403  403 403 200  403 403  403 403  401 401"},
	{route: "GET /api/admin/users/{name}/memberships", auditor: "200", gets: "401 403 403 403  403 403 200  403 403  403 403  401 401"},
	{route: "PATCH /api/admin/users/{name}", body: `{"orgQuota":7}`, gets: "401 403 403 403  403 403 200  403 403  403 403  401 401"},
	{route: "GET /api/admin/orgs", auditor: "200", gets: "401 403 403 403  403 403 200  403 403  403 403  401 401"},
	{route: "GET /api/admin/orgs/{org}", auditor: "200", gets: "401 403 403 403  403 403 200  403 403  403 403  401 401"},
	{route: "POST /api/admin/orgs/{org}/undelete", at: "returning for a platform admin", before: (*matrixScene).deletedOrg, gets: "401 403 403 403  403 403 2xx  403 403  403 403  401 401"},
	{
		route: "POST /api/admin/orgs/{org}/admins", body: `{"userRef":{"name":"nobody"},"reason":"left"}`,
		gets: "401 403 403 403  403 403 400  403 403  403 403  401 401",
	},
	{route: "PATCH /api/admin/orgs/{org}", body: `{"workspaceQuota":50}`, gets: "401 403 403 403  403 403 200  403 403  403 403  401 401"},
	{route: "DELETE /api/admin/orgs/{org}", at: "ending for a platform admin", before: (*matrixScene).liveOrg, gets: "401 403 403 403  403 403 200  403 403  403 403  401 401"},
	{route: "GET /api/admin/users/{name}/sessions", gets: "401 403 403 403  403 403 200  403 403  403 403  401 401"},
	{route: "DELETE /api/admin/users/{name}/sessions", query: "?all=true", gets: "401 403 403 403  403 403 204  403 403  403 403  401 401"},
	{route: "GET /api/admin/users/{name}/sessions/{session}", gets: "401 403 403 403  403 403 404  403 403  403 403  401 401"},
	{route: "DELETE /api/admin/users/{name}/sessions/{session}", gets: "401 403 403 403  403 403 404  403 403  403 403  401 401"},
	{route: "GET /api/admin/deletions", gets: "401 403 403 403  403 403 200  403 403  403 403  401 401"},

	{route: "POST /api/credentials", body: framework.ExecCredential("{cluster}"), gets: "401 403 403 403  403 403 403  200 200  403 200  401 401", check: (*matrixScene).holdsOwnToken},
	{route: "POST /api/credentials", about: "for the path of a Workspace", body: framework.ExecCredential("{path}"), gets: "401 403 403 403  403 403 403  200 200  403 200  401 401", check: (*matrixScene).holdsOwnToken},
	{route: "POST /api/credentials", about: "for an Org's own workspace", body: framework.ExecCredential("{root}:orgs:{org}"), gets: "401 403 403 403  403 403 403  403 403  403 403  401 401"},
	{route: "POST /api/credentials", about: "where members look around", at: "viewing", body: framework.ExecCredential("{cluster}"), gets: "401 403 403 403  403 403 403  200 200  200 200  401 401", check: (*matrixScene).holdsOwnToken},

	{route: "GET /api/orgs", gets: "401 403 403 403  200 200 200  200 200  200 200  401 401", check: (*matrixScene).listsOwnOrgsOnly},
	// The row checks who may create an Org. Other tests wait until an Org is Ready.
	{route: "POST /api/orgs", body: `{"displayName":"Made by {caller}"}`, header: http.Header{"Prefer": {"respond-async"}}, gets: "401 403 403 403  202 202 202  202 202  202 202  401 401"},
	{route: "GET /api/orgs/{org}", gets: "401 403 403 403  403 403 403  403 403  200 200  401 401", check: (*matrixScene).isOrg},
	{route: "PATCH /api/orgs/{org}", body: `{"displayName":"main"}`, gets: "401 403 403 403  403 403 403  403 403  403 200  401 401", check: (*matrixScene).isOrg},
	{route: "PATCH /api/orgs/{org}", about: "the billing of its workspaces", query: "?applyToWorkspaces=true", body: `{"billing":{"costCenter":"4711"}}`, gets: "401 403 403 403  403 403 403  403 403  403 200  401 401"},
	{route: "DELETE /api/orgs/{org}", at: "ending", before: (*matrixScene).liveOrg, gets: "401 403 403 403  403 403 403  403 403  403 200  401 401"},
	{route: "POST /api/orgs/{org}/undelete", at: "returning", before: (*matrixScene).deletedOrg, gets: "401 403 403 403  403 403 403  403 403  403 2xx  401 401"},
	{route: "GET /api/orgs/{org}/members", gets: "401 403 403 403  403 403 403  403 403  200 200  401 401"},
	{route: "POST /api/orgs/{org}/members", body: `{"userRef":{"name":"{target}"},"role":"member"}`, before: (*matrixScene).notInOrg, gets: "401 403 403 403  403 403 403  403 403  403 201  401 401"},
	{route: "GET /api/orgs/{org}/members/{user}", before: (*matrixScene).inOrg, gets: "401 403 403 403  403 403 403  403 403  200 200  401 401"},
	{route: "PATCH /api/orgs/{org}/members/{user}", body: `{"role":"admin"}`, before: (*matrixScene).inOrg, gets: "401 403 403 403  403 403 403  403 403  403 200  401 401"},
	{route: "DELETE /api/orgs/{org}/members/{user}", before: (*matrixScene).inOrg, gets: "401 403 403 403  403 403 403  403 403  403 204  401 401"},
	{route: "DELETE /api/orgs/{org}/memberships/me", at: "leaving", before: (*matrixScene).seated, gets: "401 403 403 403  403 403 403  403 403  204 204  401 401"},

	// What becomes of invitations that exist is in test/integration/identity.
	{route: "GET /api/orgs/{org}/invitations", gets: "401 403 403 403  403 403 403  403 403  403 200  401 401"},
	{route: "POST /api/orgs/{org}/invitations", body: `{"role":"member"}`, gets: "401 403 403 403  403 403 403  403 403  403 201  401 401"},
	{route: "DELETE /api/orgs/{org}/invitations/{invitation}", gets: "401 403 403 403  403 403 403  403 403  403 404  401 401"},
	{route: "GET /api/orgs/{org}/workspaces/{ws}/invitations", manager: "200", gets: "401 403 403 403  403 403 403  403 200  403 200  401 401"},
	{route: "POST /api/orgs/{org}/workspaces/{ws}/invitations", body: `{"role":"member"}`, manager: "201", gets: "401 403 403 403  403 403 403  403 201  403 201  401 401"},
	{route: "DELETE /api/orgs/{org}/workspaces/{ws}/invitations/{invitation}", manager: "404", gets: "401 403 403 403  403 403 403  403 404  403 404  401 401"},
	{route: "GET /api/users/me/invitations", gets: "401 403 403 403  200 200 200  200 200  200 200  401 401"},
	{route: "GET /api/invitations/{invitation}", gets: "404"},
	{route: "POST /api/invitations/{invitation}/accept", gets: "401 403 403 403  404 404 404  404 404  404 404  401 401"},
	{route: "POST /api/invitations/{invitation}/decline", gets: "401 403 403 403  404 404 404  404 404  404 404  401 401"},

	// What becomes of requests that exist is in the unit tests of their handler. These ask for too short a time.
	{route: "GET /api/orgs/{org}/groups", gets: "401 403 403 403  403 403 403  403 403  403 200  401 401"},
	{route: "POST /api/orgs/{org}/groups", body: `{"group":"of nobody","role":"member"}`, gets: "401 403 403 403  403 403 403  403 403  403 2xx  401 401"},
	{route: "DELETE /api/orgs/{org}/groups/{mapping}", gets: "401 403 403 403  403 403 403  403 403  403 404  401 401"},
	{route: "GET /api/orgs/{org}/requests", gets: "401 403 403 403  403 403 403  403 403  200 200  401 401"},
	{route: "POST /api/orgs/{org}/requests", body: `{"workspace":"{ws}","kind":"sudo","reason":"why","for":"1s"}`, gets: "401 403 403 403  403 403 403  403 403  400 400  401 401"},
	{route: "GET /api/orgs/{org}/requests/workspaces", gets: "401 403 403 403  403 403 403  403 403  200 200  401 401"},
	{route: "GET /api/orgs/{org}/workspaces/{ws}/requests", manager: "200", gets: "401 403 403 403  403 403 403  200 200  403 200  401 401"},
	{route: "POST /api/orgs/{org}/workspaces/{ws}/requests", body: `{"kind":"sudo","reason":"why","for":"1s"}`, manager: "400", gets: "401 403 403 403  403 403 403  400 400  403 400  401 401"},
	{route: "POST /api/orgs/{org}/requests/{request}/approve", body: `{"note":"x"}`, gets: "401 403 403 403  403 403 403  403 403  404 404  401 401"},
	{route: "POST /api/orgs/{org}/requests/{request}/deny", body: `{"note":"x"}`, gets: "401 403 403 403  403 403 403  403 403  404 404  401 401"},
	{route: "POST /api/orgs/{org}/requests/{request}/withdraw", body: `{"note":"x"}`, gets: "401 403 403 403  403 403 403  403 403  404 404  401 401"},
	{route: "POST /api/orgs/{org}/requests/{request}/revoke", body: `{"note":"x"}`, gets: "401 403 403 403  403 403 403  403 403  404 404  401 401"},
	{route: "POST /api/orgs/{org}/workspaces/{ws}/requests/{request}/approve", body: `{"note":"x"}`, manager: "404", gets: "401 403 403 403  403 403 403  404 404  403 404  401 401"},
	{route: "POST /api/orgs/{org}/workspaces/{ws}/requests/{request}/deny", body: `{"note":"x"}`, manager: "404", gets: "401 403 403 403  403 403 403  404 404  403 404  401 401"},
	{route: "POST /api/orgs/{org}/workspaces/{ws}/requests/{request}/withdraw", body: `{"note":"x"}`, manager: "404", gets: "401 403 403 403  403 403 403  404 404  403 404  401 401"},
	{route: "POST /api/orgs/{org}/workspaces/{ws}/requests/{request}/revoke", body: `{"note":"x"}`, manager: "404", gets: "401 403 403 403  403 403 403  404 404  403 404  401 401"},

	{route: "GET /api/orgs/{org}/audit", gets: "401 403 403 403  403 403 403  403 403  200 200  401 401", check: (*matrixScene).isAudited},
	{route: "GET /api/orgs/{org}/workspaces/{ws}/audit", gets: "401 403 403 403  403 403 403  403 200  403 200  401 401", check: (*matrixScene).isAudited},
	{route: "GET /api/admin/audit", auditor: "200", gets: "401 403 403 403  403 403 200  403 403  403 403  401 401"},
	{route: "GET /api/admin/access", query: "?org={org}", auditor: "200", gets: "401 403 403 403  403 403 200  403 403  403 403  401 401"},
	{route: "GET /api/admin/billing", auditor: "200", gets: "401 403 403 403  403 403 200  403 403  403 403  401 401"},
	{route: "GET /api/admin/usage", auditor: "200", gets: "401 403 403 403  403 403 200  403 403  403 403  401 401"},
	{route: "GET /api/orgs/{org}/access", gets: "401 403 403 403  403 403 403  403 403  403 200  401 401"},
	{route: "GET /api/orgs/{org}/workspaces/{ws}/access", gets: "401 403 403 403  403 403 403  403 200  403 200  401 401"},
	{route: "GET /api/orgs/{org}/usage", gets: "401 403 403 403  403 403 403  403 403  403 200  401 401"},
	{route: "GET /api/orgs/{org}/workspaces/{ws}/usage", gets: "401 403 403 403  403 403 403  403 200  403 200  401 401"},

	{route: "GET /api/orgs/{org}/workspaces", gets: "401 403 403 403  403 403 403  200 200  200 200  401 401", check: (*matrixScene).listsOwnWorkspacesOnly},
	{
		route: "GET /api/orgs/{org}/workspaces", about: "what is deleted", at: "gone workspace", query: "?deleted=true",
		gets: "401 403 403 403  403 403 403  200 200  200 200  401 401", check: (*matrixScene).listsOwnWorkspacesOnly,
	},
	{
		route: "GET /api/orgs/{org}/workspaces", about: "where nothing is deleted", query: "?deleted=true",
		gets: "401 403 403 403  403 403 403  200 200  200 200  401 401", check: (*matrixScene).listsNothing,
	},
	{route: "POST /api/orgs/{org}/workspaces", body: `{"displayName":"Made by {caller}"}`, at: "growing", viewers: "403 403", gets: "401 403 403 403  403 403 403  403 403  201 201  401 401"},
	{route: "POST /api/orgs/{org}/workspaces", about: "where only admins create", body: `{"displayName":"Made by {caller}"}`, at: "closed", gets: "401 403 403 403  403 403 403  403 403  403 201  401 401"},
	{route: "GET /api/orgs/{org}/workspaces/{ws}", manager: "200", gets: "401 403 403 403  403 403 403  200 200  403 200  401 401", check: (*matrixScene).isWorkspace},
	{route: "GET /api/orgs/{org}/workspaces/{ws}", about: "where members look around", at: "viewing", manager: "200", gets: "401 403 403 403  403 403 403  200 200  200 200  401 401", check: (*matrixScene).isWorkspace},
	{route: "PATCH /api/orgs/{org}/workspaces/{ws}", body: `{"displayName":"work"}`, manager: "200", gets: "401 403 403 403  403 403 403  403 200  403 200  401 401", check: (*matrixScene).isWorkspace},
	{route: "PATCH /api/orgs/{org}/workspaces/{ws}", about: "where members look around", at: "viewing", body: `{"displayName":"work"}`, manager: "200", gets: "401 403 403 403  403 403 403  403 200  403 200  401 401"},
	{route: "PATCH /api/orgs/{org}/workspaces/{ws}", about: "its billing", body: `{"billing":{"costCenter":"4711"}}`, manager: "200", gets: "401 403 403 403  403 403 403  403 200  403 200  401 401"},
	{route: "PATCH /api/orgs/{org}/workspaces/{ws}", about: "who may ask", body: `{"requests":"none"}`, manager: "200",
		gets: "401 403 403 403  403 403 403  403 200  403 200  401 401"},
	{route: "DELETE /api/orgs/{org}/workspaces/{ws}", at: "ending a workspace", before: (*matrixScene).liveWorkspace, gets: "401 403 403 403  403 403 403  403 200  403 200  401 401"},
	{route: "POST /api/orgs/{org}/workspaces/{ws}/undelete", at: "returning a workspace", before: (*matrixScene).deletedWorkspace, gets: "401 403 403 403  403 403 403  403 2xx  403 2xx  401 401"},
	{route: "GET /api/orgs/{org}/workspaces/{ws}/kubeconfig", bots: "200 200", gets: "401 403 403 403  403 403 403  200 200  403 200  401 401"},
	{route: "GET /api/orgs/{org}/workspaces/{ws}/kubeconfig", about: "where members look around", at: "viewing", bots: "200 200", gets: "401 403 403 403  403 403 403  200 200  200 200  401 401"},
	{route: "GET /api/orgs/{org}/workspaces/{ws}/why", query: matrixWhy, manager: "200", gets: "401 403 403 403  403 403 403  200 200  403 200  401 401"},
	{route: "GET /api/orgs/{org}/workspaces/{ws}/why", about: "where members look around", at: "viewing", query: matrixWhy, manager: "200", gets: "401 403 403 403  403 403 403  200 200  200 200  401 401"},
	{route: "GET /api/orgs/{org}/workspaces/{ws}/why", about: "somebody else", query: matrixWhy + "&user=not-there", gets: "401 403 403 403  403 403 403  403 200  403 200  401 401"},
	{route: "GET /api/orgs/{org}/workspaces/{ws}/members", manager: "200", gets: "401 403 403 403  403 403 403  200 200  403 200  401 401"},
	{route: "POST /api/orgs/{org}/workspaces/{ws}/members", body: `{"userRef":{"name":"{target}"},"role":"member"}`, before: (*matrixScene).notInWorkspace, manager: "201", gets: "401 403 403 403  403 403 403  403 201  403 201  401 401"},
	{route: "POST /api/orgs/{org}/workspaces/{ws}/members", about: "an admin", body: `{"userRef":{"name":"{target}"},"role":"admin"}`, before: (*matrixScene).notInWorkspace, gets: "401 403 403 403  403 403 403  403 201  403 201  401 401"},
	{route: "POST /api/orgs/{org}/workspaces/{ws}/members", about: "a manager", body: `{"userRef":{"name":"{target}"},"manager":true}`, before: (*matrixScene).notInWorkspace, manager: "201", gets: "401 403 403 403  403 403 403  403 201  403 201  401 401"},
	{route: "POST /api/orgs/{org}/workspaces/{ws}/invitations", about: "an admin", body: `{"role":"admin"}`, gets: "401 403 403 403  403 403 403  403 201  403 201  401 401"},
	{route: "POST /api/orgs/{org}/workspaces/{ws}/members", about: "where members look around", at: "viewing", body: `{"userRef":{"name":"{target}"},"role":"member"}`, before: (*matrixScene).notInWorkspace, manager: "201", gets: "401 403 403 403  403 403 403  403 201  403 201  401 401"},
	{route: "GET /api/orgs/{org}/workspaces/{ws}/members/{user}", before: (*matrixScene).inWorkspace, manager: "200", gets: "401 403 403 403  403 403 403  200 200  403 200  401 401"},
	{route: "PATCH /api/orgs/{org}/workspaces/{ws}/members/{user}", body: `{"role":"admin","sudo":true}`, before: (*matrixScene).inWorkspace, gets: "401 403 403 403  403 403 403  403 200  403 200  401 401"},
	{route: "DELETE /api/orgs/{org}/workspaces/{ws}/members/{user}", before: (*matrixScene).inWorkspace, manager: "204", gets: "401 403 403 403  403 403 403  403 204  403 204  401 401"},
	// An Org admin is admin of the Workspace without a Membership that could be deleted.
	{route: "DELETE /api/orgs/{org}/workspaces/{ws}/memberships/me", at: "leaving a workspace", before: (*matrixScene).seated, manager: "204", gets: "401 403 403 403  403 403 403  204 204  403 404  401 401"},

	// What becomes of entries that exist is in test/integration/catalog.
	{route: "GET /api/providers", header: http.Header{"X-Kedge-Org": {"{org}"}}, bots: "200 200", gets: "401 403 403 403  403 403 403  200 200  200 200  401 401"},
	{route: "GET /api/providers", about: "in a Workspace", header: http.Header{"X-Kedge-Org": {"{org}"}, "X-Kedge-Workspace": {"{ws}"}}, bots: "200 200", gets: "401 403 403 403  403 403 403  200 200  403 200  401 401"},
	{route: "GET /api/orgs/{org}/workspaces/{ws}/providers/{entry}", bots: "403 404", gets: "401 403 403 403  403 403 403  404 404  403 404  401 401"},
	{route: "POST /api/orgs/{org}/workspaces/{ws}/providers/{entry}/enable", body: `{"acceptClaims":[{"group":"","resource":"configmaps"}]}`, bots: "403 404", gets: "401 403 403 403  403 403 403  403 404  403 404  401 401"},
	{route: "DELETE /api/orgs/{org}/workspaces/{ws}/providers/{entry}/enable", query: "?confirm=true", bots: "403 404", gets: "401 403 403 403  403 403 403  403 404  403 404  401 401"},

	// What becomes of bots that exist is in test/integration/bots.
	{route: "GET /api/orgs/{org}/workspaces/{ws}/serviceaccounts", gets: "401 403 403 403  403 403 403  200 200  403 200  401 401"},
	{route: "POST /api/orgs/{org}/workspaces/{ws}/serviceaccounts", body: `{"displayName":"of {caller}","role":"member"}`, gets: "401 403 403 403  403 403 403  403 201  403 201  401 401"},
	{route: "GET /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}", gets: "401 403 403 403  403 403 403  404 404  403 404  401 401"},
	{route: "PATCH /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}", body: `{"role":"admin"}`, gets: "401 403 403 403  403 403 403  403 404  403 404  401 401"},
	{route: "DELETE /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}", gets: "401 403 403 403  403 403 403  403 404  403 404  401 401"},
	{route: "GET /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}/tokens", gets: "401 403 403 403  403 403 403  404 404  403 404  401 401"},
	{route: "POST /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}/tokens", body: `{"name":"CI"}`, gets: "401 403 403 403  403 403 403  403 404  403 404  401 401"},
	{route: "DELETE /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}/tokens", gets: "401 403 403 403  403 403 403  403 404  403 404  401 401"},
	{route: "DELETE /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}/tokens/{token}", gets: "401 403 403 403  403 403 403  403 404  403 404  401 401"},
	// A bot may rotate the token that it presents. The one in the path is none.
	{route: "POST /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}/tokens/{token}/rotate", body: `{"gracePeriodSeconds":60}`, gets: "401 403 403 403  403 403 403  403 404  403 404  401 401"},
	{route: "GET /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}/trust", gets: "401 403 403 403  403 403 403  403 404  403 404  401 401"},
	{route: "POST /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}/trust", body: `{"issuer":"https://ci.example.com","claims":{"sub":"x"}}`, gets: "401 403 403 403  403 403 403  403 404  403 404  401 401"},
	{route: "GET /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}/trust/{trust}", gets: "401 403 403 403  403 403 403  403 404  403 404  401 401"},
	{route: "DELETE /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}/trust/{trust}", gets: "401 403 403 403  403 403 403  403 404  403 404  401 401"},

	// Which exports may be published, and what becomes of entries that exist, is in
	// test/integration/catalog. A repeated request is answered as the first one.
	{route: "GET /api/orgs/{org}/catalog", gets: "401 403 403 403  403 403 403  403 403  200 200  401 401"},
	{route: "POST /api/orgs/{org}/catalog", body: matrixEntry("{path}"), header: matrixKeyed, gets: "401 403 403 403  403 403 403  403 403  403 202  401 401"},
	{route: "GET /api/orgs/{org}/catalog/{entry}", gets: "401 403 403 403  403 403 403  403 403  404 404  401 401"},
	{route: "PUT /api/orgs/{org}/catalog/{entry}", body: matrixEntry("{path}"), gets: "401 403 403 403  403 403 403  403 403  404 404  401 401"},
	{route: "DELETE /api/orgs/{org}/catalog/{entry}", gets: "401 403 403 403  403 403 403  403 403  404 404  401 401"},
	{route: "GET /api/admin/catalog", gets: "401 403 403 403  403 403 200  403 403  403 403  401 401"},
	{route: "POST /api/admin/catalog", body: matrixEntry("{root}:providers:none"), header: matrixKeyed, gets: "401 403 403 403  403 403 202  403 403  403 403  401 401"},
	{route: "GET /api/admin/catalog/{entry}", gets: "401 403 403 403  403 403 404  403 403  403 403  401 401"},
	{route: "PUT /api/admin/catalog/{entry}", body: matrixEntry("{root}:providers:none"), gets: "401 403 403 403  403 403 404  403 403  403 403  401 401"},
	{route: "DELETE /api/admin/catalog/{entry}", gets: "401 403 403 403  403 403 404  403 403  403 403  401 401"},

	// The hub forwards HEAD for authorized callers, and kcp answers 405.
	{route: "GET /clusters/*", rest: "{cluster}/api/v1/namespaces", bots: "200 200", gets: "401 403 403 403  403 403 403  200 200  403 200  401 401"},
	{route: "GET /clusters/*", about: "by path", rest: "{path}/api/v1/namespaces", bots: "200 200", gets: "401 403 403 403  403 403 403  200 200  403 200  401 401"},
	{route: "GET /clusters/*", about: "an Org's own workspace", rest: "{root}:orgs:{org}/api/v1/namespaces", gets: "404"},
	{route: "GET /clusters/*", about: "where members look around", at: "viewing", rest: "{cluster}/api/v1/namespaces", bots: "200 200", gets: "401 403 403 403  403 403 403  200 200  200 200  401 401"},
	{route: "HEAD /clusters/*", rest: "{cluster}/api/v1/namespaces", bots: "405 405", gets: "401 403 403 403  403 403 403  405 405  403 405  401 401"},
	{route: "POST /clusters/*", rest: matrixConfigMaps, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"made-"}}`, bots: "201 201 403", viewers: "403 403", gets: "401 403 403 403  403 403 403  201 201  403 201  401 401"},
	{route: "POST /clusters/*", about: "where members look around", at: "viewing", rest: matrixConfigMaps, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"made-"}}`, bots: "201 201 403", viewers: "403 403", gets: "401 403 403 403  403 403 403  201 201  403 201  401 401"},
	{route: "PUT /clusters/*", rest: matrixConfigMaps + "/{target}", body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{target}"},"data":{"by":"{caller}"}}`, before: (*matrixScene).configMap, bots: "200 200 403", viewers: "403 403", gets: "401 403 403 403  403 403 403  200 200  403 200  401 401"},
	{route: "PATCH /clusters/*", rest: matrixConfigMaps + "/{target}", body: `{"data":{"by":"{caller}"}}`, header: http.Header{"Content-Type": {"application/merge-patch+json"}}, before: (*matrixScene).configMap, bots: "200 200 403", viewers: "403 403", gets: "401 403 403 403  403 403 403  200 200  403 200  401 401"},
	{route: "DELETE /clusters/*", rest: matrixConfigMaps + "/{target}", before: (*matrixScene).configMap, bots: "200 200 403", viewers: "403 403", gets: "401 403 403 403  403 403 403  200 200  403 200  401 401"},
	// The hub forwards these requests. RBAC in the Workspace refuses them by role.
	{route: "GET /clusters/*", about: "Secrets, where members look around", at: "viewing", rest: "{cluster}/api/v1/secrets", bots: "200 200 403", viewers: "403 403", gets: "401 403 403 403  403 403 403  200 200  403 200  401 401"},
	{route: "POST /clusters/*", about: "RBAC", rest: "{cluster}/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", query: "?dryRun=All", body: matrixBinding, bots: "403 201", gets: "401 403 403 403  403 403 403  403 201  403 201  401 401"},
	{route: "POST /clusters/*", about: "a bot's token", rest: "{cluster}/api/v1/namespaces/default/serviceaccounts/default/token", query: "?dryRun=All", body: `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`, bots: "403 201", gets: "401 403 403 403  403 403 403  403 201  403 201  401 401"},
	{route: "DELETE /clusters/*", about: "the LogicalCluster", rest: "{cluster}/apis/core.kcp.io/v1alpha1/logicalclusters/cluster", query: "?dryRun=All", gets: "401 403 403 403  403 403 403  403 403  403 403  401 401"},
	{route: "CONNECT|OPTIONS|QUERY|TRACE /clusters/*", rest: "{cluster}/api/v1/namespaces", gets: "405"},
}

// matrixEntry publishes an export of a workspace. The slug is the caller's own.
func matrixEntry(path string) string {
	return `{"slug":"of-{caller}","displayName":"of {caller}","apiExport":{"path":"` + path + `","name":"widgets.example.org"}}`
}

// matrixKeyed does not wait until the object is Ready, and can be repeated.
var matrixKeyed = http.Header{"Prefer": {"respond-async"}, "Idempotency-Key": {"matrix"}}

const (
	matrixWhy        = "?verb=get&resource=configmaps"
	matrixConfigMaps = "{cluster}/api/v1/namespaces/default/configmaps"
	matrixBinding    = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"generateName":"made-"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"kedge:workspace:viewer"}}`
)

// want returns the code for a position.
func (r matrixRow) want(position int) string {
	codes, bots, viewers := strings.Fields(r.gets), strings.Fields(r.bots), strings.Fields(r.viewers)
	switch {
	case len(codes) == 1:
		return codes[0]
	case position < matrixColumns:
		return codes[position]
	case position == asAuditor && r.auditor != "":
		return r.auditor
	case position == asAuditor:
		return codes[asNobody]
	case position == asWorkspaceManager && r.manager != "":
		return r.manager
	case position == asWorkspaceManager && r.aboutContent():
		return "403"
	case position == asWorkspaceManager:
		return codes[asWorkspaceMember]
	case isBot(position) && len(bots) == 0:
		return "403"
	case position == asBotViewer && len(bots) < matrixBots:
		return bots[0]
	case isBot(position):
		return bots[position-matrixColumns]
	case len(viewers) > 0:
		return viewers[position-asWorkspaceViewer]
	case position == asWorkspaceViewer:
		return codes[asWorkspaceMember]
	}
	return codes[asOrgMember]
}

// aboutContent reports whether the row is about a Workspace or what is in it.
func (r matrixRow) aboutContent() bool {
	return strings.Contains(r.pattern(), "{ws}") || strings.HasPrefix(r.pattern(), "/clusters/") || r.pattern() == "/api/credentials" ||
		r.header.Get("X-Kedge-Workspace") != ""
}

func (r matrixRow) pattern() string { return r.route[strings.Index(r.route, " ")+1:] }

// methods returns the methods of the row. The hub serves HEAD wherever it serves GET. For
// clusters, kcp decides.
func (r matrixRow) methods() []string {
	methods, pattern, _ := strings.Cut(r.route, " ")
	if !strings.HasPrefix(pattern, "/clusters/") {
		methods = strings.Replace(methods, "GET", "GET|HEAD", 1)
	}
	return strings.Split(methods, "|")
}

// routes returns the router's routes that the row covers.
func (r matrixRow) routes(all []server.Route) []server.Route {
	methods, pattern := r.methods(), r.pattern()
	var found []server.Route
	for _, route := range all {
		if route.Pattern == pattern && (methods[0] == "*" || slices.Contains(methods, route.Method)) {
			found = append(found, route)
		}
	}
	return found
}

// name identifies the row in the names of tests.
func (r matrixRow) name() string { return strings.TrimSpace(r.route + " " + r.about) }

// tenant reports whether the row's requests carry the tenant headers.
func (r matrixRow) tenant() bool { return strings.HasPrefix(r.pattern(), "/api/orgs/{org}") }

func (r matrixRow) inWorkspace() bool { return r.tenant() && strings.Contains(r.pattern(), "{ws}") }

// authenticated reports whether the route requires authentication.
func (r matrixRow) authenticated() bool { return r.want(asAnonymous) == "401" }

// firstMatrixRows returns, for each route, the first row that which accepts.
func firstMatrixRows(which func(matrixRow) bool) []matrixRow {
	var found []matrixRow
	seen := map[string]bool{}
	for _, r := range matrixRows {
		if !seen[r.route] && which(r) {
			seen[r.route] = true
			found = append(found, r)
		}
	}
	return found
}

// matrixGaps returns the routes without a row, and the rows without a route or with a
// wrong number of columns.
func matrixGaps(matrixRows []matrixRow, all []server.Route) []string {
	var found []string
	listed := map[server.Route]bool{}
	for _, r := range matrixRows {
		if n := len(strings.Fields(r.gets)); n != 1 && n != matrixColumns {
			found = append(found, fmt.Sprintf("%s has %d columns", r.name(), n))
		}
		if n := len(strings.Fields(r.bots)); n != 0 && n != matrixBots && n != matrixBots-1 {
			found = append(found, fmt.Sprintf("%s has %d columns for bots", r.name(), n))
		}
		if n := len(strings.Fields(r.viewers)); n != 0 && n != asWorkspaceManager-asWorkspaceViewer {
			found = append(found, fmt.Sprintf("%s has %d columns for viewers", r.name(), n))
		}
		methods, routes := r.methods(), r.routes(all)
		if len(routes) == 0 || methods[0] != "*" && len(routes) != len(methods) {
			found = append(found, r.name()+" is no route")
		}
		for _, route := range routes {
			listed[route] = true
		}
	}
	for _, route := range all {
		if !listed[route] {
			found = append(found, route.Method+" "+route.Pattern+" has no row in the matrix")
		}
	}
	return found
}

func TestMatrix_listsEveryRouteAndNothingElse(t *testing.T) {
	t.Parallel()
	require.Empty(t, matrixGaps(matrixRows, server.Routes()))

	some := []server.Route{{Method: "GET", Pattern: "/a"}, {Method: "HEAD", Pattern: "/a"}, {Method: "PUT", Pattern: "/a"}}
	require.Empty(t, matrixGaps([]matrixRow{{route: "* /a", gets: "404"}}, some))
	for name, c := range map[string]struct {
		rows []matrixRow
		says string
	}{
		"a route without a row":       {[]matrixRow{{route: "GET /a", gets: "404"}}, "PUT /a has no row in the matrix"},
		"a row without a route":       {[]matrixRow{{route: "* /a", gets: "404"}, {route: "GET /b", gets: "404"}}, "GET /b is no route"},
		"a method that is not routed": {[]matrixRow{{route: "GET|PUT|POST /a", gets: "404"}}, "GET|PUT|POST /a is no route"},
		"a column too few":            {[]matrixRow{{route: "* /a", gets: "401 403"}}, "* /a has 2 columns"},
		"a bot too many":              {[]matrixRow{{route: "* /a", gets: "404", bots: "403 403 403 403"}}, "* /a has 4 columns for bots"},
	} {
		require.Equal(t, []string{c.says}, matrixGaps(c.rows, some), name)
	}
}
