package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// maxText is the maximum length of a text, in bytes of JSON: a byte of a client can become six.
	maxText = 512
	// maxList is that of all texts of one list or map together.
	maxList = 8 << 10
)

// bounded returns a copy of an event with its texts cut. A tenant who could write long lines would make the log rotate,
// and so forget, what others did. It walks the type, so that no field can be forgotten.
func (e Event) bounded() Event {
	bound(reflect.ValueOf(&e).Elem())
	return e
}

// line returns the JSON of an event with bounded texts. Of one that is longer than limit nevertheless, what
// identifies it is left: a line that no reader takes would be a gap in its chain.
func (e Event) line(limit int) ([]byte, error) {
	line, err := json.Marshal(e)
	if err != nil || len(line) <= limit {
		return line, err
	}
	e.Facts, e.Rotation, e.Resource, e.Cut = nil, nil, nil, true
	return json.Marshal(e)
}

// bound cuts the texts in v. What others hold, too, is replaced by a copy.
func bound(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(cut(v.String(), maxText))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				bound(f)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			to := reflect.New(v.Type().Elem())
			to.Elem().Set(v.Elem())
			bound(to.Elem())
			v.Set(to)
		}
	case reflect.Slice:
		boundList(v)
	case reflect.Map:
		boundMap(v)
	}
}

// boundList keeps the elements of a list that fit, cut. A list of texts says how many do not.
func boundList(v reflect.Value) {
	if v.Len() == 0 {
		return
	}
	keep, size := v.Len(), 0
	fits := reflect.MakeSlice(v.Type(), keep, keep)
	reflect.Copy(fits, v)
	for i := range v.Len() {
		e := fits.Index(i)
		bound(e)
		if size += sizeOf(e); size <= maxList {
			continue
		}
		if keep = i; e.Kind() == reflect.String {
			e.SetString(more(v.Len() - i))
			keep++
		}
		break
	}
	v.Set(fits.Slice(0, keep))
}

// boundMap keeps the entries of a map that fit, cut, the first ones in the order of their keys. A further key says how
// many do not.
func boundMap(v reflect.Value) {
	if v.Len() == 0 || v.Type().Key().Kind() != reflect.String {
		return
	}
	entries := make(map[string]reflect.Value, v.Len())
	for i := v.MapRange(); i.Next(); {
		entries[i.Key().String()] = i.Value()
	}
	fits, size := reflect.MakeMapWithSize(v.Type(), v.Len()), 0
	put := func(name string, value reflect.Value) {
		key := reflect.New(v.Type().Key()).Elem()
		key.SetString(name)
		fits.SetMapIndex(key, value)
	}
	for i, name := range slices.Sorted(maps.Keys(entries)) {
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(entries[name])
		bound(value)
		short := cut(name, maxText)
		if size += sizeOfText(short) + sizeOf(value) + 4; size > maxList {
			put(more(v.Len()-i), reflect.Zero(v.Type().Elem()))
			break
		}
		put(short, value)
	}
	v.Set(fits)
}

func more(n int) string { return fmt.Sprintf("and %d more", n) }

// sizeOf is the length of a value in a list of JSON, with the comma.
func sizeOf(v reflect.Value) int {
	if v.Kind() == reflect.String {
		return sizeOfText(v.String()) + len(`"",`)
	}
	raw, err := json.Marshal(v.Interface())
	if err != nil {
		return maxList + 1
	}
	return len(raw) + len(",")
}

// cut returns the beginning of a text, in valid UTF-8, that has at most limit bytes in JSON.
func cut(text string, limit int) string {
	size := 0
	for i, r := range text {
		if size += jsonSize(r); size > limit {
			text = text[:i]
			break
		}
	}
	return strings.ToValidUTF8(text, string(utf8.RuneError))
}

// sizeOfText is the length of a text in JSON, without the quotes.
func sizeOfText(text string) (size int) {
	for _, r := range text {
		size += jsonSize(r)
	}
	return size
}

// jsonSize is the length of a rune in JSON, as json.Marshal writes it, or more.
func jsonSize(r rune) int {
	switch {
	case r == '"' || r == '\\':
		return len(`\"`)
	case r < ' ' || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029':
		return len(`\u0026`)
	}
	return utf8.RuneLen(r)
}
