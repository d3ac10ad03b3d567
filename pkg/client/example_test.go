package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// hub answers as a kedge-hub does.
func hub() *httptest.Server {
	mux := http.NewServeMux()
	answer := func(route string, code int, body string) {
		mux.HandleFunc(route, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		})
	}
	const workspace = "/api/orgs/" + org + "/workspaces/" + ws
	answer("GET /api/orgs", http.StatusOK, `{"items":[{"uuid":"`+org+`","displayName":"ACME"}],"continue":""}`)
	answer("POST /api/orgs/"+org+"/workspaces", http.StatusCreated, `{"uuid":"`+ws+`","displayName":"Build","phase":"Ready"}`)
	answer("POST "+workspace+"/serviceaccounts", http.StatusCreated, `{"uuid":"`+id+`","displayName":"CI","role":"member","phase":"Ready"}`)
	answer("DELETE "+workspace+"/members/bob", http.StatusNotFound, `{"kind":"Status","status":"Failure","reason":"NotFound","code":404,"message":"bob is not a member"}`)
	return httptest.NewTLSServer(mux)
}

func Example() {
	server := hub()
	defer server.Close()
	api, err := client.New(client.Config{
		Server: server.URL,
		Token:  func(context.Context) (string, error) { return "a token of the caller", nil },
		HTTP:   server.Client(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for o, err := range api.Orgs().List(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		made, err := api.Org(o.UUID).Workspaces().Create(ctx, rest.CreateWorkspaceRequest{DisplayName: "Build"})
		if err != nil {
			fmt.Println(err)
			return
		}
		build := api.Org(o.UUID).Workspace(made.UUID)
		bot, err := build.Bots().Create(ctx, rest.CreateBotRequest{DisplayName: "CI", Role: rest.RoleMember})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s has the workspace %s with the bot %s.\n", o.DisplayName, made.DisplayName, bot.DisplayName)
		if _, err := build.Members().Delete(ctx, "bob"); apierrors.IsNotFound(err) {
			fmt.Println("Nothing to remove:", err)
		}
	}
	// Output:
	// ACME has the workspace Build with the bot CI.
	// Nothing to remove: bob is not a member
}
