package restore

import (
	"net/http"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
)

// action says what an event is.
type action struct {
	// ends is the kind of the Step; empty if it ends nothing. when, if not nil, says whether an event is meant.
	ends Kind
	when func(audit.Event) bool
	// state is that of an Invitation after an AnswerInvitation.
	state v1alpha1.InvitationState
	// object, if not nil, is the object of the Step where that is not the object of the event.
	object func(audit.Event) string
	// gives says what is lost with the event; empty for an action that gives nothing that a backup would have.
	gives string
}

// table says what actions are.
type table map[string][]action

const (
	inOrg       = "/api/orgs/{org}"
	inWorkspace = inOrg + "/workspaces/{ws}"
	ofBot       = inWorkspace + "/serviceaccounts/{sa}"
	settings    = "settings"
)

// actions has every action of the chain of rights. An action with more than one meaning stands in it more than once.
var actions = table{
	"POST /api/orgs":                            {{gives: "organization"}},
	"PATCH " + inOrg:                            {{ends: LimitOrg, when: narrows}, {gives: settings}},
	"DELETE " + inOrg:                           {{ends: DeleteOrg}},
	"DELETE /api/admin/orgs/{org}":              {{ends: DeleteOrg}},
	"delete organization":                       {{ends: DeleteOrg}},
	"POST " + inOrg + "/undelete":               {{gives: "undeletion of an organization"}},
	"POST /api/admin/orgs/{org}/undelete":       {{gives: "undeletion of an organization"}},
	"POST /api/admin/orgs/{org}/admins":         {{gives: "member"}},
	"PATCH /api/admin/orgs/{org}":               {{gives: settings}},
	"POST " + inOrg + "/workspaces":             {{gives: "workspace"}},
	"PATCH " + inWorkspace:                      {{ends: EndWorkspace, when: ends}, {gives: settings}},
	"DELETE " + inWorkspace:                     {{ends: DeleteWorkspace}},
	"expire workspace":                          {{ends: DeleteWorkspace}},
	"POST " + inWorkspace + "/undelete":         {{gives: "undeletion of a workspace"}},
	"POST " + inOrg + "/members":                {{gives: "member"}},
	"PATCH " + inOrg + "/members/{user}":        {{ends: LimitMember, when: lessens}, {gives: "change of a member"}},
	"DELETE " + inOrg + "/members/{user}":       {{ends: RemoveMember}},
	"DELETE " + inOrg + "/memberships/me":       {{ends: RemoveMember}},
	"POST " + inWorkspace + "/members":          {{gives: "member"}},
	"PATCH " + inWorkspace + "/members/{user}":  {{ends: LimitMember, when: lessens}, {gives: "change of a member"}},
	"DELETE " + inWorkspace + "/members/{user}": {{ends: RemoveMember}},
	"DELETE " + inWorkspace + "/memberships/me": {{ends: RemoveMember}},
	// Controllers carry out what requests have decided: what is given is listed once, by the request.
	"add member":    {{}},
	"change member": {{ends: LimitMember, when: lessens}},
	"demote member": {{ends: LimitMember, when: lessens}},
	"remove member": {{ends: RemoveMember}},
	"expire":        {{ends: RemoveMember, when: endsAll}, {ends: LimitMember, when: endsPart}},
	"promote":       {{gives: "promotion of a member"}},

	"POST " + inOrg + "/requests":                          {{gives: "request for rights"}},
	"POST " + inOrg + "/requests/{request}/approve":        {{gives: "rights on request"}},
	"POST " + inOrg + "/requests/{request}/deny":           {{}},
	"POST " + inOrg + "/requests/{request}/withdraw":       {{ends: LimitMember, when: takesPart}},
	"POST " + inOrg + "/requests/{request}/revoke":         {{ends: LimitMember, when: takesPart}},
	"POST " + inWorkspace + "/requests":                    {{gives: "request for rights"}},
	"POST " + inWorkspace + "/requests/{request}/approve":  {{gives: "rights on request"}},
	"POST " + inWorkspace + "/requests/{request}/deny":     {{}},
	"POST " + inWorkspace + "/requests/{request}/withdraw": {{ends: LimitMember, when: takesPart}},
	"POST " + inWorkspace + "/requests/{request}/revoke":   {{ends: LimitMember, when: takesPart}},
	"POST " + inOrg + "/groups":                            {{gives: "mapping of a group"}},
	"DELETE " + inOrg + "/groups/{mapping}":                {{ends: UnmapGroup}},
	"POST " + inOrg + "/invitations":                       {{gives: "invitation"}},
	"DELETE " + inOrg + "/invitations/{invitation}":        {{ends: AnswerInvitation, state: v1alpha1.InvitationRevoked}},
	"POST " + inWorkspace + "/invitations":                 {{gives: "invitation"}},
	"DELETE " + inWorkspace + "/invitations/{invitation}":  {{ends: AnswerInvitation, state: v1alpha1.InvitationRevoked}},
	"POST /api/invitations/{invitation}/accept": {
		{ends: AnswerInvitation, state: v1alpha1.InvitationAccepted}, {gives: "membership by invitation"},
	},
	"POST /api/invitations/{invitation}/decline": {{ends: AnswerInvitation, state: v1alpha1.InvitationDeclined}},
	"sign-up": {{ends: BindInvitation, when: invited, object: invitation}, {gives: "person"}},
	"approve": {{gives: "approval of a person"}},
	"POST " + inWorkspace + "/serviceaccounts": {{gives: "bot"}},
	"PATCH " + ofBot:                                      {{ends: LimitBot, when: hasRole}, {gives: settings}},
	"DELETE " + ofBot:                                     {{ends: DeleteBot}},
	"POST " + ofBot + "/tokens":                           {{gives: "token of a bot"}},
	"DELETE " + ofBot + "/tokens":                         {{ends: RevokeTokens}},
	"DELETE " + ofBot + "/tokens/{token}":                 {{ends: RevokeToken}},
	"POST " + ofBot + "/tokens/{token}/rotate":            {{ends: RevokeToken}, {gives: "token of a bot"}},
	"POST " + ofBot + "/trust":                            {{gives: "trust rule of a bot"}},
	"DELETE " + ofBot + "/trust/{trust}":                  {{ends: RemoveTrust}},
	"exchange token":                                      {{ends: UseJobToken, when: usesJobToken}},
	"POST " + inOrg + "/catalog":                          {{gives: "catalog entry"}},
	"PUT " + inOrg + "/catalog/{entry}":                   {{gives: settings}},
	"DELETE " + inOrg + "/catalog/{entry}":                {{ends: DeleteEntry}},
	"POST /api/admin/catalog":                             {{gives: "catalog entry"}},
	"PUT /api/admin/catalog/{entry}":                      {{gives: settings}},
	"DELETE /api/admin/catalog/{entry}":                   {{ends: DeleteEntry}},
	"POST " + inWorkspace + "/providers/{entry}/enable":   {{ends: LimitProvider, when: rejectsClaims}, {gives: "provider in a workspace"}},
	"DELETE " + inWorkspace + "/providers/{entry}/enable": {{ends: DisableProvider}},
	"PATCH /api/users/me":                                 {{gives: settings}},
	"DELETE /api/users/{name}":                            {{ends: DeletePerson}},
	"POST /api/users/{name}/undelete":                     {{gives: "undeletion of a person"}},
	"PATCH /api/admin/users/{name}": {
		{ends: RejectPerson, when: registers(v1alpha1.RegistrationRejected)},
		{ends: SuspendPerson, when: registers(v1alpha1.RegistrationPending)},
		{gives: settings},
	},
	"DELETE /api/users/me/sessions":                     {{ends: EndSessions}},
	"DELETE /api/users/me/sessions/{session}":           {{ends: EndSession, object: session}},
	"DELETE /api/admin/users/{name}/sessions":           {{ends: EndSessions}},
	"DELETE /api/admin/users/{name}/sessions/{session}": {{ends: EndSession, object: session}},
	"POST /api/credentials":                             {{}},
	"rotate":                                            {{}},
	"release purges":                                    {{}},
	// A purge follows a deletion, which can be older than the files.
	"purge": {{ends: DeleteWorkspace, when: ofWorkspace}, {ends: DeleteOrg, when: ofOrg}, {ends: DeletePerson, when: ofPerson}},
}

