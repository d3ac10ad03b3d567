package users

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// botView is the answer to a bot that requests its own account.
type botView struct {
	Kind      string        `json:"kind"`
	UUID      string        `json:"uuid"`
	Org       string        `json:"org"`
	Workspace string        `json:"workspace"`
	Role      v1alpha1.Role `json:"role"`
	// ExpiresAt is when the token expires.
	ExpiresAt metav1.Time `json:"expiresAt"`
}

func bot(w http.ResponseWriter, c *httpmw.Caller) error {
	p := c.Bot
	return httpapi.Write(w, http.StatusOK, botView{
		Kind: "Bot", UUID: p.Bot.Name, Org: p.Org.UUID(), Workspace: p.Workspace.UUID, Role: p.Bot.Spec.Role,
		ExpiresAt: metav1.NewTime(c.ExpiresAt()),
	})
}
