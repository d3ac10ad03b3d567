package lifecycle

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/framework"
)

// departures is the number of clients that disconnect, spread evenly over the duration of
// the request.
const departures = 8

var errLeft = errors.New("the client went away")

// leaver is a client that sends a part of its request and closes the connection when its
// patience is over.
type leaver struct {
	config   *tls.Config
	part     func(raw []byte) []byte
	patience time.Duration
}

// RoundTrip implements http.RoundTripper.
func (l leaver) RoundTrip(r *http.Request) (*http.Response, error) {
	var raw bytes.Buffer
	if err := r.Write(&raw); err != nil {
		return nil, err
	}
	conn, err := (&tls.Dialer{Config: l.config}).DialContext(r.Context(), "tcp", r.URL.Host)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write(l.part(raw.Bytes())); err != nil {
		return nil, err
	}
	if err := conn.SetReadDeadline(time.Now().Add(l.patience)); err != nil {
		return nil, err
	}
	_, _ = conn.Read(make([]byte, 1))
	return nil, errLeft
}

// leave sends a part of a call, disconnects and waits until the hub has logged the
// request. It requires that the logged status is not 5xx.
func leave(t testing.TB, hub *framework.Hub, id string, c call, part func([]byte) []byte, patience time.Duration) {
	t.Helper()
	header := http.Header{"X-Request-Id": {id}}
	for name, values := range c.Header {
		header[name] = values
	}
	c.Header = header
	config := framework.TransportOf(hub.HTTP).TLSClientConfig
	away := framework.Client{URL: hub.URL, HTTP: &http.Client{Transport: leaver{config, part, patience}}}
	_, err := away.Try(c)
	require.ErrorIs(t, err, errLeft)
	var done string
	framework.Eventually(t, framework.Long, func() error {
		for done = range strings.Lines(hub.Log.String()) {
			if strings.Contains(done, `"`+id+`"`) && strings.Contains(done, `"took"`) {
				return nil
			}
		}
		return fmt.Errorf("the hub is not done with %s", id)
	})
	require.Regexp(t, `"status": ?[24]\d\d\b`, done)
}

// posts is a kind of POST request with a count of the objects that it creates.
type posts struct {
	name string
	call func(i int) call
	// whole counts the complete objects; its error names incomplete ones.
	whole func() (int, error)
}

// O-9, O-11: a client can disconnect at any moment of a request. Its object then exists
// completely or not at all. A repeated request returns the same object.
func TestO11_AClientThatGoesAwayLeavesNothingHalfMade(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	p := newPlatform(t, root)
	framework.SignUp(t, hub, "bob")
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "platform")
	ws, clusters := made.Text("uuid"), map[string]string{made.Text("uuid"): made.Text("clusterID")}
	inside, outside := p.CreateUsers(t, "inside", departures+1), p.CreateUsers(t, "outside", departures+1)
	crowded := hub.CreateOrg(t, "alice", "Crowded")
	keyed := func(i int, c call) call {
		c.Header = http.Header{"Idempotency-Key": {fmt.Sprint("key-", i)}}
		return c
	}
	for _, kind := range []posts{
		{
			"a member of an Org",
			func(i int) call {
				return framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding(inside[i], "admin"))
			},
			func() (int, error) { return p.joined(t, org, "", inside, clusters) },
		},
		{
			"a member of a Workspace",
			func(i int) call {
				return framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding(outside[i], "member"))
			},
			func() (int, error) { return p.joined(t, org, ws+".", outside, clusters) },
		},
		{
			"an Org",
			func(i int) call {
				return keyed(i, call{As: "bob", Method: http.MethodPost, Path: "/api/orgs", Body: map[string]string{"displayName": fmt.Sprint("org ", i)}})
			},
			func() (int, error) { return p.founded(t, hub, "bob") },
		},
		{
			"a Workspace",
			func(i int) call {
				return keyed(i, framework.InOrg("alice", http.MethodPost, crowded, "/workspaces", map[string]string{"displayName": fmt.Sprint("ws ", i)}))
			},
			func() (int, error) { return p.furnished(t, hub, crowded, "alice") },
		},
	} {
		kind.test(t, hub)
	}
}

