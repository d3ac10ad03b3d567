package users

import (
	"net/http"
	"strings"
	"unicode/utf8"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
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

func (h *Handler) search(w http.ResponseWriter, r *http.Request) error {
	q := strings.TrimSpace(r.URL.Query().Get("q"))
	if n := utf8.RuneCountInString(q); n < minQuery || n > maxQuery {
		return errs.InvalidField("query:q", "must have 2 to 128 characters of a name")
	}
	limit, err := paging.Limit(r)
	if err != nil {
		return err
	}
	list := rest.List[rest.Person]{Items: []rest.Person{}}
	for _, u := range h.Search(q, min(limit, maxFound)) {
		list.Items = append(list.Items, rest.Person{Name: u.Name, DisplayName: u.Spec.DisplayName})
	}
	return httpapi.Write(w, http.StatusOK, list)
}
