package store_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestCreateUser_createsOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "alice"}, Spec: spec("1", "kedge:1")}
	made, err := s.store().CreateUser(t.Context(), u)
	require.NoError(t, err)
	require.NotEmpty(t, made.UID)
	_, err = s.store().CreateUser(t.Context(), u)
	require.True(t, errs.Is(err, errs.AlreadyExists), "%v", err)
	read, err := s.store().GetUser(t.Context(), "alice")
	require.NoError(t, err)
	require.Equal(t, made.UID, read.UID)
	_, err = s.store().GetUser(t.Context(), "bob")
	require.True(t, errs.Is(err, errs.NotFound), "%v", err)
}

func TestCreateUser_succeedsWhenTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	lost := 1
	s.lose = func(method string) bool { lost--; return method == http.MethodPost && lost >= 0 }
	made, err := s.store().CreateUser(t.Context(), &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "alice"}})
	require.NoError(t, err)
	require.NotEmpty(t, made.UID)
	require.Equal(t, []string{http.MethodPost, http.MethodPost, http.MethodGet}, s.took())
}

// Once the object is known to exist, a retry only reads it.
func TestCreateUser_retriesOnlyTheRead(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	posts, failures := 0, 3
	s.lose = func(method string) bool {
		switch {
		case method == http.MethodPost:
			posts++
			return posts == 1
		case method == http.MethodGet && failures > 0:
			failures--
			return true
		}
		return false
	}
	made, err := s.store().CreateUser(t.Context(), &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "alice"}})
	require.NoError(t, err)
	require.NotEmpty(t, made.UID)
	require.Zero(t, failures, "the control: reading it has failed")
	require.Equal(t, 2, posts)
}

