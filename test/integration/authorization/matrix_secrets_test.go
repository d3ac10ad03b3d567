package authorization

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// same requires that two answers differ only in the request ID and the date.
func (w *matrixWorld) same(t *testing.T, c call, one, two framework.Answer) {
	t.Helper()
	require.Equal(t, one.Code, two.Code, "%s %s", c.Method, c.Path)
	require.Equal(t, string(one.Raw), string(two.Raw), "%s %s", c.Method, c.Path)
	headers := func(a framework.Answer) http.Header {
		h := a.Header.Clone()
		h.Del("X-Request-Id")
		h.Del("Date")
		return h
	}
	require.Equal(t, headers(one), headers(two), "%s %s", c.Method, c.Path)
}

// aboutPlaces reports whether the row's requests name an Org, a Workspace or a cluster
// that must stay unknown to outsiders.
func (r matrixRow) aboutPlaces() bool {
	said := r.pattern() + r.rest + r.body
	return r.authenticated() && r.want(asNobody) == "403" &&
		(strings.Contains(said, "{org}") || strings.Contains(said, "{cluster}") || strings.Contains(said, "{path}"))
}

// foreignAndMissing compares the refusal for an existing object with the refusal for a
// missing one. A difference would tell an outsider that the object exists.
func (w *matrixWorld) foreignAndMissing(t *testing.T) {
	t.Parallel()
	for _, r := range matrixRows {
		if !r.aboutPlaces() || strings.Contains(r.about, "Org's own") {
			continue
		}
		t.Run(r.name(), func(t *testing.T) {
			t.Parallel()
			for _, route := range r.routes(server.Routes()) {
				for _, position := range []int{asNobody, asForeignAdmin, asPlatformAdmin, asWorkspaceMember, asWorkspaceAdmin, asOrgMember} {
					if r.want(position) != "403" {
						continue
					}
					s := &matrixScene{matrixWorld: w, position: position, target: "not-there"}
					for name, pair := range w.pairs(r, position) {
						s.matrixPlace = pair[0]
						c := s.call(r, route.Method)
						exists := s.send(t, c)
						s.judge(t, c, exists, "403")
						s.matrixPlace = pair[1]
						missing := s.send(t, s.call(r, route.Method))
						t.Log(name)
						s.same(t, c, exists, missing)
					}
				}
			}
		})
	}
}

// pairs returns existing Orgs and Workspaces, each with a missing one to compare. The
// position has no access to the existing ones.
func (w *matrixWorld) pairs(r matrixRow, position int) map[string][2]matrixPlace {
	none := func(org string) matrixPlace {
		ws := uuid.NewString()
		return matrixPlace{org: org, ws: ws, cluster: "nosuchcluster", path: w.root + ":orgs:" + org + ":" + ws}
	}
	at := w.places[r.at]
	missing := none(uuid.NewString())
	pairs := map[string][2]matrixPlace{}
	switch {
	case position == asNobody || position == asForeignAdmin || position == asPlatformAdmin:
		pairs["a foreign Org"] = [2]matrixPlace{at, missing}
		if !strings.HasPrefix(r.pattern(), "/api/admin") {
			pairs["a foreign Workspace, and none in a foreign Org"] = [2]matrixPlace{at, none(at.org)}
		}
		pairs["a soft-deleted foreign Org"] = [2]matrixPlace{w.places["gone"], missing}
		pairs["a soft-deleted foreign Workspace"] = [2]matrixPlace{w.places["gone workspace"], missing}
	case strings.HasPrefix(r.pattern(), "/api/admin"):
		pairs["an Org of a caller who is no platform admin"] = [2]matrixPlace{at, missing}
	case !r.tenant() || r.inWorkspace():
		// An Org member outside the Workspace must not learn that it exists. Its members
		// and viewers know that it exists, even where they lack the right to a request.
		if position == asOrgMember && r.at != "viewing" {
			pairs["a Workspace of another team"] = [2]matrixPlace{at, none(at.org)}
			gone := w.places["gone workspace"]
			pairs["a soft-deleted Workspace of another team"] = [2]matrixPlace{gone, none(gone.org)}
		}
	case position != asOrgMember:
		pairs["an Org of which one has a Workspace only"] = [2]matrixPlace{at, missing}
	}
	return pairs
}

