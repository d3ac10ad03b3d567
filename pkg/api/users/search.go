package users

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// The search finds somebody to invite; it is no way to read the directory out.
const (
	minQuery = 2
	maxQuery = 128
	maxFound = 20
)

type found struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
}

func (h *Handler) search(w http.ResponseWriter, r *http.Request) error {
	q := strings.TrimSpace(r.URL.Query().Get("q"))
	if n := utf8.RuneCountInString(q); n < minQuery || n > maxQuery {
		return errs.InvalidField("query:q", "must have 2 to 128 characters of a name")
	}
	items := []found{}
	for _, u := range h.Views.SearchPeople(q, maxFound) {
		items = append(items, found{u.Name, u.Spec.DisplayName})
	}
	return httpapi.Write(w, http.StatusOK, struct {
		Items []found `json:"items"`
	}{items})
}
