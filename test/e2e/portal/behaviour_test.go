package portal

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// conflicts has two people change the same thing.
func conflicts(alice *person) {
	alice.press("Workspaces")
	alice.press("work")
	alice.press("Rename")
	other := &person{Chromium: alice.Tab("second"), t: alice.t, hub: alice.hub}
	other.open(alice.path())
	other.press("Rename")
	other.fills("Name", "theirs "+hostile)
	other.press("Rename")
	other.closed()
	other.sees("theirs " + hostile)
	alice.fills("Name", "work")
	alice.press("Rename")
	alice.sees("Name: now theirs " + hostile + ", yours work")
	alice.looks("changed")
	alice.press("Rename")
	alice.closed()
	alice.sees("work")
}

// twoFrames lets a page draw what it has got.
const twoFrames = "new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))"

// lateAnswer leaves a page before the answers that it waits for are there.
func lateAnswer(alice *person) {
	alice.open(alice.orgPath() + "/settings")
	alice.sees("Cost center")
	alice.Eval(alice.t, `void (window.real = window.fetch, window.fetch = (url, o) => !url.includes('/members')
		? window.real.call(window, url, o)
		: new Promise((resolve) => { window.release = resolve; }).then(() => window.real.call(window, url, { ...o, signal: undefined }))
			.then((r) => r.clone().text().then(() => { window.late = true; return r; })))`, nil)
	var at string
	alice.Eval(alice.t, "(document.querySelector('#tabs a[href$=members]').click(), document.querySelector('main').innerText)", &at)
	require.Equal(alice.t, "Loading…", at, "at once")
	alice.Until(alice.t, "window.release")
	alice.press("Settings")
	alice.sees("Cost center")
	alice.Eval(alice.t, "window.release()", nil)
	alice.Until(alice.t, "window.late")
	alice.Eval(alice.t, twoFrames, nil)
	require.Contains(alice.t, alice.Text(alice.t, "main"), "Cost center", "the page that was left does not come back")
	alice.Eval(alice.t, `void (window.fetch = (url, o) => o.method !== 'POST' ? window.real.call(window, url, o)
		: new Promise((resolve) => { window.release = resolve; }).then(() => {
			const r = Response.json({ uuid: '00000000-0000-0000-0000-000000000000' }, { status: 202 });
			r.text = () => Response.prototype.text.call(r).then((text) => { window.late = true; return text; });
			return r;
		}))`, nil)
	alice.press("kedge")
	alice.press("New organization")
	alice.fills("Name", "late")
	alice.press("Create")
	alice.press("Cancel")
	alice.press("Deleted items")
	alice.sees("Nothing is deleted")
	alice.Eval(alice.t, "void (window.late = false, window.release())", nil)
	alice.Until(alice.t, "window.late")
	alice.Eval(alice.t, twoFrames, nil)
	require.Equal(alice.t, "/ui/deleted", alice.path(), "the answer to a form leads nowhere any more")
	alice.Eval(alice.t, "void (window.fetch = window.real)", nil)
	alice.Back(alice.t)
	alice.press("ACME")
	alice.press("Settings")
	alice.sees("Cost center")
}

// lostAnswer sends a form of which the answer does not arrive, and sends it again. Then it goes
// offline.
func lostAnswer(alice *person) {
	alice.press("Workspaces")
	alice.press("New workspace")
	alice.fills("Name", "once")
	alice.Eval(alice.t, `void (window.real = window.fetch, window.fetch = (url, o) => window.real.call(window, url, o).then((r) => {
		if (o.method !== 'POST') return r;
		window.fetch = window.real;
		throw new TypeError('the answer is lost');
	}))`, nil)
	alice.press("Create")
	alice.sees("The hub cannot be reached; check your connection")
	alice.press("Create")
	alice.closed()
	alice.Until(alice.t, rows("once")+" === 1 && document.getElementById('offline').hidden")
	for _, online := range []string{"false", "true"} {
		alice.Eval(alice.t, "void (Object.defineProperty(navigator, 'onLine', { value: "+online+", configurable: true }), dispatchEvent(new Event("+online+" ? 'online' : 'offline')))", nil)
		alice.Until(alice.t, "document.getElementById('offline').hidden === "+online)
	}
}

// rows counts the rows of tables that begin with a name.
func rows(name string) string {
	return fmt.Sprintf("[...document.querySelectorAll('td:first-child')].filter((c) => c.innerText === %s).length", quoted(name))
}

// tabTo moves the focus with the Tab key until it is on a button or a link with a text.
func (p *person) tabTo(text string) {
	p.t.Helper()
	for range 60 {
		p.Keys(p.t, "\t")
		var at string
		p.Eval(p.t, "document.activeElement.textContent.trim()", &at)
		if at == text {
			return
		}
	}
	require.Fail(p.t, "the Tab key does not lead there", text)
}

// restart kills the hub under an open page with a form, and starts it again.
func restart(t *testing.T, s *scene, alice *person) {
	alice.open("/ui/")
	alice.press("ACME")
	alice.press("New workspace")
	alice.fills("Name", "while the hub restarts")
	other := &person{Chromium: alice.Tab("second"), t: t, hub: alice.hub}
	other.open(alice.path())
	other.sees("New workspace")
	s.hub.Kill()
	alice.press("Create")
	alice.sees("This page goes on by itself")
	alice.sees("The hub cannot be reached; check your connection")
	other.press("Members")
	other.sees("This page cannot be shown")
	other.sees("Try again")
	other.looks("unreachable")
	s.start(t)
	s.ready(t, s.client.URL)
	for _, p := range []*person{alice, other} {
		p.Until(t, "document.getElementById('offline').hidden")
	}
	other.sees("Add a member")
	alice.press("Create")
	alice.closed()
	alice.Until(t, rows("while the hub restarts")+" === 1")
}
