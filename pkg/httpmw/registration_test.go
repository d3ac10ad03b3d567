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

func (p registry) ByUsername(rbacIdentity string) (*v1alpha1.User, bool) {
	for _, u := range p {
		if u.Spec.RBACIdentity != "" && u.Spec.RBACIdentity == rbacIdentity {
			return u, true
		}
	}
	return nil, false
}

func (p registry) ByName(name string) (*v1alpha1.User, bool) { return p.ByIdentity("", name) }

func (p registry) signUp(_ context.Context, id *auth.Identity, vouched bool) (*v1alpha1.User, error) {
	if !vouched {
		return nil, errs.New(errs.Forbidden, "closed")
	}
	u := &v1alpha1.User{}
	u.Name = id.Subject
	p[id.Subject] = u
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
	r.Use(httpmw.Authenticate(authentication(tokens, p, p.signUp)))
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
	require.Equal(t, http.StatusOK, registry{}.with("admin", v1alpha1.RegistrationApproved).code(thief))
}

// A name that a person can choose makes no platform admin; the operator's and the issuer's do.
func TestAdmins_areWhomTheOperatorNames(t *testing.T) {
	t.Parallel()
	admins := httpmw.Admins{Users: []string{"heidi", "https://idp#42", "static#eve"}, Groups: []string{"kedge:ops"}}
	for name, c := range map[string]struct {
		id   auth.Identity
		want bool
	}{
		"the static user":              {auth.Identity{Issuer: auth.StaticIssuer, Subject: "heidi"}, true},
		"another static user":          {auth.Identity{Issuer: auth.StaticIssuer, Subject: "Heidi", PreferredUsername: "heidi"}, false},
		"the subject of an issuer":     {auth.Identity{Issuer: "https://idp", Subject: "42"}, true},
		"the subject of another one":   {auth.Identity{Issuer: "https://other", Subject: "42"}, false},
		"a subject like a static user": {auth.Identity{Issuer: "https://idp", Subject: "heidi", Username: "heidi", PreferredUsername: "heidi", Email: "heidi"}, false},
		"a static user with a #":       {auth.Identity{Issuer: auth.StaticIssuer, Subject: "eve"}, false},
		"the prefixed group":           {auth.Identity{Issuer: "https://idp", Subject: "1", Groups: []string{"kedge:dev", "kedge:ops"}}, true},
		"a group without the prefix":   {auth.Identity{Issuer: "https://idp", Subject: "1", Groups: []string{"ops"}}, false},
		"an issuer that ends with #42": {auth.Identity{Issuer: "https://idp#42", Subject: ""}, false},
	} {
		require.Equal(t, c.want, admins.Has(&c.id), name)
	}
}

func TestAuthenticate_aRejectedPlatformAdminStaysOut(t *testing.T) {
	t.Parallel()
	admin := auth.Identity{Issuer: auth.StaticIssuer, Subject: "admin", Groups: []string{"ops"}}
	require.Equal(t, http.StatusForbidden, registry{}.with("admin", v1alpha1.RegistrationRejected).code(admin))
	require.Equal(t, http.StatusOK, registry{}.with("admin", v1alpha1.RegistrationApproved).code(admin))
}
