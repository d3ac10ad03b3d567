package bots_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/bots"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// exchange is a world with the jobs that come to it.
type exchange struct {
	*world
	org     tenancy.Org
	used    map[string]bool
	events  []audit.Event
	refused []map[string]string
	// unaudited is the error of the audit log.
	unaudited error
	// full is the error of the store that has no room.
	full error
}

func newExchange(t *testing.T) *exchange {
	w := newWorld(t)
	w.trust("rule")
	w.becomesReady = true
	x := &exchange{world: w, used: map[string]bool{}}
	x.org, _ = w.Org(apitest.Acme)
	return x
}

func (x *exchange) BotNamed(uuid string) (*v1alpha1.Bot, tenancy.Org, bool) {
	b, ok := x.held[uuid]
	return b, x.org, ok
}

func (x *exchange) UseSubjectToken(_ context.Context, id string, _ time.Time) error {
	if x.used[id] {
		return errs.New(errs.Conflict, "used")
	}
	x.used[id] = true
	return x.step("use")
}

func (x *exchange) ReleaseSubjectToken(_ context.Context, id string) error {
	delete(x.used, id)
	return x.step("release")
}

func (x *exchange) job(id string) tenancy.Workload {
	return tenancy.Workload{
		Issuer: github, Audience: []string{apitest.HubURL}, ExpiresAt: apitest.Epoch().Add(5 * time.Minute), ID: id,
		Claims: map[string]string{"sub": "repo:octo/app", "repository_id": "42"},
	}
}

func (x *exchange) issue(job tenancy.Workload, bot string) (string, time.Time, error) {
	return (&bots.Exchange{
		Views: x, Store: x, Used: x, Tokens: x, Metrics: x.counted, NewUUID: func() string { return next }, Clock: clocktesting.NewFakePassiveClock(apitest.Epoch().Time),
		Audit: func(_ context.Context, e audit.Event) error {
			if x.unaudited == nil {
				x.events = append(x.events, e)
			}
			return x.unaudited
		},
		Room:        func() error { return x.full },
		Refused:     func(_ *v1alpha1.Bot, refusals map[string]string) { x.refused = append(x.refused, refusals) },
		ExternalURL: apitest.HubURL, WriteTimeout: time.Second, FollowTimeout: 20 * time.Millisecond,
	}).Issue(x.t.Context(), bot, job, "octo/app run 7")
}

func TestExchange_givesATokenToATrustedJob(t *testing.T) {
	t.Parallel()
	x := newExchange(t)
	token, until, err := x.issue(x.job("one"), ci)
	require.NoError(t, err)
	require.Equal(t, "hush-"+next, token)
	require.Equal(t, apitest.Epoch().Add(15*time.Minute), until.UTC(), "ten minutes after the job's own")
	held := x.held[ci].Spec.Tokens[0]
	require.Equal(t, "octo/app run 7", held.Name)
	require.Equal(t, "rule", held.Trust)
	require.Equal(t, "secret-of-"+next, held.SecretUID)
	require.True(t, until.Equal(held.ExpiresAt.Time))
	require.Equal(t, []string{"use", "amend", "issue", "amend"}, x.did)
	require.Len(t, x.events, 2)
	for _, e := range x.events {
		require.Equal(t, apitest.Acme, e.Org)
		require.Equal(t, apitest.Dev, e.Workspace)
		require.Equal(t, audit.Actor{Kind: audit.ActorBot, Bot: ci, Token: next}, e.Actor)
		require.Equal(t, "rule", e.Facts.Trust)
		require.Equal(t, "repo:octo/app", e.Facts.Subject)
		require.Equal(t, "one", e.Facts.JobToken, "a restored hub must not take it again")
		require.True(t, x.job("one").ExpiresAt.Equal(*e.Facts.JobTokenExpiresAt))
	}
}

// A token is a Secret in the Workspace and a row of the Bot: it grows the store.
func TestExchange_makesNothingInAFullStore(t *testing.T) {
	t.Parallel()
	x := newExchange(t)
	x.full = errs.New(errs.InsufficientStorage, "full")
	_, _, err := x.issue(x.job("one"), ci)
	require.ErrorIs(t, err, x.full)
	require.Empty(t, x.did)
	require.Len(t, x.events, 1)
	require.Equal(t, http.StatusInsufficientStorage, x.events[0].Code)
	x.full = nil
	_, _, err = x.issue(x.job("one"), ci)
	require.NoError(t, err, "the token of the job was not used up")
}

// kcp issues no token for less than ten minutes; the hub refuses it earlier.
func TestExchange_listsTheEndThatKcpDoesNotGive(t *testing.T) {
	t.Parallel()
	x := newExchange(t)
	w := x.job("one")
	w.ExpiresAt = apitest.Epoch().Add(-5 * time.Minute)
	_, until, err := x.issue(w, ci)
	require.NoError(t, err)
	require.Equal(t, apitest.Epoch().Add(5*time.Minute), until.UTC())
}

