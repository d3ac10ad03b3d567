package authorization

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// dial opens a raw TLS connection to the hub, on which the test writes every byte.
func (w *matrixWorld) dial(t *testing.T) net.Conn {
	t.Helper()
	hub, err := url.Parse(w.hub.URL)
	require.NoError(t, err)
	config := framework.TransportOf(w.hub.HTTP).TLSClientConfig.Clone()
	config.NextProtos = []string{"http/1.1"}
	config.ServerName = hub.Hostname()
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", hub.Host)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(framework.Long)))
	return conn
}

type wireAnswer struct {
	code int
	body string
}

// exchange writes text and reads answers until the hub closes the connection.
func (w *matrixWorld) exchange(t *testing.T, text string) (answers []wireAnswer) {
	t.Helper()
	conn := w.dial(t)
	// The write may fail: the hub can refuse a request and close the connection before it
	// has read all of it.
	_, _ = io.WriteString(conn, text)
	reader := bufio.NewReader(conn)
	for {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			return answers
		}
		raw, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		answers = append(answers, wireAnswer{response.StatusCode, string(raw)})
	}
}

// wire sends bytes that no well-behaved client sends. Where the hub keeps the connection
// open, the last request is valid and must succeed. Its answer shows that the hub split
// the bytes before it into the expected requests.
func (w *matrixWorld) wire(t *testing.T) {
	t.Parallel()
	place, foreign := w.places[attacked], w.foreign
	token := framework.Token(matrixPeople[asOrgAdmin])
	var (
		auth    = "Authorization: Bearer " + token + "\r\n"
		head    = " HTTP/1.1\r\nHost: hub\r\n" + auth
		mine    = "GET /clusters/" + place.cluster + "/api/v1/namespaces"
		exec    = mine + "/default/pods/p/exec"
		his     = "GET /clusters/" + foreign.cluster + "/api/v1/namespaces" + head + "\r\n"
		patch   = "PATCH /api/users/me"
		upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
		json    = "Content-Type: application/json\r\n"
		last    = mine + head + "Connection: close\r\n\r\n"
		org     = "GET /api/orgs/" + place.org + head
	)
	for name, c := range map[string]struct {
		text  string
		codes []int
	}{
		"the positive control":                    {last, []int{200}},
		"pipelining to a second cluster":          {mine + head + "\r\n" + his + last, []int{200, 403, 200}},
		"Content-Length and Transfer-Encoding":    {patch + head + json + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + his + last, []int{200, 403, 200}},
		"the same, and a request in the rest":     {patch + head + json + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + last, []int{400, 200}},
		"two Content-Lengths":                     {patch + head + json + "Content-Length: 2\r\nContent-Length: 90\r\n\r\n{}" + his, []int{400}},
		"a list of Content-Lengths":               {patch + head + json + "Content-Length: 2, 90\r\n\r\n{}" + his, []int{400}},
		"a Content-Length with a sign":            {patch + head + json + "Content-Length: +2\r\n\r\n{}" + his, []int{400}},
		"a negative Content-Length":               {patch + head + json + "Content-Length: -1\r\n\r\n{}" + his, []int{400}},
		"an unknown Transfer-Encoding":            {patch + head + json + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + his, []int{501}},
		"two Transfer-Encodings":                  {patch + head + json + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + his, []int{501}},
		"a Transfer-Encoding behind a tab":        {patch + head + json + "Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n" + his, []int{400}},
		"a chunk of a bad size":                   {patch + head + json + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}\r\n0\r\n\r\n" + his, []int{400}},
		"a space before the colon":                {"GET /api/users/me HTTP/1.1\r\nHost: hub\r\nAuthorization : Bearer " + token + "\r\n\r\n" + last, []int{400}},
		"a folded Authorization":                  {"GET /api/users/me HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer\r\n " + token + "x\r\n\r\n" + last, []int{401, 200}},
		"a folded Org":                            {org + "X-Kedge-Org: " + place.org + "\r\n " + foreign.org + "\r\n\r\n" + last, []int{400, 200}},
		"an Org behind a bare LF":                 {org + "X-Kedge-Org: " + place.org + "\nX-Kedge-Org: " + foreign.org + "\r\n\r\n" + last, []int{400, 200}},
		"impersonation behind a bare LF":          {mine + head + "Accept: */*\nImpersonate-User: alice\r\n\r\n" + last, []int{403, 200}},
		"impersonation behind a bare CR":          {mine + head + "Accept: */*\rImpersonate-User: alice\r\n\r\n" + last, []int{400}},
		"a NUL in a header":                       {mine + head + "Accept: \x00\r\n\r\n" + last, []int{400}},
		"a header without a name":                 {mine + head + ": x\r\n\r\n" + last, []int{400}},
		"a second identity, in lower case":        {mine + head + strings.ToLower(auth[:13]) + auth[13:] + "\r\n" + last, []int{401, 200}},
		"two hosts":                               {mine + head + "Host: evil\r\n\r\n" + last, []int{400}},
		"no host":                                 {mine + " HTTP/1.1\r\n" + auth + "\r\n" + last, []int{400}},
		"absolute form, to a cluster":             {"GET https://kcp/clusters/" + place.cluster + "/api/v1/namespaces" + head + "\r\n" + last, []int{404, 200}},
		"a path that is a URL":                    {"GET /https://kcp/api" + head + "\r\n" + last, []int{404, 200}},
		"an authority in the path":                {"GET //kcp/clusters/" + place.cluster + "/api" + head + "\r\n" + last, []int{404, 200}},
		"a fragment":                              {mine + "#x" + head + "\r\n" + last, []int{404, 200}},
		"CONNECT":                                 {"CONNECT kcp:6443" + head + "\r\n" + last, []int{405, 200}},
		"CONNECT to a path":                       {"CONNECT /clusters/" + place.cluster + "/api" + head + "\r\n" + last, []int{405, 200}},
		"TRACE":                                   {"TRACE /api/users/me" + head + "\r\n" + last, []int{405, 200}},
		"TRACE through the proxy":                 {"TRACE /clusters/" + place.cluster + "/api" + head + "\r\n" + last, []int{405, 200}},
		"OPTIONS of everything":                   {"OPTIONS *" + head + "\r\n" + last, []int{404, 200}},
		"an upgrade to a foreign cluster":         {strings.Replace(exec, place.cluster, foreign.cluster, 1) + head + upgrade + last, []int{403, 200}},
		"an upgrade to h2c":                       {mine + head + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n" + last, []int{400, 200}},
		"an upgrade of the REST API":              {"GET /api/users/me" + head + upgrade + last, []int{200, 200}},
		"an upgrade of what is no stream":         {mine + head + upgrade + his + last, []int{400, 403, 200}},
		"a request after an upgrade kcp declined": {exec + head + upgrade + his + last, []int{403, 403, 200}},
		"no version":                              {"GET /api/users/me\r\n\r\n" + last, []int{400}},
		"a version of the future":                 {"GET /api/users/me HTTP/9.9\r\nHost: hub\r\n" + auth + "\r\n" + last, []int{505}},
		"a space in the path":                     {"GET /api/users/me /x" + head + "\r\n" + last, []int{400}},
		"not HTTP at all":                         {"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n" + last, []int{400}},
		"a header of 70 KiB":                      {mine + head + "Accept: " + strings.Repeat("a", 70<<10) + "\r\n\r\n", []int{431}},
		"ten thousand headers":                    {mine + head + strings.Repeat("X-A: b\r\n", 10_000) + "\r\n", []int{431}},
		"a path of 80 KiB":                        {"GET /clusters/" + place.cluster + "/api/" + strings.Repeat("a", 80<<10) + head + "\r\n", []int{431}},
		"a token of 20 KiB":                       {"GET /api/users/me HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer " + strings.Repeat("a.", 10<<10) + "\r\n\r\n" + last, []int{401, 200}},
		"a token of 10 MB":                        {"GET /api/users/me HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer " + strings.Repeat("a", 10<<20) + "\r\n\r\n", []int{431}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := w.exchange(t, c.text)
			codes := []int{}
			for _, a := range answers {
				codes = append(codes, a.code)
				require.NotContains(t, a.body, token)
			}
			require.Equal(t, c.codes, codes, "%v", answers)
			if final := answers[len(answers)-1]; final.code == http.StatusOK {
				require.Contains(t, final.body, "NamespaceList")
			}
		})
	}
}

// slowHeaders opens connections and leaves their headers unfinished.
func (w *matrixWorld) slowHeaders(t *testing.T) {
	t.Parallel()
	began := map[string]net.Conn{}
	for _, text := range []string{"", "GET /api/us", "GET /api/users/me HTTP/1.1\r\nHost: hub\r\nAuthorization: Bea"} {
		began[text] = w.dial(t)
		_, err := io.WriteString(began[text], text)
		require.NoError(t, err)
	}
	for text, conn := range began {
		_, err := io.Copy(io.Discard, conn)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the hub closes the connection, not the test, after %q", text)
	}
}
