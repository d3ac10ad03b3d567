package records_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const org = "acme"

// present are the facts that there are.
type present struct {
	mu   sync.Mutex
	held map[tenancy.FactKey]tenancy.AccessFact
	full error
	// listed is called, once, when all keys were listed.
	listed func()
}

// newPresent has an Organization with two Workspaces and three people who are in nothing.
func newPresent() *present {
	p := &present{held: map[tenancy.FactKey]tenancy.AccessFact{}}
	p.put(orgKey(), &tenancy.AccessFact{Name: "ACME", DefaultAccess: v1alpha1.DefaultAccessNone})
	for _, ws := range []string{"web", "shop"} {
		p.put(wsKey(ws), &tenancy.AccessFact{Name: ws})
	}
	for _, user := range []string{"alice", "bob", "carol"} {
		p.put(userKey(user), &tenancy.AccessFact{})
	}
	return p
}

func orgKey() tenancy.FactKey { return tenancy.FactKey{Kind: tenancy.FactOrg, Org: org} }

func wsKey(ws string) tenancy.FactKey {
	return tenancy.FactKey{Kind: tenancy.FactWorkspace, Org: org, Workspace: ws}
}

func userKey(name string) tenancy.FactKey {
	return tenancy.FactKey{Kind: tenancy.FactUser, Subject: name}
}

func memberKey(ws, user string) tenancy.FactKey {
	return tenancy.FactKey{Kind: tenancy.FactMember, Org: org, Workspace: ws, Subject: user}
}

func (p *present) Fact(k tenancy.FactKey) (tenancy.AccessFact, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, ok := p.held[k]
	return f, ok
}

func (p *present) Keys() []tenancy.FactKey {
	p.mu.Lock()
	keys, listed := slices.Collect(maps.Keys(p.held)), p.listed
	p.listed = nil
	p.mu.Unlock()
	if listed != nil {
		listed()
	}
	return keys
}

func (p *present) room() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.full
}

func (p *present) fill(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full = err
}

// put changes a fact, or removes it if it is nil, and tells those who record it.
func (p *present) put(k tenancy.FactKey, f *tenancy.AccessFact, told ...*records.Access) {
	p.mu.Lock()
	if f == nil {
		delete(p.held, k)
	} else {
		p.held[k] = *f
	}
	p.mu.Unlock()
	for _, a := range told {
		a.Changed(k)
	}
}

// snapshot is who has access now, by the same rules.
func (p *present) snapshot(workspace string, at time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var facts []tenancy.HeldFact
	for k, f := range p.held {
		if _, acts := p.held[userKey(k.Subject)]; k.Kind != tenancy.FactMember || acts {
			facts = append(facts, tenancy.HeldFact{FactKey: k, AccessFact: f})
		}
	}
	_, holders := tenancy.HoldersAt(facts, org, workspace, at)
	return texts(holders)
}

// texts say what each Holder has, without since when.
func texts(holders []tenancy.Holder) []string {
	all := []string{}
	for _, h := range holders {
		text := fmt.Sprint(h.Workspace, " ", h.User, h.Bot, " ", h.Name, " ", h.Role, " ", h.Sudo, h.Manager, h.Roles)
		for _, s := range slices.Concat(h.Through, h.EveryWorkspace) {
			text += fmt.Sprint(" ", s.Source, s.Sources, s.ExpiresAt)
		}
		for _, t := range h.Tokens {
			text += fmt.Sprint(" ", t.ID, t.Name, t.ExpiresAt)
		}
		all = append(all, text)
	}
	return all
}

// watching runs an Access until the test or the returned func ends it.
func watching(t *testing.T, db *records.DB, p *present, retention time.Duration) (*records.Access, func()) {
	t.Helper()
	a := records.NewAccess(db, p, clock.RealClock{}, retention, p.room)
	return a, running(t, a)
}

// running runs an Access until the test or the returned func ends it.
func running(t *testing.T, a *records.Access) func() {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.Run(ctx)
	}()
	stop := func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return stop
}

// pastReader reads what is recorded.
func pastReader(t *testing.T, db *records.DB) *records.Reader {
	t.Helper()
	return records.NewReader(db, start(t, db, t.TempDir()).shipper)
}

// holdersAt waits until the records say who had access at a moment.
func holdersAt(t *testing.T, r *records.Reader, workspace string, at time.Time, want []string) (past tenancy.PastAccess) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var err error
		past, err = r.AccessAt(t.Context(), org, workspace, at)
		assert.NoError(c, err)
		assert.Equal(c, want, texts(past.Holders))
	}, 20*time.Second, 20*time.Millisecond)
	return past
}

