package e2e

import (
	"context"
	"net/http"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/framework"
)

// exported is the name of the APIExport of the example.
const exported = "widgets.example.org"

// provider makes the example's API in the Workspace of the scene.
func provider(l *lane, s *scene) error {
	s.export = l.root + ":orgs:" + s.org + ":" + s.ws
	return framework.ApplyProvider(context.Background(), l.clients, s.export)
}

func publish(s *scene) framework.Call {
	c := inOrg(s, http.MethodPost, "/catalog", map[string]any{
		"slug": "widgets", "displayName": "Widgets", "apiExport": map[string]string{"path": s.export, "name": exported},
	})
	c.Header = http.Header{"Idempotency-Key": {s.key}}
	return c
}

func entry(l *lane, s *scene) error {
	a, err := l.ask(publish(s))
	s.entry = a.Text("uuid")
	return err
}

func adminBot(l *lane, s *scene) error {
	c := createBot(s)
	c.Body = map[string]string{"displayName": "CI", "role": "admin"}
	a, err := l.ask(c)
	s.bot = a.Text("uuid")
	return err
}

// asBot is a call about the entry with the token of the bot: kcp is asked with it, and has not
// the tokens of the people here.
func asBot(s *scene, method, query string, body any) framework.Call {
	c := inWorkspace(s, method, "/providers/"+s.entry+"/enable"+query, body)
	c.As, c.Token = "", s.secret
	return c
}

func enable(s *scene) framework.Call {
	return asBot(s, http.MethodPost, "", map[string]any{
		"acceptClaims": []map[string]string{{"group": "", "resource": "configmaps"}},
		"rejectClaims": []map[string]string{{"group": "", "resource": "secrets"}},
	})
}

func disable(s *scene) framework.Call { return asBot(s, http.MethodDelete, "?confirm=true", nil) }

// binds reports whether the Workspace has a binding of the export that kcp has bound, or none.
func binds(bound bool) func(truth *framework.Truth, s *scene) bool {
	return func(truth *framework.Truth, s *scene) bool {
		var found []*kcpapisv1alpha2.APIBinding
		for _, b := range truth.Orgs[s.org].Workspaces[s.ws].APIBindings {
			if b.Spec.Reference.Export != nil && b.Spec.Reference.Export.Name == exported {
				found = append(found, b)
			}
		}
		if !bound {
			return len(found) == 0
		}
		return len(found) == 1 && found[0].Status.Phase == kcpapisv1alpha2.APIBindingPhaseBound
	}
}

// offers reports whether the only entry of the scene is Ready, or whether there is none. The
// audit of every look finds grants that belong to no entry, and entries without theirs.
func offers(any bool) func(truth *framework.Truth, s *scene) bool {
	return func(truth *framework.Truth, s *scene) bool {
		entries := truth.Orgs[s.org].Entries
		for _, e := range entries {
			return any && len(entries) == 1 && e.Status.Phase == v1alpha1.PhaseReady
		}
		return !any
	}
}

func catalogOperations() []operation {
	place := steps(asked(signUp), org, workspace, provider)
	published := steps(place, entry)
	offered := steps(published, adminBot, token)
	enabled := steps(offered, asked(enable))
	return []operation{
		{name: "catalog publish", setup: place, call: publish, done: offers(true), none: offers(false)},
		{name: "provider enable", setup: offered, call: enable, done: binds(true), none: binds(false)},
		{name: "provider disable", setup: enabled, call: disable, done: binds(false), none: binds(true), already: []int{http.StatusNotFound}},
	}
}
