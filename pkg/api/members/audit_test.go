package members_test

import (
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestAudit_saysWhatIsGivenAndTaken(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) (http.Handler, *apitest.World) {
		f := newFixture(t)
		f.world.PutUser(apitest.Person("second"))
		f.join("second", "", v1alpha1.RoleAdmin)
		f.world.PutMembership(apitest.Acme, withRights(apitest.WSMember, v1alpha1.RoleMember, true, "view", "edit"))
		ends := withRights("dora", v1alpha1.RoleMember, false)
		ends.Spec.ExpiresAt = &metav1.Time{Time: apitest.Epoch().Add(time.Hour)}
		f.world.PutUser(apitest.Person("dora"))
		f.world.PutMembership(apitest.Acme, ends)
		f.reread()
		return f.http, f.world
	}
	call := func(method, place, path, body string) apitest.Call {
		c := apitest.Call{As: apitest.Admin, Method: method, Path: place + path, Body: body, Org: apitest.Acme}
		if place == inDev {
			c.Workspace = apitest.Dev
		}
		return c
	}
	patch := func(user, body string) apitest.Call { return call(http.MethodPatch, inDev, "/members/"+user, body) }
	leave := call(http.MethodDelete, inOrg, "/memberships/me", "")
	leave.As = apitest.Member
	apitest.RequireIntents(t, start, map[string]apitest.Intent{
		"add":               {Call: call(http.MethodPost, inOrg, "/members", addFrank), Object: "frank", Facts: `{"role":"member"}`},
		"add with more":     {Call: call(http.MethodPost, inDev, "/members", `{"userRef":{"name":"frank"},"role":"admin","roles":[{"name":"view"},{"name":"view","namespace":"a"}],"sudo":true}`), Object: "frank", Facts: `{"role":"admin","roles":["view","a/view"],"sudo":true}`},
		"promote":           {Call: call(http.MethodPatch, inOrg, "/members/bob", `{"role":"admin"}`), Object: "bob", Facts: `{"role":"admin"}`},
		"demote":            {Call: call(http.MethodPatch, inOrg, "/members/second", `{"role":"member"}`), Object: "second", Facts: `{"role":"member"}`, Reduces: true},
		"remove":            {Call: call(http.MethodDelete, inOrg, "/members/bob", ""), Object: "bob", Facts: `null`, Reduces: true},
		"remove everywhere": {Call: call(http.MethodDelete, inOrg, "/members/bob?cascade=true", ""), Object: "bob", Facts: `{"cascade":true}`, Reduces: true},
		"leave":             {Call: leave, Object: apitest.Member, Facts: `null`, Reduces: true},
		"remove here":       {Call: call(http.MethodDelete, inDev, "/members/walter", ""), Object: "walter", Facts: `null`, Reduces: true},
		"give sudo":         {Call: patch("carol", `{"sudo":true}`), Object: "carol", Facts: `{"sudo":true}`},
		"take sudo":         {Call: patch("walter", `{"sudo":false}`), Object: "walter", Facts: `{"sudo":false}`, Reduces: true},
		"other roles":       {Call: patch("walter", `{"roles":[{"name":"other"}]}`), Object: "walter", Facts: `{"roles":["other"]}`},
		"fewer roles":       {Call: patch("walter", `{"roles":[{"name":"view"}]}`), Object: "walter", Facts: `{"roles":["view"]}`, Reduces: true},
		"no roles":          {Call: patch("walter", `{"roles":[]}`), Object: "walter", Facts: `{"roles":[]}`, Reduces: true},
		"demote here":       {Call: patch("carol", `{"role":"member"}`), Object: "carol", Facts: `{"role":"member","roles":[],"sudo":false}`, Reduces: true},
		"demote, give sudo": {Call: patch("carol", `{"role":"member","sudo":true}`), Object: "carol", Facts: `{"role":"member","roles":[],"sudo":true}`},
		"add for a while":   {Call: call(http.MethodPost, inOrg, "/members", `{"userRef":{"name":"frank"},"role":"member","expiresAt":"2030-01-01T00:00:00Z"}`), Object: "frank", Facts: `{"role":"member","expiresAt":"2030-01-01T00:00:00Z"}`},
		"end":               {Call: patch("walter", `{"expiresAt":"2030-01-01T00:00:00Z"}`), Object: "walter", Facts: `{"expiresAt":"2030-01-01T00:00:00Z"}`, Reduces: true},
		"end in Org":        {Call: call(http.MethodPatch, inOrg, "/members/bob", `{"expiresAt":"2030-01-01T00:00:00Z"}`), Object: "bob", Facts: `{"expiresAt":"2030-01-01T00:00:00Z"}`, Reduces: true},
		"take the end off":  {Call: patch("dora", `{"expiresAt":null}`), Object: "dora", Facts: `{"expiresAt":"never"}`},
		"add a manager":     {Call: call(http.MethodPost, inDev, "/members", `{"userRef":{"name":"frank"},"manager":true}`), Object: "frank", Facts: `{"manager":true}`},
		"make a manager":    {Call: patch("walter", `{"manager":true}`), Object: "walter", Facts: `{"manager":true}`},
		"manager alone":     {Call: patch("walter", `{"manager":true,"role":null}`), Object: "walter", Facts: `{"role":"none","roles":[],"sudo":false,"manager":true}`},
		"promote here":      {Call: patch("walter", `{"role":"admin"}`), Object: "walter", Facts: `{"role":"admin"}`},
	})
}