func TestAccess_ofARandomHistoryEqualsTheSnapshots(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		random := rand.New(rand.NewPCG(1, 2)) // the same history each time
		p, db := newPresent(), open(t, url)
		p.put(memberKey("", "alice"), &tenancy.AccessFact{Role: v1alpha1.RoleAdmin, Sources: `["hand"]`})
		a, _ := watching(t, db, p, 0)
		r := pastReader(t, db)
		holdersAt(t, r, "", time.Now().Add(time.Minute), p.snapshot("", time.Now()))
		soon := time.Now().Add(time.Second).UTC().Format(time.RFC3339)
		facts := func(k tenancy.FactKey) *tenancy.AccessFact {
			if random.IntN(3) == 0 {
				return nil
			}
			role := v1alpha1.Roles()[random.IntN(3)]
			switch k.Kind {
			case tenancy.FactUser, tenancy.FactWorkspace:
				return &tenancy.AccessFact{}
			case tenancy.FactOrg:
				return &tenancy.AccessFact{DefaultAccess: []v1alpha1.DefaultAccess{v1alpha1.DefaultAccessNone, v1alpha1.DefaultAccessView}[random.IntN(2)]}
			case tenancy.FactToken:
				return &tenancy.AccessFact{Name: "laptop", ExpiresAt: soon}
			case tenancy.FactBot:
				return &tenancy.AccessFact{Name: "CI", Role: role}
			case tenancy.FactMember:
			}
			f := &tenancy.AccessFact{Role: role, Sources: `["hand"]`}
			if k.Workspace != "" {
				f.Sudo, f.Manager, f.Roles = random.IntN(2) == 0, random.IntN(2) == 0, `[{"name":"dev","namespace":"web"}]`
			}
			if random.IntN(4) == 0 {
				f.ExpiresAt = soon
			}
			return f
		}
		type snapshot struct {
			at   time.Time
			want map[string][]string
		}
		var taken []snapshot
		bot := tenancy.FactKey{Kind: tenancy.FactBot, Org: org, Workspace: "web", Subject: "b1"}
		token := bot
		token.Kind, token.Token = tenancy.FactToken, "t1"
		for range 10 {
			for range 30 {
				k := memberKey([]string{"", "web", "shop"}[random.IntN(3)], []string{"alice", "bob", "carol"}[random.IntN(3)])
				switch random.IntN(12) {
				case 0:
					k = orgKey()
				case 1:
					k = wsKey([]string{"web", "shop"}[random.IntN(2)])
				case 2:
					k = userKey(k.Subject)
				case 3:
					k = bot
				case 4:
					k = token
				}
				p.put(k, facts(k), a)
			}
			// Most moments are without an end of everything.
			p.put(orgKey(), &tenancy.AccessFact{DefaultAccess: v1alpha1.DefaultAccessView}, a)
			s := snapshot{at: time.Now().Add(time.Millisecond), want: map[string][]string{}}
			for _, ws := range []string{"", "web", "shop"} {
				s.want[ws] = p.snapshot(ws, s.at)
			}
			taken = append(taken, s)
			require.Eventually(t, func() bool { return time.Now().After(s.at) }, time.Second, time.Millisecond)
		}
		for _, s := range taken {
			for ws, want := range s.want {
				past := holdersAt(t, r, ws, s.at, want)
				require.False(t, past.Since.After(s.at))
			}
		}
	})
}

// What ended while nobody looked ends when it was last seen, and the records say so.
func TestAccess_thatEndedUnseenEndsWhenItWasLastSeen(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		p, db := newPresent(), open(t, url)
		admin, member := &tenancy.AccessFact{Role: v1alpha1.RoleAdmin}, &tenancy.AccessFact{Role: v1alpha1.RoleMember}
		p.put(memberKey("", "alice"), admin)
		p.put(memberKey("", "bob"), member)
		p.put(memberKey("", "carol"), member)
		before := time.Now().Add(-time.Second)
		_, stop := watching(t, db, p, 0)
		r := pastReader(t, db)
		three := p.snapshot("", before)
		require.Len(t, three, 3)
		holdersAt(t, r, "", time.Now().Add(time.Minute), three)
		stop()
		past, err := r.AccessAt(t.Context(), org, "", time.Now())
		require.NoError(t, err)
		last := past.AsOf
		require.Equal(t, three, texts(past.Holders))

		// Bob is removed and carol becomes admin while nobody looks.
		p.put(memberKey("", "bob"), nil)
		p.put(memberKey("", "carol"), admin)
		gap := time.Now().Add(time.Millisecond)
		require.Eventually(t, func() bool { return time.Now().After(gap) }, time.Second, time.Millisecond)
		again, _ := watching(t, db, p, 0)
		holdersAt(t, r, "", time.Now().Add(time.Minute), p.snapshot("", before))
		past, err = r.AccessAt(t.Context(), org, "", gap)
		require.NoError(t, err)
		require.Equal(t, last, past.AsOf, "nobody looked then")
		require.Len(t, past.Holders, 1, "who was the same before and after")
		past = holdersAt(t, r, "", last.Add(-time.Microsecond), three)
		require.Equal(t, last.Add(-time.Microsecond), past.AsOf)
		var unseen int
		require.NoError(t, raw(t, url).QueryRow("SELECT count(*) FROM access_intervals WHERE unseen AND valid_to <= '"+last.Format("2006-01-02T15:04:05.000000Z07:00")+"'").Scan(&unseen))
		require.Equal(t, 2, unseen)

		// Before the first record nothing is known.
		past, err = r.AccessAt(t.Context(), org, "", before)
		require.NoError(t, err)
		require.True(t, past.AsOf.IsZero())
		require.False(t, past.Since.IsZero() || past.Active)
		require.Empty(t, past.Holders)

		// What changes while the database takes nothing has its time afterwards.
		p.fill(errors.New("no room"))
		p.put(memberKey("", "carol"), nil, again)
		without, moment := p.snapshot("", before), time.Now().Add(time.Millisecond)
		require.Eventually(t, func() bool { return time.Now().After(moment) }, time.Second, time.Millisecond)
		p.put(memberKey("", "carol"), member, again)
		p.fill(nil)
		holdersAt(t, r, "", time.Now().Add(time.Minute), p.snapshot("", before))
		holdersAt(t, r, "", moment, without)

		// An Organization that is removed ends what is known of it.
		for _, k := range p.Keys() {
			if k.Org == org {
				p.put(k, nil)
			}
		}
		again.OrgChanged(org)
		require.Eventually(t, func() bool {
			past, err = r.AccessAt(t.Context(), org, "", time.Now().Add(time.Minute))
			return err == nil && !past.Active
		}, 20*time.Second, 20*time.Millisecond)
	})
}