func TestExchange_refusesAllAlike(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit     func(*exchange, *tenancy.Workload)
		bot      string
		mismatch map[string]string
		reason   string
		events   int
	}{
		"an unknown bot":          {bot: next},
		"an issuer without rules": {edit: func(_ *exchange, w *tenancy.Workload) { w.Issuer = "https://gitlab.example.com" }},
		"another repository": {
			edit: func(_ *exchange, w *tenancy.Workload) { w.Claims["repository_id"] = "43" }, mismatch: map[string]string{"rule": "repository_id"}, events: 1,
		},
		"another audience": {edit: func(_ *exchange, w *tenancy.Workload) { w.Audience = []string{"x"} }, mismatch: map[string]string{"rule": "aud"}, events: 1},
		"a pull request": {
			edit: func(_ *exchange, w *tenancy.Workload) { w.Claims["event_name"] = "pull_request_target" }, mismatch: map[string]string{"rule": "event_name"}, events: 1,
		},
		"a deleted organization": {edit: func(x *exchange, _ *tenancy.Workload) {
			o, now := x.org.Organization.DeepCopy(), apitest.Epoch()
			o.Status.DeletionRequestedAt = &now
			x.org.Organization = o
		}, reason: "workspace", events: 1},
		"a replay":     {edit: func(x *exchange, w *tenancy.Workload) { x.used[w.ID] = true }, reason: "replayed", events: 2},
		"a full house": {edit: func(x *exchange, _ *tenancy.Workload) { x.jobs(tenancy.MaxTrustedTokens) }, reason: "quota", events: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newExchange(t)
			w, bot := x.job("one"), ci
			if c.edit != nil {
				c.edit(x, &w)
			}
			if c.bot != "" {
				bot = c.bot
			}
			token, _, err := x.issue(w, bot)
			require.ErrorIs(t, err, tenancy.ErrNotTrusted)
			require.Equal(t, tenancy.ErrNotTrusted.Error(), err.Error(), "one text")
			require.Empty(t, token)
			require.NotContains(t, x.did, "issue")
			require.Len(t, x.events, c.events)
			if c.events > 0 {
				last := x.events[c.events-1]
				require.Equal(t, audit.StageOutcome, last.Stage)
				require.Equal(t, c.mismatch, last.Facts.Mismatch)
				require.Equal(t, c.reason, last.Facts.Reason)
				require.Equal(t, c.events == 1, last.Unchanged, "without an intent")
			}
			require.Equal(t, c.mismatch != nil, len(x.refused) == 1)
		})
	}
}

// jobs gives the Bot ci living tokens of jobs.
func (x *exchange) jobs(n int) {
	b := x.held[ci].DeepCopy()
	for range n {
		t := v1alpha1.BotToken{ID: "x", Trust: "rule", SecretUID: "s", CreatedAt: apitest.Epoch(), ExpiresAt: apitest.Epoch()}
		t.ExpiresAt.Time = t.ExpiresAt.Add(time.Hour)
		b.Spec.Tokens = append(b.Spec.Tokens, t)
	}
	x.held[ci] = b
}

// The cache still has a rule that kcp does not have any more.
func TestExchange_refusesByTheRulesThatKcpHas(t *testing.T) {
	t.Parallel()
	x := newExchange(t)
	x.failing = func(step string) error {
		if step == "use" {
			b := x.held[ci].DeepCopy()
			tenancy.RemoveTrust(b, "rule")
			x.held[ci] = b
		}
		return nil
	}
	_, _, err := x.issue(x.job("one"), ci)
	require.ErrorIs(t, err, tenancy.ErrNotTrusted)
	require.NotContains(t, x.did, "issue")
	require.Empty(t, x.used, "the job got nothing")
}

func TestExchange_leavesNothingWhenItFails(t *testing.T) {
	t.Parallel()
	x := newExchange(t)
	x.failing = func(step string) error {
		if step == "issue" {
			return errs.New(errs.Unavailable, "kcp is down")
		}
		return nil
	}
	_, _, err := x.issue(x.job("one"), ci)
	require.True(t, errs.Is(err, errs.Unavailable))
	require.Empty(t, x.tokens())
	require.Contains(t, x.did, "discard "+next)
	x.failing = nil
	_, _, err = x.issue(x.job("one"), ci)
	require.NoError(t, err, "the same job tries again")
}

func TestExchange_needsTheAuditLog(t *testing.T) {
	t.Parallel()
	x := newExchange(t)
	x.unaudited = errors.New("the disk is full")
	_, _, err := x.issue(x.job("one"), ci)
	require.True(t, errs.Is(err, errs.Unavailable))
	require.Empty(t, x.did)
}

func TestRefusals_areWrittenOnceASecondForEachRule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.trust("rule")
	w.trust("rule of another issuer")
	k := clocktesting.NewFakeClock(apitest.Epoch().Time)
	written := make(chan *v1alpha1.Bot, 10)
	var tries atomic.Int32
	f := bots.NewRefusals(changer{w, written, func() bool { return tries.Add(1) == 1 }}, k)
	for _, claim := range []string{"ref", "repository_id"} {
		f.Record(w.held[ci], map[string]string{"rule": claim})
	}
	f.Record(w.held[ci], map[string]string{"rule of another issuer": "project_id"})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { f.Run(ctx); close(ended) }()
	require.Eventually(t, k.HasWaiters, time.Second, time.Millisecond)
	k.Step(time.Second)
	<-written
	require.Eventually(t, func() bool {
		k.Step(time.Second)
		return len(written) > 0
	}, 5*time.Second, time.Millisecond, "a write that fails is made again")
	b := <-written
	require.Equal(t, "repository_id", b.Status.Trust[0].LastRefusal.Claim, "the last one")
	require.Equal(t, "project_id", b.Status.Trust[1].LastRefusal.Claim)
	stop()
	<-ended
	require.Empty(t, written)
}

// changer hands over what is written.
type changer struct {
	*world
	written chan *v1alpha1.Bot
	// fails reports whether a write fails; nil means that none does.
	fails func() bool
}

func (c changer) ChangeBot(ctx context.Context, held *v1alpha1.Bot, _ func(string) error, edit func(context.Context, *v1alpha1.Bot) error) (*v1alpha1.Bot, error) {
	b := held.DeepCopy()
	err := edit(ctx, b)
	c.written <- b
	if c.fails != nil && c.fails() {
		err = errors.New("kcp is down")
	}
	return b, err
}
