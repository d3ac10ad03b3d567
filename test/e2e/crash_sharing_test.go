package e2e

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/framework"
)

func inviting(s *scene) framework.Call {
	c := inOrg(s, http.MethodPost, "/invitations", map[string]string{"role": "member"})
	c.Header = http.Header{"Idempotency-Key": {s.key}}
	return c
}

func invitation(l *lane, s *scene) error {
	a, err := l.ask(inviting(s))
	if err != nil {
		return err
	}
	link, err := url.Parse(a.Text("url"))
	if err == nil {
		s.invitation, s.link = a.Text("id"), link.Fragment
	}
	return err
}

// answering returns the call with which b answers the invitation.
func answering(how string) func(s *scene) framework.Call {
	return func(s *scene) framework.Call {
		return framework.Call{
			As: s.b, Method: http.MethodPost, Path: "/api/invitations/" + s.invitation + "/" + how,
			Header: http.Header{"X-Kedge-Invitation": {s.link}},
		}
	}
}

// invited reports whether the only invitation has the state, and b is a member
// after they accepted it, and else not.
func invited(state v1alpha1.InvitationState) func(truth *framework.Truth, s *scene) bool {
	return func(truth *framework.Truth, s *scene) bool {
		org := truth.Orgs[s.org]
		_, member := org.Memberships[s.b]
		for _, i := range org.Invitations {
			return len(org.Invitations) == 1 && cmp.Or(i.Status.State, v1alpha1.InvitationOpen) == state && member == (state == v1alpha1.InvitationAccepted) &&
				len(org.Organization.Spec.InvitationChanges) == 0
		}
		return false
	}
}

func notInvited(truth *framework.Truth, s *scene) bool {
	return len(truth.Orgs[s.org].Invitations) == 0
}

func requesting(s *scene) framework.Call {
	c := inWorkspace(s, http.MethodPost, "/requests", map[string]string{"kind": "sudo", "for": "1h", "reason": "the disk is full"})
	c.As, c.Header = s.b, http.Header{"Idempotency-Key": {s.key}}
	return c
}

func request(l *lane, s *scene) error {
	a, err := l.ask(requesting(s))
	s.request = a.Text("id")
	return err
}

// deciding returns the call with which a decides about the request of b.
func deciding(how string) func(s *scene) framework.Call {
	return func(s *scene) framework.Call {
		return inWorkspace(s, http.MethodPost, "/requests/"+s.request+"/"+how, map[string]string{})
	}
}

// requested reports whether the only request has the state, and b sudo after it was approved, and else not.
func requested(state v1alpha1.AccessRequestState) func(truth *framework.Truth, s *scene) bool {
	return func(truth *framework.Truth, s *scene) bool {
		org := truth.Orgs[s.org]
		m := org.Memberships[s.ws+"."+s.b]
		for _, r := range org.Requests {
			return len(org.Requests) == 1 && cmp.Or(r.Status.State, v1alpha1.RequestOpen) == state && len(org.Organization.Spec.RequestChanges) == 0 &&
				m != nil && (len(m.Spec.Extra) == 1) == (state == v1alpha1.RequestApproved)
		}
		return false
	}
}

func notRequested(truth *framework.Truth, s *scene) bool { return len(truth.Orgs[s.org].Requests) == 0 }

// What a person is invited to and what they ask for, with the answers.
func sharingOperations() []operation {
	people := steps(asked(signUp), asked(otherSignsUp), org)
	withInvitation := steps(people, invitation)
	inside := steps(people, workspace, asked(addTo(inWorkspace, "member", false)))
	withRequest := steps(inside, request)
	open, decided := invited(v1alpha1.InvitationOpen), []int{http.StatusConflict}
	return []operation{
		// Nobody reads the secret again: a repetition is told that the invitation is there.
		{name: "invitation make", setup: people, call: inviting, done: open, none: notInvited, already: decided},
		{
			name: "invitation accept", setup: withInvitation, call: answering("accept"),
			done: invited(v1alpha1.InvitationAccepted), none: open,
		},
		{
			name: "invitation decline", setup: withInvitation, call: answering("decline"),
			done: invited(v1alpha1.InvitationDeclined), none: open, already: decided,
		},
		{
			name: "invitation revoke", setup: withInvitation,
			call: func(s *scene) framework.Call { return inOrg(s, http.MethodDelete, "/invitations/"+s.invitation, nil) },
			done: invited(v1alpha1.InvitationRevoked), none: open, already: []int{http.StatusNotFound, http.StatusConflict},
		},
		{name: "request make", setup: inside, call: requesting, done: requested(v1alpha1.RequestOpen), none: notRequested},
		{
			name: "request approve", setup: withRequest, call: deciding("approve"),
			done: requested(v1alpha1.RequestApproved), none: requested(v1alpha1.RequestOpen), already: decided,
		},
		{
			name: "request revoke", setup: steps(withRequest, asked(deciding("approve"))), call: deciding("revoke"),
			done: requested(v1alpha1.RequestEnded), none: requested(v1alpha1.RequestApproved), already: decided,
		},
	}
}
