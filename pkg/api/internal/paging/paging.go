package paging

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

const (
	defaultLimit = 100
	maxLimit     = 500
)

// fieldContinue is the name of the parameter in errors.
const fieldContinue = "query:continue"

// Limit returns the number of items requested by ?limit=.
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

// SinglePage refuses ?continue= for a list whose filters leave it one page.
func SinglePage(r *http.Request) error {
	if r.URL.Query().Get("continue") != "" {
		return errs.InvalidField(fieldContinue, "this list has no further pages")
	}
	return nil
}

// Page sorts items by display name and UUID, filters them by ?q=, and returns the page
// requested by ?limit= and ?continue=.
func Page[T any](r *http.Request, items []T, key func(T) (displayName, uuid string)) (rest.List[T], error) {
	query := r.URL.Query()
	limit, err := Limit(r)
	if err != nil {
		return rest.List[T]{}, err
	}
	after, err := decode(r.URL)
	if err != nil {
		return rest.List[T]{}, err
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
			return cmp.Or(cmp.Compare(name, after.name), cmp.Compare(uuid, after.uuid)) <= 0
		})
	}
	page := rest.List[T]{Items: items}
	if len(items) > limit {
		page.Items = items[:limit]
		name, uuid := key(items[limit-1])
		page.Continue = encode(r.URL, position{name, uuid})
	}
	if page.Items == nil {
		page.Items = []T{}
	}
	return page, nil
}

// Write answers with the requested page.
func Write[T any](w http.ResponseWriter, r *http.Request, items []T, key func(T) (displayName, uuid string)) error {
	page, err := Page(r, items, key)
	if err != nil {
		return err
	}
	return httpapi.Write(w, http.StatusOK, page)
}

// Encoded is an item of a list, as httpapi.Encode returned it.
type Encoded struct {
	DisplayName, UUID string
	JSON              []byte
}

// WriteEncoded is Write for items that are encoded already.
func WriteEncoded(w http.ResponseWriter, r *http.Request, items []Encoded) error {
	page, err := Page(r, items, func(i Encoded) (string, string) { return i.DisplayName, i.UUID })
	if err != nil {
		return err
	}
	encoded := make([][]byte, len(page.Items))
	for i, item := range page.Items {
		encoded[i] = item.JSON
	}
	return httpapi.WriteList(w, encoded, page.Continue)
}

// Token returns the continue token of a list whose last item is at a position of two parts. The
// second has no NUL.
func Token(r *http.Request, first, second string) string {
	return encode(r.URL, position{first, second})
}

// After returns the position in ?continue=. ok is false for the first page.
func After(r *http.Request) (first, second string, ok bool, err error) {
	p, err := decode(r.URL)
	if err != nil || p == nil {
		return "", "", false, err
	}
	return p.name, p.uuid, true, nil
}

// position is the last item of a page. A token holds it, and no other item.
type position struct{ name, uuid string }

// encode returns the continue token of the page after p. Its digest covers the list and the
// filters, so that the token is refused elsewhere. It needs no key: every replica
// accepts it, also after a restart, and a forged one only moves the start of a page.
func encode(list *url.URL, p position) string {
	last := p.name + "\x00" + p.uuid
	return base64.RawURLEncoding.EncodeToString(append(digest(list, last), last...))
}

// decode reads ?continue=. It returns nil for the first page.
func decode(list *url.URL) (*position, error) {
	token := list.Query().Get("continue")
	if token == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) < digestSize {
		return nil, unknownToken()
	}
	last := string(raw[digestSize:])
	// A UUID contains no NUL; a display name can.
	cut := strings.LastIndexByte(last, 0)
	if cut < 0 || !bytes.Equal(raw[:digestSize], digest(list, last)) {
		return nil, unknownToken()
	}
	return &position{name: last[:cut], uuid: last[cut+1:]}, nil
}

func unknownToken() error {
	return errs.InvalidField(fieldContinue, "is not one that this list returned for the same filters; begin again without it")
}

const digestSize = 16

// digest covers the path, every parameter but those of paging, and the last item.
func digest(list *url.URL, last string) []byte {
	filters := list.Query()
	filters.Del("limit")
	filters.Del("continue")
	sum := sha256.Sum256([]byte(list.Path + "\x00" + filters.Encode() + "\x00" + last))
	return sum[:digestSize]
}
