package restore_test

import (
	"bytes"
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/restore"
)

const (
	org = "0a8f0bd6-2d34-4c28-9ad4-6f0ee1b5a0a1"
	ws  = "1b8f0bd6-2d34-4c28-9ad4-6f0ee1b5a0b2"
	bot = "2c8f0bd6-2d34-4c28-9ad4-6f0ee1b5a0c3"
)

// ending is an event as the hub writes it, and the Step that it leads to.
type ending struct {
	event audit.Event
	want  restore.Step
}

func endings() map[string]ending {
	no, manager := false, true
	soon := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(action, object string, f audit.Facts) audit.Event {
		return audit.Event{Action: action, Org: org, Workspace: ws, Object: object, Facts: &f}
	}
	all := map[string]ending{}
	add := func(kind restore.Kind, e audit.Event) {
		want := restore.Step{Kind: kind, Org: e.Org, Workspace: e.Workspace, Object: e.Object}
		if e.Facts != nil {
			want.Facts = *e.Facts
		}
		switch kind {
		case restore.EndSession, restore.AdvanceSession:
			if e.Facts.Session != "" {
				want.Object = e.Facts.Session
			}
			if kind == restore.EndSession {
				want.Person = "bob"
			}
		case restore.AnswerInvitation:
			want.State = v1alpha1.InvitationRevoked
			for word, state := range map[string]v1alpha1.InvitationState{"accept": v1alpha1.InvitationAccepted, "decline": v1alpha1.InvitationDeclined} {
				if strings.HasSuffix(e.Action, word) {
					want.State = state
				}
			}
		case restore.BindInvitation:
			want.Object, want.Facts.Issuer = e.Facts.Invitation, e.Actor.Issuer
		}
		all[e.Action+" "+string(kind)] = ending{e, want}
	}
	for _, place := range []string{"/api/orgs/{org}", "/api/orgs/{org}/workspaces/{ws}"} {
		add(restore.RemoveMember, at("DELETE "+place+"/members/{user}", "bob", audit.Facts{Cascade: true}))
		add(restore.RemoveMember, at("DELETE "+place+"/memberships/me", "bob", audit.Facts{}))
		add(restore.LimitMember, at("PATCH "+place+"/members/{user}", "bob", audit.Facts{Role: "none", Sudo: &no, Roles: &[]string{}, Manager: &manager}))
		add(restore.AnswerInvitation, at("DELETE "+place+"/invitations/{invitation}", "inv", audit.Facts{}))
	}
	const (
		workspace = "/api/orgs/{org}/workspaces/{ws}"
		ofBot     = workspace + "/serviceaccounts/{sa}"
	)
	for _, action := range []string{"change member", "demote member"} {
		add(restore.LimitMember, at(action, "bob", audit.Facts{Role: "viewer"}))
	}
	for _, action := range []string{"remove member", "expire"} {
		add(restore.RemoveMember, at(action, "bob", audit.Facts{}))
	}
	add(restore.AnswerInvitation, at("POST /api/invitations/{invitation}/accept", "inv", audit.Facts{Role: "member"}))
	add(restore.AnswerInvitation, at("POST /api/invitations/{invitation}/decline", "inv", audit.Facts{}))
	add(restore.BindInvitation, audit.Event{
		Action: "sign-up", Object: "new", Actor: audit.Actor{Issuer: "https://idp.example.com"}, Facts: &audit.Facts{Subject: "s", Invitation: "inv"},
	})
	add(restore.LimitBot, at("PATCH "+ofBot, bot, audit.Facts{Role: "viewer"}))
	add(restore.DeleteBot, at("DELETE "+ofBot, bot, audit.Facts{}))
	add(restore.RevokeTokens, at("DELETE "+ofBot+"/tokens", bot, audit.Facts{All: true}))
	add(restore.RevokeToken, at("DELETE "+ofBot+"/tokens/{token}", bot, audit.Facts{Token: "one"}))
	add(restore.RevokeToken, at("POST "+ofBot+"/tokens/{token}/rotate", bot, audit.Facts{Token: "two", Rotated: "one"}))
	add(restore.RemoveTrust, at("DELETE "+ofBot+"/trust/{trust}", bot, audit.Facts{Trust: "rule"}))
	add(restore.UseJobToken, at("exchange token", bot, audit.Facts{JobToken: "hash", JobTokenExpiresAt: &soon}))
	add(restore.EndWorkspace, at("PATCH "+workspace, "", audit.Facts{ExpiresAt: "2031-01-01T00:00:00Z"}))
	add(restore.DeleteWorkspace, at("DELETE "+workspace, "", audit.Facts{}))
	add(restore.DeleteWorkspace, at("expire workspace", ws, audit.Facts{ExpiresAt: "2026-01-01T00:00:00Z"}))
	add(restore.DisableProvider, at("DELETE "+workspace+"/providers/{entry}/enable", "entry", audit.Facts{}))
	inOrg := func(action string, f audit.Facts) audit.Event {
		return audit.Event{Action: action, Org: org, Facts: &f}
	}
	add(restore.DeleteOrg, inOrg("DELETE /api/orgs/{org}", audit.Facts{}))
	add(restore.DeleteOrg, inOrg("DELETE /api/admin/orgs/{org}", audit.Facts{}))
	add(restore.DeleteOrg, inOrg("delete organization", audit.Facts{Reason: "lastAdminPurged"}))
	add(restore.DeleteOrg, inOrg("purge", audit.Facts{Counts: map[string]int{"memberships": 1}}))
	add(restore.LimitOrg, inOrg("PATCH /api/orgs/{org}", audit.Facts{DefaultAccess: "none"}))
	add(restore.DeleteEntry, inOrg("DELETE /api/orgs/{org}/catalog/{entry}", audit.Facts{Slug: "x"}))
	add(restore.DeleteEntry, audit.Event{Action: "DELETE /api/admin/catalog/{entry}", Object: "x"})
	person := func(action string, f audit.Facts) audit.Event {
		return audit.Event{Action: action, Object: "bob", Facts: &f}
	}
	add(restore.RejectPerson, person("PATCH /api/admin/users/{name}", audit.Facts{Registration: "Rejected"}))
	add(restore.SuspendPerson, person("PATCH /api/admin/users/{name}", audit.Facts{Registration: "Pending"}))
	add(restore.DeletePerson, person("DELETE /api/users/{name}", audit.Facts{}))
	add(restore.EndSessions, person("DELETE /api/users/me/sessions", audit.Facts{All: true}))
	add(restore.EndSessions, person("DELETE /api/admin/users/{name}/sessions", audit.Facts{All: true}))
	add(restore.EndSession, person("DELETE /api/users/me/sessions/{session}", audit.Facts{Session: "s1"}))
	add(restore.EndSession, person("DELETE /api/admin/users/{name}/sessions/{session}", audit.Facts{Session: "s1"}))
	add(restore.EndSession, audit.Event{Action: "logout portal", Actor: audit.Actor{User: "bob"}, Facts: &audit.Facts{Session: "s1"}})
	add(restore.EndSession, audit.Event{Action: "token refresh_token", Code: http.StatusBadRequest, Actor: audit.Actor{User: "bob"}, Facts: &audit.Facts{Session: "s1"}})
	add(restore.AdvanceSession, audit.Event{Action: "token refresh_token", Facts: &audit.Facts{Session: "s1", Generation: 7}})
	return all
}

