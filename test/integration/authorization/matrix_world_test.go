package authorization

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// matrixPeople maps positions to users. Neither a ServiceAccount nor a bot is a user.
var matrixPeople = [matrixPositions]string{
	asPending: "ivan", asRejected: "mallory", asDeleted: "grace", asNobody: "frank", asForeignAdmin: "erin", asPlatformAdmin: "heidi",
	asWorkspaceMember: "dave", asWorkspaceAdmin: "carol", asOrgMember: "bob", asOrgAdmin: "alice",
	asWorkspaceViewer: "wendy", asOrgViewer: "victor", asWorkspaceManager: "nina", asAuditor: "trudy",
}

// matrixKeeper is a further admin of every Org. This user sets up and restores the state
// of the cells.
const matrixKeeper = "judy"

// matrixExtras is the number of users for rows to act on.
const matrixExtras = 40

// matrixPlace is an Org with a Workspace. Some have another Workspace without members,
// which only the Org's admins can reach.
type matrixPlace struct {
	org, ws, other, cluster, path string
	// bots are those of the Workspace: a member, an admin and a viewer.
	bots [matrixBots]matrixBot
}

// matrixBot is a bot with a token.
type matrixBot struct{ uuid, token string }

// matrixWorld is the hub of the matrix with its users, Orgs and Workspaces.
type matrixWorld struct {
	hub  *framework.Hub
	root string
	// tokens are indexed by position. Those of bots are in their places.
	tokens [matrixPositions]string
	places map[string]matrixPlace
	// foreign is the Org of the foreign admin. It has no other members.
	foreign matrixPlace
	used    atomic.Int32
	// auditFile has the events of the cells that changed, or might have changed, something.
	auditFile string
	mu        sync.Mutex
	audited   []auditedCell
}

