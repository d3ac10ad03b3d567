package portal

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// newcomer counts what somebody does in a browser and in a terminal.
type newcomer struct {
	*person
	clicks, commands int
	home             string
}

func (n *newcomer) clicked(text string) {
	n.clicks++
	n.press(text)
}

// downloaded clicks what has the browser save a file, which it puts where the browser would.
func (n *newcomer) downloaded(text, name string) {
	n.t.Helper()
	n.Eval(n.t, `void (window.made = '', window.create ??= URL.createObjectURL,
		URL.createObjectURL = (b) => { b.text().then((x) => { window.made = x; }); return window.create.call(URL, b); },
		document.addEventListener('click', (e) => {
			const link = e.target.closest('a[download]');
			if (link?.href.startsWith('https:')) { e.preventDefault(); fetch(link.href).then((r) => r.text()).then((x) => { window.made = x; }); }
		}, { once: true }))`, nil)
	n.clicked(text)
	n.Until(n.t, "window.made !== ''")
	var made string
	n.Eval(n.t, "window.made", &made)
	require.NoError(n.t, os.WriteFile(filepath.Join(n.home, name), []byte(made), 0o600))
}

// runs runs a command line as the portal shows it. The browser is whatever opens is called with.
func (n *newcomer) runs(line string, opens func(url string)) string {
	n.t.Helper()
	n.commands++
	bin, err := filepath.Abs(os.Getenv("KEDGE_TEST_BIN"))
	require.NoError(n.t, err)
	opened := filepath.Join(n.home, "opened")
	script := filepath.Join(n.home, "browser")
	require.NoError(n.t, os.WriteFile(script, []byte("#!/bin/sh\nprintf '%s\\n' \"$1\" > '"+opened+"'\n"), 0o700))
	var out framework.Output
	cmd := exec.CommandContext(n.t.Context(), "/bin/sh", "-c", line)
	cmd.Dir, cmd.WaitDelay = n.home, 10*time.Second
	cmd.Env = []string{"HOME=" + n.home, "PATH=" + bin + ":/usr/bin:/bin", "BROWSER=" + script}
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(n.t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if opens != nil {
		var url string
		framework.Eventually(n.t, framework.Long, func() error {
			raw, _ := os.ReadFile(opened)
			url = strings.TrimSpace(string(raw))
			return framework.Check(url != "", "no browser was opened: %s", &out)
		})
		opens(url)
	}
	select {
	case err := <-ended:
		require.NoError(n.t, err, "%s: %s", line, &out)
	case <-time.After(framework.Long):
		require.Fail(n.t, "the command does not end", "%s: %s", line, &out)
	}
	return out.String()
}

// shown is the command on the page that begins with a word.
func (n *newcomer) shown(word string) (line string) {
	n.t.Helper()
	n.Eval(n.t, "[...document.querySelectorAll('.secret code')].map((c) => c.innerText).find((c) => c.startsWith("+quoted(word)+"))", &line)
	return line
}

// An invited stranger, whom a hub that takes nobody new has never seen, works in the workspace after
// at most six clicks and two commands, which they copy.
func TestFirstHour_ofAnInvitedStrangerIsShort(t *testing.T) {
	t.Parallel()
	s := newScene(t, "--registration", "closed")
	org := s.client.Made(t, framework.Call{As: admin, Method: http.MethodPost, Path: "/api/orgs", Body: map[string]any{"displayName": "Guild"}}).Text("uuid")
	ws := s.client.Made(t, framework.InOrg(admin, http.MethodPost, org, "/workspaces", map[string]any{"displayName": "Shop"})).Text("uuid")
	link := s.client.Do(t, framework.Call{
		As: admin, Method: http.MethodPost, Path: "/api/orgs/" + org + "/workspaces/" + ws + "/invitations", Org: org, Workspace: ws, Body: map[string]any{"role": "member"},
	}, http.StatusCreated).Text("url")

	refused := s.person(t, "refused")
	refused.open("/ui/sign-in")
	refused.press("Sign in")
	s.dex.LogInWith(t, refused.Chromium, "carol")
	refused.sees("takes nobody new")
	refused.sees(s.dex.Issuer + "#")

	stranger := &newcomer{person: s.person(t, "stranger"), home: t.TempDir()}
	logIn := func() {
		stranger.clicks++
		s.dex.LogInWith(t, stranger.Chromium, "bob")
	}
	stranger.Open(t, link)
	stranger.clicked("Sign in and accept")
	logIn()
	stranger.At(t, s.client.URL+"/ui/orgs/"+org+"/workspaces/"+ws)
	stranger.sees("Get in with kubectl")
	stranger.looks("workspace-of-a-guest")
	stranger.downloaded("kedge-ca.crt", "kedge-ca.crt")
	stranger.downloaded("Download kubeconfig", "shop.kubeconfig")
	login, kubectl := stranger.shown("kedge login"), stranger.shown("kubectl")
	require.Regexp(t, `--ca-file kedge-ca\.crt$`, login)
	require.Equal(t, "kubectl --kubeconfig shop.kubeconfig get namespaces", kubectl)
	require.Contains(t, stranger.runs(login, func(url string) {
		stranger.Open(t, url)
		logIn()
		stranger.sees("Continue only if")
		stranger.clicks++
		stranger.Click(t, "#continue")
	}), "You work in the workspace ")
	require.Regexp(t, `default +Active`, stranger.runs(kubectl, nil))
	t.Logf("%d clicks and %d commands", stranger.clicks, stranger.commands)
	require.LessOrEqual(t, stranger.clicks, 6)
	require.LessOrEqual(t, stranger.commands, 2)

	// The steps that are left to do are shown until somebody says that they are done.
	stranger.open("/ui/")
	stranger.sees("First steps:")
	stranger.press("Next: Use kubectl in it")
	stranger.sees("3 of 4 done")
	stranger.looks("first-steps")
	stranger.press("Do not show them again")
	stranger.sees("Organizations")
	stranger.misses("First steps:")

	// Somebody who is let in elsewhere sees it at the next look.
	other := s.client.Made(t, framework.InOrg(admin, http.MethodPost, org, "/workspaces", map[string]any{"displayName": "Annex"})).Text("uuid")
	name := s.client.Do(t, framework.Call{As: admin, Method: http.MethodGet, Path: "/api/admin/users?q=bob"}, http.StatusOK).JSON["items"].([]any)[0].(map[string]any)["name"]
	s.client.Do(t, framework.Call{
		As: admin, Method: http.MethodPost, Path: "/api/orgs/" + org + "/workspaces/" + other + "/members", Org: org, Workspace: other,
		Body: map[string]any{"userRef": map[string]any{"name": name}, "role": "viewer"},
	}, http.StatusCreated)
	stranger.open("/ui/me")
	stranger.Until(t, "document.querySelector('.mark')?.title === '1 new place'")
	stranger.looks("marked")
	stranger.open("/ui/")
	stranger.sees("New for you: Annex")
	stranger.quiet()
}
