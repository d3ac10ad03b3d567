package paging

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

const (
	defaultLimit = 100
	maxLimit     = 500
)

// List is a page as it is answered. Continue is empty on the last page.
type List[T any] struct {
	Items    []T    `json:"items"`
	Continue string `json:"continue"`
}

// Limit is how many items ?limit= asks for.
func Limit(r *http.Request) (int, error) {
	raw := r.URL.Query().Get("limit")
	if raw == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(raw)
	if err != nil || n < 1 || n > maxLimit {
		return 0, errs.InvalidField("query:limit", "must be a number from 1 to 500")
	}
	return n, nil
}

// Page sorts items by display name and then UUID, leaves out those whose display
// name does not hold ?q=, and cuts out the page that ?limit= and ?continue= ask
// for.
func Page[T any](r *http.Request, items []T, key func(T) (displayName, uuid string)) (List[T], error) {
	query := r.URL.Query()
	limit, err := Limit(r)
	if err != nil {
		return List[T]{}, err
	}
	after, err := decode(query.Get("continue"))
	if err != nil {
		return List[T]{}, err
	}
	if q := strings.ToLower(query.Get("q")); q != "" {
		items = slices.DeleteFunc(items, func(item T) bool {
			name, _ := key(item)
			return !strings.Contains(strings.ToLower(name), q)
		})
	}
	compare := func(a, b T) int {
		aName, aUUID := key(a)
		bName, bUUID := key(b)
		return cmp.Or(cmp.Compare(aName, bName), cmp.Compare(aUUID, bUUID))
	}
	slices.SortFunc(items, compare)
	if after != nil {
		items = slices.DeleteFunc(items, func(item T) bool {
			name, uuid := key(item)
			return cmp.Or(cmp.Compare(name, after[0]), cmp.Compare(uuid, after[1])) <= 0
		})
	}
	page := List[T]{Items: items}
	if len(items) > limit {
		page.Items = items[:limit]
		name, uuid := key(items[limit-1])
		page.Continue = base64.RawURLEncoding.EncodeToString([]byte(name + "\x00" + uuid))
	}
	if page.Items == nil {
		page.Items = []T{}
	}
	return page, nil
}

// Write answers with the page that the request asks for.
func Write[T any](w http.ResponseWriter, r *http.Request, items []T, key func(T) (displayName, uuid string)) error {
	page, err := Page(r, items, key)
	if err != nil {
		return err
	}
	return httpapi.Write(w, http.StatusOK, page)
}

// decode reads the last item of the page before.
func decode(token string) ([]string, error) {
	if token == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	// The UUID comes last and holds no NUL; of a display name nobody can be sure.
	cut := strings.LastIndexByte(string(raw), 0)
	if err != nil || cut < 0 {
		return nil, errs.InvalidField("query:continue", "is not one that a list of this kind returned")
	}
	return []string{string(raw[:cut]), string(raw[cut+1:])}, nil
}