func TestPlanOf_endsWhatAnEventEnded(t *testing.T) {
	t.Parallel()
	for name, c := range endings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := c.event
			e.ID, e.Stage, e.Time, e.Actor.User = "request", audit.StageOutcome, time.Unix(5, 0), cmp.Or(e.Actor.User, "admin")
			if e.Code == 0 {
				e.Code = http.StatusOK
			}
			c.want.Source, c.want.At, c.want.By = e.ID, e.Time, e.Actor.User
			p := restore.PlanOf(restore.History{Events: []audit.Event{e}})
			require.Empty(t, p.Unknown)
			require.Equal(t, []restore.Step{c.want}, p.Steps)
		})
	}
}

// A refusal of tokens can end a Session of which the cache did not know the person. Another event says it.
func TestPlanOf_findsThePersonOfASession(t *testing.T) {
	t.Parallel()
	facts := &audit.Facts{Session: "s1"}
	refused := audit.Event{Action: "token refresh_token", Code: http.StatusBadRequest, Facts: facts}
	for want, others := range map[string][]audit.Event{
		"":    nil,
		"bob": {{Action: "token authorization_code", Actor: audit.Actor{User: "bob"}, Facts: facts}},
		"dan": {
			{Action: "logout cli", Actor: audit.Actor{User: "dan"}, Facts: facts},
			{Action: "replay end session", Actor: audit.Actor{Kind: audit.ActorHub}, Object: "s1", Facts: facts},
		},
		"eve": {{Action: "DELETE /api/admin/users/{name}/sessions/{session}", Actor: audit.Actor{User: "admin"}, Object: "eve", Facts: facts}},
	} {
		p := restore.PlanOf(restore.History{Events: append([]audit.Event{refused}, others...)})
		require.Equal(t, restore.EndSession, p.Steps[0].Kind)
		require.Equal(t, want, p.Steps[0].Person)
	}
}

