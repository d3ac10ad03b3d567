package httpmw

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// maxDiscarded is how much of a body that is too large is read after that was found, in bytes:
// the client gets its answer.
const maxDiscarded = 256 << 10

// lastRead is how long the rest of a refused request is read. A client that still sends when the
// connection is closed may lose the answer.
const lastRead = 500 * time.Millisecond

// LimitUnreadBody limits the time in which the server reads the body of a request that is refused before
// its body is read. net/http reads up to 256 KiB of it otherwise, as slowly as the client sends
// them: a client without a credential could keep it busy. AdmitBody and BufferBody end it.
func LimitUnreadBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// HTTP/2 resets the stream, and the other streams of the connection go on.
		if r.ContentLength == 0 || r.ProtoMajor != 1 {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Connection", "close")
		next.ServeHTTP(w, r)
		if w.Header().Get("Connection") == "close" {
			// net/http reads the rest even of a request after which it closes the connection.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(lastRead))
		}
	})
}

// AdmitBody ends LimitUnreadBody for a request that is admitted.
func AdmitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			w.Header().Del("Connection")
		}
		next.ServeHTTP(w, r)
	})
}

// BufferBody reads the request body, up to the maximum size, and ends LimitUnreadBody. It runs after
// authenticate, and calls it again when it has read a body: a client that sends slowly is judged by
// its rights at the end of the body.
func BufferBody(authenticate func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		again := authenticate(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength == 0 {
				next.ServeHTTP(w, r)
				return
			}
			raw, err := io.ReadAll(io.LimitReader(r.Body, httpapi.MaxBody+1))
			ended := err == nil && len(raw) <= httpapi.MaxBody
			if err == nil && !ended {
				_, rest := io.CopyN(io.Discard, r.Body, maxDiscarded)
				ended = errors.Is(rest, io.EOF)
			}
			r.Body = wholeBody{bytes.NewReader(raw), err, r.Body}
			if ended {
				w.Header().Del("Connection")
			}
			again.ServeHTTP(w, r)
		})
	}
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