func (k posts) test(t *testing.T, hub *framework.Hub) {
	t.Helper()
	settled := func() (n int) {
		t.Helper()
		framework.Eventually(t, framework.Long, func() (err error) {
			n, err = k.whole()
			return err
		})
		return n
	}
	id := func(what string, i int) string {
		return fmt.Sprintf("%s-%s-%d", strings.ReplaceAll(k.name, " ", "-"), what, i)
	}
	require.Zero(t, settled(), k.name)
	for i, part := range []func([]byte) []byte{
		func(raw []byte) []byte { return raw[:bytes.Index(raw, []byte("\r\n\r\n"))+4] },
		func(raw []byte) []byte { return raw[:len(raw)-10] },
		func(raw []byte) []byte { return raw[:len(raw)-1] },
	} {
		leave(t, hub, id("cut", i), k.call(0), part, 0)
	}
	require.Zero(t, settled(), "%s: a request that never came whole was carried out", k.name)

	// The positive control creates an object, which stays, and measures the duration of
	// the request.
	began := time.Now()
	hub.Do(t, k.call(0), http.StatusCreated)
	took := time.Since(began)
	require.Equal(t, 1, settled(), k.name)
	for i := 1; i <= departures; i++ {
		leave(t, hub, id("left", i), k.call(i), bytes.Clone, took*time.Duration(i-1)/departures)
	}
	n := settled() - 1
	t.Logf("%s: takes %s; of %d whose clients went away meanwhile %d were made", k.name, took.Round(time.Millisecond), departures, n)
	for i := 1; i <= departures; i++ {
		hub.Do(t, k.call(i), http.StatusOK, http.StatusCreated)
	}
	require.Equal(t, departures+1, settled(), "%s: who asks again gets one", k.name)
}

// joined counts the people with a Membership of that name prefix in the Org.
func (p platform) joined(t testing.TB, org, prefix string, people []string, clusters map[string]string) (n int, err error) {
	held, err := p.MembershipsOf(t, org)
	if err != nil {
		return 0, err
	}
	for _, user := range people {
		if m, ok := held[prefix+user]; ok {
			n++
			if m.Status.Phase != v1alpha1.PhaseReady {
				return 0, fmt.Errorf("%s is %s", m.Name, m.Status.Phase)
			}
		}
		if err := p.Consistent(t, org, user, clusters); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// founded counts the Orgs that a person created. Each is Ready, has the person as admin
// and uses one unit of the quota.
func (p platform) founded(t testing.TB, hub *framework.Hub, by string) (int, error) {
	u, err := p.Users(p.UsersPath()).Get(t.Context(), by, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	made := p.OrganizationsBy(t, by)
	if err := settledClaims(u.Spec.OrgClaims, len(made)); err != nil {
		return 0, err
	}
	for uuid, o := range made {
		if o.Status.Phase != v1alpha1.PhaseReady {
			return 0, fmt.Errorf("the Org %s is %s", uuid, o.Status.Phase)
		}
		if held, err := p.MembershipsOf(t, uuid); err != nil || held[by].Spec.Role != v1alpha1.RoleAdmin {
			return 0, errors.Join(err, fmt.Errorf("%s is no admin of their Org %s", by, uuid))
		}
		if err := p.Consistent(t, uuid, by, nil); err != nil {
			return 0, err
		}
		if a, err := hub.Try(framework.InOrg(by, http.MethodGet, uuid, "", nil)); err != nil || a.Code != http.StatusOK {
			return 0, fmt.Errorf("%s does not get at the Org %s: %w, %s", by, uuid, err, a.Raw)
		}
	}
	return len(made), nil
}

// furnished counts the Workspaces that a person created in an Org. Each is Ready, has the
// person as admin and uses one unit of the Org's quota.
func (p platform) furnished(t testing.TB, hub *framework.Hub, org, by string) (int, error) {
	o, err := p.Organizations(p.OrgsPath()).Get(t.Context(), org, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	made := p.WorkspacesOf(t, org)
	if err := settledClaims(o.Spec.WorkspaceClaims, len(made)); err != nil {
		return 0, err
	}
	held, err := p.MembershipsOf(t, org)
	if err != nil {
		return 0, err
	}
	a, err := hub.Try(framework.InOrg(by, http.MethodGet, org, "/workspaces", nil))
	if err != nil {
		return 0, err
	}
	items, _ := a.JSON["items"].([]any)
	clusters := map[string]string{}
	for _, item := range items {
		ws := item.(map[string]any)
		uuid := fmt.Sprint(ws["uuid"])
		if ws["phase"] != string(v1alpha1.PhaseReady) {
			return 0, fmt.Errorf("the Workspace %s is %v", uuid, ws["phase"])
		}
		if held[uuid+"."+by].Spec.Role != v1alpha1.RoleAdmin {
			return 0, fmt.Errorf("%s is no admin of their Workspace %s", by, uuid)
		}
		clusters[uuid] = fmt.Sprint(ws["clusterID"])
	}
	if err := framework.Equal(len(made), len(items)); err != nil {
		return 0, err
	}
	return len(made), p.Consistent(t, org, by, clusters)
}

func settledClaims(claims []v1alpha1.Claim, want int) error {
	for _, c := range claims {
		if c.Request != nil {
			return fmt.Errorf("%s is still to be made", c.UUID)
		}
	}
	return framework.Equal(want, len(claims))
}
