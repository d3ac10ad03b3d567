// Package query reads the parameters and the Accept header of requests for records, and writes CSV.
package query

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// maxText is the maximum length of a text, in bytes. No text of a record is longer.
const maxText = 512

// Text returns a parameter. It refuses what no database takes.
func Text(r *http.Request, name string) (string, error) {
	value := r.URL.Query().Get(name)
	switch {
	case len(value) > maxText:
		return "", errs.InvalidField("query:"+name, "must be at most "+strconv.Itoa(maxText)+" bytes long")
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return "", errs.InvalidField("query:"+name, "must be UTF-8 without NUL")
	}
	return value, nil
}

// UUID returns a parameter that is the UUID of something. It is empty if the parameter is not given.
func UUID(r *http.Request, name, of string) (string, error) {
	value, err := Text(r, name)
	if err == nil && value != "" && !tenancy.IsUUID(value) {
		err = errs.InvalidField("query:"+name, "must be the UUID of "+of)
	}
	return value, err
}

// Moment returns a parameter with a time. It is zero if the parameter is not given.
func Moment(r *http.Request, name string) (time.Time, error) {
	value, err := Text(r, name)
	if err != nil || value == "" {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339, value)
	// Databases do not have all years.
	if year := t.UTC().Year(); err != nil || year < 1970 || year > 9999 {
		return time.Time{}, errs.InvalidField("query:"+name, "must be a time such as 2026-11-21T04:05:01Z")
	}
	return t, nil
}

// Accepted returns the media type that a client prefers among JSON and others, or nothing for JSON.
func Accepted(r *http.Request, others ...string) string {
	best, quality := "", 0.0
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		kind, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil {
			continue
		}
		q, err := strconv.ParseFloat(params["q"], 64)
		if err != nil {
			q = 1
		}
		other := ""
		switch kind {
		case "application/json", "application/*", "*/*":
		default:
			for _, o := range others {
				if kind == o {
					other = o
				}
			}
			if other == "" {
				continue
			}
		}
		if q > quality {
			best, quality = other, q
		}
	}
	return best
}

// Between returns two parameters with times, of which the second one is later. They are zero if they are not given.
func Between(r *http.Request, from, to string) (begin, end time.Time, err error) {
	if begin, err = Moment(r, from); err == nil {
		end, err = Moment(r, to)
	}
	if err == nil && !end.IsZero() && !begin.Before(end) {
		err = errs.InvalidField("query:"+to, "must be after "+from)
	}
	return begin, end, err
}
