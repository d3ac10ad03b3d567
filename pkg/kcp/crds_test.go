package kcp_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

func TestCustomResourceDefinitions_asksForNamesWithALimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, answer string
		code         int
		names        []string
		more, fails  bool
	}{
		{"none", `{"kind":"Table","columnDefinitions":[{"name":"Name","format":"name"}],"rows":[]}`, 200, nil, false, false},
		{"some", `{"kind":"Table","columnDefinitions":[{"name":"Name","format":"name"},{"name":"Created At"}],"rows":[{"cells":["a.example.com","2026-01-01T00:00:00Z"],"object":null},{"cells":["b.example.com","x"]}]}`, 200, []string{"a.example.com", "b.example.com"}, false, false},
		{"too many", `{"kind":"Table","metadata":{"continue":"x"},"columnDefinitions":[{"name":"Name","format":"name"}],"rows":[{"cells":["a.example.com"]}]}`, 200, []string{"a.example.com"}, true, false},
		{"a list that is no table", `{"kind":"CustomResourceDefinitionList","items":[]}`, 200, nil, false, true},
		{"rubbish", `<html>`, 200, nil, false, true},
		{"a refusal", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, 403, nil, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var asked *http.Request
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.code)
				_, _ = w.Write([]byte(c.answer))
			}))
			defer server.Close()
			clients, err := kcp.NewClients(&rest.Config{Host: server.URL}, prometheus.NewRegistry())
			require.NoError(t, err)
			defer clients.Close()
			names, more, err := clients.CustomResourceDefinitions(t.Context(), "c", 7)
			require.Equal(t, c.fails, err != nil, "%v", err)
			require.Equal(t, c.names, names)
			require.Equal(t, c.more, more)
			require.Equal(t, "/clusters/c/apis/apiextensions.k8s.io/v1/customresourcedefinitions", asked.URL.Path)
			require.Equal(t, "7", asked.URL.Query().Get("limit"))
			require.Equal(t, "None", asked.URL.Query().Get("includeObject"))
			require.Contains(t, asked.Header.Get("Accept"), "as=Table")
		})
	}
}
