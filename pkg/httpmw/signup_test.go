package httpmw_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// Ensure implements httpmw.Users. There is no name for the subject nameless.
func (p registry) Ensure(_ context.Context, desired v1alpha1.UserSpec, _ string) (*v1alpha1.User, error) {
	if desired.Subject == "nameless" {
		return nil, errs.New(errs.Conflict, "no free name")
	}
	return p.with(desired.Subject, desired.Registration)[desired.Subject], nil
}

// Approve implements httpmw.Users.
func (p registry) Approve(_ context.Context, u *v1alpha1.User) (*v1alpha1.User, error) {
	return p.with(u.Name, v1alpha1.RegistrationApproved)[u.Name], nil
}

func notInvited(context.Context, *auth.Identity) (string, error) { return "", nil }

func TestSignUp_admitsWhoIsInvited(t *testing.T) {
	t.Parallel()
	unreachable := errs.New(errs.Unavailable, "kcp is down")
	for name, c := range map[string]struct {
		people       registry
		registration string
		invitation   string
		fails        error
		want         v1alpha1.Registration
		code         errs.Code
		facts        []audit.Facts
	}{
		"closed": {
			registry{}, httpmw.RegistrationClosed, "i1", nil, v1alpha1.RegistrationApproved, 0,
			[]audit.Facts{{Subject: "carol", Registration: "Approved", Invitation: "i1"}},
		},
		"approval": {
			registry{}, httpmw.RegistrationApproval, "i1", nil, v1alpha1.RegistrationApproved, 0,
			[]audit.Facts{{Subject: "carol", Registration: "Approved", Invitation: "i1"}},
		},
		"somebody who waits": {
			registry{}.with("carol", v1alpha1.RegistrationPending), httpmw.RegistrationApproval, "i1", nil, v1alpha1.RegistrationApproved, 0,
			[]audit.Facts{{Registration: "Approved", Invitation: "i1"}},
		},
		"open needs none":           {registry{}, httpmw.RegistrationOpen, "i1", nil, v1alpha1.RegistrationApproved, 0, []audit.Facts{{Subject: "carol", Registration: "Approved"}}},
		"waits without one":         {registry{}.with("carol", v1alpha1.RegistrationPending), httpmw.RegistrationApproval, "", nil, v1alpha1.RegistrationPending, 0, nil},
		"closed, without one":       {registry{}, httpmw.RegistrationClosed, "", nil, "", errs.Forbidden, nil},
		"closed, and kcp is away":   {registry{}, httpmw.RegistrationClosed, "", unreachable, "", errs.Unavailable, nil},
		"somebody who was rejected": {registry{}.with("carol", v1alpha1.RegistrationRejected), httpmw.RegistrationClosed, "i1", nil, v1alpha1.RegistrationRejected, 0, nil},
	} {
		var facts []audit.Facts
		limits, _, _ := newLimits(t)
		auditor := httpmw.NewAuditor(func(e audit.Event) error {
			if e.Stage == audit.StageIntent {
				facts = append(facts, *e.Facts)
			}
			return nil
		}, clock.RealClock{}, nil, nil, nil)
		signUp := auditor.SignUp(c.people, c.people, c.registration, limits.SignUps(0, 0), func(context.Context, *auth.Identity) (string, error) { return c.invitation, c.fails })
		u, err := signUp(t.Context(), &auth.Identity{Issuer: "https://idp", Subject: "carol", Username: "carol"}, false)
		require.Equal(t, c.facts, facts, name)
		if c.code != 0 {
			require.True(t, errs.Is(err, c.code), name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.want, u.Spec.Registration, name)
	}
}

func TestSignUp_followsRegistrationAndIsAudited(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		people       registry
		registration string
		vouched      bool
		want         v1alpha1.Registration
		refused      bool
		events       []string
	}{
		"open":                      {registry{}, httpmw.RegistrationOpen, false, v1alpha1.RegistrationApproved, false, []string{"intent sign-up", "outcome sign-up"}},
		"approval":                  {registry{}, httpmw.RegistrationApproval, false, v1alpha1.RegistrationPending, false, []string{"intent sign-up", "outcome sign-up"}},
		"closed":                    {registry{}, httpmw.RegistrationClosed, false, "", true, []string{"outcome sign-up"}},
		"closed, for an admin":      {registry{}, httpmw.RegistrationClosed, true, v1alpha1.RegistrationApproved, false, []string{"intent sign-up", "outcome sign-up"}},
		"an admin who was pending":  {registry{}.with("carol", v1alpha1.RegistrationPending), httpmw.RegistrationApproval, true, v1alpha1.RegistrationApproved, false, []string{"intent approve", "outcome approve"}},
		"somebody who was rejected": {registry{}.with("carol", v1alpha1.RegistrationRejected), httpmw.RegistrationOpen, true, v1alpha1.RegistrationRejected, false, nil},
	} {
		var events []string
		limits, _, _ := newLimits(t)
		auditor := httpmw.NewAuditor(func(e audit.Event) error {
			events = append(events, string(e.Stage)+" "+e.Action)
			return nil
		}, clock.RealClock{}, nil, nil, nil)
		u, err := auditor.SignUp(c.people, c.people, c.registration, limits.SignUps(0, 0), notInvited)(t.Context(), &auth.Identity{Issuer: "https://idp", Subject: "carol"}, c.vouched)
		require.Equal(t, c.events, events, name)
		if c.refused {
			require.True(t, errs.Is(err, errs.Forbidden), name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.want, u.Spec.Registration, name)
	}
}

func TestSignUp_refusesWhatIsNotAudited(t *testing.T) {
	t.Parallel()
	auditor := httpmw.NewAuditor(func(audit.Event) error { return context.DeadlineExceeded }, clock.RealClock{}, nil, nil, nil)
	people := registry{}
	limits, _, _ := newLimits(t)
	_, err := auditor.SignUp(people, people, httpmw.RegistrationOpen, limits.SignUps(0, 0), notInvited)(t.Context(), &auth.Identity{Issuer: "https://idp", Subject: "carol"}, false)
	require.True(t, errs.Is(err, errs.Unavailable))
	require.Empty(t, people)
}