func TestWrites_changeOnlyTheirFields(t *testing.T) {
	t.Parallel()
	s := place(t)
	hub := s.store()
	held := &v1alpha1.User{}
	require.True(t, s.held(aliceAt, held))
	u, err := hub.ChangeUser(t.Context(), held, nil, renamed)
	require.NoError(t, err)
	require.Equal(t, "New", u.Spec.DisplayName)
	u, err = hub.ChangeUser(t.Context(), u, nil, marked)
	require.NoError(t, err)
	require.True(t, deletedAt().Equal(u.Status.DeletionRequestedAt))
	require.Equal(t, "New", u.Spec.DisplayName)
	u, err = hub.ChangeUser(t.Context(), u, nil, func(_ context.Context, u *v1alpha1.User) error {
		u.Status.DeletionRequestedAt = nil
		return nil
	})
	require.NoError(t, err)
	require.Nil(t, u.Status.DeletionRequestedAt)

	o := &v1alpha1.Organization{}
	require.True(t, s.held(orgAt, o))
	o, err = hub.ChangeOrganization(t.Context(), o, nil, func(_ context.Context, o *v1alpha1.Organization) error {
		o.Spec.DisplayName = "New"
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, "New", o.Spec.DisplayName)
	require.Equal(t, "alice", o.Annotations[v1alpha1.CreatedByAnnotation])

	ws, err := hub.ChangeWorkspace(t.Context(), "org1", tenancy.Workspace{UUID: "w", OrgUUID: "o"}, nil, func(_ tenancy.Workspace, annotations map[string]string) error {
		annotations[v1alpha1.DisplayNameAnnotation] = "New"
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, "New", ws.DisplayName)
	require.Equal(t, "o", ws.OrgUUID)
	ws, err = hub.ChangeWorkspace(t.Context(), "org1", ws, nil, func(_ tenancy.Workspace, annotations map[string]string) error {
		annotations[v1alpha1.DeletionRequestedAtAnnotation] = "2026-03-01T12:00:00Z"
		return nil
	})
	require.NoError(t, err)
	require.True(t, ws.Deleted())
	require.Equal(t, "New", ws.DisplayName)
}

// What a cache has may be older than what a replica has written: an edit that changes nothing of it
// is made on what kcp has.
func TestChange_ofAnOutdatedObjectIsMade(t *testing.T) {
	t.Parallel()
	s, held := alice(t)
	held.Spec.DisplayName = "New"
	u, err := s.store().ChangeUser(t.Context(), held, nil, renamed)
	require.NoError(t, err)
	require.Equal(t, "New", u.Spec.DisplayName)
	require.NotEqual(t, held.ResourceVersion, u.ResourceVersion)
}

func TestMark_writesNothingWhenRefused(t *testing.T) {
	t.Parallel()
	s := place(t)
	refusal := errs.New(errs.NotFound, "its grace is over")
	before := s.versionOf(workspaceAt)
	_, err := s.store().ChangeWorkspace(t.Context(), "org1", tenancy.Workspace{UUID: "w"}, nil, func(tenancy.Workspace, map[string]string) error { return refusal })
	require.Equal(t, refusal, err)
	ws, err := s.store().ChangeWorkspace(t.Context(), "org1", tenancy.Workspace{UUID: "w"}, nil, func(tenancy.Workspace, map[string]string) error { return nil })
	require.NoError(t, err)
	require.Equal(t, "W", ws.DisplayName)
	require.Equal(t, before, s.versionOf(workspaceAt))
}

// The status is written by itself, because kcp ignores what comes with it.
func TestChange_ofStatusAndSpecIsNotSent(t *testing.T) {
	t.Parallel()
	s, held := alice(t)
	_, err := s.store().ChangeUser(t.Context(), held, nil, func(ctx context.Context, u *v1alpha1.User) error {
		return errors.Join(renamed(ctx, u), marked(ctx, u))
	})
	require.True(t, errs.Is(err, errs.Internal), "%v", err)
	require.NotContains(t, s.took(), http.MethodPatch)
}

// Errors for clients have a code and a message of the hub, never kcp's text.
func TestErrors_ofKCPAreConverted(t *testing.T) {
	t.Parallel()
	users := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "users"}
	const secret = "etcdserver: secret"
	for name, c := range map[string]struct {
		refusal *apierrors.StatusError
		code    errs.Code
		message string
	}{
		"invalid": {apierrors.NewInvalid(schema.GroupKind{Group: v1alpha1.GroupName, Kind: "User"}, "alice", field.ErrorList{
			field.Invalid(field.NewPath("spec", "displayName"), "x", "too short"),
		}), errs.Invalid, "the user is not valid"},
		"invalid, without details": {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid, Message: secret}}, errs.Invalid, "the user is not valid"},
		"gone":                     {apierrors.NewNotFound(users, secret), errs.NotFound, "the user does not exist any more"},
		"taken":                    {apierrors.NewAlreadyExists(users, secret), errs.AlreadyExists, "the user exists already"},
		"a bug":                    {apierrors.NewBadRequest(secret), errs.Internal, "the user could not be written"},
		"no right":                 {apierrors.NewForbidden(users, "alice", errors.New(secret)), errs.Unavailable, "kcp refuses a request of the hub at the moment; try again, and tell the operator if it lasts"},
		"too many requests":        {apierrors.NewTooManyRequests(secret, 0), errs.Unavailable, "kcp is busy, or is only beginning to serve this API; try again in a moment"},
		"a time-out":               {apierrors.NewTimeoutError(secret, 0), errs.Unavailable, "kcp cannot be reached at the moment; try again"},
		"a failure of kcp's":       {apierrors.NewInternalError(errors.New(secret)), errs.Unavailable, "kcp cannot be reached at the moment; try again"},
		"conflicts all the time":   {apierrors.NewConflict(users, "alice", errors.New(secret)), errs.Unavailable, "the user is being changed by others all the time; try again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, held := alice(t)
			s.refuse = func(method string) *apierrors.StatusError {
				if method != http.MethodPatch {
					return nil
				}
				return c.refusal
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if apierrors.IsConflict(c.refusal) {
				ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
			}
			_, err := s.store().ChangeUser(ctx, held, nil, renamed)
			var told *errs.Error
			require.ErrorAs(t, err, &told)
			require.Equal(t, c.code, told.Code)
			require.Equal(t, c.message, told.Message)
			require.NotContains(t, told.Message, secret)
			require.Equal(t, c.code == errs.Unavailable, told.RetryAfter > 0)
			if name == "invalid" {
				require.Equal(t, []errs.Cause{{Type: "FieldValueInvalid", Field: "displayName", Message: `Invalid value: "x": too short`}}, told.Causes)
			}
		})
	}
}

func TestErrors_ofAnUnreachableKCPAreUnavailable(t *testing.T) {
	t.Parallel()
	s, _ := alice(t)
	hub := s.store()
	s.Close()
	_, err := hub.GetUser(t.Context(), "alice")
	require.True(t, errs.Is(err, errs.Unavailable), "%v", err)

	// A cancelled request is reported in the same way.
	s, _ = alice(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.store().GetUser(ctx, "alice")
	require.True(t, errs.Is(err, errs.Unavailable), "%v", err)
}
