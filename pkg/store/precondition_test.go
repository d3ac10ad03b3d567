package store_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const workspaceAt = "/clusters/org1/apis/tenancy.kcp.io/v1alpha1/workspaces/w"

// only lets those versions pass.
func only(versions ...string) func(string) error {
	return func(version string) error {
		if slices.Contains(versions, version) {
			return nil
		}
		return errs.New(errs.PreconditionFailed, "it is "+version)
	}
}

// place is a server that has one object of each kind, each with its own version.
func place(t testing.TB) *server {
	s := newServer(t)
	u := &v1alpha1.User{}
	u.Name = "alice"
	s.made(aliceAt, "uid", u)
	s.made(orgAt, "uid", tenancy.NewOrganization("o", "O", "alice"))
	ws := &kcptenancyv1alpha1.Workspace{}
	ws.Name = "w"
	ws.Annotations = map[string]string{v1alpha1.DisplayNameAnnotation: "W"}
	s.made(workspaceAt, "uid", ws)
	s.made(bobAt, "uid", bob(v1alpha1.RoleMember))
	return s
}

// version returns the resource version of an object, or the empty string if it is absent.
func (s *server) versionOf(at string) string {
	if o := s.Get(at); o != nil {
		return o.GetResourceVersion()
	}
	return ""
}

// changed simulates a change by another client.
func (s *server) changed(at string) {
	s.Edit(at, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"changed": o.GetResourceVersion()}) })
}

type write struct {
	at string
	do func(ctx context.Context, s *store.Store, match func(string) error) error
}

func deletedAt() *metav1.Time {
	return ptr.To(metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)))
}

// renamed and marked are changes of a User.
func renamed(_ context.Context, u *v1alpha1.User) error {
	u.Spec.DisplayName = "New"
	return nil
}

func marked(_ context.Context, u *v1alpha1.User) error {
	if u.Status.DeletionRequestedAt == nil {
		u.Status.DeletionRequestedAt = deletedAt()
	}
	return nil
}

// writes are writes that take a match, of each kind and each part of an object. The held object may
// be out of date.
func writes() map[string]write {
	u, o := &v1alpha1.User{}, tenancy.NewOrganization("o", "old", "alice")
	u.Name, u.UID, u.ResourceVersion = "alice", "uid", "0"
	o.UID, o.ResourceVersion = "uid", "0"
	return map[string]write{
		"rename a User": {aliceAt, func(ctx context.Context, s *store.Store, match func(string) error) error {
			_, err := s.ChangeUser(ctx, u, match, renamed)
			return err
		}},
		"mark a User": {aliceAt, func(ctx context.Context, s *store.Store, match func(string) error) error {
			_, err := s.ChangeUser(ctx, u, match, marked)
			return err
		}},
		"rename an Organization": {orgAt, func(ctx context.Context, s *store.Store, match func(string) error) error {
			_, err := s.ChangeOrganization(ctx, o, match, func(_ context.Context, o *v1alpha1.Organization) error {
				o.Spec.DisplayName = "New"
				return nil
			})
			return err
		}},
		"mark an Organization": {orgAt, func(ctx context.Context, s *store.Store, match func(string) error) error {
			_, err := s.ChangeOrganization(ctx, o, match, func(_ context.Context, o *v1alpha1.Organization) error {
				o.Status.DeletionRequestedAt = deletedAt()
				return nil
			})
			return err
		}},
		"rename a Workspace": {workspaceAt, func(ctx context.Context, s *store.Store, match func(string) error) error {
			_, err := s.ChangeWorkspace(ctx, "org1", tenancy.Workspace{UUID: "w", OrgUUID: "o"}, match, func(_ tenancy.Workspace, annotations map[string]string) error {
				annotations[v1alpha1.DisplayNameAnnotation] = "New"
				return nil
			})
			return err
		}},
	}
}

func each(t *testing.T, test func(t *testing.T, s *server, w write)) {
	t.Helper()
	for name, w := range writes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, place(t), w)
		})
	}
}

func TestMatch_getsTheVersionInKCP(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server, w write) {
		present := s.versionOf(w.at)
		err := w.do(t.Context(), s.store(), only("0", "999"))
		require.True(t, errs.Is(err, errs.PreconditionFailed), "%v", err)
		require.Contains(t, err.Error(), "it is "+present)
		require.Equal(t, present, s.versionOf(w.at))
		require.NoError(t, w.do(t.Context(), s.store(), only("0", present)))
		require.NotEqual(t, present, s.versionOf(w.at))
	})
}

// Another client changes the object after match was called and before the write.
func TestMatch_holdsAtTheTimeOfTheWrite(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server, w write) {
		present := s.versionOf(w.at)
		faster := 1
		s.before = func(method string) {
			if method != http.MethodGet && faster > 0 {
				faster--
				s.changed(w.at)
			}
		}
		err := w.do(t.Context(), s.store(), only(present))
		require.True(t, errs.Is(err, errs.PreconditionFailed), "%v", err)
		require.Zero(t, faster)

		// Positive control: a match that accepts every version does not fail.
		faster = 2
		present = s.versionOf(w.at)
		require.NoError(t, w.do(t.Context(), s.store(), func(string) error { return nil }))
		require.Zero(t, faster)
		require.NotEqual(t, present, s.versionOf(w.at))
	})
}

