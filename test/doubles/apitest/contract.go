package apitest

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"

	"github.com/faroshq/kedge-hub/test/contract"
)

// undocumented is the status in place of an answer that differs from the OpenAPI document. The
// body says how.
const undocumented = 599

// AsDocumented returns a handler that answers as next does if that is documented.
func AsDocumented(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		document, err := contract.Load()
		if err != nil {
			http.Error(w, err.Error(), undocumented)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), undocumented)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answered := httptest.NewRecorder()
		next.ServeHTTP(answered, r)
		if err := document.Check(contract.Exchange{
			Request: r, RequestBody: body, Status: answered.Code, Header: answered.Header(), Body: answered.Body.Bytes(), Bare: true,
		}); err != nil {
			http.Error(w, err.Error(), undocumented)
			return
		}
		maps.Copy(w.Header(), answered.Header())
		w.WriteHeader(answered.Code)
		_, _ = w.Write(answered.Body.Bytes())
	})
}