// families are actions of which the first word says all.
var families = table{
	"logout":  {{ends: EndSession, when: hasSession, object: session}},
	"token":   {{ends: EndSession, when: endsByRefusal, object: session}, {ends: AdvanceSession, when: advances, object: session}},
	"login":   {{gives: "login"}},
	"confirm": {{}},
	"deny":    {{}},
	// A hub that was restored itself has replayed what ended before its own backup.
	"replay": {{}},
}

// Known reports whether this hub knows what an action is.
func Known(name string) bool {
	_, ok := of(name)
	return ok
}

func of(name string) ([]action, bool) {
	if found, ok := actions[name]; ok {
		return found, true
	}
	word, _, _ := strings.Cut(name, " ")
	found, ok := families[word]
	return found, ok
}

func factsOf(e audit.Event) audit.Facts { return ptr.Deref(e.Facts, audit.Facts{}) }

func narrows(e audit.Event) bool {
	f := factsOf(e)
	return f.DefaultAccess == string(v1alpha1.DefaultAccessNone) ||
		f.WorkspaceCreation == string(v1alpha1.WhoAdmin) || f.CatalogEntryCreation == string(v1alpha1.WhoAdmin)
}

// lessens tells whether a change of a member can take something from what a backup has. One that only gives cannot.
func lessens(e audit.Event) bool {
	f := factsOf(e)
	return belowRole(f.Role, string(v1alpha1.RoleAdmin)) || f.Sudo != nil && !*f.Sudo || f.Manager != nil && !*f.Manager ||
		f.Roles != nil || f.Sources != nil || ends(e)
}

