package server

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	kcpapisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/health"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/storage"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

const jobs = "https://ci.example.com"

// history is a leader that records who has access, from heardAt on. Alice is admin of acme, bob a member of it and for an
// hour of its Workspace w1, for as long as that is there: two hours. In guild gail is a member by a group, and alice a viewer
// whom a group makes a member. The Bot b1 of w1 has a token ci, and one of a job.
type history struct {
	*kcpfake.Server
	clock *clocktesting.FakeClock
	past  *sql.DB
}

func newHistory(t *testing.T) *history {
	t.Helper()
	h := &history{Server: kcpfake.New(t), clock: clocktesting.NewFakeClock(heardAt())}
	slice := &kcpapisv1alpha1.APIExportEndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: tenancy.ExportTenancy}}
	slice.Status.APIExportEndpoints = []kcpapisv1alpha1.APIExportEndpoint{{URL: h.URL()}}
	h.Put("providers", slice)
	for _, o := range []placed{
		{usersCluster, person("alice")}, {usersCluster, person("bob")}, {usersCluster, inGroups(0, "kedge:dev")},
		{orgsCluster, sharing(v1alpha1.DefaultAccessNone)}, {orgsCluster, own("acme", acmeCluster)}, {acmeCluster, shortLived()},
		{orgsCluster, mapping("guild")}, {orgsCluster, own("guild", "c-guild")},
		{acmeCluster, tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin)},
		{acmeCluster, tenancy.NewMembership("bob", "", v1alpha1.RoleMember)}, {acmeCluster, guest()},
		{"c-guild", byGroup()}, {"c-guild", alsoByGroup()}, {acmeCluster, worker()},
	} {
		h.Put(o.cluster, o.Object)
	}
	registry, clients, dir := prometheus.NewRegistry(), h.Clients(), t.TempDir()
	v, err := views.New(views.Config{
		Clusters: views.Clusters{Root: "root", Users: usersCluster, Orgs: orgsCluster, Providers: "providers"},
		Clients:  clients, Admin: clients, Clock: h.clock, Metrics: registry,
	})
	require.NoError(t, err)
	a := &assembly{views: v, hub: &hub{registry: registry, checks: health.NewChecks()}}
	a.hub.config = verifying(t, func(o *Options) { o.Clock, o.CI.Issuers = h.clock, []string{jobs} })
	a.hub.storage, err = storage.NewMonitor(registry)
	require.NoError(t, err)
	url := records.DefaultURL(dir)
	a.hub.records, err = records.Open(records.Options{URL: url})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, a.hub.records.Close()) })
	h.past, err = sql.Open("sqlite", "file:"+strings.TrimPrefix(url, "sqlite:")+"?_pragma=busy_timeout(5000)")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, h.past.Close()) })

	accessed := a.access()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	running.Go(func() { v.Run(ctx) })
	running.Go(func() { accessed.Run(ctx) })
	return h
}

// after is the time so long after heardAt.
func after(d time.Duration) *metav1.Time {
	at := metav1.NewTime(heardAt().Add(d))
	return &at
}

// sharing is acme with access of its members to each Workspace.
func sharing(to v1alpha1.DefaultAccess) *v1alpha1.Organization {
	o := org("acme", "alice")
	o.Spec.DefaultAccess = to
	return o
}

// shortLived is the Workspace w1.
func shortLived() *kcptenancyv1alpha1.Workspace {
	return annotated(child("w1"), v1alpha1.ExpiresAtAnnotation, tenancy.ExpiryText(after(2*time.Hour)))
}

func guest() *v1alpha1.Membership {
	m := withRoles(tenancy.NewMembership("bob", "w1", v1alpha1.RoleMember), "auditor")
	m.Spec.ExpiresAt = after(time.Hour)
	return m
}

func alsoByGroup() *v1alpha1.Membership {
	m := tenancy.NewMembership("alice", "", v1alpha1.RoleViewer)
	m.Spec.Extra = byGroup().Spec.Extra
	return m
}

