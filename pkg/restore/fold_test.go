package restore_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/restore"
)

const (
	placeInOrg       = "/api/orgs/{org}"
	placeInWorkspace = placeInOrg + "/workspaces/{ws}"
	ofBots           = placeInWorkspace + "/serviceaccounts/{sa}"
)

// chosen is something at random.
func chosen[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func texts(of ...string) *[]string { return &of }

// answered makes outcomes of events, one a second.
func answered(events []audit.Event) []audit.Event {
	for i := range events {
		e := &events[i]
		e.ID, e.Stage, e.Time = fmt.Sprint("event-", i), audit.StageOutcome, then.Add(time.Duration(i)*time.Second)
		if e.Code == 0 {
			e.Code = http.StatusOK
		}
	}
	return events
}

// apart are the Steps of events, of which each knows nothing of the others.
func apart(events []audit.Event) (steps []restore.Step) {
	for _, e := range events {
		steps = append(steps, restore.PlanOf(restore.History{Events: []audit.Event{e}}).Steps...)
	}
	return steps
}

// ofMember is an event about what bob has in the Workspace, and its Step. It can be one that gives.
func ofMember(r *rand.Rand) (audit.Event, restore.Step) {
	yes, no := true, false
	f := audit.Facts{
		Role: chosen(r, "", "", "admin", "admin", "member", "viewer", "none"), Sudo: chosen(r, nil, nil, &yes, &no),
		Roles:     chosen(r, nil, nil, nil, texts(), texts("view"), texts("a/edit", "and 7 more"), texts("view", "a/edit")),
		Sources:   chosen(r, nil, nil, nil, nil, texts("group:g"), texts("request:r"), texts("request:r", "group:g")),
		Manager:   chosen(r, nil, nil, nil, &yes, &no),
		ExpiresAt: chosen(r, "", "", "", "never", "2035-01-01T00:00:00Z", "2030-01-01T00:00:00Z"),
	}
	kind, action := restore.LimitMember, chosen(r, "PATCH "+placeInWorkspace+"/members/{user}", "change member", "demote member")
	if r.IntN(40) == 0 {
		f, kind, action = audit.Facts{}, restore.RemoveMember, chosen(r, "DELETE "+placeInWorkspace+"/members/{user}", "remove member")
	}
	return audit.Event{Action: action, Org: org, Workspace: ws, Object: "bob", Facts: &f},
		restore.Step{Kind: kind, Workspace: ws, Object: "bob", Facts: f}
}

// had is what the backup can have of bob.
func had(r *rand.Rand) v1alpha1.MembershipSpec {
	early := metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	late := metav1.NewTime(time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC))
	request := v1alpha1.MembershipExtra{Source: "request:r", Sudo: true}
	group := v1alpha1.MembershipExtra{Source: "group:g", Role: "admin"}
	s := v1alpha1.MembershipSpec{
		Role: chosen(r, "", v1alpha1.RoleViewer, v1alpha1.RoleMember, v1alpha1.RoleAdmin), Manager: r.IntN(2) == 0,
		ExpiresAt: chosen(r, nil, &early, &late),
		Extra:     chosen(r, nil, []v1alpha1.MembershipExtra{request}, []v1alpha1.MembershipExtra{request, group}),
	}
	if s.Role != "" {
		s.Sudo, s.Roles = r.IntN(2) == 0, chosen(r, nil, []v1alpha1.RoleRef{view}, []v1alpha1.RoleRef{view, edit})
	}
	if s.Role == "" && !s.Manager {
		s.ExpiresAt, s.Extra = nil, []v1alpha1.MembershipExtra{request, group}
	}
	return s
}