// The write succeeded and its answer was lost. The version differs from the one in the
// request because of this write.
func TestMatch_passesWhenTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	for lost := 1; lost <= 3; lost++ {
		each(t, func(t *testing.T, s *server, w write) {
			n := lost
			s.lose = func(method string) bool {
				n--
				return method != http.MethodGet && n >= 0
			}
			present := s.versionOf(w.at)
			require.NoError(t, w.do(t.Context(), s.store(), only(present)))
			require.NotEqual(t, present, s.versionOf(w.at))
		})
	}
}

// The request is lost before it reaches kcp, and another client changes the object.
func TestMatch_failsWhenTheRequestIsLostAndAnotherWins(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server, w write) {
		present := s.versionOf(w.at)
		tries := 0
		s.before = func(method string) {
			if method == http.MethodGet {
				return
			}
			if tries++; tries == 1 {
				s.changed(w.at)
				panic(http.ErrAbortHandler)
			}
		}
		err := w.do(t.Context(), s.store(), only(present))
		require.True(t, errs.Is(err, errs.PreconditionFailed), "%v", err)
		require.Equal(t, 2, tries)
	})
}

func TestMatch_ofAMissingObjectIsNotFound(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server, w write) {
		s.remove(w.at)
		err := w.do(t.Context(), s.store(), only("1"))
		require.True(t, errs.Is(err, errs.NotFound), "%v", err)
		err = w.do(t.Context(), s.store(), nil)
		require.True(t, errs.Is(err, errs.NotFound), "%v", err)
	})
}

// match is called after change, even if another client made the same change and none is
// left to make. It is not called if an earlier attempt of this write may have made it.
func TestMatch_isAskedUnlessTheChangeMayBeMade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(s *server)
		lose   bool
		judged int
	}{
		"it is made":                              {func(*server) {}, false, 1},
		"its answer got lost":                     {func(*server) {}, true, 1},
		"somebody else was faster with another":   {func(s *server) { s.changed(orgAt) }, false, 2},
		"somebody else was faster with this same": {func(s *server) { s.quota(7) }, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := place(t)
			o := &v1alpha1.Organization{}
			require.True(t, s.held(orgAt, o))
			times := 1
			s.before = func(method string) {
				if method == http.MethodPatch && times > 0 {
					times--
					c.before(s)
				}
			}
			lost := false
			s.lose = func(method string) bool {
				if c.lose && !lost && method == http.MethodPatch {
					lost = true
					return true
				}
				return false
			}
			judged := 0
			changed, err := s.store().ChangeOrganization(t.Context(), o, func(string) error { judged++; return nil }, func(_ context.Context, o *v1alpha1.Organization) error {
				o.Spec.WorkspaceQuota = 7
				return nil
			})
			require.NoError(t, err)
			require.EqualValues(t, 7, changed.Spec.WorkspaceQuota)
			require.Equal(t, c.judged, judged)
		})
	}
}

// quota simulates a change of the Organization's quota by another client.
func (s *server) quota(n int) {
	s.Edit(orgAt, func(o *unstructured.Unstructured) {
		require.NoError(s.t, unstructured.SetNestedField(o.Object, int64(n), "spec", "workspaceQuota"))
	})
}

// Permission to mark an object does not extend to a later object of the same name,
// whichever version the request names.
func TestMark_leavesAnotherUIDAlone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"mark a User", "mark an Organization"} {
		w, s := writes()[name], place(t)
		s.Edit(w.at, func(o *unstructured.Unstructured) { o.SetUID("another") })
		err := w.do(t.Context(), s.store(), only(s.versionOf(w.at)))
		require.True(t, errs.Is(err, errs.NotFound), "%v", err)
	}
}

// match is called for a write that changes nothing, and nothing is sent.
func TestMatch_isAskedEvenWithoutAChange(t *testing.T) {
	t.Parallel()
	s := place(t)
	var held v1alpha1.User
	require.True(t, s.held(aliceAt, &held))
	for _, edit := range []func(*v1alpha1.User){func(*v1alpha1.User) {}, func(u *v1alpha1.User) { u.Spec.DisplayName = "" }, func(u *v1alpha1.User) { u.Spec.OrgClaims = []v1alpha1.Claim{} }} {
		change := func(_ context.Context, u *v1alpha1.User) error { edit(u); return nil }
		_, err := s.store().ChangeUser(t.Context(), &held, only("999"), change)
		require.True(t, errs.Is(err, errs.PreconditionFailed), "%v", err)
		u, err := s.store().ChangeUser(t.Context(), &held, only(held.ResourceVersion), change)
		require.NoError(t, err)
		require.Equal(t, held.ResourceVersion, u.ResourceVersion)
		require.NotContains(t, s.took(), http.MethodPatch)
	}
}

// Of many concurrent writes from two hubs with the same version, one succeeds.
func TestMatch_letsOneOfManyWritersPass(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server, w write) {
		hubs := []*store.Store{s.store(), s.store()}
		match := only(s.versionOf(w.at))
		results := make([]error, 16)
		var all sync.WaitGroup
		for i := range results {
			all.Go(func() { results[i] = w.do(t.Context(), hubs[i%2], match) })
		}
		all.Wait()
		made := 0
		for _, err := range results {
			if err == nil {
				made++
				continue
			}
			var e *errs.Error
			require.True(t, errors.As(err, &e) && (e.Code == errs.PreconditionFailed || e.Code == errs.NotFound), "%v", err)
		}
		require.Equal(t, 1, made)
	})
}