// newMatrixWorld builds the Orgs that the rows name, and five more. Rows without side
// effects share "". Refused requests use "spare". "gone" is a soft-deleted Org, and "gone
// workspace" has a soft-deleted Workspace. The attacks use the attacked one.
func newMatrixWorld(t *testing.T) *matrixWorld {
	t.Helper()
	w := &matrixWorld{root: framework.NewRoot(), places: map[string]matrixPlace{}, auditFile: filepath.Join(t.TempDir(), "audit.log")}
	w.hub = framework.StartHub(t, kcp, w.root, func(o *server.Options) {
		o.AdminUsers, o.AuditorUsers = []string{matrixPeople[asPlatformAdmin]}, []string{matrixPeople[asAuditor]}
		o.DefaultOrgQuota = 100
		o.AuditLogFile, o.Records.Database, o.LeaderElect = w.auditFile, records.DefaultURL(o.DataDir), false
		// One person asks for it in many ways at once, and each refusal is to have its event.
		o.Limits.AuditReadsPerPerson, o.AuditLog.OrgWrites = 0, 0
		o.TokenFile = filepath.Join(t.TempDir(), "tokens.csv")
		require.NoError(t, writeMatrixTokens(o.TokenFile))
	})
	// The client does not follow redirects, so that the tests see them.
	w.hub.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	// The hub compares the first static token with kcp, which does not know the people that only
	// the matrix has.
	framework.SignUp(t, w.hub, "alice")
	for position, name := range matrixPeople {
		if name != "" {
			w.tokens[position] = framework.Token(name)
			w.hub.Do(t, call{As: name, Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
		}
	}
	names := []string{"", "spare", "gone", "gone workspace", attacked}
	for _, r := range matrixRows {
		names = append(names, r.at)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	built := make([]matrixPlace, len(names))
	var all errgroup.Group
	// One person may have 8 writes in progress.
	all.SetLimit(8)
	for i, name := range names {
		all.Go(func() (err error) {
			built[i], err = w.build(name)
			return err
		})
	}
	require.NoError(t, all.Wait())
	for i, name := range names {
		w.places[name] = built[i]
	}
	w.foreign.org = w.hub.CreateOrg(t, matrixPeople[asForeignAdmin], "foreign")
	foreign := w.hub.CreateWorkspace(t, matrixPeople[asForeignAdmin], w.foreign.org, "foreign")
	w.foreign.ws, w.foreign.cluster, w.foreign.path = foreign.Text("uuid"), foreign.Text("clusterID"), foreign.Text("workspacePath")
	w.configure(t)
	w.accounts(t)
	w.suspend(t)
	return w
}

// writeMatrixTokens writes a token file with additional users. kcp does not know them and
// does not need to: the hub forwards none of their requests.
func writeMatrixTokens(path string) error {
	if err := framework.WriteTokens(path); err != nil {
		return err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	names := []string{matrixPeople[asPending], matrixPeople[asRejected], matrixPeople[asWorkspaceManager], matrixPeople[asAuditor], matrixKeeper}
	for i := range matrixExtras {
		names = append(names, matrixExtra(i))
	}
	for _, name := range names {
		raw = fmt.Appendf(raw, "%s,%s,uid-%s,\"dev\"\n", framework.Token(name), name, name)
	}
	return os.WriteFile(path, raw, 0o600)
}

func matrixExtra(i int) string { return fmt.Sprintf("extra-%d", i) }

// somebody signs up a user for the caller's exclusive use.
func (w *matrixWorld) somebody(t *testing.T) string {
	t.Helper()
	i := int(w.used.Add(1)) - 1
	require.Less(t, i, matrixExtras, "there are more rows than people to act upon: raise matrixExtras")
	return w.hub.Do(t, call{As: matrixExtra(i), Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK).Text("name")
}

// try sends a request and returns an error unless the answer has one of the codes.
func (w *matrixWorld) try(c call, codes ...int) (framework.Answer, error) {
	a, err := w.hub.Try(c)
	if err == nil && !slices.Contains(codes, a.Code) {
		err = fmt.Errorf("%s %s as %s: %d %s", c.Method, c.Path, c.As, a.Code, a.Raw)
	}
	return a, err
}

func (w *matrixWorld) build(name string) (p matrixPlace, err error) {
	title := name
	if title == "" {
		title = "main"
	}
	a, err := w.hub.TryMade(call{As: matrixKeeper, Method: http.MethodPost, Path: "/api/orgs", Body: map[string]string{"displayName": title}})
	if err != nil {
		return p, err
	}
	p.org = a.Text("uuid")
	workspace := func(name string) (framework.Answer, error) {
		return w.hub.TryMade(framework.InOrg(matrixKeeper, http.MethodPost, p.org, "/workspaces", map[string]string{"displayName": name}))
	}
	if a, err = workspace("work"); err != nil {
		return p, err
	}
	p.ws, p.cluster, p.path = a.Text("uuid"), a.Text("clusterID"), a.Text("workspacePath")
	if name == "" || name == "spare" {
		if a, err = workspace("other"); err != nil {
			return p, err
		}
		p.other = a.Text("uuid")
	}
	for position := range matrixPeople {
		if err := w.seat(p, position); err != nil {
			return p, err
		}
	}
	for i, role := range []string{"member", "admin", "viewer"} {
		if p.bots[i], err = w.bot(p, role); err != nil {
			return p, err
		}
	}
	return p, nil
}

// bot makes a bot with a token that kcp accepts.
func (w *matrixWorld) bot(p matrixPlace, role string) (b matrixBot, err error) {
	c := framework.InWorkspace(matrixKeeper, http.MethodPost, p.org, p.ws, "/serviceaccounts", map[string]string{"displayName": role, "role": role})
	a, err := w.try(c, http.StatusCreated)
	if err != nil {
		return b, err
	}
	b.uuid = a.Text("uuid")
	c = framework.InWorkspace(matrixKeeper, http.MethodPost, p.org, p.ws, "/serviceaccounts/"+b.uuid+"/tokens", `{}`)
	if a, err = w.try(c, http.StatusCreated); err != nil {
		return b, err
	}
	b.token = a.Text("token")
	// kcp's caches lag behind the answer.
	return b, framework.Wait(framework.Long, func() error {
		_, err := w.try(call{
			Method: http.MethodGet, Path: "/clusters/" + p.cluster + "/api/v1/namespaces/default/configmaps", Header: http.Header{"Authorization": {"Bearer " + b.token}},
		}, http.StatusOK)
		return err
	})
}

// seat creates the Memberships of the user in a position.
func (w *matrixWorld) seat(p matrixPlace, position int) error {
	body := func(role string) any {
		return map[string]any{"userRef": map[string]string{"name": matrixPeople[position]}, "role": role}
	}
	org := func(role string) error {
		_, err := w.try(call{As: matrixKeeper, Method: http.MethodPost, Path: "/api/orgs/" + p.org + "/members", Org: p.org, Body: body(role)}, http.StatusOK, http.StatusCreated)
		return err
	}
	workspace := func(role string) error {
		_, err := w.try(call{As: matrixKeeper, Method: http.MethodPost, Path: "/api/orgs/" + p.org + "/workspaces/" + p.ws + "/members", Org: p.org, Workspace: p.ws, Body: body(role)}, http.StatusOK, http.StatusCreated)
		return err
	}
	switch position {
	case asWorkspaceManager:
		c := framework.InWorkspace(matrixKeeper, http.MethodPost, p.org, p.ws, "/members", map[string]any{
			"userRef": map[string]string{"name": matrixPeople[position]}, "manager": true,
		})
		_, err := w.try(c, http.StatusOK, http.StatusCreated)
		return err
	case asPending, asRejected, asDeleted:
		if err := org("admin"); err != nil {
			return err
		}
		return workspace("admin")
	case asOrgAdmin:
		return org("admin")
	case asOrgMember:
		return org("member")
	case asOrgViewer:
		return org("viewer")
	case asWorkspaceViewer:
		return workspace("viewer")
	case asWorkspaceAdmin:
		return workspace("admin")
	case asWorkspaceMember:
		return workspace("member")
	}
	return nil
}

// configure applies the settings of "viewing" and "closed", and gives bob sudo in the
// attacked Workspace.
func (w *matrixWorld) configure(t *testing.T) {
	t.Helper()
	for name, patch := range map[string]string{"viewing": `{"defaultAccess":"view"}`, "closed": `{"workspaceCreation":"admin"}`} {
		org := w.places[name].org
		w.hub.Do(t, call{As: matrixKeeper, Method: http.MethodPatch, Path: "/api/orgs/" + org, Org: org, Body: patch}, http.StatusOK)
	}
	p := w.places[attacked]
	w.hub.Do(t, call{
		As: matrixKeeper, Method: http.MethodPost, Path: "/api/orgs/" + p.org + "/workspaces/" + p.ws + "/members", Org: p.org, Workspace: p.ws,
		Body: fmt.Sprintf(`{"userRef":{"name":%q},"role":"member","sudo":true}`, matrixPeople[asOrgMember]),
	}, http.StatusCreated)
	// The hub writes the viewers' bindings after its answer, and kcp's cache lags behind.
	framework.Eventually(t, framework.Long, func() error {
		_, err := w.try(call{As: matrixPeople[asOrgMember], Method: http.MethodGet, Path: "/clusters/" + w.places["viewing"].cluster + "/api/v1/namespaces"}, http.StatusOK)
		return err
	})
}

// accounts creates ServiceAccounts like those of bots (O-14) directly in kcp, and waits until
// kcp accepts their tokens.
func (w *matrixWorld) accounts(t *testing.T) {
	t.Helper()
	cluster := w.places[""].cluster
	for position, role := range map[int]string{asAccountMember: "member", asAccountAdmin: "admin"} {
		name := uuid.NewString()
		_, errOut, err := kcp.Kubectl(t, fmt.Sprintf(`apiVersion: v1
kind: ServiceAccount
metadata:
  name: %[1]s
  namespace: default
  labels: {tenancy.kedge.faros.sh/kedge-sa: "true"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
subjects: [{kind: ServiceAccount, namespace: default, name: %[1]s}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "kedge:workspace:%[2]s"}
`, name, role), cluster, "create", "-f", "-")
		require.NoError(t, err, errOut)
		token, errOut, err := kcp.Kubectl(t, "", cluster, "create", "token", name)
		require.NoError(t, err, errOut)
		w.tokens[position] = strings.TrimSpace(token)
		framework.Eventually(t, framework.Long, func() error {
			_, errOut, err := kcp.Kubectl(t, "", cluster, "--token", w.tokens[position], "get", "configmaps")
			if err != nil {
				return fmt.Errorf("%w: %s", err, errOut)
			}
			return nil
		})
		who, errOut, err := kcp.Kubectl(t, "", cluster, "--token", w.tokens[position], "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
		require.NoError(t, err, errOut)
		require.Equal(t, "system:serviceaccount:default:"+name, who)
	}
}

// suspend turns three admins into a pending, a rejected and a soft-deleted user, and
// soft-deletes an Org and a Workspace. It first checks that access works, so that only
// the new state can cause a later refusal.
func (w *matrixWorld) suspend(t *testing.T) {
	t.Helper()
	main, gone, workspace := w.places[""], w.places["gone"], w.places["gone workspace"]
	for _, position := range []int{asPending, asRejected, asDeleted} {
		w.hub.Do(t, call{As: matrixPeople[position], Method: http.MethodPatch, Path: "/api/orgs/" + main.org, Org: main.org, Body: `{"displayName":"main"}`}, http.StatusOK)
	}
	for position, registration := range map[int]string{asPending: `{"registration":"Pending"}`, asRejected: `{"registration":"Rejected","rejectionReason":"no guests"}`} {
		w.hub.Do(t, call{As: matrixPeople[asPlatformAdmin], Method: http.MethodPatch, Path: "/api/admin/users/" + matrixPeople[position], Body: registration}, http.StatusOK)
	}
	w.hub.Do(t, call{As: matrixPeople[asDeleted], Method: http.MethodDelete, Path: "/api/users/me"}, http.StatusAccepted)

	admin := call{As: matrixPeople[asOrgAdmin], Path: "/api/orgs/" + gone.org, Org: gone.org}
	admin.Method = http.MethodGet
	w.hub.Do(t, admin, http.StatusOK)
	admin.Method = http.MethodDelete
	w.hub.Do(t, admin, http.StatusOK)
	admin = call{As: admin.As, Path: "/api/orgs/" + workspace.org + "/workspaces/" + workspace.ws, Org: workspace.org, Workspace: workspace.ws}
	admin.Method = http.MethodGet
	w.hub.Do(t, admin, http.StatusOK)
	admin.Method = http.MethodDelete
	w.hub.Do(t, admin, http.StatusOK)
}
