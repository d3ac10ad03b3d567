package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/faroshq/kedge-hub/test/framework"
)

const (
	logins  = 9
	plugins = 20
	// idTokens is the lifetime of Dex's ID tokens. The hub asks for a newer one after half of it.
	idTokens = 20 * time.Second
)

// measureLogins measures a hub with Dex as its identity provider: logins, plugins that need a
// newer token, and a person's requests beside floods.
func measureLogins(dir string) (rows []row, err error) {
	dexDir, home := filepath.Join(dir, "dex"), filepath.Join(dir, "home")
	for _, d := range []string{dexDir, home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, err
		}
	}
	dex, err := framework.StartDex(dexDir, framework.DexOptions{IDTokens: idTokens})
	if err != nil {
		return nil, err
	}
	defer dex.Kill()
	var port int
	if err := checked(func(t testing.TB) { port = dex.HubPort(t) }); err != nil {
		return nil, err
	}
	h, err := startHubAt(filepath.Join(dir, "login-hub"), port,
		"--oidc-issuer-url", dex.Issuer, "--oidc-ca-file", dex.CAFile,
		"--oidc-client-id", framework.HubClient, "--oidc-client-secret-file", dex.SecretFile)
	if err != nil {
		return nil, err
	}
	defer h.Kill()
	l := laptop{hub: h, dex: dex, home: home}
	for _, measure := range []func() ([]row, error){l.measureLogins, l.measurePlugins, l.measureFloods} {
		measured, err := measure()
		rows = append(rows, measured...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// checked runs helpers of tests, which panic with their failure.
func checked(do func(testing.TB)) (err error) {
	t := &benchTB{}
	defer func() {
		for _, clean := range slices.Backward(t.cleanups) {
			clean()
		}
		if r := recover(); r != nil {
			if err, _ = r.(*failure); err == nil {
				panic(r)
			}
		}
	}()
	do(t)
	return nil
}

type failure struct{ text string }

func (f *failure) Error() string { return f.text }

// benchTB implements what the helpers of tests use of testing.TB.
type benchTB struct {
	testing.TB
	text     string
	cleanups []func()
}

func (t *benchTB) Helper()                           {}
func (t *benchTB) Context() context.Context          { return context.Background() }
func (t *benchTB) Cleanup(f func())                  { t.cleanups = append(t.cleanups, f) }
func (t *benchTB) Errorf(format string, args ...any) { t.text = fmt.Sprintf(format, args...) }
func (t *benchTB) FailNow()                          { panic(&failure{t.text}) }

// laptop is the home directory of a person with the command line.
type laptop struct {
	hub  *hubProcess
	dex  *framework.Dex
	home string
}

func (l laptop) command(name string, args ...string) (*exec.Cmd, *framework.Output, error) {
	program, err := framework.Bin(name)
	if err != nil {
		return nil, nil, err
	}
	out := &framework.Output{}
	c := exec.Command(program, args...)
	c.Env = []string{"HOME=" + l.home, "PATH=" + filepath.Dir(program) + ":/usr/bin:/bin", "BROWSER=true"}
	c.Dir, c.Stdout, c.Stderr = l.home, out, out
	return c, out, nil
}

func (l laptop) run(name string, args ...string) (string, error) {
	c, out, err := l.command(name, args...)
	if err == nil {
		if err = c.Run(); err != nil {
			err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
		}
	}
	if err != nil {
		return "", err
	}
	return out.String(), nil
}

// providerTime adds up the time that requests to the provider take.
type providerTime struct {
	next   http.RoundTripper
	issuer string
	mu     sync.Mutex
	took   time.Duration
}

func (p *providerTime) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	response, err := p.next.RoundTrip(r)
	if strings.HasPrefix(r.URL.String(), p.issuer) {
		p.mu.Lock()
		p.took += time.Since(began)
		p.mu.Unlock()
	}
	return response, err
}

var authorizeURL = regexp.MustCompile(`https://\S+/auth/authorize\?\S+`)

// login logs in with kedge and returns the time that took without the browser's requests to
// the provider.
func (l laptop) login() (time.Duration, error) {
	c, out, err := l.command("kedge", "login", "--server", l.hub.URL, "--ca-file", l.hub.CA)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := c.Start(); err != nil {
		return 0, err
	}
	var opened string
	for opened == "" {
		if time.Since(began) > patience {
			return 0, fmt.Errorf("kedge login opens no page: %s", out)
		}
		<-time.After(time.Millisecond)
		opened = authorizeURL.FindString(out.String())
	}
	provider := &providerTime{issuer: l.dex.Issuer}
	err = checked(func(t testing.TB) {
		b := framework.NewBrowser(t, l.hub.CA, l.dex.CAFile)
		provider.next, b.HTTP.Transport = b.HTTP.Transport, provider
		page := l.dex.LogIn(t, b, opened, "alice")
		if page.Location == nil {
			panic(&failure{"the login does not lead back to the command line: " + page.Body})
		}
		response, err := http.Get(page.Location.String())
		if err != nil {
			panic(&failure{err.Error()})
		}
		_ = response.Body.Close()
	})
	if err = errors.Join(err, c.Wait()); err != nil {
		return 0, fmt.Errorf("kedge login: %w: %s", err, out)
	}
	return time.Since(began) - provider.took, nil
}

// measureLogins measures a login with the first kubectl after it. The baseline is kubectl with
// a static token, straight at kcp.
func (l laptop) measureLogins() ([]row, error) {
	if _, err := l.login(); err != nil {
		return nil, err
	}
	for _, args := range [][]string{{"orgs", "create", "bench"}, {"workspaces", "create", "bench"}, {"kubeconfig", "--file", filepath.Join(l.home, "kubeconfig")}} {
		if _, err := l.run("kedge", args...); err != nil {
			return nil, err
		}
	}
	var took, bare []time.Duration
	for range logins {
		d, err := l.login()
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if err := l.kubectl(filepath.Join(l.home, "kubeconfig")); err != nil {
			return nil, err
		}
		took = append(took, d+time.Since(began))
		began = time.Now()
		if err := l.kubectl(filepath.Join(l.hub.dir, "kcp", "admin.kubeconfig"), "--context", "root"); err != nil {
			return nil, err
		}
		bare = append(bare, time.Since(began))
	}
	return []row{{
		"login to first kubectl, without the provider", seconds(median(bare)), seconds(median(took)),
		fmt.Sprintf("%+v", (median(took) - median(bare)).Round(time.Millisecond)), "≤ 300ms",
	}}, nil
}

// kubectl lists namespaces as on a computer that has never asked this server.
func (l laptop) kubectl(kubeconfig string, flags ...string) error {
	if err := os.RemoveAll(filepath.Join(l.home, ".kube")); err != nil {
		return err
	}
	_, err := l.run("kubectl", append([]string{"--kubeconfig", kubeconfig, "get", "namespaces"}, flags...)...)
	return err
}

// measurePlugins runs kubectl in parallel when all need a newer ID token.
func (l laptop) measurePlugins() ([]row, error) {
	all := func() (time.Duration, error) {
		began := time.Now()
		var running errgroup.Group
		for range plugins {
			running.Go(func() error {
				_, err := l.run("kubectl", "--kubeconfig", filepath.Join(l.home, "kubeconfig"), "get", "namespace", "default")
				return err
			})
		}
		err := running.Wait()
		return time.Since(began), err
	}
	if _, err := l.login(); err != nil {
		return nil, err
	}
	fresh, err := all()
	if err != nil {
		return nil, err
	}
	var before, after int
	if err := checked(func(t testing.TB) { before = l.dex.TokenRequests(t) }); err != nil {
		return nil, err
	}
	<-time.After(idTokens / 2)
	stale, err := all()
	if err != nil {
		return nil, err
	}
	if err := checked(func(t testing.TB) { after = l.dex.TokenRequests(t) }); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%d kubectl at once that need a newer token", plugins)
	return []row{
		{what, seconds(fresh), seconds(stale), ratio(stale.Seconds(), fresh.Seconds()), ""},
		{what + ", refreshes", "", fmt.Sprint(after - before), "", "1"},
	}, nil
}
