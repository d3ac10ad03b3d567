package proxy_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/proxy"
)

// field encodes a field of a Protobuf message.
func field(number byte, value string) string {
	return string(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(value)))) + value
}

func objectInProtobuf(name string) string {
	metadata := field(1, name) + field(2, "generate-") + field(3, "default")
	return "k8s\x00" + field(1, field(1, "v1")+field(2, "ConfigMap")) + field(2, field(1, metadata)+field(2, strings.Repeat("d", 100_000)))
}

// The outcome of a create has the name that kcp's answer has, in whatever pieces it arrives, and nothing
// that a tenant writes elsewhere in an object passes for it.
func TestMade_isTheNameInTheAnswer(t *testing.T) {
	t.Parallel()
	const json, protobuf = "application/json", "application/vnd.kubernetes.protobuf"
	const collection, pod = "/clusters/aaaa/api/v1/namespaces/default/configmaps", "/clusters/aaaa/api/v1/namespaces/default/pods/p/eviction"
	for name, c := range map[string]struct {
		path, media, answer string
		code                int
		want                []string
	}{
		"a built-in type":                 {collection, json, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"made-7","namespace":"default"},"data":{"name":"x"}}`, 201, []string{"made-7"}},
		"a custom resource":               {collection, json, `{"apiVersion":"v1","data":{"metadata":{"name":"forged"},"name":"forged"},"metadata":{"annotations":{"name":"forged","metadata":"{\"name\":\"forged\"}"},"labels":{"name":"forged"},"managedFields":[{"name":"forged"}],"name":"made-7"}}`, 201, []string{"made-7"}},
		"an escaped name":                 {collection, json, `{"metadata":{"name":"a\u003cb\"c"}}`, 201, []string{`a<b"c`}},
		"annotations of 1 MiB":            {collection, json, `{"metadata":{"annotations":{"a":"` + strings.Repeat(`\"`, 1<<19) + `"},"name":"made-7"}}`, 201, []string{"made-7"}},
		"Protobuf":                        {collection, protobuf, objectInProtobuf("made-7"), 201, []string{"made-7"}},
		"Protobuf that is none":           {collection, protobuf, "k8s\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 201, nil},
		"a list in place of the object":   {collection, json, `[{"metadata":{"name":"forged"}}]`, 201, nil},
		"metadata that is no object":      {collection, json, `{"metadata":["name","forged"],"x":{"name":"forged"}}`, 201, nil},
		"a refusal":                       {collection, json, `{"kind":"Status","metadata":{"name":"forged"}}`, 403, nil},
		"a path that says the name":       {pod, json, `{"metadata":{"name":"forged"}}`, 201, nil},
		"an answer that ends in the name": {collection, json, `{"metadata":{"name":"ma`, 201, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			h := newHub(t, "https://kcp.example.com", roundTripper(func(r *http.Request) (*http.Response, error) {
				return &http.Response{
					StatusCode: c.code, Header: http.Header{"Content-Type": {c.media}}, Request: r,
					Body: io.NopCloser(iotest.OneByteReader(strings.NewReader(c.answer))),
				}, nil
			}), func(config *proxy.Config) {
				config.Made = func(_ *http.Request, name string) { got = append(got, name) }
			})
			w := httptest.NewRecorder()
			h.ServeHTTP(w, request(http.MethodPost, c.path, "alice"))
			require.Equal(t, c.code, w.Code)
			require.True(t, bytes.Equal([]byte(c.answer), w.Body.Bytes()), "the client gets the answer unchanged")
			require.Equal(t, c.want, got)
		})
	}
}

// A client that asks for an answer without the name gets one with it.
func TestMade_cannotBeHiddenByAskingForATable(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]string{
		"": "application/json", "*/*": "application/json", "application/yaml": "application/json", "application/cbor": "application/json",
		"application/json;as=Table;v=v1;g=meta.k8s.io":                      "application/json",
		"application/JSON; AS=Table, application/json":                      "application/json",
		"application/vnd.kubernetes.protobuf,application/json":              "application/vnd.kubernetes.protobuf,application/json",
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, */*": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
	} {
		var accept, encoding string
		h := newHub(t, "https://kcp.example.com", roundTripper(func(r *http.Request) (*http.Response, error) {
			accept, encoding = r.Header.Get("Accept"), r.Header.Get("Accept-Encoding")
			return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		}), func(config *proxy.Config) { config.Made = func(*http.Request, string) {} })
		r := request(http.MethodPost, "/clusters/aaaa/api/v1/namespaces", "alice")
		r.Header.Set("Accept-Encoding", "gzip")
		if asked != "" {
			r.Header.Set("Accept", asked)
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		require.Equal(t, want, accept, asked)
		require.Empty(t, encoding)
	}
}
