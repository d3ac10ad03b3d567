package httpapi

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// maxShownName is how much of the name of an unknown parameter a refusal repeats, in bytes: a name can be as long as the
// headers of a request, and a client may have put a secret where the name belongs.
const maxShownName = 64

// Parameters are the names of the query parameters of each operation, by its method and its pattern in the router, such as
// "GET /api/orgs/{org}". An operation without an entry has none.
type Parameters map[string][]string

type parametersKey struct{}

// Declare is middleware for routes whose handlers come from Handle: they refuse every parameter that p does not have for
// their operation, and every one that is given twice. The middleware of a route precedes its handler, so a caller whom that
// refuses gets the same answer with every query.
func (p Parameters) Declare(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "" {
			r = r.WithContext(context.WithValue(r.Context(), parametersKey{}, p))
		}
		next.ServeHTTP(w, r)
	})
}

// checkQuery returns the refusal of a query below Declare that its operation does not have. The error names the parameter.
func checkQuery(r *http.Request) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	p, ok := r.Context().Value(parametersKey{}).(Parameters)
	if !ok {
		return nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return errs.InvalidField("query", "is not well-formed: a percent sign and a semicolon that belong to a value must be escaped")
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	declared := p[method+" "+chi.RouteContext(r.Context()).RoutePattern()]
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch {
		case !slices.Contains(declared, name):
			return wrongParameter("FieldValueNotSupported", name, "is not a parameter of this request, which takes "+listed(declared))
		case len(query[name]) > 1:
			return wrongParameter("FieldValueDuplicate", name, "is given twice")
		}
	}
	return nil
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func wrongParameter(kind, name, message string) error {
	if len(name) > maxShownName {
		name = name[:maxShownName] + "…"
	}
	field := "query:" + strings.ToValidUTF8(name, "�")
	return errs.New(errs.Invalid, field+": "+message, errs.Cause{Type: kind, Field: field, Message: message})
}
