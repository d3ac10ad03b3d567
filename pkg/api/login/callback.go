package login

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// callback ends the way over the provider. What the browser brings counts only with the login
// cookie that the way began with.
func (h *Handler) callback(w http.ResponseWriter, r *http.Request) error {
	in, err := parse(r.URL.RawQuery)
	if err != nil {
		return err
	}
	p, err := h.takeProgress(w, r, func(p progress) error {
		if p.onPage() || subtle.ConstantTimeCompare([]byte(in["state"]), []byte(p.State)) != 1 {
			return errs.New(errs.Invalid, "this answer of the identity provider belongs to another login; start the login again")
		}
		// A refused request can be sent again: the cookie of the login stays.
		if key := h.returning(r); key != "" {
			return h.Limits.Session(key)
		}
		// Everybody gets the cookie of a login, so it proves nothing to the identity provider.
		return h.Limits.Exchange(r.Context())
	})
	if err != nil {
		return err
	}
	user, grant, err := h.authenticate(h.signingUp(r), p, in)
	if err == nil {
		err = h.Limits.Person(user.Name)
	}
	if err == nil {
		err = h.doorOf(p.Kind).enter(w, r, p, user, grant)
	}
	if err != nil {
		return h.decline(w, r, p, user, err)
	}
	return nil
}

// authenticate exchanges the provider's code and returns the User. The User can be non-nil
// beside an error that refuses them.
func (h *Handler) authenticate(ctx context.Context, p progress, in params) (*v1alpha1.User, *auth.Grant, error) {
	if in["error"] != "" {
		return nil, nil, providerRefusal(in)
	}
	code, err := in.required("code")
	if err != nil {
		return nil, nil, err
	}
	grant, err := h.Provider.Exchange(ctx, code, h.loginRequest(p))
	if err != nil {
		return nil, nil, exchangeRefusal(err)
	}
	user, err := h.person(ctx, grant.Identity)
	return user, grant, err
}

// person returns the User of an identity, with an error if that User may not log in. A
// soft-deleted person may: undelete needs a session.
func (h *Handler) person(ctx context.Context, id *auth.Identity) (*v1alpha1.User, error) {
	user, err := h.SignUp(ctx, id)
	if err != nil {
		return nil, err
	}
	switch tenancy.RegistrationOf(user) {
	case v1alpha1.RegistrationPending:
		return user, &refusal{
			code: accessDenied, status: http.StatusForbidden, title: "Your registration waits for approval",
			message: "your registration waits for the approval of a platform admin, to whom you are " + httpmw.AdminName(id) + "; log in again when it is approved",
		}
	case v1alpha1.RegistrationRejected:
		return user, tenancy.Rejected(user)
	}
	if user.Spec.RBACIdentity != id.Username {
		return user, errs.New(errs.Forbidden, "the identity provider reports another username for you than before; ask a platform admin")
	}
	return user, nil
}

// decline reports a failed login to who began it.
func (h *Handler) decline(w http.ResponseWriter, r *http.Request, p progress, user *v1alpha1.User, err error) error {
	e := refusalOf(r, err)
	name := ""
	if user != nil {
		name = user.Name
	}
	h.record(r, Event{User: name, Action: "login " + p.client()}, e.status)
	return h.doorOf(p.Kind).refuse(w, r, p, user, e)
}

// providerRefusal is an error that the provider reported through the browser, in its words.
func providerRefusal(in params) error {
	e := &refusal{code: accessDenied, status: http.StatusForbidden, message: "the identity provider did not log you in: " + cleanDescription(in["error"])}
	switch in["error"] {
	case accessDenied:
		e.message = "the login was refused at the identity provider"
	case temporarilyUnavailable, serverError:
		e.code, e.status = in["error"], http.StatusServiceUnavailable
		e.message = "the identity provider does not work at the moment"
	}
	if text := cleanDescription(in["error_description"]); text != "" {
		e.message += " (" + text + ")"
	}
	return e
}

// exchangeRefusal is the error of an exchange at the provider. The text of an unknown error goes
// to the log only.
func exchangeRefusal(err error) error {
	var known *errs.Error
	if errors.As(err, &known) {
		return err
	}
	if errors.Is(err, auth.ErrGrantRefused) {
		return errs.Wrap(errs.Forbidden, err, "the identity provider refused the code of this login; start the login again")
	}
	return errs.Wrap(errs.Forbidden, err, "the identity provider's ID token is not valid here; ask a platform admin")
}

// nameOf is the name of a person on a page.
func nameOf(u *v1alpha1.User) string {
	for _, name := range []string{u.Spec.DisplayName, u.Spec.Email} {
		if name = printable(name); name != "" {
			return name
		}
	}
	return u.Name
}

// intend writes an intent to the audit log. The error refuses the request.
func (h *Handler) intend(r *http.Request, e Event) error {
	e.Stage = audit.StageIntent
	if err := h.Audit(r.Context(), e.event()); err != nil {
		return httpmw.NotAudited(err)
	}
	return nil
}

// record writes an outcome to the audit log and counts it if it is the end of a login. Nothing can be refused any more if that fails.
func (h *Handler) record(r *http.Request, e Event, code int) {
	h.Metrics.record(e.Action, code)
	e.Stage, e.Code = audit.StageOutcome, code
	_ = h.Audit(r.Context(), e.event())
}
