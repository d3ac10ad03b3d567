package httpmw

import (
	"context"
	"net/http"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/storage"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// The values of --registration: who can sign up.
const (
	RegistrationOpen     = "open"
	RegistrationApproval = "approval"
	RegistrationClosed   = "closed"
)

// SignUp creates the User of a new identity exactly once and returns when the caches have it.
// vouched means that the operator's flags name the person as a platform admin: the User is
// approved whatever --registration says, also if it is pending already.
type SignUp func(ctx context.Context, id *auth.Identity, vouched bool) (*v1alpha1.User, error)

// Users creates and approves Users.
type Users interface {
	// Ensure returns the User of the identity in desired, and creates it if there is none.
	Ensure(ctx context.Context, desired v1alpha1.UserSpec, preferred string) (*v1alpha1.User, error)
	// Approve approves a User whose registration is pending.
	Approve(ctx context.Context, held *v1alpha1.User) (*v1alpha1.User, error)
}

// SignUp returns the SignUp for a value of --registration. It writes an event before and after each
// change. Only a new person without a refusal by the caches takes from the limit and has an intent: all
// others cost a look into the caches. Where not everybody can sign up, people who are invited can.
func (a *Auditor) SignUp(users Users, people People, registration string, limit *SignUpLimit, invited Invited) SignUp {
	return func(ctx context.Context, id *auth.Identity, vouched bool) (u *v1alpha1.User, err error) {
		spec := tenancy.NewUserSpec(id.Issuer, id.Subject, id.Username, id.DisplayName, id.Email)
		e := audit.Event{Action: "sign-up", Actor: audit.Actor{Kind: audit.ActorPerson, Issuer: id.Issuer}}
		u, there := people.ByIdentity(id.Issuer, id.Subject)
		_, taken := people.ByUsername(id.Username)
		invitation := ""
		if !vouched && (there || !taken && registration != RegistrationOpen) {
			if invitation, err = invited(ctx, id); err != nil {
				return nil, err
			}
		}
		approved := vouched || invitation != ""
		switch {
		case there && !approved:
			return u, nil
		case !approved && registration == RegistrationClosed:
			return nil, a.refuseSignUp(ctx, e, "this hub takes nobody new; ask a platform admin, and name yourself "+AdminName(id))
		case !there && taken:
			return nil, a.refuseSignUp(ctx, e, "another person already has this username; ask a platform admin")
		case !approved && registration == RegistrationApproval:
			spec.Registration = v1alpha1.RegistrationPending
		}
		e.Facts = &audit.Facts{Subject: id.Subject, Registration: string(spec.Registration), Invitation: invitation}
		if !there {
			if err := a.admit(storage.Growth); err != nil {
				return nil, err
			}
			settle, err := limit.take(ctx)
			if err != nil {
				return nil, err
			}
			u, err = a.audited(ctx, e, func() (*v1alpha1.User, error) { return users.Ensure(ctx, spec, id.PreferredUsername) })
			if settle(err); err != nil {
				return u, err
			}
		}
		if !approved || u.Spec.Registration != v1alpha1.RegistrationPending {
			return u, nil
		}
		facts := &audit.Facts{Registration: string(v1alpha1.RegistrationApproved), Invitation: invitation}
		approve := audit.Event{Action: "approve", Actor: audit.Actor{Kind: audit.ActorHub}, Object: u.Name, Facts: facts}
		return a.audited(ctx, approve, func() (*v1alpha1.User, error) { return users.Approve(ctx, u) })
	}
}

// refuseSignUp returns the refusal of a person whom the hub does not create. Its event is sampled.
func (a *Auditor) refuseSignUp(ctx context.Context, e audit.Event, message string) error {
	err := errs.New(errs.Forbidden, message)
	e.Stage, e.Code, e.Actor.Kind = audit.StageOutcome, httpapi.StatusOf(err), audit.ActorAnonymous
	_ = a.Record(ctx, e)
	return err
}

// audited writes a User between the intent and the outcome of the change.
func (a *Auditor) audited(ctx context.Context, e audit.Event, write func() (*v1alpha1.User, error)) (*v1alpha1.User, error) {
	e.Stage = audit.StageIntent
	if err := a.Record(ctx, e); err != nil {
		return nil, NotAudited(err)
	}
	u, err := write()
	e.Stage, e.Code = audit.StageOutcome, http.StatusOK
	if err != nil {
		e.Code = httpapi.StatusOf(err)
	} else {
		e.Object = u.Name
	}
	_ = a.Record(ctx, e)
	return u, err
}
