package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

const (
	// MaxBody is the maximum size of a request body, in bytes.
	MaxBody = 64 << 10
	// maxDepth is the maximum nesting depth of a request body.
	maxDepth = 32
)

// Read decodes the JSON object in the request body into the struct into points to. It refuses
// unknown and duplicate fields, wrong types, trailing data and invalid UTF-8 with errs.Invalid;
// the error names the field.
func Read(r *http.Request, into any) error {
	if err := mediaType(r); err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "the body could not be read")
	}
	if len(raw) > MaxBody {
		return errs.New(errs.TooLarge, "the body is larger than 64 KiB")
	}
	if !utf8.Valid(raw) {
		return errs.New(errs.Invalid, "the body is not UTF-8")
	}
	if err := wellFormed(raw); err != nil {
		return err
	}
	return Decode(raw, into)
}

// Decode decodes a JSON value as strictly as Read. The error names the field.
func Decode(raw []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		return typeError(err)
	}
	if len(strict) > 0 {
		e := errs.New(errs.Invalid, "")
		for _, problem := range strict {
			e.Causes = append(e.Causes, strictCause(problem))
		}
		e.Message = e.Causes[0].Field + ": " + e.Causes[0].Message
		return e
	}
	return nil
}

func mediaType(r *http.Request) error {
	got, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := params["charset"]
	if err == nil && (charset == "" || strings.EqualFold(charset, "utf-8")) {
		if got == "application/json" || got == "application/merge-patch+json" && r.Method == http.MethodPatch {
			return nil
		}
	}
	return errs.New(errs.UnsupportedMediaType, "the body must be sent with Content-Type: application/json")
}

// wellFormed refuses input that is not exactly one JSON object within the maximum depth.
func wellFormed(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	depth := 0
	for first := true; ; first = false {
		token, err := decoder.Token()
		switch {
		case errors.Is(err, io.EOF) && first:
			return errs.New(errs.Invalid, "the body is empty; send a JSON object")
		case err != nil:
			return errs.New(errs.Invalid, "the body is not well-formed JSON")
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		switch {
		case first && token != json.Delim('{'):
			return errs.New(errs.Invalid, "the body must be a JSON object")
		case depth > maxDepth:
			return errs.New(errs.Invalid, "the body nests too deep")
		case depth == 0:
			if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
				return errs.New(errs.Invalid, "there is more after the JSON object in the body")
			}
			return nil
		}
	}
}

// typeError names the field whose value has the wrong type.
func typeError(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return errs.InvalidField(wrong.Field, "has the wrong type ("+wrong.Value+")")
	}
	// sigs.k8s.io/json has its own type for type errors, with the same text.
	if _, rest, ok := strings.Cut(err.Error(), "struct field "); ok {
		field, _, _ := strings.Cut(rest, " ")
		if _, name, ok := strings.Cut(field, "."); ok {
			return errs.InvalidField(name, "has the wrong type")
		}
	}
	return errs.Wrap(errs.Invalid, err, "a field of the body has the wrong type")
}

func strictCause(problem error) errs.Cause {
	text := problem.Error()
	field := text
	if i, j := strings.Index(text, `"`), strings.LastIndex(text, `"`); i >= 0 && j > i {
		field = text[i+1 : j]
	}
	if strings.HasPrefix(text, "duplicate") {
		return errs.Cause{Type: "FieldValueDuplicate", Field: field, Message: "is given twice"}
	}
	return errs.Cause{Type: "FieldValueNotSupported", Field: field, Message: "is not a field that may be given here"}
}

// Flag reads a boolean query parameter. The default is false.
func Flag(r *http.Request, name string) (bool, error) {
	switch r.URL.Query().Get(name) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, errs.InvalidField("query:"+name, "must be true or false")
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// The headers of every answer. They are shared, because nobody appends to the values of a header in place.
var (
	contentType        = []string{"application/json"}
	contentTypeOptions = []string{"nosniff"}
	cacheControl       = []string{"no-store"}
)

// Write answers with v as JSON.
func Write(w http.ResponseWriter, code int, v any) error {
	return write(w, code, func(b *bytes.Buffer) error { return encode(b, v) })
}

// Encode returns v as Write writes it, without the end of the line.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	err := encode(&b, v)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

// WriteList answers with a page of a list, whose items Encode returned.
func WriteList(w http.ResponseWriter, items [][]byte, next string) error {
	return write(w, http.StatusOK, func(b *bytes.Buffer) error {
		b.WriteString(`{"items":[`)
		for i, item := range items {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(item)
		}
		b.WriteString(`],"continue":`)
		if err := encode(b, next); err != nil {
			return err
		}
		// The end of the line comes after the object.
		b.Truncate(b.Len() - 1)
		b.WriteString("}\n")
		return nil
	})
}

func encode(b *bytes.Buffer, v any) error {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	return nil
}

// write says how long the body is, so that net/http does not send one of more than 2 KiB in chunks.
func write(w http.ResponseWriter, code int, body func(*bytes.Buffer) error) error {
	b := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(b)
	b.Reset()
	if err := body(b); err != nil {
		return err
	}
	header := w.Header()
	header["Content-Type"], header["X-Content-Type-Options"] = contentType, contentTypeOptions
	if header.Get("Cache-Control") == "" {
		header["Cache-Control"] = cacheControl
	}
	header.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(code)
	_, err := w.Write(b.Bytes())
	return err
}
