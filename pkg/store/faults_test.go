package store_test

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// A failed read must not change the name of the object that the retry asks for.
func TestChange_retriesAFailedRead(t *testing.T) {
	t.Parallel()
	s, held := alice(t)
	conflicts, failures := 1, 3
	s.refuse = func(method string) *apierrors.StatusError {
		switch {
		case method == http.MethodPatch && conflicts > 0:
			conflicts--
			return apierrors.NewConflict(v1alpha1.SchemeGroupVersion.WithResource("users").GroupResource(), "alice", errors.New("changed"))
		case method == http.MethodGet && failures > 0:
			failures--
			return apierrors.NewServiceUnavailable("a moment")
		}
		return nil
	}
	u, err := s.store().ChangeUser(t.Context(), held, nil, claiming(uuid(1)))
	require.NoError(t, err)
	require.Equal(t, []string{uuid(1)}, uuids(u))
	require.Zero(t, conflicts+failures, "the control: all of it has happened")
}

// Others write the object all the time: a dozen conflicts are no error to the client.
func TestChange_isRepeatedAfterADozenConflicts(t *testing.T) {
	t.Parallel()
	s, held := alice(t)
	conflicts := 12
	s.refuse = func(method string) *apierrors.StatusError {
		if method != http.MethodPatch || conflicts == 0 {
			return nil
		}
		conflicts--
		return apierrors.NewConflict(v1alpha1.SchemeGroupVersion.WithResource("users").GroupResource(), "alice", errors.New("changed"))
	}
	u, err := s.store().ChangeUser(t.Context(), held, nil, renamed)
	require.NoError(t, err)
	require.Equal(t, "New", u.Spec.DisplayName)
	require.Zero(t, conflicts, "the control: all of it has happened")
}

// An answer that is not kcp's, such as a load balancer's, is not an internal error.
func TestErrors_withoutAnswerOfKCPAreUnavailable(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"a gateway that finds nobody": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, "<html>")
		},
		"an answer that breaks off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"no answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, held := alice(t)
			s.ServeWith(answer)
			began := time.Now()
			_, err := s.store().ChangeUser(t.Context(), held, nil, claiming(uuid(1)))
			var told *errs.Error
			require.ErrorAs(t, err, &told)
			require.Equal(t, errs.Unavailable, told.Code, "%v", err)
			require.Positive(t, told.RetryAfter)
			require.Less(t, time.Since(began), 10*time.Second)

			s.ServeWith(nil)
			_, err = s.store().ChangeUser(t.Context(), held, nil, claiming(uuid(1)))
			require.NoError(t, err)
		})
	}
}
