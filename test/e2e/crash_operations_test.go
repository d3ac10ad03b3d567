package e2e

import (
	"context"
	"fmt"
	"net/http"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/framework"
)

// ask sends a request until it succeeds.
func (l *lane) ask(c framework.Call) (a framework.Answer, err error) {
	err = framework.Wait(framework.Long, func() (err error) {
		a, err = l.hub.Try(c)
		if err == nil && a.Code/100 != 2 {
			err = fmt.Errorf("%s %s as %s: %d %s", c.Method, c.Path, c.As, a.Code, a.Raw)
		}
		return err
	})
	return a, err
}

// start sends the request of an operation with an ID, or has the hub begin by itself. It returns whether it was
// answered that it is done, and else why not.
func (l *lane) start(ctx context.Context, o operation, s *scene, id string) (bool, error) {
	if o.begin != nil {
		err := o.begin(ctx, l, s)
		return err == nil, err
	}
	c := o.call(s)
	c.Header = c.Header.Clone()
	if c.Header == nil {
		c.Header = http.Header{}
	}
	c.Header.Set("X-Request-Id", id)
	a, err := l.hub.Try(c)
	if err == nil && a.Code/100 != 2 {
		err = fmt.Errorf("it answered %d %s", a.Code, a.Raw)
	}
	return err == nil, err
}

// steps runs steps in sequence.
func steps(steps ...func(l *lane, s *scene) error) func(l *lane, s *scene) error {
	return func(l *lane, s *scene) error {
		for _, step := range steps {
			if err := step(l, s); err != nil {
				return err
			}
		}
		return nil
	}
}

// asked returns a step that sends a request.
func asked(call func(s *scene) framework.Call) func(l *lane, s *scene) error {
	return func(l *lane, s *scene) error {
		_, err := l.ask(call(s))
		return err
	}
}

func signUp(s *scene) framework.Call {
	return framework.Call{As: s.a, Method: http.MethodGet, Path: "/api/users/me"}
}

func otherSignsUp(s *scene) framework.Call {
	return framework.Call{As: s.b, Method: http.MethodGet, Path: "/api/users/me"}
}

func createOrg(s *scene) framework.Call {
	return framework.Call{
		As: s.a, Method: http.MethodPost, Path: "/api/orgs", Body: map[string]string{"displayName": "Org of " + s.a},
		Header: http.Header{"Idempotency-Key": {s.key}},
	}
}

func org(l *lane, s *scene) error {
	a, err := l.ask(createOrg(s))
	s.org = a.Text("uuid")
	return err
}

func inOrg(s *scene, method, path string, body any) framework.Call {
	return framework.Call{As: s.a, Method: method, Path: "/api/orgs/" + s.org + path, Org: s.org, Body: body}
}

func inWorkspace(s *scene, method, path string, body any) framework.Call {
	c := inOrg(s, method, "/workspaces/"+s.ws+path, body)
	c.Workspace = s.ws
	return c
}

func createWorkspace(s *scene) framework.Call {
	c := inOrg(s, http.MethodPost, "/workspaces", map[string]string{"displayName": "Workspace of " + s.a})
	c.Header = http.Header{"Idempotency-Key": {s.key}}
	return c
}

func workspace(l *lane, s *scene) error {
	a, err := l.ask(createWorkspace(s))
	s.ws = a.Text("uuid")
	return err
}

func creates() []operation {
	in := func(truth *framework.Truth, s *scene) int { return len(truth.Orgs[s.org].Workspaces) }
	return []operation{
		{
			name: "Org create", setup: asked(signUp), call: createOrg,
			done: func(truth *framework.Truth, _ *scene) bool { return len(truth.Orgs) == 1 },
			none: func(truth *framework.Truth, _ *scene) bool { return len(truth.Orgs) == 0 },
		},
		{
			name: "Workspace create", setup: steps(asked(signUp), org), call: createWorkspace,
			done: func(truth *framework.Truth, s *scene) bool { return in(truth, s) == 1 },
			none: func(truth *framework.Truth, s *scene) bool { return in(truth, s) == 0 },
		},
	}
}

func adding(s *scene, role string) map[string]any {
	return map[string]any{"userRef": map[string]string{"name": s.b}, "role": role}
}

func addTo(place func(s *scene, method, path string, body any) framework.Call, role string, sudo bool) func(s *scene) framework.Call {
	return func(s *scene) framework.Call {
		body := adding(s, role)
		if sudo {
			body["sudo"] = true
		}
		return place(s, http.MethodPost, "/members", body)
	}
}

func change(place func(s *scene, method, path string, body any) framework.Call, role string) func(s *scene) framework.Call {
	return func(s *scene) framework.Call {
		return place(s, http.MethodPatch, "/members/"+s.b, map[string]string{"role": role})
	}
}

func remove(place func(s *scene, method, path string, body any) framework.Call, query string) func(s *scene) framework.Call {
	return func(s *scene) framework.Call { return place(s, http.MethodDelete, "/members/"+s.b+query, nil) }
}

// has reports the roles of b in the Organization and in the Workspace.
func has(org, workspace v1alpha1.Role) func(truth *framework.Truth, s *scene) bool {
	return func(truth *framework.Truth, s *scene) bool {
		role := func(name string) v1alpha1.Role {
			if m := truth.Orgs[s.org].Memberships[name]; m != nil {
				return m.Spec.Role
			}
			return ""
		}
		return role(s.b) == org && role(s.ws+"."+s.b) == workspace
	}
}

func membersOperations() []operation {
	const admin, member, none = v1alpha1.RoleAdmin, v1alpha1.RoleMember, v1alpha1.Role("")
	people := steps(asked(signUp), asked(otherSignsUp), org, workspace)
	gone := []int{http.StatusNotFound}
	return []operation{
		{
			name: "Org member add", setup: people, call: addTo(inOrg, "member", false),
			done: has(member, none), none: has(none, none),
		},
		{
			name: "Workspace member add", setup: people, call: addTo(inWorkspace, "member", true),
			done: has(none, member), none: has(none, none),
		},
		{
			name: "Org member promote", setup: steps(people, asked(addTo(inOrg, "member", false))), call: change(inOrg, "admin"),
			done: has(admin, none), none: has(member, none),
		},
		{
			name: "Org member demote", setup: steps(people, asked(addTo(inOrg, "admin", false))), call: change(inOrg, "member"),
			done: has(member, none), none: has(admin, none),
		},
		{
			name: "Workspace member change", setup: steps(people, asked(addTo(inWorkspace, "member", false))), call: change(inWorkspace, "admin"),
			done: has(none, admin), none: has(none, member),
		},
		{
			name: "Org member remove", setup: steps(people, asked(addTo(inOrg, "admin", false))), call: remove(inOrg, ""),
			done: has(none, none), none: has(admin, none), already: gone,
		},
		{
			name: "Workspace member remove", setup: steps(people, asked(addTo(inWorkspace, "member", true))), call: remove(inWorkspace, ""),
			done: has(none, none), none: has(none, member), already: gone,
		},
		{
			name:  "cascade remove",
			setup: steps(people, asked(addTo(inOrg, "member", false)), asked(addTo(inWorkspace, "admin", false))),
			call:  remove(inOrg, "?cascade=true"),
			done:  has(none, none), none: has(member, admin), already: gone,
		},
	}
}
