package tenancy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

func TestSessionEnded_followsFromObjectsAndTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.March, 2, 8, 30, 0, 900_000_000, time.UTC)
	at := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(d)) }
	stored := func(d time.Duration) *metav1.Time {
		in := metav1.NewTime(now.Add(d).Truncate(time.Second))
		return &in
	}
	const idle = time.Hour
	for name, c := range map[string]struct {
		session func(*v1alpha1.Session)
		user    func(*v1alpha1.User)
		gone    bool
		ended   bool
	}{
		"alive: the positive control":   {},
		"endedAt is set":                {session: func(s *v1alpha1.Session) { s.Spec.EndedAt = stored(time.Hour) }, ended: true},
		"being deleted":                 {session: func(s *v1alpha1.Session) { s.DeletionTimestamp = stored(0) }, ended: true},
		"max age is over":               {session: func(s *v1alpha1.Session) { s.Spec.ExpiresAt = at(0) }, ended: true},
		"max age is nearly over":        {session: func(s *v1alpha1.Session) { s.Spec.ExpiresAt = at(1) }},
		"idle":                          {session: func(s *v1alpha1.Session) { s.Spec.LastUsedAt = at(-idle) }, ended: true},
		"nearly idle":                   {session: func(s *v1alpha1.Session) { s.Spec.LastUsedAt = at(1 - idle) }},
		"the code was not redeemed":     {session: func(s *v1alpha1.Session) { s.Spec.Code = &v1alpha1.SessionCode{ExpiresAt: at(0)} }, ended: true},
		"the code can be redeemed":      {session: func(s *v1alpha1.Session) { s.Spec.Code = &v1alpha1.SessionCode{ExpiresAt: at(1)} }},
		"the User is gone":              {gone: true, ended: true},
		"the User is purged":            {user: func(u *v1alpha1.User) { u.DeletionTimestamp = stored(0) }, ended: true},
		"the User is rejected":          {user: func(u *v1alpha1.User) { u.Spec.Registration = v1alpha1.RegistrationRejected }, ended: true},
		"the User is pending":           {user: func(u *v1alpha1.User) { u.Spec.Registration = v1alpha1.RegistrationPending }},
		"another User of this name":     {user: func(u *v1alpha1.User) { u.CreationTimestamp = *stored(-time.Minute + time.Second) }, ended: true},
		"soft-deleted later":            {user: func(u *v1alpha1.User) { u.Status.DeletionRequestedAt = stored(-time.Second) }, ended: true},
		"soft-deleted in that second":   {user: func(u *v1alpha1.User) { u.Status.DeletionRequestedAt = stored(-time.Minute) }, ended: true},
		"logged in after soft deletion": {user: func(u *v1alpha1.User) { u.Status.DeletionRequestedAt = stored(-time.Minute - time.Second) }},
		"signed out everywhere":         {user: func(u *v1alpha1.User) { u.Spec.TokensValidAfter = stored(-time.Second) }, ended: true},
		"signed out in that second":     {user: func(u *v1alpha1.User) { u.Spec.TokensValidAfter = stored(-time.Minute) }, ended: true},
		"logged in after the sign-out":  {user: func(u *v1alpha1.User) { u.Spec.TokensValidAfter = stored(-time.Minute - time.Second) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: *stored(-time.Minute)}}
			s.Spec.LastUsedAt, s.Spec.ExpiresAt = at(-time.Second), at(time.Hour)
			u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: *stored(-time.Minute)}}
			if c.session != nil {
				c.session(s)
			}
			if c.user != nil {
				c.user(u)
			}
			if c.gone {
				u = nil
			}
			require.Equal(t, c.ended, SessionEnded(s, u, now, idle))
		})
	}
}

// The time of a sign-out is stored without its fraction of a second.
func TestTokenSignedOut_countsTheSecondOfTheSignOut(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Date(2026, time.March, 2, 8, 30, 0, 0, time.UTC))
	u := &v1alpha1.User{}
	require.False(t, TokenSignedOut(u, at.Time))
	u.Spec.TokensValidAfter = &at
	require.True(t, TokenSignedOut(u, at.Add(-time.Hour)))
	require.True(t, TokenSignedOut(u, at.Time))
	require.True(t, TokenSignedOut(u, at.Add(999*time.Millisecond)))
	require.False(t, TokenSignedOut(u, at.Add(time.Second)))
}

func TestCheckIdentity_refusesAChangedUsername(t *testing.T) {
	t.Parallel()
	u := &v1alpha1.User{}
	u.Spec.RBACIdentity = "kedge:alice"
	require.NoError(t, CheckIdentity(u, "kedge:alice"))
	require.True(t, errs.Is(CheckIdentity(u, "kedge:bob"), errs.Forbidden))
}
