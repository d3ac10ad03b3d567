package framework

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Browser keeps cookies and follows redirects as the browser of one person does. It stops
// at a redirect to plain HTTP, which is where a command line listens.
type Browser struct {
	HTTP *http.Client
}

// Page is what a Browser shows.
type Page struct {
	URL    *url.URL
	Code   int
	Header http.Header
	Body   string
	// Location is the target of a redirect that the Browser did not follow.
	Location *url.URL
}

// NewBrowser returns a browser without cookies that trusts the CAs in the files.
func NewBrowser(t testing.TB, caFiles ...string) *Browser {
	t.Helper()
	pool := x509.NewCertPool()
	for _, file := range caFiles {
		pem, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, pool.AppendCertsFromPEM(pem), "%s holds no certificate", file)
	}
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return &Browser{HTTP: &http.Client{
		Jar: jar, Transport: documented(transport), Timeout: Long,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Scheme == "http" {
				return http.ErrUseLastResponse
			}
			if len(via) > 20 {
				return errors.New("more than 20 redirects")
			}
			return nil
		},
	}}
}

// Get opens a URL.
func (b *Browser) Get(t testing.TB, at string) *Page {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, http.NoBody)
	require.NoError(t, err)
	return b.Do(t, request)
}

// Do sends a request with the browser's cookies.
func (b *Browser) Do(t testing.TB, request *http.Request) *Page {
	t.Helper()
	response, err := b.HTTP.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	p := &Page{URL: response.Request.URL, Code: response.StatusCode, Header: response.Header, Body: string(body)}
	if p.Location, err = response.Location(); !errors.Is(err, http.ErrNoLocation) {
		require.NoError(t, err)
	}
	return p
}

var (
	htmlForm   = regexp.MustCompile(`(?is)<form\b([^>]*)>(.*?)</form>`)
	htmlHidden = regexp.MustCompile(`(?is)<input\b[^>]*\btype="hidden"[^>]*>`)
	htmlAction = regexp.MustCompile(`(?is)\baction="([^"]*)"`)
	htmlName   = regexp.MustCompile(`(?is)\bname="([^"]*)"`)
	htmlValue  = regexp.MustCompile(`(?is)\bvalue="([^"]*)"`)
)

// Submit posts the page's first form with its hidden fields and the given values, as a
// browser does.
func (b *Browser) Submit(t testing.TB, p *Page, values url.Values) *Page {
	t.Helper()
	form := htmlForm.FindStringSubmatch(p.Body)
	require.NotNil(t, form, "%s has a form: %d %s", p.URL.Path, p.Code, p.Body)
	fields := url.Values{}
	for _, input := range htmlHidden.FindAllString(form[2], -1) {
		fields.Set(attribute(htmlName, input), attribute(htmlValue, input))
	}
	for name, value := range values {
		fields[name] = value
	}
	target, err := p.URL.Parse(attribute(htmlAction, form[1]))
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target.String(), strings.NewReader(fields.Encode()))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", p.URL.Scheme+"://"+p.URL.Host)
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.Do(t, request)
}

// Continue presses Continue if a page of the hub asks about the computer of a command line, and returns
// the page to which that leads. Other pages it returns as they are.
func (b *Browser) Continue(t testing.TB, p *Page) *Page {
	t.Helper()
	if !strings.Contains(p.Body, `action="/auth/authorize"`) {
		return p
	}
	return b.Submit(t, p, url.Values{"decision": {"continue"}})
}

func attribute(pattern *regexp.Regexp, tag string) string {
	if found := pattern.FindStringSubmatch(tag); found != nil {
		return html.UnescapeString(found[1])
	}
	return ""
}

// Cookie returns a cookie that the browser has for a URL, or nil.
func (b *Browser) Cookie(t testing.TB, at, name string) *http.Cookie {
	t.Helper()
	u, err := url.Parse(at)
	require.NoError(t, err)
	for _, c := range b.HTTP.Jar.Cookies(u) {
		if c.Name == name {
			return c
		}
	}
	return nil
}
