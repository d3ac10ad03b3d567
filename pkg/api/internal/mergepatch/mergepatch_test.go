package mergepatch_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/api/internal/mergepatch"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

func TestText_isRequiredToBeAString(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		raw     json.RawMessage
		value   string
		ok, bad bool
	}{
		{raw: nil},
		{raw: json.RawMessage(`"a"`), value: "a", ok: true},
		{raw: json.RawMessage(`""`), ok: true},
		{raw: json.RawMessage(`"null"`), value: "null", ok: true},
		{raw: json.RawMessage(`null`), bad: true},
		{raw: json.RawMessage(`7`), bad: true},
		{raw: json.RawMessage(`true`), bad: true},
		{raw: json.RawMessage(`["a"]`), bad: true},
		{raw: json.RawMessage(`{"a": "b"}`), bad: true},
	} {
		value, ok, err := mergepatch.Text("a.b", c.raw)
		require.Equal(t, c.ok, ok, "%s", c.raw)
		require.Equal(t, c.value, value, "%s", c.raw)
		if !c.bad {
			require.NoError(t, err, "%s", c.raw)
			continue
		}
		var e *errs.Error
		require.ErrorAs(t, err, &e, "%s", c.raw)
		require.Equal(t, errs.Invalid, e.Code)
		require.Equal(t, "a.b", e.Causes[0].Field)
	}
}

func TestDisplayName_refusesTextThatIsNotNormalized(t *testing.T) {
	t.Parallel()
	name, ok, err := mergepatch.DisplayName(json.RawMessage(`"Ünïted ☂"`))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "Ünïted ☂", name)
	_, ok, err = mergepatch.DisplayName(nil)
	require.NoError(t, err)
	require.False(t, ok)
	for _, raw := range []string{`""`, `" "`, `null`, `7`, `"a\u0000"`, `"e\u0301"`, `"\ud800"`} {
		_, ok, err := mergepatch.DisplayName(json.RawMessage(raw))
		require.False(t, ok, raw)
		require.True(t, errs.Is(err, errs.Invalid), raw)
	}
}
