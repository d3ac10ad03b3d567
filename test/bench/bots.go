package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/faroshq/kedge-hub/test/framework"
)

const (
	botConnections = 8
	// botTokens is the number of tokens that are revoked, one after the other.
	botTokens = 20
	// known is the age of a token from which a hub that does not find it refuses it at once,
	// and does not wait for another replica's list.
	known = 10 * time.Second
)

// measureBots compares a proxied GET with the token of a bot with the same request straight at
// kcp, and measures how long a token is good after its revocation was requested.
func measureBots(h *hubProcess) ([]row, error) {
	org, err := create(h, "alice", "/api/orgs", "")
	if err != nil {
		return nil, err
	}
	ws, err := create(h, "alice", "/api/orgs/"+org.UUID+"/workspaces", org.UUID)
	if err != nil {
		return nil, err
	}
	accounts := framework.Call{
		As: "alice", Method: http.MethodPost, Path: "/api/orgs/" + org.UUID + "/workspaces/" + ws.UUID + "/serviceaccounts",
		Org: org.UUID, Workspace: ws.UUID, Body: map[string]string{"displayName": "bench", "role": "member"},
	}
	made, err := expect(h, accounts, http.StatusCreated)
	if err != nil {
		return nil, err
	}
	ca, err := caOf(h)
	if err != nil {
		return nil, err
	}
	b := botBench{hub: h, client: clientFor(ca), tokens: accounts, path: "/clusters/" + ws.ClusterID + "/api/v1/namespaces"}
	b.tokens.Path += "/" + made.Text("uuid") + "/tokens"
	b.tokens.Body = map[string]string{"name": "bench"}
	var issued []framework.Answer
	for range botTokens {
		a, err := expect(h, b.tokens, http.StatusCreated)
		if err != nil {
			return nil, err
		}
		issued = append(issued, a)
	}
	began := time.Now()
	rows, err := b.measureGet(issued[0].Text("token"))
	if err != nil {
		return nil, err
	}
	<-time.After(known - time.Since(began))
	var took []time.Duration
	for _, a := range issued {
		d, err := b.revoke(a)
		if err != nil {
			return rows, err
		}
		took = append(took, d)
	}
	slices.Sort(took)
	what := "revocation of a bot's token, watch closed and refused"
	return append(rows,
		row{what + ", p50", "", seconds(took[len(took)/2]), "", ""},
		row{what + ", highest", "", seconds(took[len(took)-1]), "", "≤ 1s"}), nil
}

type botBench struct {
	hub    *hubProcess
	client *http.Client
	// tokens issues a token.
	tokens framework.Call
	path   string
}

func (b botBench) measureGet(token string) ([]row, error) {
	config, kcpCA, err := kcpOf(b.hub)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Authorization": {"Bearer " + token}}
	bare, err := load(clientFor(kcpCA), config.Host+b.path, header, botConnections, loadTime)
	if err != nil {
		return nil, err
	}
	hub, err := load(b.client, b.hub.URL+b.path, header, botConnections, loadTime)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("proxied GET of a bot, %d connections", botConnections)
	return []row{
		{what, perSecond(bare), perSecond(hub), ratio(hub.perSecond, bare.perSecond), "≥ 0.70"},
		{what + ", p50", bare.p50.String(), hub.p50.String(), fmt.Sprintf("%+v", hub.p50-bare.p50), "≤ +0.5ms"},
	}, nil
}

// revoke opens a watch with a token and revokes it. It returns the time from the request until
// the watch is closed and a request is refused.
func (b botBench) revoke(issued framework.Answer) (time.Duration, error) {
	token := issued.Text("token")
	watch, err := openWatch(b.client, b.hub.URL+b.path+"?watch=true", http.Header{"Authorization": {"Bearer " + token}})
	if err != nil {
		return 0, err
	}
	defer watch.close()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		// The watch has ended, with or without an error.
		_, _ = io.Copy(io.Discard, watch.in)
	}()
	call := b.tokens
	call.Method, call.Path, call.Body = http.MethodDelete, call.Path+"/"+issued.Text("id"), nil
	began := time.Now()
	if _, err := expect(b.hub, call, http.StatusNoContent); err != nil {
		return 0, err
	}
	select {
	case <-closed:
	case <-time.After(patience):
		return 0, fmt.Errorf("the watch of a revoked token is open after %s", patience)
	}
	refused, ok, err := until(b.hub, framework.Call{Token: token, Method: http.MethodGet, Path: b.path}, http.StatusUnauthorized)
	if err == nil && !ok {
		err = fmt.Errorf("a revoked token is good after %s", patience)
	}
	return refused.Sub(began), err
}