// A provider that is enabled with fewer claims loses the others.
func TestPlanOf_takesClaimsThatWereRejected(t *testing.T) {
	t.Parallel()
	e := audit.Event{
		Action: "POST /api/orgs/{org}/workspaces/{ws}/providers/{entry}/enable", Stage: audit.StageOutcome, Org: org, Workspace: ws, Object: "entry",
		Facts: &audit.Facts{RejectedClaims: []string{"secrets"}},
	}
	p := restore.PlanOf(restore.History{Events: []audit.Event{e}})
	require.Equal(t, []restore.Step{{Kind: restore.LimitProvider, Org: org, Workspace: ws, Object: "entry", Facts: *e.Facts}}, p.Steps)
	require.Len(t, p.Lost, 1)
	e.Facts = &audit.Facts{AcceptedClaims: []string{"secrets"}}
	require.Empty(t, restore.PlanOf(restore.History{Events: []audit.Event{e}}).Steps)
}

// What deactivates a place comes after what is written there.
func TestPlanOf_deletesLast(t *testing.T) {
	t.Parallel()
	events := []audit.Event{
		{Action: "DELETE /api/orgs/{org}", Org: org}, {Action: "DELETE /api/users/{name}", Object: "bob"},
		{Action: "DELETE /api/orgs/{org}/members/{user}", Org: org, Object: "bob"},
	}
	var kinds []restore.Kind
	for _, s := range restore.PlanOf(restore.History{Events: events}).Steps {
		kinds = append(kinds, s.Kind)
	}
	require.Equal(t, []restore.Kind{restore.RemoveMember, restore.DeleteOrg, restore.DeletePerson}, kinds)
}

func TestPlanOf_listsWhatIsLost(t *testing.T) {
	t.Parallel()
	outcome := func(action string, code int, f audit.Facts) audit.Event {
		return audit.Event{ID: "x", Stage: audit.StageOutcome, Code: code, Action: action, Actor: audit.Actor{User: "admin"}, Org: org, Object: "frank", Facts: &f}
	}
	added := outcome("POST /api/orgs/{org}/members", http.StatusCreated, audit.Facts{Role: "admin"})
	p := restore.PlanOf(restore.History{Events: []audit.Event{
		added, outcome("POST /api/orgs/{org}/members", http.StatusServiceUnavailable, audit.Facts{}), outcome("add member", http.StatusOK, audit.Facts{Role: "admin"}),
	}})
	require.Empty(t, p.Steps, "nobody gets a right from a log, and none is taken")
	require.Equal(t, []restore.Loss{{What: "member", Source: "x", By: "admin", Org: org, Object: "frank", Facts: added.Facts}}, p.Lost)
}

// A hub of another version may have ended something that this one does not understand.
func TestPlanOf_doesNotPassOverAnUnknownAction(t *testing.T) {
	t.Parallel()
	p := restore.PlanOf(restore.History{Events: []audit.Event{{Replica: "r", Seq: 4, Action: "DELETE /api/orgs/{org}/keys/{key}"}}})
	require.Empty(t, p.Steps)
	require.Len(t, p.Unknown, 1)
	require.Contains(t, p.Unknown[0], "/keys/{key}")
}

// Claims that the audit log had no room for would be accepted again, and nobody would know.
func TestPlanOf_saysThatAnEventDoesNotNameAllRejectedClaims(t *testing.T) {
	t.Parallel()
	for n, unknown := range map[int]bool{3: false, 64: true} {
		var claims []string
		for i := range n {
			claims = append(claims, strings.Repeat("c", 180)+strconv.Itoa(i)+".example.com/things")
		}
		written := &bytes.Buffer{}
		require.NoError(t, audit.New(t.Context(), written).Write(audit.Event{
			ID: "request", Stage: audit.StageOutcome, Code: http.StatusOK,
			Action: "POST /api/orgs/{org}/workspaces/{ws}/providers/{entry}/enable",
			Org:    org, Workspace: ws, Object: "acme", Facts: &audit.Facts{RejectedClaims: claims},
		}))
		var h restore.History
		require.NoError(t, audit.LinesIn(bytes.NewReader(written.Bytes()), 0, func(l audit.Line) bool {
			h.Events = append(h.Events, l.Event)
			return true
		}))
		require.Len(t, h.Events, 1)
		p := restore.PlanOf(h)
		require.Equal(t, unknown, len(p.Unknown) == 1, "%d", n)
		require.Len(t, p.Steps, 1, "those that it names are rejected again")
		if unknown {
			require.Contains(t, p.Unknown[0], "does not name all permission claims that were rejected: and ")
		}
	}
}
