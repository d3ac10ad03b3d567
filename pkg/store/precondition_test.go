package store_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"

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

// place is a server that holds one of everything, each in a version of its own.
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

// version is that of an object in kcp; empty where there is none.
func (s *server) versionOf(at string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.objects[at]; ok {
		return o["metadata"].(object)["resourceVersion"].(string)
	}
	return ""
}

// changed lets somebody else change an object.
func (s *server) changed(at string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.objects[at]; ok {
		metadata := o["metadata"].(object)
		metadata["labels"] = object{"changed": strconv.Itoa(s.version)}
		s.put(at, o)
	}
}

type write struct {
	at string
	do func(ctx context.Context, s *store.Store, match func(string) error) error
}

const deletedAt = "2026-03-01T12:00:00Z"

// marked asks for a deletion, once.
func marked(requested bool) map[string]any {
	if requested {
		return nil
	}
	return map[string]any{"deletionRequestedAt": deletedAt}
}

// writes are all that can be conditional. What memory has may be anything.
func writes() map[string]write {
	u, o := &v1alpha1.User{}, tenancy.NewOrganization("o", "old", "alice")
	u.Name, u.UID, u.ResourceVersion = "alice", "uid", "0"
	o.UID, o.ResourceVersion = "uid", "0"
	renamed := map[string]any{"spec": map[string]any{"displayName": "New"}}
	return map[string]write{
		"patch a User": {aliceAt, func(ctx context.Context, s *store.Store, match func(string) error) error {
			_, err := s.PatchUser(ctx, "alice", renamed, match)
			return err
		}},
		"mark a User": {aliceAt, func(ctx context.Context, s *store.Store, match func(string) error) error {
			_, err := s.MarkUser(ctx, u, func(_ context.Context, u *v1alpha1.User) (map[string]any, error) {
				return marked(u.Status.DeletionRequestedAt != nil), nil
			}, match)
			return err
		}},
		"patch an Organization": {orgAt, func(ctx context.Context, s *store.Store, match func(string) error) error {
			_, err := s.PatchOrganization(ctx, "o", renamed, match)
			return err
		}},
		"mark an Organization": {orgAt, func(ctx context.Context, s *store.Store, match func(string) error) error {
			_, err := s.MarkOrganization(ctx, o, func(_ context.Context, o *v1alpha1.Organization) (map[string]any, error) {
				return marked(o.Status.DeletionRequestedAt != nil), nil
			}, match)
			return err
		}},
		"patch a Workspace": {workspaceAt, func(ctx context.Context, s *store.Store, match func(string) error) error {
			_, err := s.PatchWorkspace(ctx, "org1", "o", "w", map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.DisplayNameAnnotation: "New"}}}, match)
			return err
		}},
		"mark a Workspace": {workspaceAt, func(ctx context.Context, s *store.Store, match func(string) error) error {
			_, err := s.MarkWorkspace(ctx, "org1", tenancy.Workspace{UUID: "w", OrgUUID: "o"}, func(ws tenancy.Workspace) (map[string]any, error) {
				if ws.DeletionRequestedAt != nil {
					return nil, nil
				}
				return map[string]any{v1alpha1.DeletionRequestedAtAnnotation: deletedAt}, nil
			}, match)
			return err
		}},
		"patch a Membership": {bobAt, func(ctx context.Context, s *store.Store, match func(string) error) error {
			_, err := s.PatchMembership(ctx, "org1", "bob", map[string]any{"spec": map[string]any{"role": "admin"}}, match)
			return err
		}},
		"delete a Membership": {bobAt, func(ctx context.Context, s *store.Store, match func(string) error) error {
			return s.DeleteMembership(ctx, "org1", "bob", match)
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

func TestAConditionIsJudgedByWhatKCPHasWhateverMemoryHas(t *testing.T) {
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

// Somebody else is faster, after the condition was judged and before the write.
func TestAConditionHoldsAtTheMomentOfTheWrite(t *testing.T) {
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

		// The control: who lets any version pass is not refused for that.
		faster = 2
		present = s.versionOf(w.at)
		require.NoError(t, w.do(t.Context(), s.store(), func(string) error { return nil }))
		require.Zero(t, faster)
		require.NotEqual(t, present, s.versionOf(w.at))
	})
}

// The write has happened and its answer got lost, as often as may be: the object is
// not what was asked for any more because of the write itself.
func TestALostAnswerIsNoFailedPrecondition(t *testing.T) {
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

// The request got lost on its way, and somebody else changed the object meanwhile.
func TestALostRequestIsAFailedPreconditionWhereSomebodyElseWasFaster(t *testing.T) {
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

func TestAConditionalWriteOfWhatIsNotThereIsNotFound(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server, w write) {
		s.remove(w.at)
		err := w.do(t.Context(), s.store(), only("1"))
		require.True(t, errs.Is(err, errs.NotFound), "%v", err)
		err = w.do(t.Context(), s.store(), nil)
		require.True(t, errs.Is(err, errs.NotFound), "%v", err)
	})
}

// What a decision has seen is judged after it, also where somebody else decided the
// same and nothing is left to do; it is not where that may have been this very write.
func TestADecisionIsJudgedUnlessItMayHaveBeenMadeAlready(t *testing.T) {
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
			changed, err := s.store().AmendOrganization(t.Context(), o, func(_ context.Context, o *v1alpha1.Organization) (map[string]any, error) {
				if o.Spec.WorkspaceQuota == 7 {
					return nil, nil
				}
				return map[string]any{"workspaceQuota": 7}, nil
			}, func(string) error { judged++; return nil })
			require.NoError(t, err)
			require.EqualValues(t, 7, changed.Spec.WorkspaceQuota)
			require.Equal(t, c.judged, judged)
		})
	}
}

// quota lets somebody else give the Organization a quota.
func (s *server) quota(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[orgAt]["spec"].(object)["workspaceQuota"] = n
	s.put(orgAt, s.objects[orgAt])
}

// The right to mark something ends with it, whoever has its name afterwards, and
// whatever version the caller names.
func TestAConditionalMarkLeavesAnotherObjectOfTheSameNameAlone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"mark a User", "mark an Organization"} {
		w, s := writes()[name], place(t)
		s.mu.Lock()
		s.objects[w.at]["metadata"].(object)["uid"] = "another"
		s.mu.Unlock()
		err := w.do(t.Context(), s.store(), only(s.versionOf(w.at)))
		require.True(t, errs.Is(err, errs.NotFound), "%v", err)
	}
}

// A write that changes nothing is judged all the same, and made by nobody.
func TestAConditionIsJudgedAlsoWhereNothingIsToBeDone(t *testing.T) {
	t.Parallel()
	s := place(t)
	for _, patch := range []map[string]any{{"spec": map[string]any{}}, {"spec": map[string]any{"displayName": ""}}, {"spec": map[string]any{"orgQuota": nil}}} {
		present := s.versionOf(aliceAt)
		_, err := s.store().PatchUser(t.Context(), "alice", patch, only("999"))
		require.True(t, errs.Is(err, errs.PreconditionFailed), "%v", err)
		u, err := s.store().PatchUser(t.Context(), "alice", patch, only(present))
		require.NoError(t, err)
		require.Equal(t, present, u.ResourceVersion)
		require.NotContains(t, s.took(), http.MethodPatch)
	}
}

// Of many who change what they have read, from two hubs, one gets what they want.
func TestOfManyOnOneConditionOneSucceeds(t *testing.T) {
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
