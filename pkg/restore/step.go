package restore

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Kind is what a Step ends.
type Kind string

// The kinds of Steps.
const (
	// RemoveMember removes a person from an Organization or Workspace, LimitMember takes a part of what their
	// Membership gives.
	RemoveMember Kind = "remove member"
	LimitMember  Kind = "limit member"
	// DeleteBot, LimitBot, RevokeToken, RevokeTokens and RemoveTrust take from a bot.
	DeleteBot    Kind = "delete bot"
	LimitBot     Kind = "limit bot"
	RevokeToken  Kind = "revoke token"
	RevokeTokens Kind = "revoke tokens"
	RemoveTrust  Kind = "remove trust rule"
	// UseJobToken records that an ID token of a job was used.
	UseJobToken Kind = "use job token"
	// EndSession ends a Session, EndSessions all of a person, and AdvanceSession ends the earlier secrets of one.
	EndSession     Kind = "end session"
	EndSessions    Kind = "end sessions"
	AdvanceSession Kind = "advance session"
	// AnswerInvitation ends an Invitation, and BindInvitation keeps it for the person who signed up with it.
	AnswerInvitation Kind = "answer invitation"
	BindInvitation   Kind = "bind invitation"
	// RejectPerson, SuspendPerson, which makes an approved person wait again, and the deletions are what admins ask for.
	RejectPerson    Kind = "reject person"
	SuspendPerson   Kind = "suspend person"
	DeletePerson    Kind = "delete person"
	DeleteOrg       Kind = "delete organization"
	DeleteWorkspace Kind = "delete workspace"
	// UnmapGroup removes a mapping of a group of the identity provider.
	UnmapGroup Kind = "remove mapping of a group"
	// LimitOrg narrows settings of an Organization, EndWorkspace brings the end of a Workspace forward.
	LimitOrg     Kind = "limit organization"
	EndWorkspace Kind = "end workspace"
	// DeleteEntry takes from people what a provider offers.
	DeleteEntry Kind = "delete catalog entry"
	// DisableProvider takes a provider from a Workspace, LimitProvider rejects claims of one.
	DisableProvider Kind = "disable provider"
	LimitProvider   Kind = "limit provider"
	// ForgetGroups makes the hub forget the groups of a person. No Plan has it: every restore does it for everybody.
	ForgetGroups Kind = "forget groups"
)

// last reports whether a kind comes after all others: what it deactivates cannot be written any more.
func (k Kind) last() bool { return k == DeletePerson || k == DeleteWorkspace || k == DeleteOrg }

// Step ends one right. It can be done any number of times.
type Step struct {
	Kind Kind `json:"kind"`
	// Source is the ID of the event that is replayed, and At its time. Unanswered is true if the event is an intent:
	// the lost hub may not have carried it out.
	Source     string    `json:"source"`
	At         time.Time `json:"at"`
	Unanswered bool      `json:"unanswered,omitempty"`
	// By is the name of the person who made the change; empty for the hub.
	By        string `json:"by,omitempty"`
	Org       string `json:"org,omitempty"`
	Workspace string `json:"workspace,omitempty"`
	// Object is the name of the person, bot, Session, Invitation, or entry.
	Object string      `json:"object,omitempty"`
	Facts  audit.Facts `json:"facts,omitzero"`
	// Person is the name of the person whose Session ends. It is empty if no event says it.
	Person string `json:"person,omitempty"`
	// State is that of an Invitation after an AnswerInvitation.
	State v1alpha1.InvitationState `json:"state,omitempty"`
	// Events is the number of events about the same thing that the Step stands for; 0 is for one.
	Events int `json:"events,omitempty"`
	// maker is the UUID of the Organization that has yet to make the Invitation when a replay begins.
	maker string
}

// MemberEdit returns the edit that takes from a Membership what the Step takes. before is what it gives. ok is false
// if nothing is left to take.
func (s Step) MemberEdit(before v1alpha1.MembershipChange, at metav1.MicroTime) (e tenancy.MemberEdit, ok bool) {
	e = tenancy.MemberEdit{User: s.Object, Workspace: s.Workspace, By: s.By, At: at}
	if s.Kind == RemoveMember {
		e.Remove, e.Everything = true, true
		return e, true
	}
	f := s.Facts
	if extra := keptExtra(before.Extra, f.Sources); len(extra) != len(before.Extra) {
		e.Extra = &extra
	}
	if before.Role == "" && !before.Manager {
		e.Remove = e.Extra != nil && len(*e.Extra) == 0
		e.Everything = e.Remove
		return e, e.Extra != nil
	}
	role := before.Role
	if to := v1alpha1.Role(f.Role); f.Role == rest.NoRole {
		e.NoRole = before.Role != ""
		role = ""
	} else if f.Role != "" && tenancy.Lowers(before.Role, to) {
		e.Role, role = to, to
	}
	if f.Manager != nil && !*f.Manager && before.Manager {
		e.Manager = f.Manager
	}
	// A lower role takes sudo and further roles, as far as the event does not say that they stay. Without a role there are none.
	lowered := role != before.Role
	if f.Sudo != nil || lowered {
		if sudo := before.Sudo && f.Sudo != nil && *f.Sudo && role != ""; sudo != before.Sudo || lowered && sudo {
			e.Sudo = &sudo
		}
	}
	if f.Roles != nil || lowered {
		roles := kept(before.Roles, f.Roles)
		if role == "" {
			roles = nil
		}
		if len(roles) != len(before.Roles) || lowered && len(roles) > 0 {
			e.Roles = &roles
		}
	}
	if end, ok := endOf(f); ok && tenancy.EndsSooner(end, before.ExpiresAt) && !end.Equal(before.ExpiresAt) {
		e.Expiry = &tenancy.Expiry{At: end}
	}
	manager := before.Manager && (e.Manager == nil || *e.Manager)
	if role == "" && !manager {
		return tenancy.MemberEdit{User: e.User, Workspace: e.Workspace, By: e.By, At: e.At, Remove: true, Everything: true}, true
	}
	return e, e.Extra != nil || e.NoRole || e.Role != "" || e.Manager != nil || e.Sudo != nil || e.Roles != nil || e.Expiry != nil
}

// keptExtra returns those of the parts whose sources an event names, or all if it says nothing of them.
func keptExtra(before []v1alpha1.MembershipExtra, named *[]string) (extra []v1alpha1.MembershipExtra) {
	for _, x := range before {
		if named == nil || slices.Contains(*named, x.Source) {
			extra = append(extra, x)
		}
	}
	return extra
}

// kept returns those of the further roles that an event names.
func kept(before []v1alpha1.RoleRef, named *[]string) (roles []v1alpha1.RoleRef) {
	for i, text := range *tenancy.RoleTexts(before) {
		if named != nil && slices.Contains(*named, text) {
			roles = append(roles, before[i])
		}
	}
	return roles
}

// endOf returns the end that an event gives. ok is false if it gives none, or takes one off.
func endOf(f audit.Facts) (end *metav1.Time, ok bool) {
	at, err := time.Parse(time.RFC3339, f.ExpiresAt)
	if err != nil {
		return nil, false
	}
	return &metav1.Time{Time: at}, true
}
