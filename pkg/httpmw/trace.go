package httpmw

import (
	"net/http"

	"github.com/go-chi/chi/v5/middleware"

	"github.com/faroshq/kedge-hub/pkg/tracing"
)

// Trace makes a span of every request. It runs right inside Observe, which has the request id and the status.
// Without a tracer it is no layer at all.
func Trace(tracer *tracing.Tracer) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		if tracer == nil {
			return next
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, end := tracer.Request(r)
			r = r.WithContext(ctx)
			if end == nil {
				next.ServeHTTP(w, r)
				return
			}
			// Observe answers a panic after this.
			status := http.StatusInternalServerError
			defer func() { end(patternOf(r), methodOf(r), w.Header().Get(RequestIDHeader), status) }()
			next.ServeHTTP(w, r)
			status = http.StatusOK
			if answered, ok := w.(middleware.WrapResponseWriter); ok && answered.Status() != 0 {
				status = answered.Status()
			}
		})
	}
}
