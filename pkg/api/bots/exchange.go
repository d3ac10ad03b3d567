package bots

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// exchangeAction is the action of an exchange in the audit log.
const exchangeAction = "exchange token"

// The reasons in the audit log for which a job that a rule lets in gets no token.
const (
	reasonReplayed  = "replayed"
	reasonQuota     = "quota"
	reasonWorkspace = "workspace"
)

// ExchangeViews are the caches that an exchange reads.
type ExchangeViews interface {
	// BotNamed finds a Bot by its UUID, and its Organization.
	BotNamed(uuid string) (*v1alpha1.Bot, tenancy.Org, bool)
	Workspace(org, workspace string) (tenancy.Workspace, bool)
	Await(ctx context.Context, refs []tenancy.Ref, cond func() bool) error
}

// SubjectTokens records which ID tokens of jobs were used, for all replicas.
type SubjectTokens interface {
	// UseSubjectToken fails with the code Conflict if the token was used before.
	UseSubjectToken(ctx context.Context, id string, until time.Time) error
	ReleaseSubjectToken(ctx context.Context, id string) error
}

// Exchange gives tokens of Bots to the jobs that they trust (RFC 8693).
type Exchange struct {
	Views  ExchangeViews
	Store  Changer
	Used   SubjectTokens
	Tokens Tokens
	// Audit writes an event. Nobody gets a token if the error of an intent is not nil.
	Audit func(context.Context, audit.Event) error
	// Room returns an error while nothing new is stored.
	Room func() error
	// Refused records in the status of a Bot that its rules did not let a job in, later.
	Refused func(b *v1alpha1.Bot, refusals map[string]string)
	Metrics *Metrics
	NewUUID func() string
	Clock   clock.PassiveClock
	// ExternalURL is the audience of rules that name none.
	ExternalURL string
	// WriteTimeout limits the time of an exchange, and FollowTimeout that which its answer waits for the
	// caches.
	WriteTimeout, FollowTimeout time.Duration
}

// Issue gives a job a token of a Bot and says when it ends. name is the name of the job for people. The error is tenancy.ErrNotTrusted,
// whatever the reason, or one of code Unavailable or InsufficientStorage.
func (x *Exchange) Issue(ctx context.Context, bot string, job tenancy.Workload, name string) (token string, until time.Time, err error) {
	token, until, err = x.issue(ctx, bot, job, name)
	switch {
	case err == nil:
		x.Metrics.exchanged("ok")
	case errors.Is(err, tenancy.ErrNotTrusted):
		x.Metrics.exchanged("refused")
	default:
		x.Metrics.exchanged("error")
	}
	return token, until, err
}

func (x *Exchange) issue(ctx context.Context, bot string, job tenancy.Workload, name string) (token string, until time.Time, err error) {
	b, org, ok := x.Views.BotNamed(bot)
	if !ok || !b.DeletionTimestamp.IsZero() {
		return "", time.Time{}, tenancy.ErrNotTrusted
	}
	ws, known := x.Views.Workspace(org.UUID(), b.Spec.WorkspaceRef.Name)
	a := attempt{Exchange: x, bot: b, job: job, event: audit.Event{
		Action: exchangeAction, Actor: audit.Actor{Kind: audit.ActorBot, Bot: b.Name}, Org: org.UUID(), Workspace: b.Spec.WorkspaceRef.Name, Object: b.Name,
		Facts: &audit.Facts{Issuer: job.Issuer, Subject: job.Claims["sub"]},
	}}
	rule, refusals, ok := tenancy.TrustedRule(b, job, x.ExternalURL)
	if !ok {
		if len(refusals) == 0 {
			// No rule is about the issuer: every customer of it could fill the audit log.
			return "", time.Time{}, tenancy.ErrNotTrusted
		}
		x.Refused(b, refusals)
		a.event.Facts.Mismatch = refusals
		return "", time.Time{}, a.refused(ctx, nil)
	}
	a.event.Facts.Trust = rule.ID
	switch {
	case !known || org.Deleted() || ws.Deleted():
		a.event.Facts.Reason = reasonWorkspace
		return "", time.Time{}, a.refused(ctx, nil)
	case !tenancy.AccountReady(b) || !ws.Ready():
		return "", time.Time{}, notReadyNow()
	}
	if err := x.Room(); err != nil {
		return "", time.Time{}, a.failed(ctx, err)
	}
	now := metav1.NewTime(x.Clock.Now()).Rfc3339Copy()
	t := v1alpha1.BotToken{
		ID: x.NewUUID(), Name: name, CreatedAt: now, ExpiresAt: metav1.NewTime(tenancy.TrustedUntil(job, now.Time)).Rfc3339Copy(), Trust: rule.ID,
	}
	a.event.Actor.Token, a.event.Facts.Token, a.event.Facts.TokenExpiresAt = t.ID, t.ID, &t.ExpiresAt.Time
	a.event.Facts.JobToken, a.event.Facts.JobTokenExpiresAt = job.ID, &job.ExpiresAt
	intent := a.event
	intent.Stage = audit.StageIntent
	if err := x.Audit(ctx, intent); err != nil {
		return "", time.Time{}, httpmw.NotAudited(err)
	}
	a.intended = true
	if token, err = a.take(ctx, ws, t); err != nil {
		return "", time.Time{}, err
	}
	a.outcome(ctx, http.StatusOK)
	x.await(ctx, ws, b.Name, t.ID)
	return token, t.ExpiresAt.Time, nil
}

