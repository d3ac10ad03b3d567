package httpmw_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/storage"
)

// Whatever does not say that it takes something away or keeps its size needs room in the store.
func TestIntend_asksTheStoreForRoom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, path string
		write        storage.Write
		code         int
	}{
		{http.MethodPost, "/api/orgs", storage.Growth, http.StatusCreated},
		{http.MethodPost, "/api/orgs/o/members", storage.Growth, http.StatusCreated},
		{http.MethodPost, "/api/orgs/o/undelete", storage.Change, http.StatusCreated},
		{http.MethodDelete, "/api/orgs/o/members/u", storage.Ending, http.StatusCreated},
	} {
		s := newAuditScene()
		var asked []storage.Write
		s.full = func(w storage.Write) error { asked = append(asked, w); return nil }
		require.Equal(t, c.code, do(s.http, c.method, c.path, as("alice")).Code, c.path)
		require.Equal(t, []storage.Write{c.write}, asked, c.path)
		require.Equal(t, 1, s.writes)
		s.take(t)
		s.full = func(storage.Write) error { return errs.New(errs.InsufficientStorage, "full") }
		require.Equal(t, http.StatusInsufficientStorage, do(s.http, c.method, c.path, as("alice")).Code, c.path)
		require.Equal(t, 1, s.writes, "nothing was written")
		events := s.take(t)
		require.Len(t, events, 1, "no intent, and the refusal")
		require.Equal(t, audit.StageOutcome, events[0].Stage)
		require.Equal(t, http.StatusInsufficientStorage, events[0].Code)
	}
}

func TestSignUp_needsRoomForNewPeopleOnly(t *testing.T) {
	t.Parallel()
	limits, _, _ := newLimits(t)
	full := errs.New(errs.InsufficientStorage, "full")
	auditor := httpmw.NewAuditor(func(audit.Event) error { return nil }, clock.RealClock{}, func(w storage.Write) error {
		if w == storage.Growth {
			return full
		}
		return nil
	}, nil, nil)
	known := registry{}.with("carol", v1alpha1.RegistrationApproved)
	signUp := auditor.SignUp(known, known, httpmw.RegistrationOpen, limits.SignUps(0, 0), notInvited)
	_, err := signUp(t.Context(), &auth.Identity{Issuer: "https://idp", Subject: "dave"}, false)
	require.ErrorIs(t, err, full)
	require.NotContains(t, known, "dave")
	_, err = signUp(t.Context(), &auth.Identity{Issuer: "https://idp", Subject: "carol"}, false)
	require.NoError(t, err)
}