func TestAccess_isRemovedAfterItsRetention(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		p, db := newPresent(), open(t, url)
		p.put(memberKey("", "alice"), &tenancy.AccessFact{Role: v1alpha1.RoleAdmin})
		a, stop := watching(t, db, p, 0)
		r, own := pastReader(t, db), raw(t, url)
		one := p.snapshot("", time.Now())
		first := holdersAt(t, r, "", time.Now().Add(time.Minute), one)
		p.put(memberKey("", "alice"), &tenancy.AccessFact{Role: v1alpha1.RoleMember}, a)
		holdersAt(t, r, "", time.Now().Add(time.Minute), p.snapshot("", time.Now()))
		stop()
		_, _ = watching(t, db, p, time.Nanosecond)
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			var n int
			assert.NoError(c, own.QueryRow("SELECT count(*) FROM access_intervals WHERE valid_to IS NOT NULL").Scan(&n))
			assert.Zero(c, n)
		}, 20*time.Second, 20*time.Millisecond)
		past, err := r.AccessAt(t.Context(), org, "", first.AsOf)
		require.NoError(t, err)
		require.True(t, past.AsOf.IsZero() && past.Since.After(first.AsOf), "nothing is known of what was removed")
		require.Len(t, holdersAt(t, r, "", time.Now().Add(time.Minute), p.snapshot("", time.Now())).Holders, 1)
	})
}

// Tables that were dropped get everything again.
func TestAccess_isRecordedAgainAfterItsTableWasDropped(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		p, db := newPresent(), open(t, url)
		p.put(memberKey("", "alice"), &tenancy.AccessFact{Role: v1alpha1.RoleAdmin})
		a, _ := watching(t, db, p, 0)
		r := pastReader(t, db)
		holdersAt(t, r, "", time.Now().Add(time.Minute), p.snapshot("", time.Now()))
		_, err := raw(t, url).Exec("DROP TABLE access_intervals")
		require.NoError(t, err)
		p.put(memberKey("", "bob"), &tenancy.AccessFact{Role: v1alpha1.RoleMember}, a)
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			past, err := r.AccessAt(t.Context(), org, "", time.Now().Add(time.Minute))
			assert.NoError(c, err)
			assert.Equal(c, p.snapshot("", time.Now()), texts(past.Holders))
		}, time.Minute, 20*time.Millisecond)
	})
}

// A fact that appears while the present is compared with the rows is recorded, and does not wait for that: it is in no list
// yet.
func TestAccess_recordsWhatAppearsDuringTheComparison(t *testing.T) {
	t.Parallel()
	p, db := newPresent(), open(t, records.DefaultURL(t.TempDir()))
	a := records.NewAccess(db, p, clock.RealClock{}, 0, p.room)
	p.listed = func() {
		told := make(chan struct{})
		go func() {
			defer close(told)
			p.put(memberKey("", "alice"), &tenancy.AccessFact{Role: v1alpha1.RoleAdmin}, a)
		}()
		select {
		case <-told:
		case <-time.After(10 * time.Second):
			assert.Fail(t, "the change waits for the comparison")
		}
	}
	running(t, a)
	want := newPresent()
	want.put(memberKey("", "alice"), &tenancy.AccessFact{Role: v1alpha1.RoleAdmin})
	holdersAt(t, pastReader(t, db), "", time.Now().Add(time.Minute), want.snapshot("", time.Now()))
}