// attempt is one exchange.
type attempt struct {
	*Exchange
	bot   *v1alpha1.Bot
	job   tenancy.Workload
	event audit.Event
	// intended is true if the audit log has the intent.
	intended bool
}

// take uses the ID token of the job up and has the token issued. It goes on when the client has left,
// so that it is complete or leaves nothing.
func (a *attempt) take(ctx context.Context, ws tenancy.Workspace, t v1alpha1.BotToken) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.WriteTimeout)
	defer cancel()
	err := a.Used.UseSubjectToken(ctx, a.job.ID, a.job.ExpiresAt)
	if errs.Is(err, errs.Conflict) {
		a.event.Facts.Reason = reasonReplayed
		return "", a.refused(ctx, err)
	}
	if err != nil {
		return "", a.failed(ctx, err)
	}
	token, err := issuing{a.Store, a.Tokens}.issue(ctx, ws.ClusterID, a.bot, t, tenancy.LifeToIssue(t), func(_ context.Context, b *v1alpha1.Bot) error {
		if _, ok := tenancy.FindToken(b.Spec.Tokens, t.ID); ok {
			// An attempt whose answer was lost has added it.
			return nil
		}
		// The rule may be gone since the cache had it.
		if rule, ok := tenancy.TrustOf(b, t.Trust); !ok || tenancy.Mismatch(rule, a.job, a.ExternalURL) != "" {
			return tenancy.ErrNotTrusted
		}
		tokens, err := tenancy.AddToken(b, t, a.Clock.Now())
		b.Spec.Tokens = tokens
		return err
	}, func(context.Context, *v1alpha1.Bot) error { return nil })
	if err == nil {
		return token, nil
	}
	// No token was given out, so the job can try again.
	if released := a.Used.ReleaseSubjectToken(ctx, a.job.ID); released != nil {
		log.From(ctx).Warn("the ID token of a job stays used although it got no token", zap.Error(released))
	}
	switch {
	case tenancy.IsQuota(err):
		a.event.Facts.Reason = reasonQuota
		return "", a.refused(ctx, err)
	case errors.Is(err, tenancy.ErrNotTrusted), errs.Is(err, errs.NotFound):
		return "", a.refused(ctx, err)
	case errs.Is(err, errs.Conflict):
		// The account is being replaced, or somebody revoked the token meanwhile.
		return "", a.failed(ctx, notReadyNow())
	}
	return "", a.failed(ctx, err)
}

// refused writes the outcome of a refusal and returns tenancy.ErrNotTrusted.
func (a *attempt) refused(ctx context.Context, cause error) error {
	if cause != nil {
		log.From(ctx).Debug("a job gets no token", zap.String("bot", a.bot.Name), zap.Error(cause))
	}
	a.outcome(ctx, http.StatusBadRequest)
	return tenancy.ErrNotTrusted
}

func (a *attempt) failed(ctx context.Context, err error) error {
	a.outcome(ctx, httpapi.StatusOf(err))
	return err
}

func (a *attempt) outcome(ctx context.Context, code int) {
	e := a.event
	e.Stage, e.Code = audit.StageOutcome, code
	// A job that no rule lets in can ask as often as it likes, and its refusal says nothing of rights.
	e.Unchanged = !a.intended
	_ = a.Audit(ctx, e)
}

// await waits until the caches of this replica have a token.
func (x *Exchange) await(ctx context.Context, ws tenancy.Workspace, bot, id string) {
	ctx, cancel := context.WithTimeout(ctx, x.FollowTimeout)
	defer cancel()
	_ = x.Views.Await(ctx, []tenancy.Ref{tenancy.WorkspaceRef(ws.UUID)}, func() bool {
		b, _, ok := x.Views.BotNamed(bot)
		if !ok {
			return false
		}
		bound, _ := tenancy.FindToken(b.Spec.Tokens, id)
		return bound.SecretUID != ""
	})
}

func notReadyNow() error {
	return errs.New(errs.Unavailable, "the bot is not ready at the moment; try again").After(time.Second)
}
