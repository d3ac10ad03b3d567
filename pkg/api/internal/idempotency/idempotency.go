package idempotency

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// Header names the key.
const Header = "Idempotency-Key"

const maxKey = 255

// Key returns the request's key and its hash, which is a label value; both are
// empty where none was sent.
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
