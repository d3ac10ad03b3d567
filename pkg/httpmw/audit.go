package httpmw

import (
	"net/http"
	"path"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// Change is a request with a method that can change state, for the audit log.
type Change struct {
	// User is the name of the caller, Route the pattern, Params the values in the path.
	User, Method, Route string
	Params              map[string]string
	// Made is the name of a created object, taken from the answer.
	Made string
	Code int
	// Request is the request id, ClientRequest the one that the client sent, or empty.
	Request, ClientRequest string
}

// Audit calls record for every request that is not a read, after it was answered. It runs after
// Authenticate.
func Audit(record func(Change)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet || r.Method == http.MethodHead {
				next.ServeHTTP(w, r)
				return
			}
			wrapped := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
			defer func() {
				c := Change{User: actor(CallerOf(r)), Method: r.Method, Code: wrapped.Status(), Request: w.Header().Get(RequestIDHeader), Params: map[string]string{}}
				if o, ok := r.Context().Value(originKey{}).(*origin); ok {
					c.ClientRequest = o.clientID
				}
				if made := w.Header().Get("Location"); made != "" {
					c.Made = path.Base(made)
				}
				if route := chi.RouteContext(r.Context()); route != nil {
					c.Route = route.RoutePattern()
					for i, key := range route.URLParams.Keys {
						c.Params[key] = route.URLParams.Values[i]
					}
				}
				record(c)
			}()
			next.ServeHTTP(wrapped, r)
		})
	}
}

// actor is the name of a caller in the audit log: that of the User, or the username that kcp has
// for the account of a bot.
func actor(c *Caller) string {
	if c.Bot != nil {
		return c.Username()
	}
	return c.User.Name
}
