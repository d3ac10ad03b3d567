package credentials_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const (
	acmePath = "root:kedge:orgs:" + apitest.Acme
	devPath  = acmePath + ":" + apitest.Dev
)

func TestKubeconfig_isReadyForKubectlWithoutAToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	answer := f.kubeconfig(apitest.WSMember, apitest.Dev)
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	require.Equal(t, "application/yaml", answer.Header.Get("Content-Type"))
	require.Equal(t, "no-store", answer.Header.Get("Cache-Control"))
	require.NotContains(t, answer.Body, apitest.Token(apitest.WSMember))
	require.NotContains(t, answer.Body, "insecure")
	got, err := yaml.YAMLToJSON([]byte(answer.Body))
	require.NoError(t, err)
	const name = `"Acme/Development"`
	require.JSONEq(t, `{
		"apiVersion": "v1", "kind": "Config", "current-context": `+name+`,
		"clusters": [{"name": `+name+`, "cluster": {
			"server": "https://hub.example.com:9443/clusters/devcluster",
			"certificate-authority-data": "`+base64.StdEncoding.EncodeToString([]byte(ca))+`"
		}}],
		"contexts": [{"name": `+name+`, "context": {"cluster": `+name+`, "user": `+name+`, "namespace": "default"}}],
		"users": [{"name": `+name+`, "user": {"exec": {
			"apiVersion": "client.authentication.k8s.io/v1", "command": "kedge",
			"args": ["credential", "--server", "https://hub.example.com:9443"], "env": null,
			"provideClusterInfo": true, "interactiveMode": "Never",
			"installHint": "kedge is the command line of this hub; put it on your PATH and run kedge login."
		}}}]
	}`, string(got))
}

// kubectl merges kubeconfigs by name.
func TestKubeconfig_hasANameOfItsOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.world.PutWorkspace(apitest.Workspace(apitest.Acme, apitest.Nowhere, "Development!", "othercluster"))
	distinct := "current-context: Acme/Development-" + apitest.Dev[:8] + "\n"
	require.Contains(t, f.kubeconfig(apitest.Admin, apitest.Dev).Body, distinct)
	f.world.Join(apitest.WSMember, apitest.Acme, apitest.Nowhere, v1alpha1.RoleViewer)
	require.Contains(t, f.kubeconfig(apitest.WSMember, apitest.Dev).Body, distinct)
}

// Somebody who renames their own Workspace again and again must not learn what others are called.
func TestKubeconfig_tellsNoNamesOfHiddenWorkspaces(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.world.PutWorkspace(apitest.Workspace(apitest.Acme, apitest.Nowhere, "Development!", "othercluster"))
	require.Contains(t, f.kubeconfig(apitest.WSMember, apitest.Dev).Body, "current-context: Acme/Development\n")
}

func TestKubeconfig_isForPeopleWithARoleInTheWorkspace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, user := range []string{apitest.Admin, apitest.Mixed, apitest.WSAdmin, apitest.WSMember} {
		require.Equal(t, http.StatusOK, f.kubeconfig(user, apitest.Dev).Code, user)
	}
	missing := f.kubeconfig(apitest.Admin, apitest.Nowhere)
	missing.Refused(t, http.StatusForbidden)
	for _, user := range []string{apitest.Member, apitest.Foreigner, apitest.Operator} {
		require.Equal(t, missing.Body, f.kubeconfig(user, apitest.Dev).Body, "what is foreign and what is missing look the same")
	}
	f.kubeconfig("", apitest.Dev).Refused(t, http.StatusUnauthorized)
	f.kubeconfig(apitest.Admin, apitest.Gone).Refused(t, http.StatusNotFound)

	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.DefaultAccess = v1alpha1.DefaultAccessView })
	require.Equal(t, http.StatusOK, f.kubeconfig(apitest.Member, apitest.Dev).Code, "the Org lets its members look")
}

