package cli_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/cli"
)

func TestLogin_opensTheBrowserAndKeepsTheSession(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	i := b.withIssuer(t)
	b.oauthLogin(t)
	code, out, errOut := b.run(t, "orgs", "--help")
	require.Zero(t, code, errOut)
	require.NotEmpty(t, out)
	require.Equal(t, []string{"laptop"}, i.descriptions)
	require.Contains(t, i.redirect, "http://127.0.0.1:")
	raw, err := os.ReadFile(b.file(".config/kedge/config.json"))
	require.NoError(t, err)
	require.Contains(t, string(raw), `"secret": "secret-1"`)

	code, _, errOut = b.run(t, "login")
	require.Zero(t, code, "server and CA are those of the last login: %s", errOut)
	require.Equal(t, []string{"secret-1"}, i.revoked, "the session that is replaced ends")
	_, err = http.Get(i.redirect)
	require.Error(t, err, "nothing listens after the login")
}

func TestLogin_printsTheURLWithNoBrowserOrWithoutOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flag string
		env  map[string]string
	}{
		"asked for":          {"--no-browser", nil},
		"no browser starts":  {"--timeout=1m", nil},
		"over SSH, asked":    {"--no-browser", map[string]string{"SSH_CONNECTION": "x"}},
		"a display over SSH": {"--timeout=1m", map[string]string{"SSH_CONNECTION": "x", "DISPLAY": ":0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			i := b.withIssuer(t)
			b.browser = nil
			for k, v := range c.env {
				b.env[k] = v
			}
			typed := &typing{open: b.follow(t)}
			code := cli.Main(t.Context(), []string{"login", "--server", b.URL, "--ca-file", b.file("ca.crt"), c.flag},
				cli.Streams{Out: typed, Err: typed}, b.environment())
			require.Zero(t, code, typed.all.String())
			require.Contains(t, typed.all.String(), "Logged in to "+b.URL+" as alice.")
			listener := strings.TrimSuffix(strings.TrimPrefix(i.redirect, "http://"), "/callback")
			require.Contains(t, typed.all.String(), "Press Continue there if the page names "+listener+".")
		})
	}
}

// typing is a terminal where somebody opens the first URL that is printed.
type typing struct {
	mu   sync.Mutex
	all  bytes.Buffer
	open func(string)
}

func (p *typing) Write(raw []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := regexp.MustCompile(`(?m)^https://\S+$`).Find(raw); found != nil {
		go p.open(string(found))
	}
	return p.all.Write(raw)
}

func TestLogin_messages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  func(*issuer)
		args string
		says string
	}{
		"wrong state": {func(i *issuer) {
			i.change = func(q url.Values) { q.Set("state", "another") }
		}, "", "the answer has the state of another login, so it was refused; run kedge login again"},
		"no state": {func(i *issuer) {
			i.change = func(q url.Values) { q.Del("state") }
		}, "", "the answer has the state of another login, so it was refused; run kedge login again"},
		"an error with a wrong state": {func(i *issuer) {
			i.refuse, i.change = "access_denied", func(q url.Values) { q.Set("state", "another") }
		}, "", "the answer has the state of another login, so it was refused; run kedge login again"},
		"another issuer": {func(i *issuer) {
			i.change = func(q url.Values) { q.Set("iss", "https://evil.example.com") }
		}, "", "the answer comes from another server than the hub, so it was refused; run kedge login again"},
		"two codes": {func(i *issuer) {
			i.change = func(q url.Values) { q.Add("code", "injected") }
		}, "", "the answer to this login names a parameter twice; run kedge login again"},
		"no code": {func(i *issuer) {
			i.change = func(q url.Values) { q.Del("code") }
		}, "", "the answer to this login has no code; run kedge login again"},
		"a code of another login": {func(i *issuer) {
			i.description, i.change = "the code is not valid", func(q url.Values) { q.Set("code", "injected") }
		}, "", "the code is not valid"},
		"refused by the person": {func(i *issuer) { i.refuse = "access_denied" }, "", "not logged in: the login was refused"},
		"approval pending": {func(i *issuer) {
			i.refuse, i.description = "access_denied", "Your registration waits for\r\n\x1b[31mapproval."
		}, "", "not logged in: Your registration waits for [31mapproval."},
		"error of the provider": {func(i *issuer) {
			i.refuse, i.description = "server_error", "the provider failed"
		}, "", "not logged in: the hub or its identity provider failed (server_error): the provider failed"},
		"provider away": {func(i *issuer) {
			i.status, i.refuse, i.description = 503, "temporarily_unavailable", "the provider does not answer"
		}, "", "the provider does not answer"},
		"slow clock":           {func(i *issuer) { i.date = 7 * time.Minute }, "", "the clock of this computer is 7m0s slow"},
		"fast clock, a device": {func(i *issuer) { i.date = -time.Hour }, "--device", "the clock of this computer is 1h0m0s fast"},
		"nobody":               {func(i *issuer) { i.date = time.Minute }, "--no-browser --timeout 50ms", "nobody completed the login within 50ms; run kedge login again"},
		"a refused device":     {func(i *issuer) { i.pending = []string{"access_denied"} }, "--device", "not logged in: the login was refused"},
		"a late device":        {func(i *issuer) { i.pending = []string{"expired_token"} }, "--device", "nobody confirmed the code in time; run kedge login again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.clock = hasty{}
			i := b.withIssuer(t)
			c.set(i)
			code, _, errOut := b.run(t, append([]string{"login", "--server", b.URL, "--ca-file", b.file("ca.crt")}, strings.Fields(c.args)...)...)
			require.Equal(t, 1, code)
			lines := strings.Split(strings.TrimSpace(errOut), "\n")
			last := lines[len(lines)-1]
			require.True(t, strings.HasPrefix(last, "kedge: "+c.says), errOut)
			_, err := os.Stat(b.file(".config/kedge/config.json"))
			require.ErrorIs(t, err, os.ErrNotExist)
		})
	}
}

