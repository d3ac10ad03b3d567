package framework

import (
	"bufio"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Chromium is a tab of a real browser, which the program of test/browser drives. The tabs of
// one browser are used by one goroutine.
type Chromium struct {
	steps   io.Writer
	answers *bufio.Reader
	tab     string
}

// The keys of these names, for Keys.
const (
	ArrowDown = "\u0301"
	Escape    = "\u001b"
)

// BrowserCookie is a cookie that a Chromium keeps.
type BrowserCookie struct {
	Name, Value, Path, SameSite string
	Secure, HTTPOnly            bool
}

// NeedChromium returns the path of Chromium, as NeedProgram does.
func NeedChromium(t testing.TB) string {
	t.Helper()
	return NeedProgram(t, "chromium", "chromium-browser", "google-chrome")
}

// StartChromium starts a browser without a profile. It takes the certificates in the files
// and no others.
func StartChromium(t testing.TB, certFiles ...string) *Chromium {
	t.Helper()
	found := NeedChromium(t)
	program, err := Bin("browser")
	require.NoError(t, err)
	hashes := []string{}
	for _, file := range certFiles {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		block, _ := pem.Decode(raw)
		require.NotNil(t, block, "%s holds no certificate", file)
		cert, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
		hashes = append(hashes, base64.StdEncoding.EncodeToString(sum[:]))
	}
	cmd := exec.Command(program, "--chromium", found, "--trust", strings.Join(hashes, ","))
	errOut := &Output{}
	cmd.Stderr = errOut
	steps, err := cmd.StdinPipe()
	require.NoError(t, err)
	answers, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		// The browser ends with its standard input.
		_ = steps.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the browser ended with %s: %s", err, errOut)
		}
	})
	return &Chromium{steps: steps, answers: bufio.NewReader(answers)}
}

// Tab returns another tab of the browser, which is opened by its first step. One whose name
// begins with "private" has cookies of its own.
func (c *Chromium) Tab(name string) *Chromium {
	return &Chromium{steps: c.steps, answers: c.answers, tab: name}
}

// step carries out a step, and reads its value into the argument into unless that is nil.
func (c *Chromium) step(t testing.TB, step map[string]any, into any) {
	t.Helper()
	step["tab"] = c.tab
	require.NoError(t, json.NewEncoder(c.steps).Encode(step))
	line, err := c.answers.ReadBytes('\n')
	require.NoError(t, err)
	var answer struct {
		Value json.RawMessage
		Error string
	}
	require.NoError(t, json.Unmarshal(line, &answer))
	require.Empty(t, answer.Error)
	if into != nil {
		require.NoError(t, json.Unmarshal(answer.Value, into))
	}
}

// Open goes to a URL.
func (c *Chromium) Open(t testing.TB, url string) {
	t.Helper()
	c.step(t, map[string]any{"do": "goto", "url": url}, nil)
}

// Fill types a value into the element of a CSS selector.
func (c *Chromium) Fill(t testing.TB, selector, value string) {
	t.Helper()
	c.step(t, map[string]any{"do": "fill", "selector": selector, "value": value}, nil)
}

// Click clicks the element of a CSS selector.
func (c *Chromium) Click(t testing.TB, selector string) {
	t.Helper()
	c.step(t, map[string]any{"do": "click", "selector": selector}, nil)
}

// Text returns the visible text of the element of a CSS selector.
func (c *Chromium) Text(t testing.TB, selector string) (text string) {
	t.Helper()
	c.step(t, map[string]any{"do": "text", "selector": selector}, &text)
	return text
}

// At waits until the URL of the tab begins with a prefix, and returns it.
func (c *Chromium) At(t testing.TB, prefix string) (url string) {
	t.Helper()
	c.step(t, map[string]any{"do": "at", "url": prefix}, &url)
	return url
}

// Eval evaluates an expression in the page and reads its value into the argument into, unless
// that is nil.
func (c *Chromium) Eval(t testing.TB, expression string, into any) {
	t.Helper()
	c.step(t, map[string]any{"do": "eval", "value": expression}, into)
}

// Until waits until an expression in the page is true.
func (c *Chromium) Until(t testing.TB, expression string) {
	t.Helper()
	c.step(t, map[string]any{"do": "wait", "value": expression}, nil)
}

// Keys presses keys, which go to the element that has the focus.
func (c *Chromium) Keys(t testing.TB, keys string) {
	t.Helper()
	c.step(t, map[string]any{"do": "keys", "value": keys}, nil)
}

// Back goes back in the history of the tab.
func (c *Chromium) Back(t testing.TB) {
	t.Helper()
	c.step(t, map[string]any{"do": "back"}, nil)
}

// Resize sets the size of the window in pixels.
func (c *Chromium) Resize(t testing.TB, width, height int) {
	t.Helper()
	c.step(t, map[string]any{"do": "resize", "width": width, "height": height}, nil)
}

// Scheme makes the person prefer a color scheme: light or dark.
func (c *Chromium) Scheme(t testing.TB, scheme string) {
	t.Helper()
	c.step(t, map[string]any{"do": "media", "value": scheme}, nil)
}

// Cookies returns the cookies for the page.
func (c *Chromium) Cookies(t testing.TB) (all []BrowserCookie) {
	t.Helper()
	c.step(t, map[string]any{"do": "cookies"}, &all)
	return all
}

// Fits requires that the page is not wider than a window of the given size in pixels.
func (c *Chromium) Fits(t testing.TB, width, height int) {
	t.Helper()
	var over int
	c.Resize(t, width, height)
	c.step(t, map[string]any{"do": "overflow"}, &over)
	require.Zero(t, over, "the page is wider than %d pixels", width)
}

// Console returns what the browser's console shows: violations of the content security
// policy, scripts that fail, resources that do not load.
func (c *Chromium) Console(t testing.TB) (lines []string) {
	t.Helper()
	c.step(t, map[string]any{"do": "console"}, &lines)
	return lines
}

// accessible are the tags of the rules of axe-core for the levels A and AA of WCAG 2.2.
const accessible = "wcag2a wcag2aa wcag21a wcag21aa wcag22a wcag22aa"

// Violations returns what axe-core finds on the page, at its size and in its color scheme: the
// rules of WCAG 2.2 AA that elements violate. It finds nothing on a machine without axe-core,
// which the Makefile installs where there is Node.
func (c *Chromium) Violations(t testing.TB) (found []string) {
	t.Helper()
	if script, err := Bin("axe.min.js"); err == nil {
		c.step(t, map[string]any{"do": "audit", "file": script, "value": accessible}, &found)
	}
	return found
}

// Screenshot writes a PNG of the page into a file.
func (c *Chromium) Screenshot(t testing.TB, file string) {
	t.Helper()
	c.step(t, map[string]any{"do": "screenshot", "file": file}, nil)
}

// LogInWith fills in Dex's form in a real browser that has reached it.
func (d *Dex) LogInWith(t testing.TB, c *Chromium, person string) {
	t.Helper()
	c.At(t, d.Issuer)
	c.Fill(t, "#login", person+"@example.com")
	c.Fill(t, "#password", DexPassword)
	c.Click(t, "#submit-login")
}