// worker is the Bot b1.
func worker() *v1alpha1.Bot {
	b := tenancy.NewBot("b1", "w1", "Worker", v1alpha1.RoleMember, "alice", "")
	b.Spec.Trust = []v1alpha1.BotTrust{{ID: "r1", Issuer: jobs, Claims: map[string]v1alpha1.TrustedValue{"ref": "main"}}}
	b.Spec.Tokens = []v1alpha1.BotToken{
		{ID: "ci", SecretUID: "1", CreatedAt: *after(0), ExpiresAt: *after(9 * time.Hour)},
		{ID: "job", SecretUID: "2", CreatedAt: *after(0), ExpiresAt: *after(9 * time.Hour), Trust: "r1"},
	}
	b.Status.ServiceAccountUID, b.Status.ServiceAccountGeneration = "account", b.Spec.Generation
	return b
}

// intervals are what was recorded of a fact, with the times from heardAt on. What holds has no end.
func (h *history) intervals(k tenancy.FactKey) (all []string, err error) {
	rows, err := h.past.Query(`SELECT role, default_access, sources, valid_from, COALESCE(valid_to, '') FROM access_intervals
		WHERE kind = ? AND org = ? AND workspace = ? AND subject = ? AND token = ? ORDER BY valid_from`,
		k.Kind, k.Org, k.Workspace, k.Subject, k.Token)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	since := func(text string) any {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return ""
		}
		return at.Sub(heardAt()).Truncate(time.Second)
	}
	for rows.Next() {
		var role, access, sources, from, to string
		if err := rows.Scan(&role, &access, &sources, &from, &to); err != nil {
			return nil, err
		}
		all = append(all, strings.TrimSpace(fmt.Sprint(role, access, sources, " ", since(from), "-", since(to))))
	}
	return all, rows.Err()
}

func (h *history) await(t *testing.T, k tenancy.FactKey, want ...string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		found, err := h.intervals(k)
		assert.NoError(c, err)
		assert.Equal(c, want, found)
	}, 20*time.Second, 5*time.Millisecond, "%+v", k)
}

// puts returns a change of an object.
func puts(cluster string, o kcp.Object) func(*history) { return func(h *history) { h.Put(cluster, o) } }

func removes(cluster string, o kcp.Object) func(*history) {
	return func(h *history) { h.Remove(cluster, o) }
}

