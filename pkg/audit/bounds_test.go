package audit_test

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

// fill sets every field of a value, each text to the given one. It returns the number of texts.
func fill(v reflect.Value, text string) (texts int) {
	const entries = 200
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
		return 1
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1 << 31)
	case reflect.Uint64:
		v.SetUint(1 << 31)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return fill(v.Elem(), text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), entries, entries))
		for i := range entries {
			texts += fill(v.Index(i), text)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range entries {
			value := reflect.New(v.Type().Elem()).Elem()
			texts += 1 + fill(value, text)
			v.SetMapIndex(reflect.ValueOf(strconv.Itoa(i)+text), value)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1_000, 0).UTC()))
			return 0
		}
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" {
				texts += fill(v.Field(i), text)
			}
		}
	}
	return texts
}

// Whatever a client puts into whichever field, its line is an event to all readers, and the chain goes on behind it, over
// a restart as well.
func TestWrite_aClientMakesNoLineThatReadersSkip(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]string{
		"six bytes in JSON": "&", "control characters": "\x00", "no UTF-8": "\xff", "a part of a rune": "\xe2\x82",
		"runes": "\u20ac", "separators": "\u2028", "quotes": `"`, "plain": "x",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e audit.Event
			require.Greater(t, fill(reflect.ValueOf(&e).Elem(), strings.Repeat(part, 100_000)), 1_000)
			// It is one of the chain of rights.
			e.Rotation.First, e.Unchanged = 1, false
			file := audit.DefaultFile(t.TempDir())
			var heads []audit.Head
			for range 2 {
				l, closing, err := audit.Open(t.Context(), options(file), prometheus.NewRegistry())
				require.NoError(t, err)
				write(t, l, audit.Event{Action: "before"}, e)
				heads = l.Heads()
				closing()
			}
			require.EqualValues(t, 4, heads[0].Seq)
			require.Empty(t, verify(t, file, heads...))
			seq := uint64(0)
			require.NoError(t, audit.Lines(file, 0, func(l audit.Line) bool {
				seq++
				require.True(t, l.OK && l.Whole)
				require.Equal(t, seq, l.Event.Seq)
				if seq%2 == 0 {
					require.NotNil(t, l.Event.Facts, "cut, and not left out")
					require.Less(t, len(l.Text), 128<<10)
					require.NotEmpty(t, l.Event.Facts.Trust)
					require.LessOrEqual(t, len(l.Event.Facts.Trust), 512)
					require.True(t, utf8.ValidString(l.Event.Facts.Trust))
				}
				return true
			}))
			require.EqualValues(t, 4, seq)
			require.Len(t, e.Facts.Trust, 100_000*len(part), "the event of the caller stays as it is")
			require.Len(t, e.Facts.Fields, 200)
		})
	}
}

// An event that is too long nevertheless is not lost, and says that it is not whole.
func TestLine_keepsWhatIdentifiesAnEventThatIsTooLong(t *testing.T) {
	t.Parallel()
	e := padded("POST /api/orgs")
	e.ID, e.Stage, e.Seq, e.Prev, e.Object = "r", audit.StageIntent, 7, "hash", "bob"
	whole, err := e.Line(64 << 10)
	require.NoError(t, err)
	require.Contains(t, string(whole), "ppp")
	short, err := e.Line(8 << 10)
	require.NoError(t, err)
	var got audit.Event
	require.NoError(t, json.Unmarshal(short, &got))
	e.Facts, e.Cut = nil, true
	require.Equal(t, e, got)
}

// What a list or a map has too much is counted.
func TestWrite_countsWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	e := audit.Event{Facts: &audit.Facts{Mismatch: map[string]string{}, Counts: map[string]int{}}}
	for i := range 100 {
		e.Facts.Mismatch[strconv.Itoa(1000+i)] = strings.Repeat("m", 600)
		e.Facts.Counts[strconv.Itoa(1000+i)] = i
	}
	raw, err := e.Line(256 << 10)
	require.NoError(t, err)
	var got audit.Event
	require.NoError(t, json.Unmarshal(raw, &got))
	require.Equal(t, e.Facts.Counts, got.Facts.Counts)
	require.Len(t, got.Facts.Mismatch, 16)
	require.Contains(t, got.Facts.Mismatch, "and 85 more")
	require.Equal(t, strings.Repeat("m", 512), got.Facts.Mismatch["1000"])
}
