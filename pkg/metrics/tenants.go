package metrics

import (
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// softDeleted is the phase of an object during the grace period of its deletion, in metrics.
const softDeleted = "SoftDeleted"

// Objects are the caches that the metrics of tenants are counted from.
type Objects struct {
	People     func() []*v1alpha1.User
	Orgs       func() []tenancy.Org
	Workspaces func(org string) []tenancy.Workspace
	Bots       func() iter.Seq[*v1alpha1.Bot]
	Sessions   func() iter.Seq[*v1alpha1.Session]
}

// Tenants counts Organizations, Workspaces, people, bots and sessions when it is asked. It has no
// label that names one of them.
type Tenants struct {
	objects Objects
	clock   clock.PassiveClock
	// idle is the time without a use after which a session ends.
	idle time.Duration

	users, organizations, workspaces, bots, tokens, endingTokens, sessions *prometheus.Desc
}

// NewTenants returns the collector of the objects of tenants.
func NewTenants(o Objects, k clock.PassiveClock, sessionIdle time.Duration) *Tenants {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &Tenants{
		objects: o, clock: k, idle: sessionIdle,
		users:         desc("kedge_users", "People, by phase and by the state of their registration.", "phase", "registration"),
		organizations: desc("kedge_organizations", "Organizations, personal ones included, by phase.", "phase"),
		workspaces:    desc("kedge_workspaces", "Child Workspaces, by phase.", "phase"),
		bots:          desc("kedge_bots", "Bots, by phase.", "phase"),
		tokens:        desc("kedge_bot_tokens", "Tokens of bots that have neither expired nor been revoked."),
		endingTokens: desc("kedge_bot_tokens_ending",
			"Tokens of bots that end within a week and were not rotated. Those of jobs of CI are not counted."),
		sessions: desc("kedge_sessions", "Sessions that have not ended, by client.", "client"),
	}
}

// Describe implements prometheus.Collector.
func (t *Tenants) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{t.users, t.organizations, t.workspaces, t.bots, t.tokens, t.endingTokens, t.sessions} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (t *Tenants) Collect(to chan<- prometheus.Metric) {
	now := t.clock.Now()
	people := t.objects.People()
	byName := make(map[string]*v1alpha1.User, len(people))
	users := map[v1alpha1.Registration]map[string]int{}
	for _, r := range []v1alpha1.Registration{v1alpha1.RegistrationApproved, v1alpha1.RegistrationPending, v1alpha1.RegistrationRejected} {
		users[r] = phases()
	}
	for _, u := range people {
		byName[u.Name] = u
		users[tenancy.RegistrationOf(u)][phaseOf(u.Status.CommonStatus, u.DeletionTimestamp, u.Status.DeletionRequestedAt)]++
	}
	orgs, workspaces := phases(), phases()
	for _, o := range t.objects.Orgs() {
		orgs[phaseOf(o.Status.CommonStatus, o.DeletionTimestamp, o.Status.DeletionRequestedAt)]++
		for _, w := range t.objects.Workspaces(o.UUID()) {
			var deleted *metav1.Time
			if w.Terminating {
				deleted = &metav1.Time{}
			}
			phase := phaseOf(w.Status, deleted, w.DeletionRequestedAt)
			if phase == string(v1alpha1.PhaseReady) && !w.Ready() {
				phase = string(v1alpha1.PhaseProgressing)
			}
			workspaces[phase]++
		}
	}
	bots, tokens, ending := phases(), 0, 0
	for b := range t.objects.Bots() {
		bots[phaseOf(b.Status.CommonStatus, b.DeletionTimestamp, nil)]++
		tokens += len(tenancy.LivingTokens(b, now))
		ending += tenancy.TokensEndingSoon(b, now)
	}
	sessions := map[v1alpha1.SessionClient]int{v1alpha1.SessionCLI: 0, v1alpha1.SessionPortal: 0}
	for s := range t.objects.Sessions() {
		if !tenancy.SessionEnded(s, byName[s.Spec.UserRef.Name], now, t.idle) {
			sessions[s.Spec.Client]++
		}
	}
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	for registration, in := range users {
		for phase, n := range in {
			gauge(t.users, n, phase, string(registration))
		}
	}
	for d, in := range map[*prometheus.Desc]map[string]int{t.organizations: orgs, t.workspaces: workspaces, t.bots: bots} {
		for phase, n := range in {
			gauge(d, n, phase)
		}
	}
	gauge(t.tokens, tokens)
	gauge(t.endingTokens, ending)
	for client, n := range sessions {
		gauge(t.sessions, n, string(client))
	}
}

// phases returns no objects in each phase.
func phases() map[string]int {
	return map[string]int{
		string(v1alpha1.PhaseReady): 0, string(v1alpha1.PhaseProgressing): 0, string(v1alpha1.PhaseTerminating): 0, softDeleted: 0,
	}
}

func phaseOf(s v1alpha1.CommonStatus, deleted, requested *metav1.Time) string {
	switch {
	case deleted != nil:
		return string(v1alpha1.PhaseTerminating)
	case requested != nil:
		return softDeleted
	}
	return string(tenancy.PhaseOf(s))
}