// Each thing that ends access ends the interval of what it followed from at that time, and the leader hears of it.
func TestAccess_endsAnIntervalWithEachFact(t *testing.T) {
	t.Parallel()
	acme, guild := orgFact("acme"), tenancy.NewMembership("gail", "", "")
	w1 := tenancy.FactKey{Kind: tenancy.FactWorkspace, Org: "acme", Workspace: "w1"}
	bot := botFacts("acme", worker())
	bob, inW1 := memberFact("acme", tenancy.NewMembership("bob", "", "")), memberFact("acme", guest())
	gone, deleted := sharing(v1alpha1.DefaultAccessNone), metav1.NewTime(heardAt())
	gone.Status.DeletionRequestedAt = &deleted
	going := tenancy.NewMembership("bob", "", v1alpha1.RoleMember)
	going.DeletionTimestamp, going.Finalizers = &deleted, []string{v1alpha1.CascadeFinalizer}
	ended := annotated(child("w1"), v1alpha1.DeletionRequestedAtAnnotation, tenancy.ExpiryText(&deleted))
	const minute, whole = "0s-1m0s", "0s-"
	for name, c := range map[string]struct {
		key    tenancy.FactKey
		holds  string
		in     time.Duration
		change func(*history)
		ends   string
		// then is what holds afterwards, if that is something.
		then string
	}{
		"a removal": {
			key: bob, holds: `member["hand"]`, change: removes(acmeCluster, tenancy.NewMembership("bob", "", "")),
		},
		"a removal that waits for a finalizer": {
			key: bob, holds: `member["hand"]`, change: puts(acmeCluster, going),
		},
		"another role": {
			key: bob, holds: `member["hand"]`, change: puts(acmeCluster, tenancy.NewMembership("bob", "", v1alpha1.RoleViewer)),
			then: `viewer["hand"] 1m0s-`,
		},
		"an expiry": {key: inW1, holds: `member["hand"]`, in: time.Hour, ends: "0s-1h0m0s"},
		"the end of a group": {
			key: memberFact("guild", guild), holds: `member["group:g1"]`, in: 24 * time.Hour, ends: "0s-24h0m0s",
		},
		"a group that is left": {
			key: memberFact("guild", guild), holds: `member["group:g1"]`, change: removes("c-guild", guild),
		},
		"the end of a group beside what was given by hand": {
			key: memberFact("guild", alsoByGroup()), holds: `member["hand","group:g1"]`, in: 24 * time.Hour, ends: "0s-24h0m0s",
			then: `viewer["hand"] 24h0m0s-`,
		},
		"a token that is revoked": {
			key: bot[1], change: puts(acmeCluster, changed(worker(), func(b *v1alpha1.Bot) { b.Spec.Tokens = b.Spec.Tokens[1:] })),
		},
		"a job that is not trusted any more": {
			key: bot[2], change: puts(acmeCluster, changed(worker(), func(b *v1alpha1.Bot) { b.Spec.Trust = nil })),
		},
		"all tokens of a bot": {
			key: bot[1], change: puts(acmeCluster, changed(worker(), func(b *v1alpha1.Bot) { b.Spec.Generation++ })),
		},
		"a bot that is deleted":           {key: bot[0], holds: "member", change: removes(acmeCluster, worker())},
		"the token of a bot that is gone": {key: bot[1], change: removes(acmeCluster, worker())},
		"access for all members": {
			key: acme, holds: "none", change: puts(orgsCluster, sharing(v1alpha1.DefaultAccessView)), then: "view 1m0s-",
		},
		"an organization that is soft-deleted": {key: acme, holds: "none", change: puts(orgsCluster, gone)},
		"an organization that is gone":         {key: acme, holds: "none", change: removes(orgsCluster, org("acme", "alice"))},
		"a member of an organization that is gone": {
			key: bob, holds: `member["hand"]`, change: removes(orgsCluster, org("acme", "alice")),
		},
		"a bot of an organization that is gone": {key: bot[0], holds: "member", change: removes(orgsCluster, org("acme", "alice"))},
		"a workspace that is soft-deleted":      {key: w1, change: puts(acmeCluster, ended)},
		"a workspace that is gone":              {key: w1, change: removes(acmeCluster, child("w1"))},
		"the end of a workspace":                {key: w1, in: 2 * time.Hour, ends: "0s-2h0m0s"},
		"a person who is deleted":               {key: userFact("bob"), change: removes(usersCluster, person("bob"))},
		"a person who is rejected": {
			key: userFact("bob"), change: puts(usersCluster, changed(person("bob"), func(u *v1alpha1.User) {
				u.Spec.Registration = v1alpha1.RegistrationRejected
			})),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t)
			text := func(times string) string { return strings.TrimSpace(c.holds + " " + times) }
			h.await(t, c.key, text(whole))
			if c.change != nil {
				h.clock.Step(time.Minute)
				c.change(h)
				c.ends = minute
			}
			h.clock.Step(c.in)
			want := []string{text(c.ends)}
			if c.then != "" {
				want = append(want, c.then)
			}
			h.await(t, c.key, want...)
		})
	}
}

func TestAccess_recordsWhatIsTakenBack(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	acme := orgFact("acme")
	h.await(t, acme, "none 0s-")
	h.clock.Step(time.Minute)
	h.Put(orgsCluster, sharing(v1alpha1.DefaultAccessView))
	h.await(t, acme, "none 0s-1m0s", "view 1m0s-")
	h.clock.Step(time.Minute)
	h.Put(orgsCluster, sharing(v1alpha1.DefaultAccessNone))
	h.await(t, acme, "none 0s-1m0s", "view 1m0s-2m0s", "none 2m0s-")
}

// A new leader compares the records with what is listed.
func TestAccessFacts_listsWhatThereIs(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	facts := accessFacts{views: p.v}
	found := map[string]bool{}
	for _, k := range facts.Keys() {
		if _, is := facts.Fact(k); is && k.Org != sentinel && k.Subject != sentinel {
			found[strings.Join(strings.Fields(fmt.Sprint(k.Kind, " ", k.Org, " ", k.Workspace, " ", k.Subject, " ", k.Token)), " ")] = true
		}
	}
	want := map[string]bool{}
	for _, key := range []string{
		"user alice", "user bob", "user gail", "org acme", "org home", "org shop", "org old", "org guild",
		"workspace acme w1", "workspace acme w2", "workspace home w3", "workspace shop w4",
		"member acme alice", "member acme bob", "member acme w1 bob", "member home bob", "member old erin", "member old frank",
		"member guild gail", "bot home w3 b1",
	} {
		want[key] = true
	}
	require.Equal(t, want, found)
}
