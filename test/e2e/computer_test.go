package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// computer is a home directory with the logins of one person, and the programs.
type computer struct {
	home string
	// browser is what $BROWSER starts: it records the URL.
	browser string
	env     []string
	secrets *secrets
}

func newComputer(t *testing.T, s *secrets) *computer {
	t.Helper()
	bin, err := filepath.Abs(os.Getenv("KEDGE_TEST_BIN"))
	require.NoError(t, err)
	c := &computer{home: t.TempDir(), secrets: s}
	c.browser = filepath.Join(c.home, "opened")
	script := filepath.Join(c.home, "browser")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nprintf '%s\\n' \"$1\" >> '"+c.browser+"'\n"), 0o700))
	c.env = []string{"HOME=" + c.home, "PATH=" + bin + ":/usr/bin:/bin", "BROWSER=" + script}
	return c
}

// run is a program that has ended or runs.
type run struct {
	cmd         *exec.Cmd
	out, errOut *framework.Output
	ended       chan error
}

// start starts a program on the computer.
func (c *computer) start(t *testing.T, name string, args ...string) *run {
	t.Helper()
	program, err := framework.Bin(name)
	require.NoError(t, err)
	return c.startProgram(t, program, args...)
}

// startProgram is start for a program that is not the hub's.
func (c *computer) startProgram(t *testing.T, program string, args ...string) *run {
	t.Helper()
	_ = os.Remove(c.browser)
	r := &run{cmd: exec.CommandContext(t.Context(), program, args...), out: &framework.Output{}, errOut: &framework.Output{}, ended: make(chan error, 1)}
	r.cmd.Env, r.cmd.Dir, r.cmd.WaitDelay = c.env, c.home, 10*time.Second
	r.cmd.Stdout, r.cmd.Stderr = r.out, r.errOut
	require.NoError(t, r.cmd.Start())
	go func() { r.ended <- r.cmd.Wait() }()
	return r
}

// wait waits until the program has ended.
func (r *run) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(framework.Long):
		_ = r.cmd.Process.Kill()
		require.Fail(t, "the program does not end", "%s\n%s", r.out, r.errOut)
		return nil
	}
}

// kedge runs the command line and requires that it succeeds.
func (c *computer) kedge(t *testing.T, args ...string) string {
	t.Helper()
	r := c.start(t, "kedge", args...)
	err := r.wait(t)
	c.remember(t)
	require.NoError(t, err, "kedge %s: %s%s", strings.Join(args, " "), r.out, r.errOut)
	return r.out.String()
}

var authorizeURL = regexp.MustCompile(`https://\S+/auth/authorize\?\S+`)

// beginLogin starts kedge login and returns the URL that it gave to the browser.
func (c *computer) beginLogin(t *testing.T, h *hub, args ...string) (*run, string) {
	t.Helper()
	r := c.start(t, "kedge", append([]string{"login", "--server", h.URL, "--ca-file", h.CA}, args...)...)
	return r, c.opened(t, r)
}

// opened waits until a program has opened the browser, and returns the URL.
func (c *computer) opened(t *testing.T, r *run) string {
	t.Helper()
	opened := ""
	framework.Eventually(t, framework.Long, func() error {
		raw, _ := os.ReadFile(c.browser)
		opened = authorizeURL.FindString(string(raw))
		return framework.Check(opened != "", "no browser was opened: %s%s", r.out, r.errOut)
	})
	return opened
}

// finishLogin brings the browser's answer to the command line that waits for it.
func (c *computer) finishLogin(t *testing.T, r *run, p *framework.Page) {
	t.Helper()
	require.NotNil(t, p.Location, "%d %s", p.Code, p.Body)
	c.secrets.add(p.Location.Query().Get("code"))
	// The command line listens on plain HTTP on this machine.
	response, err := http.Get(p.Location.String())
	require.NoError(t, err)
	_ = response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, r.wait(t), "%s%s", r.out, r.errOut)
	require.Contains(t, r.out.String(), "Logged in to ")
	c.remember(t)
}

func (c *computer) login(t *testing.T, h *hub, dex *framework.Dex, person string) {
	t.Helper()
	r, url := c.beginLogin(t, h)
	c.finishLogin(t, r, dex.LogIn(t, framework.NewBrowser(t, h.CA, dex.CAFile), url, person))
}

// profile is the login as the command line keeps it.
type profile struct{ Token, Secret string }

// profiles reads the logins of the computer.
func (c *computer) profiles(t *testing.T) map[string]profile {
	t.Helper()
	var config struct{ Profiles map[string]profile }
	raw, err := os.ReadFile(filepath.Join(c.home, ".config", "kedge", "config.json"))
	if err == nil {
		require.NoError(t, json.Unmarshal(raw, &config))
	}
	return config.Profiles
}

// remember takes what the computer keeps to the secrets that must be nowhere else.
func (c *computer) remember(t *testing.T) {
	t.Helper()
	for _, p := range c.profiles(t) {
		c.secrets.add(p.Token)
		c.secrets.add(p.Secret)
	}
}

// kubectl runs kubectl with the computer's kubeconfig.
func (c *computer) kubectl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	r := c.start(t, "kubectl", append([]string{"--kubeconfig", filepath.Join(c.home, "kubeconfig")}, args...)...)
	err := r.wait(t)
	return r.out.String() + r.errOut.String(), err
}

// secrets are the tokens, codes and secrets that a test has seen.
type secrets struct{ all map[string]bool }

func (s *secrets) add(secret string) {
	if secret != "" {
		s.all[secret] = true
	}
}

// in requires that a text contains none of the secrets. It does not print them.
func (s *secrets) in(t *testing.T, where string, text []byte) {
	t.Helper()
	require.NotEmpty(t, text, where)
	for secret := range s.all {
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("%s contains a secret that begins with %.8s", where, secret)
		}
		// The signature alone is as telling as the token.
		if i := strings.LastIndexByte(secret, '.'); i > 0 && len(secret)-i > 20 && bytes.Contains(text, []byte(secret[i+1:])) {
			t.Errorf("%s contains the end of a secret that begins with %.8s", where, secret)
		}
	}
}
