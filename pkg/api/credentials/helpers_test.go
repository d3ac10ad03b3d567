package credentials_test

import (
	"net/http"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/api/credentials"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const ca = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"

var now = time.Date(2026, time.March, 2, 8, 30, 0, 0, time.FixedZone("somewhere", 3600))

type fixture struct {
	world   *apitest.World
	handler *credentials.Handler
	http    http.Handler
}

// newFixture uses the real tenancy.Gate, so that the tests cover its decisions.
func newFixture(t testing.TB) *fixture {
	f := &fixture{world: apitest.NewWorld()}
	tree := apitest.Tree(t)
	gate := tenancy.Gate{Tree: tree, Cluster: f.world.Cluster, Index: f.world.Index, Org: f.world.Org, Workspace: f.world.Workspace,
		User: f.world.ByName, Sudo: func(_, _, _ string) bool { return false }}
	handler := &credentials.Handler{Deps: f.world.Deps(t, nil, ""), Enter: gate.Enter}
	handler.CA, handler.Clock = func() []byte { return []byte(ca) }, clocktesting.NewFakePassiveClock(now)
	f.handler = handler
	f.http = apitest.Router(f.world, handler.Mount)
	return f
}

func (f *fixture) kubeconfig(as, workspace string) apitest.Answer {
	return apitest.Call{
		As: as, Method: http.MethodGet, Path: "/api/orgs/" + apitest.Acme + "/workspaces/" + workspace + "/kubeconfig",
		Org: apitest.Acme, Workspace: workspace,
	}.Do(f.http)
}

func (f *fixture) post(as, body string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodPost, Path: "/api/credentials", Body: body}.Do(f.http)
}

// issue requests a credential for the server's URL.
func (f *fixture) issue(as, server string) apitest.Answer {
	return f.post(as, `{
		"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
		"spec": {"cluster": {"server": "`+server+`"}, "interactive": false}
	}`)
}

// cluster requests a credential for a cluster, which is an ID or a path.
func (f *fixture) cluster(as, cluster string) apitest.Answer {
	return f.issue(as, apitest.HubURL+"/clusters/"+cluster)
}