func TestO10_refusesAKubeconfigForTheOrgsOwnWorkspace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.kubeconfig(apitest.Admin, apitest.Acme).Refused(t, http.StatusForbidden)
	require.Equal(t, http.StatusOK, f.kubeconfig(apitest.Admin, apitest.Dev).Code)
}

func TestKubeconfig_waitsForALogicalCluster(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.world.PutWorkspace(apitest.Workspace(apitest.Acme, apitest.Dev, "Development", ""))
	answer := f.kubeconfig(apitest.Admin, apitest.Dev)
	answer.Refused(t, http.StatusServiceUnavailable)
	require.Equal(t, "1", answer.Header.Get("Retry-After"))
	f.world.PutWorkspace(apitest.Workspace(apitest.Acme, apitest.Dev, "Development", "devcluster"))
	require.Equal(t, http.StatusOK, f.kubeconfig(apitest.Admin, apitest.Dev).Code)
}

func TestCredential_isTheQuestionWithTheCallersToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	// The body has every field that kubectl can send, and the status of an earlier answer.
	answer := f.post(apitest.WSMember, `{
		"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",
		"spec": {"cluster": {
			"server": "https://hub.example.com:9443/clusters/devcluster", "tls-server-name": "hub",
			"insecure-skip-tls-verify": false, "certificate-authority-data": "TUlJQg==", "proxy-url": "http://proxy",
			"disable-compression": true, "config": {"n": 9007199254740993}
		}, "interactive": true},
		"status": {"token": "another", "clientKeyData": "key", "expirationTimestamp": "2030-01-01T00:00:00Z"}
	}`)
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, `{
		"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",
		"spec": {"cluster": {
			"server": "https://hub.example.com:9443/clusters/devcluster", "tls-server-name": "hub",
			"certificate-authority-data": "TUlJQg==", "proxy-url": "http://proxy",
			"disable-compression": true, "config": {"n": 9007199254740993}
		}, "interactive": true},
		"status": {"token": "token-of-walter", "expirationTimestamp": "2026-03-02T07:40:00Z"}
	}`, answer.Body)
	require.Contains(t, answer.Body, "9007199254740993")
	require.Equal(t, "no-store", answer.Header.Get("Cache-Control"))
	require.Equal(t, 1, strings.Count(answer.Body, apitest.Token(apitest.WSMember)))
	for name, values := range answer.Header {
		require.NotContains(t, strings.Join(values, " "), apitest.Token(apitest.WSMember), name)
	}
}

func TestCredential_isForAWorkspaceByIDAndByPath(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, cluster := range []string{"devcluster", devPath, "devcluster/"} {
		for _, user := range []string{apitest.Admin, apitest.Mixed, apitest.WSAdmin, apitest.WSMember} {
			status, _ := f.cluster(user, cluster).Object(t, http.StatusOK)["status"].(map[string]any)
			require.Equal(t, apitest.Token(user), status["token"], cluster)
		}
		for _, user := range []string{apitest.Member, apitest.Foreigner, apitest.Operator} {
			refused(t, f.cluster(user, cluster), user).Refused(t, http.StatusForbidden)
		}
		f.cluster("", cluster).Refused(t, http.StatusUnauthorized)
	}
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.DefaultAccess = v1alpha1.DefaultAccessView })
	f.cluster(apitest.Member, "devcluster").Object(t, http.StatusOK)
}

func TestCredential_refusesForeignAndMissingClustersAlike(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	missing := refused(t, f.cluster(apitest.Admin, "nosuchcluster"), apitest.Admin)
	missing.Refused(t, http.StatusForbidden)
	for _, cluster := range []string{
		"labcluster", "globexcluster",
		"root:kedge:orgs:" + apitest.Globex + ":" + apitest.Lab, "root:kedge:orgs:" + apitest.Nowhere + ":" + apitest.Lab,
		acmePath + ":" + apitest.Lab, acmePath + ":" + apitest.Nowhere,
	} {
		require.Equal(t, missing.Body, f.cluster(apitest.Admin, cluster).Body, cluster)
	}
	f.cluster(apitest.Foreigner, "labcluster").Object(t, http.StatusOK)
}

