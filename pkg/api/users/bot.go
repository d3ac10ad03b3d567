package users

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// bot answers a bot that requests its own account.
func bot(w http.ResponseWriter, c *httpmw.Caller) error {
	p := c.Bot
	held, _ := tenancy.FindToken(p.Bot.Spec.Tokens, p.Token)
	return httpapi.Write(w, http.StatusOK, rest.BotSelf{
		Kind: "Bot", UUID: p.Bot.Name, Org: p.Org.UUID(), Workspace: p.Workspace.UUID, Role: rest.Role(p.Bot.Spec.Role),
		ExpiresAt: metav1.NewTime(c.ExpiresAt()), Token: p.Token, Job: held.Trust != "",
	})
}