// A tenant decides how often they change a member, and not how long nobody is served. What few Steps take is what one for each
// event takes: more would rob people, and less would give a right back.
func TestPlanOf_takesFromAMemberInFewStepsWhatAllEventsTook(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		var events []audit.Event
		var each []restore.Step
		for range 1 + r.IntN(12) {
			e, s := ofMember(r)
			events, each = append(events, e), append(each, s)
		}
		steps := restore.PlanOf(restore.History{Events: answered(events)}).Steps
		require.LessOrEqual(t, len(steps), 4, "%d", seed)
		count := 0
		for _, s := range steps {
			count += max(1, s.Events)
		}
		require.Len(t, apart(events), count, "%d: the plan counts the events that take something", seed)
		for range 20 {
			before := had(r)
			require.Equal(t, gives(t, before, each...), gives(t, before, steps...), "%d: %+v after %+v", seed, before, events)
		}
	}
}

func TestPlanOf_hasOneStepForAMemberWhoIsToggled(t *testing.T) {
	t.Parallel()
	no := false
	for name, facts := range map[string][]audit.Facts{
		"in the organization": {{Role: "admin"}, {Role: "admin"}, {Role: "member"}, {Role: "member"}},
		"in a workspace": {
			{Role: "admin"}, {Role: "admin"}, {Role: "member", Roles: texts(), Sudo: &no}, {Role: "member", Roles: texts(), Sudo: &no},
		},
		"its end": {
			{ExpiresAt: "2031-01-01T00:00:00Z"}, {Role: "admin", ExpiresAt: "2031-01-01T00:00:00Z"}, {ExpiresAt: "never"},
		},
		"and removed": {{Role: "member"}, {Role: "viewer"}, {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var events []audit.Event
			for i := range 100_000 {
				f := facts[i%len(facts)]
				action := chosenAt(i, "PATCH "+placeInWorkspace+"/members/{user}", "change member")
				if !f.Given() {
					action = "remove member"
				}
				events = append(events, audit.Event{Action: action, Org: org, Workspace: ws, Object: "bob", Facts: &f})
			}
			p := restore.PlanOf(restore.History{Events: answered(events)})
			require.Len(t, p.Steps, 1)
			require.Greater(t, p.Steps[0].Events, 30_000)
			require.LessOrEqual(t, len(p.Lost), 16, "what was given is listed once, too")
			raw, err := json.Marshal(p)
			require.NoError(t, err)
			require.Less(t, len(raw), 10_000)
			r := rand.New(rand.NewPCG(1, 1))
			each := apart(events[:100])
			for range 20 {
				before := had(r)
				require.Equal(t, gives(t, before, each...), gives(t, before, p.Steps...), "%+v", before)
			}
		})
	}
}

func chosenAt[T any](i int, of ...T) T { return of[i%len(of)] }

// A change that only gives takes nothing from what a backup has.
func TestPlanOf_hasNoStepForAChangeThatOnlyGives(t *testing.T) {
	t.Parallel()
	yes := true
	const inOrg, inWorkspace = "PATCH " + placeInOrg + "/members/{user}", "PATCH " + placeInWorkspace + "/members/{user}"
	for _, action := range []string{inOrg, inWorkspace, "change member"} {
		events := answered([]audit.Event{{
			Action: action, Org: org, Object: "bob", Facts: &audit.Facts{Role: "admin", Sudo: &yes, Manager: &yes, ExpiresAt: "never"},
		}})
		require.Empty(t, restore.PlanOf(restore.History{Events: events}).Steps, action)
	}
}

