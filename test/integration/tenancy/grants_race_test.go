package tenancy

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// slowest is the longest time for which the slow kcp holds a request of a hub back.
const slowest = 60 * time.Millisecond

// grantLane is an Organization in which an owner removes an admin who is granting.
type grantLane struct {
	p                       platform
	hubs                    []*framework.Hub
	org, workspace, bot     string
	path, cluster           string
	owner, eve, friend, pal string
	// provider is a Global entry that the Workspace can enable.
	provider string
	// token is the ID of a token of the bot, which can be rotated.
	token string
}

// given is all that people of the lane got, as kcp has it: what each Membership gives, the role
// of each Bot, the tokens that work, the Workspaces, and what the Organization opens.
type given map[string]string

func (l grantLane) given(t testing.TB) (given, error) {
	all := given{}
	held, err := l.p.MembershipsOf(t, l.org)
	if err != nil {
		return nil, err
	}
	for name, m := range held {
		all["member "+name] = fmt.Sprint(m.Spec.Role, m.Spec.Sudo, m.Spec.Roles)
	}
	var bots v1alpha1.BotList
	if err := l.p.Bots(l.p.OrgPath(l.org)).GetClient().Get().Resource("bots").Do(t.Context()).Into(&bots); err != nil {
		return nil, err
	}
	for _, b := range bots.Items {
		all["bot "+b.Name] = string(b.Spec.Role)
		for _, token := range b.Spec.Tokens {
			if token.SecretUID != "" {
				all["token "+token.ID] = b.Name
			}
		}
		for _, rule := range b.Spec.Trust {
			all["trust "+rule.ID] = b.Name
		}
	}
	if err := l.givenElsewhere(t, all); err != nil {
		return nil, err
	}
	o, err := l.p.Organizations(l.p.OrgsPath()).Get(t.Context(), l.org, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	for _, c := range o.Spec.WorkspaceClaims {
		all["workspace "+c.UUID] = ""
	}
	for _, m := range o.Spec.Groups {
		all["group "+m.ID] = string(m.Role)
	}
	all["default access"] = string(o.Spec.DefaultAccess)
	if n := len(o.Spec.MembershipChanges) + len(o.Spec.BotChanges) + len(o.Spec.InvitationChanges); n > 0 {
		all["pending"] = fmt.Sprint(n)
	}
	return all, nil
}

// grants are requests of eve that give rights, behind changes that only take time.
func (l grantLane) grants(round int) []call {
	calls := []call{
		framework.InOrg(l.eve, http.MethodPost, l.org, "/members", framework.Adding(l.friend, "admin")),
		framework.InWorkspace(l.eve, http.MethodPost, l.org, l.workspace, "/members", framework.Adding(l.friend, "admin")),
		framework.InWorkspace(l.eve, http.MethodPatch, l.org, l.workspace, "/members/"+l.pal, map[string]any{"role": "admin", "sudo": true}),
		framework.InWorkspace(l.eve, http.MethodPost, l.org, l.workspace, "/serviceaccounts/"+l.bot+"/tokens", map[string]any{}),
		framework.InWorkspace(l.eve, http.MethodPatch, l.org, l.workspace, "/serviceaccounts/"+l.bot, framework.WithRole("admin")),
		framework.InWorkspace(l.eve, http.MethodPost, l.org, l.workspace, "/serviceaccounts", map[string]string{"displayName": "late", "role": "admin"}),
	}
	if round%10 == 0 {
		calls = append(calls, framework.InOrg(l.eve, http.MethodPost, l.org, "/workspaces", map[string]string{"displayName": "late"}))
	} else {
		calls = append(calls, framework.InOrg(l.eve, http.MethodPatch, l.org, "", map[string]string{"defaultAccess": "view"}))
	}
	calls = append(calls, l.moreGrants(round)...)
	before := []call{
		framework.InOrg(l.eve, http.MethodPatch, l.org, "", map[string]string{"displayName": fmt.Sprint("round ", round)}),
		framework.InWorkspace(l.eve, http.MethodPatch, l.org, l.workspace, "/serviceaccounts/"+l.bot, map[string]string{"displayName": fmt.Sprint("round ", round)}),
	}
	rand.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	return append(before, calls...)
}

// settled sends a call of the owner until the hub has carried it out or refuses it. On a machine that
// stalls, kcp can be out of reach for a moment, and a change can outlast its request.
func (l grantLane) settled(hub *framework.Hub, c call) (a framework.Answer, err error) {
	err = framework.Wait(framework.Long, func() error {
		if a, err = hub.Try(c); err == nil && (a.Code == http.StatusServiceUnavailable || a.Code == http.StatusAccepted) {
			return fmt.Errorf("%s %s as %s: %d %s", c.Method, c.Path, c.As, a.Code, a.Raw)
		}
		return err
	})
	return a, err
}

// do is settled for a call that has to succeed.
func (l grantLane) do(c call, codes ...int) error {
	a, err := l.settled(l.hubs[0], c)
	if err == nil && !slices.Contains(codes, a.Code) {
		err = fmt.Errorf("%s %s as %s: %d %s", c.Method, c.Path, c.As, a.Code, a.Raw)
	}
	return err
}

// prepare gives eve her role and takes what she gave to others.
func (l *grantLane) prepare(t testing.TB) error {
	now, err := l.given(t)
	if err != nil {
		return err
	}
	undo := []error{
		l.do(framework.InOrg(l.owner, http.MethodDelete, l.org, "/members/"+l.friend+"?cascade=true", nil), 204, 404),
		l.do(framework.InWorkspace(l.owner, http.MethodDelete, l.org, l.workspace, "/members/"+l.friend, nil), 204, 404),
		l.do(framework.InWorkspace(l.owner, http.MethodPatch, l.org, l.workspace, "/members/"+l.pal, framework.WithRole("member")), 200),
		l.do(framework.InWorkspace(l.owner, http.MethodPatch, l.org, l.workspace, "/serviceaccounts/"+l.bot, framework.WithRole("member")), 200),
		l.do(framework.InWorkspace(l.owner, http.MethodDelete, l.org, l.workspace, "/serviceaccounts/"+l.bot+"/tokens", nil), 204),
		l.do(framework.InOrg(l.owner, http.MethodPatch, l.org, "", map[string]string{"defaultAccess": "none"}), 200),
		l.do(framework.InOrg(l.owner, http.MethodPost, l.org, "/members", framework.Adding(l.eve, "admin")), 200, 201),
	}
	for what := range now {
		if bot, ok := strings.CutPrefix(what, "bot "); ok && bot != l.bot {
			undo = append(undo, l.do(framework.InWorkspace(l.owner, http.MethodDelete, l.org, l.workspace, "/serviceaccounts/"+bot, nil), 204, 404))
		}
	}
	if err := errors.Join(append(undo, l.undoMore(now)...)...); err != nil {
		return err
	}
	issued, err := l.settled(l.hubs[0], framework.InWorkspace(l.owner, http.MethodPost, l.org, l.workspace, "/serviceaccounts/"+l.bot+"/tokens", map[string]any{}))
	if l.token = issued.Text("id"); err == nil && issued.Code != http.StatusCreated {
		err = fmt.Errorf("a token to rotate: %d %s", issued.Code, issued.Raw)
	}
	if err != nil {
		return err
	}
	// Both hubs know that eve is an admin, or nothing of hers would be on its way.
	for _, hub := range l.hubs {
		if err := framework.Wait(framework.Long, func() error {
			a, err := hub.Try(framework.InOrg(l.eve, http.MethodGet, l.org, "", nil))
			if err == nil && a.Text("role") != "admin" {
				err = fmt.Errorf("eve is no admin yet: %s", a.Raw)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// race removes eve while her grants are on their way, and returns the number of her grants that
// were answered with success.
func (l grantLane) race(t testing.TB, round int, codes *tally) (granted int, err error) {
	var after given
	var removal framework.Answer
	var taken error
	var racing sync.WaitGroup
	answers := make([]framework.Answer, 0, 16)
	var mu sync.Mutex
	var failed []error
	// The removal begins after as many of eve's answers as the round says.
	begin := make(chan struct{})
	var once sync.Once
	wait := round % 5
	calls := l.grants(round)
	if wait == 0 {
		once.Do(func() { close(begin) })
	}
	for i, c := range calls {
		racing.Go(func() {
			a, err := l.hubs[i%len(l.hubs)].Try(c)
			mu.Lock()
			defer mu.Unlock()
			answers = append(answers, a)
			if len(answers) >= wait {
				once.Do(func() { close(begin) })
			}
			if codes.add(fmt.Sprint(a.Code)); err != nil || a.Code >= 500 && a.Code != http.StatusServiceUnavailable {
				failed = append(failed, fmt.Errorf("%s %s: %w, %d %s", c.Method, c.Path, err, a.Code, a.Raw))
			}
		})
	}
	racing.Go(func() {
		<-begin
		removal, taken = l.settled(l.hubs[(round/2)%len(l.hubs)], framework.InOrg(l.owner, http.MethodDelete, l.org, "/members/"+l.eve+"?cascade=true", nil))
		if taken == nil && (removal.Code == http.StatusNoContent || removal.Code == http.StatusNotFound) {
			after, taken = l.given(t)
		}
	})
	racing.Wait()
	if err := errors.Join(append(failed, taken)...); err != nil {
		return 0, err
	}
	// A repeated removal finds nobody.
	if removal.Code != http.StatusNoContent && removal.Code != http.StatusNotFound {
		return 0, fmt.Errorf("the removal: %d %s", removal.Code, removal.Raw)
	}
	for _, a := range answers {
		if a.Code < http.StatusMultipleChoices {
			granted++
		}
	}
	var end given
	if err := framework.Wait(framework.Long, func() (err error) {
		if end, err = l.given(t); err == nil && end["pending"] != "" {
			err = fmt.Errorf("%s changes are pending", end["pending"])
		}
		return err
	}); err != nil {
		return 0, err
	}
	for what, gives := range end {
		if has, ok := after[what]; !ok || has != gives {
			return 0, fmt.Errorf("%s is %q, and was %q (%v) when the removal was answered", what, gives, has, ok)
		}
	}
	for what := range maps.Keys(end) {
		if strings.HasPrefix(what, "member ") && strings.HasSuffix(what, l.eve) {
			return 0, fmt.Errorf("eve is still here: %s", what)
		}
	}
	for _, a := range answers {
		if id := a.Text("id"); a.Code == http.StatusCreated && a.Text("token") != "" && after["token "+id] == "" {
			return 0, fmt.Errorf("the token %s was handed out after the removal", id)
		}
	}
	return granted, l.opensNothing()
}

// After the answer to the removal of an admin, on any hub, nothing that they granted takes effect:
// however long their requests were on their way, and wherever they were queued (tenancy.md, "A grant
// is judged at the moment it is written").
func TestGrants_ofARemovedAdminEndWithTheAnswerToTheRemoval(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	slow := framework.NewFaults(t, kcp)
	hubs := framework.StartHubs(t, slow.KCP, root, 2, func(o *server.Options) {
		o.DefaultWorkspaceQuota = 5000
		o.CI.Issuers = []string{jobsIssuer}
	})
	p := newPlatform(t, root)
	people := framework.People()
	framework.SignUp(t, hubs[0], people...)
	provider := globalProvider(t, p)
	var lanes []*grantLane
	for i := range 4 {
		l := &grantLane{p: p, hubs: hubs, provider: provider, owner: people[2*i], eve: people[2*i+1], friend: people[(2*i+2)%8], pal: people[(2*i+3)%8]}
		l.org = hubs[0].CreateOrg(t, l.owner, "ACME")
		made := hubs[0].CreateWorkspace(t, l.owner, l.org, "one")
		l.workspace, l.path, l.cluster = made.Text("uuid"), made.Text("workspacePath"), made.Text("clusterID")
		hubs[0].Do(t, framework.InWorkspace(l.owner, http.MethodPost, l.org, l.workspace, "/members", framework.Adding(l.pal, "member")), http.StatusCreated)
		l.bot = hubs[0].Do(t, framework.InWorkspace(l.owner, http.MethodPost, l.org, l.workspace, "/serviceaccounts", map[string]string{"displayName": "CI", "role": "member"}), http.StatusCreated).Text("uuid")
		l.offered(t)
		require.NoError(t, l.prepare(t))
		// The control: while eve is an admin, all that she grants is given.
		for _, c := range l.grants(i) {
			// An entry waits until the Workspace, which has just got a member, is Ready again.
			framework.Eventually(t, framework.Long, func() error {
				a, err := hubs[1].Try(c)
				return framework.Check(err == nil && a.Code < http.StatusMultipleChoices, "%s %s: %v %s", c.Method, c.Path, err, a.Raw)
			})
		}
		lanes = append(lanes, l)
	}
	slow.Intercept(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if r.Method != http.MethodGet {
			select {
			case <-time.After(time.Duration(rand.Int64N(int64(slowest)))):
			case <-r.Context().Done():
			}
		}
		forward.ServeHTTP(w, r)
	})
	n := rounds(t, 16)
	var next, granted atomic.Int64
	var codes tally
	var racing sync.WaitGroup
	began := time.Now()
	for _, l := range lanes {
		racing.Go(func() {
			for round := int(next.Add(1)) - 1; round < n && !t.Failed(); round = int(next.Add(1)) - 1 {
				err := l.prepare(t)
				won := 0
				if err == nil {
					won, err = l.race(t, round, &codes)
				}
				if err != nil {
					t.Errorf("round %d: %v", round, err)
					return
				}
				granted.Add(int64(won))
			}
		})
	}
	racing.Wait()
	slow.Intercept(nil)
	t.Logf("%d rounds in %s, answers: %s", n, time.Since(began).Round(time.Millisecond), &codes)
	require.Positive(t, granted.Load(), "some grants come before the removal")
	codes.mu.Lock()
	defer codes.mu.Unlock()
	require.Positive(t, codes.times["403"], "some grants come after it")
}
