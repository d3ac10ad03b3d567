package users

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// The search finds people to invite. It returns one short page, so that it cannot be used to
// read the whole directory.
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
	limit, err := paging.Limit(r)
	if err != nil {
		return err
	}
	if err := paging.SinglePage(r); err != nil {
		return err
	}
	list := paging.List[found]{Items: []found{}}
	for _, u := range h.Views.SearchPeople(q, min(limit, maxFound)) {
		list.Items = append(list.Items, found{u.Name, u.Spec.DisplayName})
	}
	return httpapi.Write(w, http.StatusOK, list)
}
