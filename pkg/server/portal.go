package server

import (
	"github.com/go-chi/chi/v5"

	"github.com/faroshq/kedge-hub/pkg/portal"
)

// portal returns what adds the routes of the pages, or nil without --portal.
func (a *assembly) portal() (func(chi.Router), error) {
	if !a.hub.config.Portal {
		return nil, nil
	}
	h, err := portal.New()
	if err != nil {
		return nil, err
	}
	return h.Mount, nil
}
