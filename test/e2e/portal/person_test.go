package portal

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// person is somebody in front of a tab.
type person struct {
	*framework.Chromium
	t   *testing.T
	hub string
}

// quoted makes a JavaScript string.
func quoted(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// signIn signs the person in with a static token.
func (p *person) signIn(name, to string) {
	p.t.Helper()
	p.enterToken(name, to)
	p.At(p.t, p.hub+to)
}

func (p *person) enterToken(name, to string) {
	p.t.Helper()
	p.Open(p.t, p.hub+"/auth/token-login?return_to="+url.QueryEscape(to))
	p.Fill(p.t, "#token", framework.Token(name))
	p.Click(p.t, "#continue")
}

// open goes to a page of the portal.
func (p *person) open(path string) {
	p.t.Helper()
	p.Open(p.t, p.hub+path)
}

// sees waits until the page is there and shows a text.
func (p *person) sees(text string) {
	p.t.Helper()
	p.Until(p.t, "!document.querySelector('.loading') && document.body.innerText.includes("+quoted(text)+")")
}

// misses waits until the page does not show a text.
func (p *person) misses(text string) {
	p.t.Helper()
	p.Until(p.t, "!document.querySelector('.loading') && !document.body.innerText.includes("+quoted(text)+")")
}

// topmost is where a person can click: the dialog that is open last, or the page.
const topmost = `([...document.querySelectorAll('dialog[open]')].pop() || document.body)`

// press clicks a button or a link that is visible and works, by its text.
func (p *person) press(text string) {
	p.t.Helper()
	p.pressIn("", text)
}

// pressIn is press in the row of a table that has another text.
func (p *person) pressIn(row, text string) {
	p.t.Helper()
	p.Until(p.t, fmt.Sprintf(`(() => {
		const rows = %s ? [...document.querySelectorAll('tr')].filter((r) => r.innerText.includes(%s)) : [%s];
		const found = rows.flatMap((r) => [...r.querySelectorAll('button, a')]).find((b) => b.textContent.trim() === %s && !b.disabled && b.checkVisibility());
		if (found) { found.focus(); found.click(); }
		return Boolean(found);
	})()`, quoted(row), quoted(row), topmost, quoted(text)))
}

// fills types into the field with a label, or chooses from it.
func (p *person) fills(label, value string) {
	p.t.Helper()
	p.Until(p.t, fmt.Sprintf(`(() => {
		const label = [...%s.querySelectorAll('label')].find((l) => l.textContent.trim() === %s);
		const input = label && document.getElementById(label.htmlFor);
		if (!input) return false;
		input.focus();
		input.value = %s;
		input.dispatchEvent(new Event('input', { bubbles: true }));
		input.dispatchEvent(new Event('change', { bubbles: true }));
		return true;
	})()`, topmost, quoted(label), quoted(value)))
}

// rejects answers a claim of a provider.
func (p *person) rejects(objects string) {
	p.t.Helper()
	p.fillsBy("Answer for "+objects, "reject")
}

// fillsBy is fills for an input that has an aria-label.
func (p *person) fillsBy(label, value string) {
	p.t.Helper()
	p.Until(p.t, `(() => {
		const input = `+topmost+`.querySelector(`+quoted(`[aria-label="`+label+`"]`)+`);
		if (!input) return false;
		input.value = `+quoted(value)+`;
		input.dispatchEvent(new Event('change', { bubbles: true }));
		return true;
	})()`)
}

// role chooses a role for a member on the page of the members.
func (p *person) role(name, value string) {
	p.t.Helper()
	p.Until(p.t, `(() => {
		const s = document.querySelector(`+quoted(`[aria-label="Role of `+name+`"]:not(:disabled)`)+`);
		if (!s) return false;
		s.value = `+quoted(value)+`;
		s.dispatchEvent(new Event('change'));
		return true;
	})()`)
}

// closed waits until no dialog is open.
func (p *person) closed() {
	p.t.Helper()
	p.Until(p.t, "!document.querySelector('dialog[open]')")
}

// path is the path of the page.
func (p *person) path() (path string) {
	p.t.Helper()
	p.Eval(p.t, "location.pathname", &path)
	return path
}

// orgPath is the path of the page of the Organization that the person is in.
func (p *person) orgPath() string {
	p.t.Helper()
	return p.path()[:len("/ui/orgs/00000000-0000-0000-0000-000000000000")]
}

// expected are hints of the browser, and lines about answers that are no success: it writes one
// for each, and the page tells the person.
var expected = regexp.MustCompile(`^(debug|info): |Failed to load resource: the server responded with a status of (400|401|403|404|409|412|422|503)|net::ERR_(CONNECTION|EMPTY|HTTP2)_`)

// quiet requires that nothing else is in the console: no script failed, and the browser refused
// nothing because of the Content-Security-Policy.
func (p *person) quiet() {
	p.t.Helper()
	for _, line := range p.Console(p.t) {
		require.Regexp(p.t, expected, line)
	}
}

// unsound finds what keyboards and screen readers cannot use.
const unsound = `[
	...[...document.querySelectorAll('input, select, textarea')].filter((e) => e.checkVisibility() && !e.labels.length && !e.ariaLabel),
	...[...document.querySelectorAll('button, a')].filter((e) => e.checkVisibility() && !e.textContent.trim()),
	...[...document.querySelectorAll('[id]')].filter((e) => document.querySelectorAll('#' + CSS.escape(e.id)).length > 1),
	...[...document.querySelectorAll('dialog')].filter((e) => !e.ariaLabel && !document.getElementById(e.getAttribute('aria-labelledby'))),
	...[...document.querySelectorAll('main:not(:has(h1)), th:not([scope]), img:not([alt]), [style]')],
].map((e) => e.outerHTML.slice(0, 200))`

// looks requires that the page fits a narrow window and can be used with a keyboard and a screen
// reader, in a wide and a narrow window, light and dark, and takes pictures of it if
// $KEDGE_TEST_SCREENSHOTS is set.
func (p *person) looks(name string) {
	p.t.Helper()
	p.Until(p.t, "document.querySelector('main h1') && !document.querySelector('.loading')")
	var bad []string
	p.Eval(p.t, unsound, &bad)
	require.Empty(p.t, bad, name)
	dir := os.Getenv("KEDGE_TEST_SCREENSHOTS")
	for _, width := range []int{360, 1280} {
		p.Fits(p.t, width, 800)
		for _, scheme := range []string{"dark", "light"} {
			p.Scheme(p.t, scheme)
			look := strings.Join([]string{name, fmt.Sprint(width), scheme}, "-")
			require.Empty(p.t, p.Violations(p.t), look)
			if dir != "" {
				p.Screenshot(p.t, filepath.Join(dir, look+".png"))
			}
		}
	}
}
