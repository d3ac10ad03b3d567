package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/faroshq/kedge-hub/test/framework"
)

// floodRate is the number of requests of each flood in a second, and floodConnections the
// number of connections of each.
const (
	floodRate        = 300
	floodConnections = 4
)

// measureFloods compares the requests of a person with the same requests beside floods of
// logins, of bad tokens and of tokens with unknown keys from the same address.
func (l laptop) measureFloods() ([]row, error) {
	ca, err := caOf(l.hub)
	if err != nil {
		return nil, err
	}
	const path = "/api/users/me"
	if _, err := expect(l.hub, framework.Call{As: "bob", Method: http.MethodGet, Path: path}, http.StatusOK); err != nil {
		return nil, err
	}
	person := func() (measurement, error) {
		return load(clientFor(ca), l.hub.URL+path, bearer("bob"), floodConnections, loadTime)
	}
	alone, err := person()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	client := clientFor(ca)
	for _, request := range []func(int) (string, string){
		func(int) (string, string) { return "/auth/device/verify", "" },
		func(i int) (string, string) { return path, fmt.Sprintf("bad-%d", i) },
		func(i int) (string, string) { return path, l.unknownKey(i) },
	} {
		turns := time.NewTicker(time.Second / floodRate)
		defer turns.Stop()
		for connection := range floodConnections {
			running.Go(func() {
				for i := connection; ctx.Err() == nil; i += floodConnections {
					<-turns.C
					at, token := request(i)
					flood(ctx, client, l.hub.URL+at, token)
				}
			})
		}
	}
	beside, err := person()
	stop()
	running.Wait()
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("GET users/me beside floods of %d/s", 3*floodRate)
	return []row{
		{what, perSecond(alone), perSecond(beside), ratio(beside.perSecond, alone.perSecond), ""},
		{what + ", p99", alone.p99.String(), beside.p99.String(), ratio(beside.p99.Seconds(), alone.p99.Seconds()), ""},
	}, nil
}

// unknownKey is a token of the issuer that is signed by a key that nobody has.
func (l laptop) unknownKey(i int) string {
	encode := base64.RawURLEncoding.EncodeToString
	header := encode(fmt.Appendf(nil, `{"alg":"RS256","kid":"unknown-%d"}`, i))
	claims := encode(fmt.Appendf(nil, `{"iss":%q,"aud":%q,"sub":"mallory","exp":%d}`, l.dex.Issuer, framework.HubClient, time.Now().Add(time.Hour).Unix()))
	return header + "." + claims + "." + encode(make([]byte, 256))
}

// flood sends one request and closes its connection without reading the answer, so that each
// request of a flood costs the hub a TLS handshake, too.
func flood(ctx context.Context, client *http.Client, url, token string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if response, err := client.Do(r); err == nil {
		_ = response.Body.Close()
	}
}
