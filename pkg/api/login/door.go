package login

import (
	"net/http"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
)

// door is where a kind of login ends: enter does what it was for, once the person is known, and refuse
// tells who began it that it failed.
type door struct {
	enter  func(w http.ResponseWriter, r *http.Request, p progress, user *v1alpha1.User, grant *auth.Grant) error
	refuse func(w http.ResponseWriter, r *http.Request, p progress, user *v1alpha1.User, e *refusal) error
}

// doorOf returns the door of a kind of login. The page on which the hub asks the person belongs to the
// login that it interrupts.
func (h *Handler) doorOf(kind string) door {
	switch kind {
	case kindCLI, kindContinue:
		return door{h.askToContinue, h.refuseComputer}
	case kindCode, kindDevice, kindConfirm:
		return door{h.askToConfirm, h.refuseDevice}
	}
	return door{h.enterPortal, refuseOnPage}
}