// hasty is a clock whose timers fire at once, but for a little.
type hasty struct{ clock.RealClock }

func (hasty) After(time.Duration) <-chan time.Time { return time.After(time.Millisecond) }

func TestLogin_sendsNothingToAnotherServerThatTheHubNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ field, value, says string }{
		"another issuer":   {"issuer", "https://hub.example.com", "says that its URL is https://hub.example.com; run: kedge login --server https://hub.example.com"},
		"another endpoint": {"token_endpoint", "https://evil.example.com/auth/token", "names an endpoint at another server"},
		"no endpoint":      {"device_authorization_endpoint", "", "names an endpoint at another server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			i := b.withIssuer(t)
			i.metadata = map[string]any{c.field: c.value}
			b.browser = func(string) { assert.Fail(t, "no browser is opened") }
			code, _, errOut := b.run(t, "login", "--server", b.URL, "--ca-file", b.file("ca.crt"))
			require.Equal(t, 1, code)
			require.Contains(t, errOut, c.says)
			require.Zero(t, i.asked)
		})
	}
}

// queryOf returns the parameters of a URL.
func queryOf(target string) url.Values {
	_, query, _ := strings.Cut(target, "?")
	q, _ := url.ParseQuery(query)
	return q
}

// send sends a request; the code is 0 if there is no answer.
func send(method, target string) (code int, body string) {
	request, err := http.NewRequest(method, target, http.NoBody)
	if err != nil {
		return 0, err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	raw, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(raw)
}

func TestLogin_ignoresASecondAnswer(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	i := b.withIssuer(t)
	i.entered, i.leave = make(chan struct{}), make(chan struct{})
	followed := make(chan struct{})
	b.browser = func(authorize string) {
		defer close(followed)
		go b.follow(t)(authorize)
		<-i.entered
		defer close(i.leave)
		q := queryOf(authorize)
		code, _ := send(http.MethodGet, q.Get("redirect_uri")+"?code=injected&state="+q.Get("state"))
		assert.Equal(t, http.StatusConflict, code)
	}
	code, out, errOut := b.run(t, "login", "--server", b.URL, "--ca-file", b.file("ca.crt"))
	<-followed
	require.Zero(t, code, errOut)
	require.Contains(t, out, "as alice")
	require.Contains(t, errOut, "kedge: a second answer to this login came and was ignored\n")
}

func TestLogin_showsWhatTheLoopbackRefuses(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.withIssuer(t)
	done := make(chan struct{})
	b.browser = func(authorize string) {
		defer close(done)
		redirect := queryOf(authorize).Get("redirect_uri")
		for _, c := range []struct {
			method, url string
			code        int
		}{
			{http.MethodPost, redirect, http.StatusMethodNotAllowed},
			{http.MethodGet, strings.TrimSuffix(redirect, "callback"), http.StatusNotFound},
			{http.MethodGet, redirect + "?state=x&error=%3Cscript%3E", http.StatusBadRequest},
		} {
			code, body := send(c.method, c.url)
			assert.Equal(t, c.code, code)
			assert.NotContains(t, body, "<script>")
		}
	}
	code, _, errOut := b.run(t, "login", "--server", b.URL, "--ca-file", b.file("ca.crt"))
	<-done
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "kedge: the answer has the state of another login")
}

func TestLogin_withADevice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args string
		env  map[string]string
	}{
		"asked for":              {"--device", nil},
		"over SSH, no display":   {"", map[string]string{"SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}},
		"with a token in reach":  {"--device", map[string]string{"KEDGE_TOKEN": "other"}},
		"polled before and slow": {"--device", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			i := b.withIssuer(t)
			b.browser = func(string) { assert.Fail(t, "no browser is opened") }
			i.pending = []string{"authorization_pending", "slow_down", "authorization_pending"}
			b.clock = hasty{}
			for k, v := range c.env {
				b.env[k] = v
			}
			code, out, errOut := b.run(t, append([]string{"login", "--server", b.URL, "--ca-file", b.file("ca.crt")}, strings.Fields(c.args)...)...)
			require.Zero(t, code, errOut)
			require.Contains(t, out, "BCDF-GHJK")
			require.Contains(t, out, "Open "+b.URL+"/auth/device/verify in a browser and enter the code\n\n    BCDF-GHJK\n")
			require.Contains(t, out, "Logged in to "+b.URL+" as alice.")
			require.Equal(t, 4, i.asked)
			require.Equal(t, []string{"laptop"}, i.descriptions)
		})
	}
}

