package httpmw_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// registry is a closed hub: it has the people that it has, by subject, and takes those
// for whom the operator vouches.
type registry map[string]*v1alpha1.User

func (p registry) ByIdentity(_, subject string) (*v1alpha1.User, bool) {
	u, ok := p[subject]
	return u, ok
}

func (p registry) signUp(_ context.Context, id *auth.Identity, vouched bool) (*v1alpha1.User, error) {
	if !vouched {
		return nil, errs.New(errs.Forbidden, "closed")
	}
	u := &v1alpha1.User{}
	u.Name = id.Subject
	return u, nil
}

func (p registry) with(name string, registration v1alpha1.Registration) registry {
	u := &v1alpha1.User{}
	u.Name, u.Spec.Registration = name, registration
	p[name] = u
	return p
}

// code is what an identity gets where it asks for anything, with --admin-user=admin
// and --admin-group=ops.
func (p registry) code(id auth.Identity) int {
	id.Kind, id.PreferredUsername = auth.Person, id.Subject
	tokens := authenticator(func(string) (*auth.Identity, bool, error) { return &id, true, nil })
	r := chi.NewRouter()
	r.Use(httpmw.Authenticate(tokens, p, p.signUp, httpmw.Admins{Users: []string{"admin"}, Groups: []string{"ops"}}))
	r.Get("/plain", ok)
	return get(r, "/plain", as("token")).Code
}

// The first platform admin has nobody who could approve them.
func TestAuthenticate_admitsPlatformAdminsAlways(t *testing.T) {
	t.Parallel()
	for _, before := range []v1alpha1.Registration{"", v1alpha1.RegistrationPending} {
		people := func(name string) registry {
			if before == "" {
				return registry{}
			}
			return registry{}.with(name, before)
		}
		require.Equal(t, http.StatusOK, people("admin").code(auth.Identity{Issuer: auth.StaticIssuer, Subject: "admin"}), "%q", before)
		require.Equal(t, http.StatusOK, people("carol").code(auth.Identity{Issuer: "https://idp", Subject: "carol", Groups: []string{"others", "ops"}}), "%q", before)
		require.Equal(t, http.StatusForbidden, people("carol").code(auth.Identity{Issuer: auth.StaticIssuer, Subject: "carol", Groups: []string{"Ops", "ops-2"}}), "%q", before)
	}
}

// Elsewhere than in the token file people have a say in what they are called.
func TestAuthenticate_takingANameMakesNoAdmin(t *testing.T) {
	t.Parallel()
	thief := auth.Identity{Issuer: "https://idp", Subject: "admin"}
	require.Equal(t, http.StatusForbidden, registry{}.code(thief))
	require.Equal(t, http.StatusForbidden, registry{}.with("admin", v1alpha1.RegistrationPending).code(thief))
	require.Equal(t, http.StatusOK, registry{}.with("admin", v1alpha1.RegistrationApproved).code(thief), "approved, they are who is meant")
}

func TestAuthenticate_aRejectedPlatformAdminStaysOut(t *testing.T) {
	t.Parallel()
	admin := auth.Identity{Issuer: auth.StaticIssuer, Subject: "admin", Groups: []string{"ops"}}
	require.Equal(t, http.StatusForbidden, registry{}.with("admin", v1alpha1.RegistrationRejected).code(admin))
	require.Equal(t, http.StatusOK, registry{}.with("admin", v1alpha1.RegistrationApproved).code(admin))
}
