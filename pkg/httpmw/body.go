package httpmw

import (
	"bytes"
	"io"
	"net/http"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// WholeBody reads a request's body, as far as httpapi takes one, before anything is
// decided about the request: whoever sends theirs slowly is judged by the rights that
// they have at its end, not by those that they had at its beginning.
func WholeBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			raw, err := io.ReadAll(io.LimitReader(r.Body, httpapi.MaxBody+1))
			r.Body = wholeBody{bytes.NewReader(raw), err, r.Body}
		}
		next.ServeHTTP(w, r)
	})
}

// wholeBody is what was read of a body, and why no more than that.
type wholeBody struct {
	read   *bytes.Reader
	failed error
	io.Closer
}

func (b wholeBody) Read(into []byte) (int, error) {
	n, err := b.read.Read(into)
	if err != nil && b.failed != nil {
		err = b.failed
	}
	return n, err
}