func TestO10_refusesACredentialForAClusterOfTheHub(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, cluster := range []string{
		"acmecluster", acmePath, apitest.HubCluster, "root", "root:kedge", "root:kedge:orgs", "root:kedge:users", "root:kedge:providers",
	} {
		answer := refused(t, f.cluster(apitest.Admin, cluster), apitest.Admin)
		answer.RefusedCause(t, "OrgWorkspaceNotDirectlyAccessible")
	}
	f.cluster(apitest.Admin, "devcluster").Object(t, http.StatusOK)
}

func TestO13_refusesACredentialForADeletedWorkspace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, cluster := range []string{"gonecluster", acmePath + ":" + apitest.Gone} {
		answer := refused(t, f.cluster(apitest.Admin, cluster), apitest.Admin)
		require.GreaterOrEqual(t, answer.Code, 400)
	}
	f.cluster(apitest.Admin, "devcluster").Object(t, http.StatusOK)
	f.world.DeleteOrg(apitest.Acme)
	refused(t, f.cluster(apitest.Admin, "devcluster"), apitest.Admin)
}

func TestCredential_refusesAnotherServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, server := range []string{
		"https://evil.example.com/clusters/devcluster",
		"https://hub.example.com/clusters/devcluster",
		"https://hub.example.com:94430/clusters/devcluster",
		"https://hub.example.com:9443.evil.example.com/clusters/devcluster",
		"https://hub.example.com:9443@evil.example.com/clusters/devcluster",
		"http://hub.example.com:9443/clusters/devcluster",
		"https://hub.example.com:9443",
		"https://hub.example.com:9443/clusters",
		"https://hub.example.com:9443/api/clusters/devcluster",
		"https://hub.example.com:9443//clusters/devcluster",
		" https://hub.example.com:9443/clusters/devcluster",
		"https://hub.example.com:9443:443/clusters/devcluster/../x@evil",
		"https://alice@hub.example.com:9443/clusters/devcluster",
		"https://hub.example.com.:9443/clusters/devcluster",
		"https://hub.example.com:09443/clusters/devcluster",
		"https:///clusters/devcluster",
		"https:\\\\hub.example.com:9443/clusters/devcluster",
		"https://hub.example.com:9443\\\\clusters\\\\devcluster",
		"https://hub.example.com:9443/CLUSTERS/devcluster",
		"", "devcluster", "/clusters/devcluster",
	} {
		refused(t, f.issue(apitest.Admin, server), apitest.Admin).RefusedField(t, "spec.cluster.server")
	}
	f.issue(apitest.Admin, apitest.HubURL+"/clusters/devcluster").Object(t, http.StatusOK)
}

// kubectl connects to the same server with each of them.
func TestCredential_comparesOrigins(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, server := range []string{"HTTPS://hub.example.com:9443/clusters/devcluster", "https://Hub.Example.COM:9443/clusters/devcluster/"} {
		f.issue(apitest.Admin, server).Object(t, http.StatusOK)
	}
	f.handler.ExternalURL = "https://hub.example.com"
	for _, server := range []string{"https://hub.example.com", "https://hub.example.com:443", "https://HUB.example.com:443"} {
		f.issue(apitest.Admin, server+"/clusters/devcluster").Object(t, http.StatusOK)
	}
	for _, server := range []string{"https://hub.example.com:80", "https://hub.example.com:443:443", "http://hub.example.com:443", "https://hub.example.com:4430"} {
		refused(t, f.issue(apitest.Admin, server+"/clusters/devcluster"), apitest.Admin).RefusedField(t, "spec.cluster.server")
	}
	f.handler.ExternalURL = "https://hub.example.com:443"
	f.issue(apitest.Admin, "https://hub.example.com/clusters/devcluster").Object(t, http.StatusOK)
}