// What many events say of one thing is one Step. Those of others stay apart.
func TestPlanOf_foldsWhatEventsSayOfOneThing(t *testing.T) {
	t.Parallel()
	in := func(action, object string, f audit.Facts) audit.Event {
		return audit.Event{Action: action, Org: org, Workspace: ws, Object: object, Actor: audit.Actor{User: "alice"}, Facts: &f}
	}
	of := func(action, person string, f audit.Facts) audit.Event {
		return audit.Event{Action: action, Actor: audit.Actor{User: person}, Facts: &f}
	}
	soon := now.Add(time.Hour)
	var claims []audit.Event
	for i := range 100 {
		rejected := audit.Facts{RejectedClaims: []string{fmt.Sprintf("c%02d", i), "c00"}}
		claims = append(claims, in("POST "+placeInWorkspace+"/providers/{entry}/enable", "entry", rejected))
	}
	for name, c := range map[string]struct {
		events []audit.Event
		// says what each Step has, by a field that is the object otherwise.
		says func(restore.Step) any
		want []any
	}{
		"the lowest role of a bot": {
			[]audit.Event{
				in("PATCH "+ofBots, bot, audit.Facts{Role: "member"}),
				in("PATCH "+ofBots, bot, audit.Facts{Role: "viewer"}),
				in("PATCH "+ofBots, bot, audit.Facts{Role: "admin"}),
			},
			func(s restore.Step) any { return s.Facts.Role }, []any{"viewer"},
		},
		"each token, also one that was replaced": {
			[]audit.Event{
				in("DELETE "+ofBots+"/tokens/{token}", bot, audit.Facts{Token: "a"}),
				in("POST "+ofBots+"/tokens/{token}/rotate", bot, audit.Facts{Token: "b", Rotated: "a"}),
				in("DELETE "+ofBots+"/tokens/{token}", bot, audit.Facts{Token: "b"}),
			},
			func(s restore.Step) any { return s.Facts.Token }, []any{"a", "b"},
		},
		"all tokens until the last time": {
			[]audit.Event{in("DELETE "+ofBots+"/tokens", bot, audit.Facts{All: true}),
				in("DELETE "+ofBots+"/tokens", bot, audit.Facts{All: true})},
			func(s restore.Step) any { return s.At }, []any{then.Add(time.Second)},
		},
		"each trust rule": {
			[]audit.Event{
				in("DELETE "+ofBots+"/trust/{trust}", bot, audit.Facts{Trust: "t1"}),
				in("DELETE "+ofBots+"/trust/{trust}", bot, audit.Facts{Trust: "t2"}),
				in("DELETE "+ofBots+"/trust/{trust}", bot, audit.Facts{Trust: "t1"}),
			},
			func(s restore.Step) any { return s.Facts.Trust }, []any{"t1", "t2"},
		},
		"each token of a job": {
			[]audit.Event{
				in("exchange token", bot, audit.Facts{JobToken: "x", JobTokenExpiresAt: &soon}),
				in("exchange token", bot, audit.Facts{JobToken: "y", JobTokenExpiresAt: &soon}),
			},
			func(s restore.Step) any { return s.Facts.JobToken }, []any{"x", "y"},
		},
		"the last sign-out of a person": {
			[]audit.Event{
				of("logout cli", "bob", audit.Facts{Session: "s1"}),
				of("logout cli", "bob", audit.Facts{Session: "s2"}),
				of("logout cli", "carol", audit.Facts{Session: "s3"}),
			},
			func(s restore.Step) any { return s.Person + " " + s.Object }, []any{"bob s2", "carol s3"},
		},
		"the last secret of a session": {
			[]audit.Event{
				of("token refresh_token", "bob", audit.Facts{Session: "s1", Generation: 3}),
				of("token refresh_token", "bob", audit.Facts{Session: "s1", Generation: 2}),
				of("token refresh_token", "bob", audit.Facts{Session: "s2", Generation: 1}),
			},
			func(s restore.Step) any { return fmt.Sprint(s.Object, s.Facts.Generation) }, []any{"s13", "s21"},
		},
		"the narrowest settings": {
			[]audit.Event{
				in("PATCH "+placeInOrg, "", audit.Facts{DefaultAccess: "view", WorkspaceCreation: "admin"}),
				in("PATCH "+placeInOrg, "", audit.Facts{DefaultAccess: "none", WorkspaceCreation: "member"}),
			},
			func(s restore.Step) any { return s.Facts.DefaultAccess + s.Facts.WorkspaceCreation }, []any{"noneadmin"},
		},
		"the earliest end": {
			[]audit.Event{
				in("PATCH "+placeInWorkspace, "", audit.Facts{ExpiresAt: "2032-01-01T00:00:00Z"}),
				in("PATCH "+placeInWorkspace, "", audit.Facts{ExpiresAt: "2031-12-31T23:00:00-04:00"}),
				in("PATCH "+placeInWorkspace, "", audit.Facts{ExpiresAt: "2031-12-31T00:00:00Z"}),
			},
			func(s restore.Step) any { return s.Facts.ExpiresAt }, []any{"2031-12-31T00:00:00Z"},
		},
		"all rejected claims": {
			claims, func(s restore.Step) any { return len(s.Facts.RejectedClaims) }, []any{100},
		},
		"the first answer to an invitation": {
			[]audit.Event{
				in("DELETE "+placeInOrg+"/invitations/{invitation}", "i", audit.Facts{}),
				in("DELETE "+placeInOrg+"/invitations/{invitation}", "i", audit.Facts{}),
			},
			func(s restore.Step) any { return s.At }, []any{then},
		},
		"the first deletion": {
			[]audit.Event{in("DELETE "+placeInWorkspace, "", audit.Facts{}), in("DELETE "+placeInWorkspace, "", audit.Facts{})},
			func(s restore.Step) any { return s.At }, []any{then},
		},
		"a removal from everywhere": {
			[]audit.Event{
				in("DELETE "+placeInOrg+"/members/{user}", "bob", audit.Facts{}),
				in("DELETE "+placeInOrg+"/members/{user}", "bob", audit.Facts{Cascade: true}),
				in("PATCH "+placeInOrg+"/members/{user}", "carol", audit.Facts{Role: "viewer"}),
			},
			func(s restore.Step) any { return fmt.Sprint(s.Object, s.Facts.Cascade) }, []any{"bobtrue", "carolfalse"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := restore.PlanOf(restore.History{Events: answered(c.events)})
			got, count := []any{}, 0
			for _, s := range p.Steps {
				got, count = append(got, c.says(s)), count+max(1, s.Events)
			}
			require.Equal(t, c.want, got)
			require.Equal(t, len(c.events), count)
		})
	}
}

