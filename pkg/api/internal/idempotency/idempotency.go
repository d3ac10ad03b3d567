package idempotency

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/mergepatch"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Header is the name of the header with the key.
const Header = "Idempotency-Key"

const maxKey = 255

// Key returns the key of the request and its hash, which is a valid label value. Both are empty
// if the request has none.
func Key(r *http.Request) (key, hash string, err error) {
	values := r.Header.Values(Header)
	if len(values) == 0 {
		return "", "", nil
	}
	key = values[0]
	if len(values) > 1 || key == "" || len(key) > maxKey {
		return "", "", errs.InvalidField("header:"+Header, "must be sent once, with 1 to 255 characters")
	}
	for _, c := range []byte(key) {
		if c < 0x21 || c > 0x7e {
			return "", "", errs.InvalidField("header:"+Header, "must hold printable ASCII characters without spaces only")
		}
	}
	sum := sha256.Sum256([]byte(key))
	return key, hex.EncodeToString(sum[:20]), nil
}

// ID is that of what a request adds to a collection: the same for a repeated key of the caller, and a new one without a
// key. place begins with the UUID of the Organization or Workspace.
func ID(r *http.Request, key, place string, newID func() string) string {
	if key == "" {
		return newID()
	}
	caller := httpmw.CallerOf(r)
	var by metav1.Object = caller.User
	if caller.Bot != nil {
		by = caller.Bot.Bot
	}
	return tenancy.KeyedUUID(string(by.GetUID()), place, key)
}

// Claim is that of a request to create an Organization or a Workspace, with the billing that it asks for. The UUID
// does not follow from the key: what is told of a purged one by its UUID must never be told of another one. A repeated
// key is found by its hash (tenancy.FindKeyed).
func Claim(
	r *http.Request, in rest.CreateRequest, newUUID func() string, now time.Time,
) (c v1alpha1.Claim, billing tenancy.BillingEdit, err error) {
	if billing, err = mergepatch.Billing(in.Billing); err != nil {
		return c, nil, err
	}
	description, _, err := mergepatch.Description(in.Description)
	if err != nil {
		return c, nil, err
	}
	if err := tenancy.CheckDisplayName("displayName", in.DisplayName); err != nil {
		return c, nil, err
	}
	_, hash, err := Key(r)
	if err != nil {
		return c, nil, err
	}
	caller := httpmw.CallerOf(r).User
	if made := caller.CreationTimestamp.Time; now.Before(made) {
		// A clock that is a little behind kcp's would make it the request of an earlier person so called.
		now = made
	}
	c = tenancy.NewClaim(newUUID(), in.DisplayName, caller.Name, hash, metav1.NewTime(now))
	c.Request.Description = description
	return c, billing, nil
}