func TestCredential_refusesAURLThatIsNoCluster(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, cluster := range []string{
		"", "*", "/", ".", "..", "devcluster/api", "devcluster//", "devcluster?x", "devcluster#x", "devcluster%2f", "DEVCLUSTER",
		"../devcluster", "x/../devcluster", "system:admin", devPath + ":" + apitest.Dev,
		strings.ReplaceAll(devPath, ":", "%3A"), strings.ToUpper(devPath), acmePath + ":*", strings.Repeat("a", 33),
	} {
		answer := refused(t, f.cluster(apitest.Admin, cluster), apitest.Admin)
		require.Contains(t, []int{http.StatusForbidden, http.StatusNotFound}, answer.Code, cluster)
	}
	f.cluster(apitest.Admin, devPath).Object(t, http.StatusOK)
}

func TestCredential_refusesWhatIsNoExecCredential(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const (
		head = `"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"`
		spec = `"spec": {"cluster": {"server": "https://hub.example.com:9443/clusters/devcluster"}}`
	)
	for body, field := range map[string]string{
		`{}`: "kind",
		`{"kind": "TokenReview", "apiVersion": "client.authentication.k8s.io/v1", ` + spec + `}`:         "kind",
		`{"kind": "ExecCredential", ` + spec + `}`:                                                       "apiVersion",
		`{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1beta1", ` + spec + `}`: "apiVersion",
		`{` + head + `}`: "spec.cluster.server",
		`{` + head + `, "spec": {"interactive": true}}`:                       "spec.cluster.server",
		`{` + head + `, "spec": {"cluster": null}}`:                           "spec.cluster.server",
		`{` + head + `, "spec": {"cluster": {"server": 7}}}`:                  "spec.cluster.server",
		`{` + head + `, "spec": {"cluster": {"server": "a", "token": "b"}}}`:  "spec.cluster.token",
		`{` + head + `, "spec": {"cluster": {"server": "a", "server": "b"}}}`: "spec.cluster.server",
		`{` + head + `, "metadata": {}, ` + spec + `}`:                        "metadata",
		`{` + head + `, "status": "token", ` + spec + `}`:                     "status",
	} {
		refused(t, f.post(apitest.Admin, body), apitest.Admin).RefusedField(t, field)
	}
	f.post(apitest.Admin, `{`+head+`, `+spec+`}`).Object(t, http.StatusOK)
	f.post(apitest.Admin, `{`+head+`, `+spec+`, "status": null}`).Object(t, http.StatusOK)
}

func TestO8_refusesACredentialToADeletedPerson(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cluster(apitest.Admin, "devcluster").Object(t, http.StatusOK)
	f.world.DeleteUser(apitest.Admin)
	refused(t, f.cluster(apitest.Admin, "devcluster"), apitest.Admin).Refused(t, http.StatusForbidden)
	f.kubeconfig(apitest.Admin, apitest.Dev).Refused(t, http.StatusForbidden)
}

// refused requires an answer to be an error without a token.
func refused(t testing.TB, answer apitest.Answer, user string) apitest.Answer {
	t.Helper()
	require.GreaterOrEqual(t, answer.Code, http.StatusBadRequest, answer.Body)
	require.NotContains(t, answer.Body, apitest.Token(user))
	return answer
}

// kubectl keeps a token until the expiry that it was told.
func TestIssue_tellsTheExpiryOfTheToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	clock := clocktesting.NewFakePassiveClock(apitest.Epoch().Add(-4 * time.Minute))
	f.handler.Clock = clock
	expiry := func() any {
		status, ok := f.cluster(apitest.WSMember+apitest.Expiring, "devcluster").Object(t, http.StatusOK)["status"].(map[string]any)
		require.True(t, ok)
		return status["expirationTimestamp"]
	}
	require.Equal(t, "2026-03-01T12:00:00Z", expiry())
	clock.SetTime(apitest.Epoch().Add(-11 * time.Minute))
	require.Equal(t, "2026-03-01T11:59:00Z", expiry())
}
