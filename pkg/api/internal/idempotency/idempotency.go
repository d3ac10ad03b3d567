package idempotency

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
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

// Claim is that of a request to create an Organization of that name, or a Workspace in org if it is not
// empty. newUUID generates the UUID if the request has no key.
func Claim(r *http.Request, displayName, org string, newUUID func() string, now time.Time) (v1alpha1.Claim, error) {
	if err := tenancy.CheckDisplayName("displayName", displayName); err != nil {
		return v1alpha1.Claim{}, err
	}
	key, hash, err := Key(r)
	if err != nil {
		return v1alpha1.Claim{}, err
	}
	caller, uuid := httpmw.CallerOf(r).User, newUUID()
	if key != "" {
		uuid = tenancy.KeyedUUID(string(caller.UID), org, key)
	}
	return tenancy.NewClaim(uuid, displayName, caller.Name, hash, metav1.NewTime(now)), nil
}