func ends(e audit.Event) bool {
	_, ok := endOf(factsOf(e))
	return ok
}

// endsAll and endsPart tell whether a Membership ended, or a part of one.
func endsAll(e audit.Event) bool { return !factsOf(e).Given() }

func endsPart(e audit.Event) bool { return factsOf(e).Given() }

// takesPart tells whether a Membership lost a part that was not given by hand.
func takesPart(e audit.Event) bool { return factsOf(e).Sources != nil }

func hasRole(e audit.Event) bool { return factsOf(e).Role != "" }

func invited(e audit.Event) bool { return factsOf(e).Invitation != "" }

func invitation(e audit.Event) string { return factsOf(e).Invitation }

func hasSession(e audit.Event) bool { return factsOf(e).Session != "" }

func session(e audit.Event) string { return factsOf(e).Session }

// endsByRefusal reports whether a refusal of tokens has ended a Session.
func endsByRefusal(e audit.Event) bool {
	return strings.HasPrefix(e.Action, "token ") && e.Code >= http.StatusBadRequest && hasSession(e)
}

func advances(e audit.Event) bool {
	return e.Code < http.StatusBadRequest && hasSession(e) && factsOf(e).Generation > 0
}

func usesJobToken(e audit.Event) bool {
	f := factsOf(e)
	return f.JobToken != "" && f.JobTokenExpiresAt != nil
}

func registers(as v1alpha1.Registration) func(audit.Event) bool {
	return func(e audit.Event) bool { return factsOf(e).Registration == string(as) }
}

func rejectsClaims(e audit.Event) bool { return len(factsOf(e).RejectedClaims) > 0 }

func ofWorkspace(e audit.Event) bool { return e.Workspace != "" }

func ofOrg(e audit.Event) bool { return e.Workspace == "" && e.Org != "" }

func ofPerson(e audit.Event) bool { return e.Workspace == "" && e.Org == "" && e.Object != "" }