// targets compares the refusal for an existing user with the refusal for a missing one.
func (w *matrixWorld) targets(t *testing.T) {
	t.Parallel()
	for _, r := range firstMatrixRows(func(r matrixRow) bool {
		return r.authenticated() && (strings.Contains(r.pattern(), "{user}") || strings.Contains(r.pattern(), "{name}"))
	}) {
		t.Run(r.name(), func(t *testing.T) {
			t.Parallel()
			for position := range matrixPositions {
				if want := r.want(position); want != "403" && want != "401" {
					continue
				}
				s := w.spare(position)
				method := r.routes(server.Routes())[0].Method
				missing := s.send(t, s.call(r, method))
				for _, name := range []string{matrixKeeper, matrixPeople[asOrgMember], matrixPeople[asDeleted]} {
					if name == matrixPeople[position] {
						// Some routes let callers act on themselves, but not on others.
						continue
					}
					s.target = name
					c := s.call(r, method)
					exists := s.send(t, c)
					s.judge(t, c, exists, r.want(position))
					s.same(t, c, exists, missing)
				}
			}
		})
	}
}

// softDeleted requests the objects in a soft-deleted Org, and in a soft-deleted Workspace
// of a live Org. Only the undelete still succeeds.
func (w *matrixWorld) softDeleted(t *testing.T) {
	t.Parallel()
	for _, r := range firstMatrixRows(func(r matrixRow) bool {
		return r.aboutPlaces() && !strings.HasPrefix(r.pattern(), "/api/admin") && !strings.HasSuffix(r.pattern(), "/undelete")
	}) {
		for _, place := range []string{"gone", "gone workspace"} {
			if place == "gone workspace" && r.tenant() && !r.inWorkspace() {
				continue
			}
			// Clusters answer 403, because kubectl reads a 404 as a missing kind.
			want := "404"
			if !r.tenant() {
				want = "403"
			}
			t.Run(r.name()+"/"+place, func(t *testing.T) {
				t.Parallel()
				for position := asWorkspaceMember; position <= asOrgAdmin; position++ {
					s := &matrixScene{matrixWorld: w, matrixPlace: w.places[place], position: position, target: matrixKeeper}
					for _, route := range r.routes(server.Routes()) {
						c := s.call(r, route.Method)
						a := s.send(t, c)
						if r.want(position) == "403" || r.want(position) == "404" {
							// A caller without the right may get either refusal.
							require.Contains(t, []int{http.StatusForbidden, http.StatusNotFound}, a.Code, "%s", a.Raw)
							continue
						}
						s.judge(t, c, a, want)
						if route.Method != http.MethodHead {
							require.Contains(t, a.Text("message"), "deleted")
						}
					}
				}
			})
		}
	}
}

// oneself deletes and undeletes the caller's own account, which needs no role.
func (w *matrixWorld) oneself(t *testing.T) {
	t.Parallel()
	me := w.somebody(t)
	for _, name := range []string{"me", me} {
		w.hub.Do(t, call{As: me, Method: http.MethodDelete, Path: "/api/users/" + name}, http.StatusAccepted)
		gone := w.hub.Do(t, call{As: me, Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
		require.NotEmpty(t, gone.Text("deletionRequestedAt"))
		w.hub.Do(t, call{As: me, Method: http.MethodGet, Path: "/api/orgs"}, http.StatusForbidden)
		a := w.hub.Do(t, call{As: me, Method: http.MethodPost, Path: "/api/users/me/undelete"}, http.StatusOK, http.StatusAccepted, http.StatusNoContent)
		require.NoError(t, w.withoutTokens(string(a.Raw)))
		w.hub.Do(t, call{As: me, Method: http.MethodGet, Path: "/api/orgs"}, http.StatusOK)
	}
}
