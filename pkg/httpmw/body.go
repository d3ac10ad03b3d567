package httpmw

import (
	"bytes"
	"io"
	"net/http"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// WholeBody reads the request body, up to the maximum size, before the request is
// authenticated. A client that sends slowly is judged by its rights at the end of the body.
func WholeBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			raw, err := io.ReadAll(io.LimitReader(r.Body, httpapi.MaxBody+1))
			r.Body = wholeBody{bytes.NewReader(raw), err, r.Body}
		}
		next.ServeHTTP(w, r)
	})
}

// wholeBody is the part of a body that was read, and the error that ended reading.
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
