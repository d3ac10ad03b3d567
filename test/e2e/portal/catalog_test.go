package portal

import (
	"strings"
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

// publishes publishes the export of a Workspace, changes the entry while somebody else does so,
// and deletes it.
func publishes(t *testing.T, s *scene, alice, operator *person) {
	org := alice.orgPath()
	workspace := alice.kcpPath()
	kcp := &framework.KCP{Kubeconfig: s.kubeconfig}
	kcp.Applies(t, workspace, framework.ExampleCatalog(t, "provider.yaml", workspace))
	alice.open(org + "/catalog")
	alice.sees("Nothing is published yet")
	alice.press("Publish an API")
	alice.fills("Name", hostile)
	alice.fills("Name of the APIExport", "widgets.example.org")
	alice.fills("Slug", "widgets")
	alice.fills("URL of the backend", "http://example.org")
	alice.press("Publish")
	alice.sees("begins with https://, of at most")
	alice.fills("URL of the backend", "")
	alice.press("Publish")
	alice.sees("There is a global catalog entry with the slug widgets")
	alice.fills("Slug", "own-widgets")
	alice.looks("catalog-new")
	alice.press("Publish")
	alice.closed()
	alice.Until(t, "document.querySelector('.head .badge.ok')")
	alice.sees("The APIExport is found")
	alice.sees("widgets.widgets.example.org")
	alice.Until(t, "document.querySelector('h1').textContent === "+quoted(hostile))
	alice.looks("catalog-entry")

	operator.open("/ui/admin/catalog")
	operator.publish("In the way", "root:kedge:providers:widgets", "own-widgets")
	operator.sees(hostile + " (" + strings.Split(workspace, ":")[3] + ")")
	operator.looks("catalog-slug-taken")

	alice.press("Edit")
	other := &person{Chromium: alice.Tab("second"), t: t, hub: alice.hub}
	other.open(alice.path())
	other.press("Edit")
	other.fills("Version", "v2")
	other.press("Save")
	other.closed()
	other.sees("v2")
	alice.fills("Version", "v3")
	alice.press("Save")
	alice.sees("Version: now v2, yours v3")
	alice.looks("catalog-entry-changed")
	alice.press("Save")
	alice.closed()
	alice.sees("v3")

	// The platform takes the slug, and gives it back.
	operator.Click(t, "dialog input[type=checkbox]")
	operator.press("Publish")
	operator.closed()
	operator.sees("For everybody")
	operator.press("Delete")
	operator.fills("Type the slug to confirm", "own-widgets")
	operator.press("Delete entry")
	operator.closed()
	operator.fillsBy("Entries", "org")
	operator.sees("APIs that organizations publish")
	operator.sees("own-widgets")
	operator.looks("admin-catalog-orgs")
	operator.press(hostile)
	operator.sees("For an organization")

	alice.press("Catalog")
	alice.sees("own-widgets")
	alice.looks("catalog")
	alice.Back(t)
	alice.press("Delete")
	alice.fills("Type the slug to confirm", hostile)
	alice.press("Delete entry")
	alice.sees("not the slug")
	alice.looks("catalog-entry-delete")
	alice.fills("Type the slug to confirm", "own-widgets")
	alice.press("Delete entry")
	alice.sees("Nothing is published yet")

	alice.open("/ui/")
	alice.press("default")
	alice.sees("Get in with kubectl")
	kcp.Applies(t, alice.kcpPath(), framework.ExampleCatalog(t, "provider.yaml", alice.kcpPath()))
	alice.open(alice.orgPath() + "/catalog")
	alice.sees("for your own workspaces")
	alice.publish("Mine", "", "mine")
	alice.closed()
	alice.Until(t, "document.querySelector('.head .badge.ok')")
	alice.sees("For you")
	// The browser has drawn the image: the Content-Security-Policy takes it.
	alice.Until(t, "document.querySelector('img.icon')?.naturalWidth > 0")
	alice.open(org)
	alice.sees("work")
}

// kcpPath is the path in kcp of the Workspace that the person is in.
func (p *person) kcpPath() string {
	p.t.Helper()
	ids := strings.Split(p.path(), "/")
	return "root:kedge:orgs:" + ids[3] + ":" + ids[5]
}

// publish publishes the export of the example, which is in the workspace at a path, or else in
// the one that the form suggests.
func (p *person) publish(name, path, slug string) {
	p.t.Helper()
	p.press("Publish an API")
	p.fills("Name", name)
	if path != "" {
		p.fillsBy("kcp path of the workspace of the APIExport", path)
	}
	p.fills("Name of the APIExport", "widgets.example.org")
	p.fills("Slug", slug)
	p.fills("URL of an icon", "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHdpZHRoPSI4IiBoZWlnaHQ9IjgiLz4=")
	p.press("Publish")
}

// administration does what platform admins do beside approving people.
func administration(t *testing.T, operator *person) {
	operator.open("/ui/admin")
	operator.sees("Who may sign in")
	operator.looks("admin")
	operator.pressIn("bob", "Quota")
	operator.fills("Organizations that they may create", "3")
	operator.press("Save")
	operator.closed()
	operator.sees("of 3")
	operator.pressIn("bob", "Reject")
	operator.fills("Reason", "no guests")
	operator.looks("admin-reject")
	operator.press("Reject")
	operator.closed()
	operator.sees("no guests")
	operator.pressIn("bob", "Approve")
	operator.misses("no guests")

	operator.press("Organizations")
	operator.sees("alice's personal")
	operator.looks("admin-organizations")
	operator.fillsBy("Kind", "true")
	operator.misses("ACME")
	operator.Fill(t, "main input[type=search]", "bob's")
	operator.press("Search")
	operator.misses("alice's personal")
	operator.pressIn("bob's personal", "Quota")
	operator.fills("Workspaces", "7")
	operator.press("Save")
	operator.closed()
	operator.sees("of 7")
	operator.pressIn("bob's personal", "Delete")
	operator.fills("Type the name to confirm", "bob's personal")
	operator.press("Delete organization")
	operator.closed()
	operator.sees("days left")
	operator.open("/ui/admin/orgs?limit=1")
	operator.sees("Next page")
	first := operator.Text(t, "tbody td bdi")
	operator.press("Next page")
	operator.sees("First page")
	operator.misses(first)
	operator.Back(t)
	operator.sees(first)
	operator.press("Activity")
	operator.sees("in the whole hub")
	operator.fillsBy("Part of the action", "/api/admin/orgs")
	operator.press("Search")
	operator.sees("PATCH /api/admin/orgs/{org}")
	operator.looks("admin-activity")
	operator.press("Usage")
	operator.sees("Usage of all organizations")
	operator.looks("admin-usage")
	operator.press("Deletions")
	operator.sees("bob's personal")
	operator.looks("admin-deletions")

	operator.press("Catalog")
	operator.press("Widgets")
	operator.sees("For everybody")
	operator.press("Catalog")
	operator.publish("More widgets", "root:kedge:providers:widgets", "more")
	operator.closed()
	operator.Until(t, "document.querySelector('.head .badge.ok')")
	operator.press("Catalog")
	operator.sees("More widgets")
	operator.looks("admin-catalog")
}