func TestLogin_survivesAHubThatRestartsBeforeItTakesTheCode(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.clock = hasty{}
	i := b.withIssuer(t)
	i.away = 3
	b.oauthLogin(t)
	require.Equal(t, 4, i.asked)
}

func TestLogin_endsAtAnInterrupt(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.withIssuer(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.browser = func(string) { cancel() }
	var errOut bytes.Buffer
	code := cli.Main(ctx, []string{"login", "--server", b.URL, "--ca-file", b.file("ca.crt")}, cli.Streams{Out: &errOut, Err: &errOut}, b.environment())
	require.Equal(t, 1, code)
	require.True(t, strings.HasSuffix(errOut.String(), "kedge: interrupted\n"), errOut.String())
}

func TestLogin_saysWhatWaitsForThePerson(t *testing.T) {
	t.Parallel()
	for me, says := range map[string]string{
		`{"name":"alice","registration":"Pending"}`: "Your registration waits for approval",
		deletedMe: "kedge me undelete",
	} {
		b := newBed(t)
		b.withIssuer(t)
		b.me = me
		code, out, errOut := b.run(t, "login", "--server", b.URL, "--ca-file", b.file("ca.crt"))
		require.Zero(t, code, errOut)
		require.Contains(t, out, says)
	}
}

func TestLogin_thatTheHubThenRefusesLeavesNoSession(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	i := b.withIssuer(t)
	b.me = `{}`
	code, _, _ := b.run(t, "login", "--server", b.URL, "--ca-file", b.file("ca.crt"))
	require.Equal(t, 1, code)
	require.Equal(t, []string{"secret-1"}, i.revoked)
}

// People copy what the address bar of the portal shows.
func TestLogin_takesTheAddressOfThePortal(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"", "/", "//", "/?x=1", "#/", "/ui", "/ui/", "/ui/orgs/" + orgUUID + "?q=a&sort=name#top",
		"/ui/invitations/" + orgUUID + "#hush",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.clock = hasty{}
			b.withIssuer(t)
			h := newJobHub(t, b)
			b.gitHub(t, h.URL)
			for _, c := range []struct{ server, args string }{
				{b.URL, "login --ca-file " + b.file("ca.crt")},
				{b.URL, "login --device"},
				{b.URL, "login --token-file " + b.file("token")},
				{h.URL, "login --ci --bot " + botUUID + " --ca-file " + b.file("job-ca.crt")},
				{b.URL, "whoami"},
				{b.URL, "logout"},
			} {
				code, out, errOut := b.run(t, append(strings.Fields(c.args), "--server", c.server+path)...)
				require.Zero(t, code, "%s: %s", c.args, errOut)
				if strings.HasPrefix(c.args, "login") {
					require.Contains(t, out, "Logged in to "+c.server+" as ", c.args)
				}
			}
			_, out, _ := b.run(t, "profiles", "-o", "json")
			require.Contains(t, out, `"hub": "`+h.URL+`"`)
		})
	}
}

// The refusal of another address says what to give, and repeats no secret of it.
func TestLogin_refusesAnAddressThatIsNoHubs(t *testing.T) {
	t.Parallel()
	const noPath, noURL = "--server: the URL of a hub has no path; give ", "--server: give the https URL of the hub, such as https://"
	for address, says := range map[string]string{
		"https://hub.example.com/api/":          noPath + "https://hub.example.com; see --help",
		"https://hub.example.com:9443/uix#hush": noPath + "https://hub.example.com:9443; see --help",
		"https://hub.example.com/auth/hush?x":   noPath + "https://hub.example.com; see --help",
		"https://hub.example.com/x/ui/":         noPath + "https://hub.example.com; see --help",
		"http://hub.example.com/ui/":            noURL,
		"https://me:hush@hub.example.com/ui/":   noURL,
		"https:///ui/":                          noURL,
		"hub.example.com/ui/":                   noURL,
		"hub.example.com:9443":                  noURL,
		"/":                                     noURL,
	} {
		b := newBed(t)
		b.login(t)
		for _, args := range []string{
			"login", "login --token-file " + b.file("token"), "login --ci --bot " + botUUID, "login --profile other",
			"whoami", "orgs --profile other", "logout",
		} {
			code, out, errOut := b.run(t, append(strings.Fields(args), "--server", address)...)
			require.Equal(t, 2, code, "%s %s: %s", args, address, errOut)
			require.Empty(t, out)
			require.Contains(t, errOut, says, address)
			require.NotContains(t, errOut, "hush", address)
		}
	}
}
