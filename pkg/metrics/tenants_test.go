package metrics_test

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/metrics"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestTenants_areCountedByPhase(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(after time.Duration) metav1.Time { return metav1.NewTime(now.Add(after)) }
	past := at(-time.Hour)
	user := func(name string, change func(*v1alpha1.User)) *v1alpha1.User {
		u := &v1alpha1.User{}
		u.Name, u.CreationTimestamp, u.Status.Phase = name, at(-24*time.Hour), v1alpha1.PhaseReady
		if change != nil {
			change(u)
		}
		return u
	}
	people := []*v1alpha1.User{
		user("alice", nil), user("bob", nil),
		user("carol", func(u *v1alpha1.User) { u.Status.Phase = "" }),
		user("dave", func(u *v1alpha1.User) { u.Spec.Registration = v1alpha1.RegistrationPending }),
		user("erin", func(u *v1alpha1.User) { u.Status.DeletionRequestedAt = &past }),
		user("frank", func(u *v1alpha1.User) { u.DeletionTimestamp, u.Status.DeletionRequestedAt = &past, &past }),
	}
	org := func(name string) tenancy.Org {
		o := &v1alpha1.Organization{}
		o.Name, o.Status.Phase = name, v1alpha1.PhaseReady
		return tenancy.Org{Organization: o}
	}
	workspaces := map[string][]tenancy.Workspace{
		"first": {
			{KCPReady: true, Status: v1alpha1.CommonStatus{Phase: v1alpha1.PhaseReady}},
			{Status: v1alpha1.CommonStatus{Phase: v1alpha1.PhaseReady}},
			{DeletionRequestedAt: &past},
		},
		"second": {{Terminating: true, DeletionRequestedAt: &past}},
	}
	bot := &v1alpha1.Bot{Spec: v1alpha1.BotSpec{Tokens: []v1alpha1.BotToken{{ID: "a", ExpiresAt: at(time.Hour)}, {ID: "b", ExpiresAt: past}, {ID: "c", ExpiresAt: at(time.Minute)},
		{ID: "d", ExpiresAt: at(8 * 24 * time.Hour)}, {ID: "e", ExpiresAt: at(time.Hour), Trust: "rule"}, {ID: "f", ExpiresAt: at(time.Hour), RotatedTo: "a"}}}}
	session := func(user string, client v1alpha1.SessionClient, ended *metav1.Time) *v1alpha1.Session {
		s := &v1alpha1.Session{Spec: v1alpha1.SessionSpec{
			UserRef: v1alpha1.NamedRef{Name: user}, Client: client, EndedAt: ended, LastUsedAt: past, ExpiresAt: at(time.Hour),
		}}
		s.CreationTimestamp = at(-2 * time.Hour)
		return s
	}
	sessions := []*v1alpha1.Session{
		session("alice", v1alpha1.SessionCLI, nil), session("alice", v1alpha1.SessionPortal, nil), session("bob", v1alpha1.SessionCLI, nil),
		session("bob", v1alpha1.SessionCLI, &past), session("nobody", v1alpha1.SessionPortal, nil),
	}
	objects := metrics.Objects{
		People:     func() []*v1alpha1.User { return people },
		Orgs:       func() []tenancy.Org { return []tenancy.Org{org("first"), org("second")} },
		Workspaces: func(org string) []tenancy.Workspace { return workspaces[org] },
		Bots:       func() iter.Seq[*v1alpha1.Bot] { return slices.Values([]*v1alpha1.Bot{bot}) },
		Sessions:   func() iter.Seq[*v1alpha1.Session] { return slices.Values(sessions) },
	}
	k := clocktesting.NewFakePassiveClock(now)
	series := map[string]float64{
		`kedge_users{phase="Ready",registration="Approved"}`:       2,
		`kedge_users{phase="Progressing",registration="Approved"}`: 1,
		`kedge_users{phase="SoftDeleted",registration="Approved"}`: 1,
		`kedge_users{phase="Terminating",registration="Approved"}`: 1,
		`kedge_users{phase="Ready",registration="Pending"}`:        1,
		`kedge_organizations{phase="Ready"}`:                       2,
		`kedge_workspaces{phase="Ready"}`:                          1,
		`kedge_workspaces{phase="Progressing"}`:                    1,
		`kedge_workspaces{phase="SoftDeleted"}`:                    1,
		`kedge_workspaces{phase="Terminating"}`:                    1,
		`kedge_bots{phase="Progressing"}`:                          1,
		`kedge_bot_tokens`:                                         5,
		`kedge_bot_tokens_ending`:                                  2,
		`kedge_sessions{client="cli"}`:                             2,
		`kedge_sessions{client="portal"}`:                          1,
	}
	compare := func(idle time.Duration) map[string]float64 {
		t.Helper()
		registry := metrics.NewRegistry()
		registry.MustRegister(metrics.NewTenants(objects, k, idle))
		families, err := registry.Gather()
		require.NoError(t, err)
		found := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				var labels []string
				for _, l := range m.GetLabel() {
					labels = append(labels, l.GetName()+`="`+l.GetValue()+`"`)
				}
				name := f.GetName()
				if len(labels) > 0 {
					name += "{" + strings.Join(labels, ",") + "}"
				}
				if strings.HasPrefix(name, "kedge_") {
					found[name] = m.GetGauge().GetValue()
				}
			}
		}
		return found
	}
	found := compare(2 * time.Hour)
	require.Len(t, found, 3*4+3*4+2+2, "phases without an object are there, too")
	maps.DeleteFunc(found, func(_ string, n float64) bool { return n == 0 })
	require.Equal(t, series, found)
	// An unused session ends without a write.
	found = compare(time.Hour)
	require.Zero(t, found[`kedge_sessions{client="cli"}`])
	problems, err := testutil.CollectAndLint(metrics.NewTenants(objects, k, time.Hour))
	require.NoError(t, err)
	require.Empty(t, problems)
}
