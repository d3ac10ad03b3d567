package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/cmd/kedge/internal/kubeconfig"
)

// botKind is the kind of a bot in the answer to whoami.
const botKind = "Bot"

// botCommands are the commands for bots, without those that ask the hub nothing as the caller.
var botCommands = []string{"whoami", "kubeconfig", "providers", "credential"}

// neutralCommands are for everybody: they are about logins on this computer.
var neutralCommands = []string{"kedge", "login", "logout", "profiles", "version", "help", "completion",
	cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}

// forPeople refuses a command that the bot of the chosen login may not use, before anything is sent.
func (a *app) forPeople(cmd *cobra.Command) error {
	top := cmd
	for top.HasParent() && top.Parent().HasParent() {
		top = top.Parent()
	}
	if slices.Contains(neutralCommands, top.Name()) || slices.Contains(botCommands, top.Name()) || cmd.CommandPath() == "kedge bots tokens rotate" {
		return nil
	}
	_, c, err := a.load(cmd.Context())
	if err != nil {
		return err
	}
	name, err := a.choose(c)
	if err != nil || c.Profiles[name].Bot == "" {
		return nil //nolint:nilerr // the command itself reports it
	}
	return fmt.Errorf("%s is for people, and this login is that of the bot %s; a bot can use: %s",
		cmd.CommandPath(), c.Profiles[name].Bot, strings.Join(botCommands[:3], ", "))
}

// describeBot says which bot is logged in.
func describeBot(who *rest.Me) string {
	return fmt.Sprintf("the bot %s of the workspace %s, until %s", who.UUID, who.Workspace, when(who.ExpiresAt))
}

// botCredential answers kubectl with the token of a bot, which is what the hub and kcp take. It lives as
// long as the login. The hub answers people only.
func (s *session) botCredential(question clientauthenticationv1.ExecCredential) ([]byte, error) {
	cluster := question.Spec.Cluster
	if cluster == nil || !strings.HasPrefix(cluster.Server, s.login.Server+"/clusters/") {
		return nil, errors.New("the cluster in the kubeconfig is not at the hub of this login, so kubectl gets no token; make a new kubeconfig with: kedge kubeconfig")
	}
	if !s.app.Clock.Now().Before(s.login.ExpiresAt) {
		return nil, fmt.Errorf("the token of the bot has expired; to log in again, run: %s", s.relogin)
	}
	question.Status = &clientauthenticationv1.ExecCredentialStatus{Token: s.login.Token, ExpirationTimestamp: new(metav1.NewTime(s.login.ExpiresAt.Truncate(time.Second)))}
	return json.Marshal(question)
}

// botEntry is the entry for the workspace of a bot. A bot knows no names.
func (s *session) botEntry(ctx context.Context) (*kubeconfig.Entry, error) {
	raw, err := s.in(target{s.login.Org, s.login.Workspace}).Kubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	return kubeconfig.New(kubeconfig.Source{
		Org: s.login.Org, Workspace: s.login.Workspace, UUID: s.login.Workspace, Server: s.login.Server, Profile: s.name, Kubeconfig: raw, Bot: true,
	})
}
