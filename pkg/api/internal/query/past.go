package query

import (
	"net/http"
	"time"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// Past returns a parameter with a time that is not ahead. It is now if the parameter is not given.
func Past(r *http.Request, name string, now time.Time) (time.Time, error) {
	at, err := Moment(r, name)
	switch {
	case err != nil:
		return at, err
	case at.IsZero():
		return now.UTC(), nil
	case at.After(now):
		return at, errs.UnprocessableField("query:"+name, "must not be ahead: nobody knows who will have access")
	}
	return at.UTC(), nil
}
