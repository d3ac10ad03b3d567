package idempotency_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/faroshq/kedge-hub/pkg/api/internal/idempotency"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

func request(keys ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
	r.Header[idempotency.Header] = keys
	return r
}

func TestKey_becomesALabelThatDoesNotHoldIt(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, key := range []string{"a", "A", "b", "key=1;x", `"quoted"`, "!", "~", strings.Repeat("k", 255), strings.Repeat("k", 254)} {
		got, hash, err := idempotency.Key(request(key))
		require.NoError(t, err, key)
		require.Equal(t, key, got)
		require.Empty(t, validation.IsValidLabelValue(hash))
		require.Empty(t, seen[hash], "%s and %s", key, seen[hash])
		seen[hash] = key
		_, again, err := idempotency.Key(request(key))
		require.NoError(t, err)
		require.Equal(t, hash, again, "the same key, the same label")
	}
}

func TestKey_isOptional(t *testing.T) {
	t.Parallel()
	key, hash, err := idempotency.Key(request())
	require.NoError(t, err)
	require.Empty(t, key)
	require.Empty(t, hash)
}

func TestKey_refusesMalformedOnes(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{
		"empty":         {""},
		"two":           {"a", "b"},
		"the same two":  {"a", "a"},
		"too long":      {strings.Repeat("k", 256)},
		"a space":       {"a b"},
		"a tab":         {"a\tb"},
		"a line":        {"a\nb"},
		"a null byte":   {"a\x00"},
		"a DEL":         {"a\x7f"},
		"not ASCII":     {"schlüssel"},
		"only a space":  {" "},
		"a lone octet":  {"\xff"},
		"two, one void": {"", "a"},
	} {
		key, hash, err := idempotency.Key(request(keys...))
		require.True(t, errs.Is(err, errs.Invalid), name)
		require.ErrorContains(t, err, "header:Idempotency-Key", name)
		require.Empty(t, key+hash, name)
	}
}
