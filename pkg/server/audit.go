package server

import (
	"context"
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// intendProxied writes the intent of a proxied request that may change anything, or that uses sudo.
// Without sudo, a delete passes also if the audit log cannot be written.
func intendProxied(r *http.Request, e tenancy.Entry, sudo bool) error {
	if !httpmw.MayChange(r) {
		return nil
	}
	info, ok := request.RequestInfoFrom(r.Context())
	deletes := ok && (info.Verb == "delete" || info.Verb == "deletecollection")
	return httpmw.Intend(r, httpmw.Intent{
		Reduces: deletes && !sudo, Org: e.Workspace.OrgUUID, Workspace: e.Workspace.UUID, Facts: audit.Facts{Elevated: sudo},
	})
}

// recorder writes an event with the ids and the peer of the request that a context belongs to.
type recorder func(context.Context, audit.Event) error

// signUp creates the User of an identity, which people does not find. It approves a pending User whom
// the operator's flags name.
func signUp(s *store.SignUp, people httpmw.People, registration string, record recorder) httpmw.SignUp {
	return func(ctx context.Context, id *auth.Identity, vouched bool) (u *v1alpha1.User, err error) {
		spec := tenancy.NewUserSpec(id.Issuer, id.Subject, id.Username, id.DisplayName, id.Email)
		e := audit.Event{Action: "sign-up", Actor: audit.Actor{Kind: audit.ActorPerson, Issuer: id.Issuer}}
		switch {
		case vouched:
		case registration == registrationClosed:
			err = errs.New(errs.Forbidden, "this hub takes nobody new; ask a platform admin")
			e.Stage, e.Code, e.Actor.Kind = audit.StageOutcome, httpapi.StatusOf(err), audit.ActorAnonymous
			_ = record(ctx, e)
			return nil, err
		case registration == registrationApproval:
			spec.Registration = v1alpha1.RegistrationPending
		}
		e.Facts = &audit.Facts{Subject: id.Subject, Registration: string(spec.Registration)}
		u, there := people.ByIdentity(id.Issuer, id.Subject)
		if !there {
			if u, err = audited(ctx, record, e, func() (*v1alpha1.User, error) { return s.Ensure(ctx, spec, id.PreferredUsername) }); err != nil {
				return u, err
			}
		}
		if !vouched || u.Spec.Registration != v1alpha1.RegistrationPending {
			return u, nil
		}
		approve := audit.Event{Action: "approve", Actor: audit.Actor{Kind: audit.ActorHub}, Object: u.Name, Facts: &audit.Facts{Registration: string(v1alpha1.RegistrationApproved)}}
		return audited(ctx, record, approve, func() (*v1alpha1.User, error) { return s.Approve(ctx, u) })
	}
}

// audited writes a User between the intent and the outcome of the change.
func audited(ctx context.Context, record recorder, e audit.Event, write func() (*v1alpha1.User, error)) (*v1alpha1.User, error) {
	e.Stage = audit.StageIntent
	if err := record(ctx, e); err != nil {
		return nil, httpmw.NotAudited(err)
	}
	u, err := write()
	e.Stage, e.Code = audit.StageOutcome, http.StatusOK
	if err != nil {
		e.Code = httpapi.StatusOf(err)
	} else {
		e.Object = u.Name
	}
	_ = record(ctx, e)
	return u, err
}
