package client

import (
	"context"
	"net/http"
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

// Access says who had access to the tenant at a moment, to the second. The zero time is now. For its admins.
func (t Tenant) Access(ctx context.Context, at time.Time) (*rest.PastAccess, error) {
	return do[rest.PastAccess](ctx, t.c, t.at(http.MethodGet, "/access", nil), Query("at", timeParameter(at)))
}