// An ending without an answer may have come after all others.
func TestPlanOf_endsSessionsUntilNowIfTheLastEndHasNoAnswer(t *testing.T) {
	t.Parallel()
	end := audit.Event{Action: "DELETE /api/users/me/sessions", Object: "bob", Facts: &audit.Facts{All: true}}
	for i := range 3 {
		events := answered([]audit.Event{end, end, end})
		events[i].Stage, events[i].Code = audit.StageIntent, 0
		p := restore.PlanOf(restore.History{Events: events})
		require.Len(t, p.Steps, 1)
		require.True(t, p.Steps[0].Unanswered, "%d", i)
		require.Equal(t, 3, p.Steps[0].Events)
	}
}

// Of each object that is listed as lost there are the last events, and a number.
func TestPlanOf_listsWhatIsGivenOverAndOverOnce(t *testing.T) {
	t.Parallel()
	var events []audit.Event
	for i := range 1000 {
		f := &audit.Facts{Role: chosenAt(i, "admin", "member"), Receipt: &rest.Receipt{StreamsCut: i}}
		events = append(events, audit.Event{Action: "PATCH " + placeInOrg + "/members/{user}", Org: org, Object: "bob", Facts: f})
		end := &audit.Facts{ExpiresAt: now.Add(time.Duration(i) * time.Minute).Format(time.RFC3339)}
		events = append(events, audit.Event{Action: "PATCH " + placeInOrg + "/members/{user}", Org: org, Object: "carol", Facts: end})
	}
	lost := restore.PlanOf(restore.History{Events: answered(events)}).Lost
	require.True(t, slices.IsSortedFunc(lost, func(a, b restore.Loss) int { return a.At.Compare(b.At) }))
	got := map[string][]int{}
	for _, l := range lost {
		got[l.Object] = append(got[l.Object], max(1, l.Events))
	}
	require.Equal(t, []int{500, 500}, got["bob"])
	require.Len(t, got["carol"], 16)
	require.Equal(t, 1000-15, got["carol"][15])
	require.Equal(t, "event-1999", lost[len(lost)-1].Source, "the last event")
}
