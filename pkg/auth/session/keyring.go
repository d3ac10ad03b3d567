package session

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// KeySize is the size of a session key in bytes.
const KeySize = 32

const (
	// keyIDSize is the number of bytes that tell which key has sealed something.
	keyIDSize = 4
	// minSealed is the size of an empty text that was sealed: it has a nonce of 12 bytes and a tag of 16.
	minSealed = keyIDSize + 12 + 16
)

// spread is the time in which all replicas read a new key: Kubernetes changes the files of a Secret on one
// machine a minute or two after those on another.
const spread = 10 * time.Minute

// errSealed is returned for what cannot be opened although its key is known, and for what was never sealed.
var errSealed = errors.New("not sealed with a session key of this hub")

// ErrUnknownKey is returned for what names a key that this replica does not have. Another replica may have it
// already, or have it still. The name is not authenticated: anybody can invent one.
var ErrUnknownKey = errors.New("sealed with a session key that this replica does not have")

// Keyring encrypts and authenticates with the session keys. The first key seals; all keys
// open and verify, so that keys can be rotated. Each purpose has keys of its own, derived
// from the session keys: what was sealed for one purpose cannot be used for another.
type Keyring struct {
	keys   atomic.Pointer[[]key]
	random io.Reader
}

// key is a session key. since is when a running replica read it first, and zero for a key of its start.
type key struct {
	secret []byte
	since  time.Time
}

// NewKeyring returns a Keyring of keys of KeySize bytes. random is the source of nonces. The first key seals at once:
// all replicas have it where keys are rotated as the documentation of --session-key-file says.
func NewKeyring(keys [][]byte, random io.Reader) (*Keyring, error) {
	k := &Keyring{random: random}
	return k, k.Replace(keys)
}

// Replace replaces the keys. A text that was sealed with a removed key can no longer be opened. A key that is new seals
// nothing for ten minutes if there is an older one: the other replicas could not open it yet.
func (k *Keyring) Replace(keys [][]byte) error {
	if len(keys) == 0 {
		return errors.New("there is no session key")
	}
	before, replaced := k.keys.Load(), make([]key, len(keys))
	for i, secret := range keys {
		if len(secret) != KeySize {
			return fmt.Errorf("session key %d has %d bytes instead of %d", i+1, len(secret), KeySize)
		}
		replaced[i].secret = secret
		if before == nil {
			continue
		}
		replaced[i].since = time.Now()
		for _, old := range *before {
			if bytes.Equal(old.secret, secret) {
				replaced[i].since = old.since
			}
		}
	}
	k.keys.Store(&replaced)
	return nil
}

// sealing returns the key that seals: the first one that all replicas have, or the first if all are new.
func (k *Keyring) sealing() []byte {
	keys := *k.keys.Load()
	for _, held := range keys {
		if time.Since(held.since) >= spread {
			return held.secret
		}
	}
	return keys[0].secret
}

// ParseKeys reads session keys: one in base64 on each line, empty lines ignored. Errors
// name the line and never contain a key.
func ParseKeys(content []byte) ([][]byte, error) {
	var keys [][]byte
	lines := bufio.NewScanner(bytes.NewReader(content))
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		key := make([]byte, base64.StdEncoding.DecodedLen(len(line)))
		size, err := base64.StdEncoding.Decode(key, line)
		if err != nil || size != KeySize {
			return nil, fmt.Errorf("line %d: not %d bytes in base64, such as openssl rand -base64 %d prints", n, KeySize, KeySize)
		}
		keys = append(keys, key[:size])
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the session keys: %w", err)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no session key; openssl rand -base64 32 prints one")
	}
	return keys, nil
}

// Seal encrypts plain with the key that seals. Only Open with the same purpose returns it.
func (k *Keyring) Seal(purpose string, plain []byte) ([]byte, error) {
	key := k.sealing()
	aead, err := sealer(key, purpose)
	if err != nil {
		return nil, err
	}
	sealed := make([]byte, keyIDSize+aead.NonceSize(), keyIDSize+aead.NonceSize()+len(plain)+aead.Overhead())
	copy(sealed, keyID(key))
	if _, err := io.ReadFull(k.random, sealed[keyIDSize:]); err != nil {
		return nil, fmt.Errorf("read random bytes: %w", err)
	}
	return aead.Seal(sealed, sealed[keyIDSize:], plain, []byte(purpose)), nil
}

// Open returns what Seal has encrypted with any of the keys. The error wraps ErrUnknownKey if a key that is none of them
// may have encrypted it.
func (k *Keyring) Open(purpose string, sealed []byte) ([]byte, error) {
	if len(sealed) < minSealed {
		return nil, errSealed
	}
	failure := ErrUnknownKey
	for _, held := range *k.keys.Load() {
		if !bytes.Equal(sealed[:keyIDSize], keyID(held.secret)) {
			continue
		}
		failure = errSealed
		aead, err := sealer(held.secret, purpose)
		if err != nil {
			return nil, err
		}
		rest := sealed[keyIDSize:]
		if plain, err := aead.Open(nil, rest[:aead.NonceSize()], rest[aead.NonceSize():], []byte(purpose)); err == nil {
			return plain, nil
		}
	}
	return nil, failure
}

// Current reports whether sealed was made with the key that seals. A text that was sealed with
// another key is lost when that key is removed.
func (k *Keyring) Current(sealed []byte) bool {
	return len(sealed) >= keyIDSize && bytes.Equal(sealed[:keyIDSize], keyID(k.sealing()))
}

// MAC authenticates message with the key that seals, in base64url.
func (k *Keyring) MAC(purpose, message string) string {
	return base64.RawURLEncoding.EncodeToString(mac(k.sealing(), purpose, message))
}

// Verify reports whether MAC has returned given for the message, with any of the keys. It
// takes the same time for every wrong one.
func (k *Keyring) Verify(purpose, message, given string) bool {
	// There is one encoding: the decoder would skip line breaks.
	raw, err := base64.RawURLEncoding.Strict().DecodeString(given)
	if err != nil || len(given) != base64.RawURLEncoding.EncodedLen(sha256.Size) {
		return false
	}
	ok := false
	for _, held := range *k.keys.Load() {
		if hmac.Equal(raw, mac(held.secret, purpose, message)) {
			ok = true
		}
	}
	return ok
}

func mac(key []byte, purpose, message string) []byte {
	h := hmac.New(sha256.New, derive(key, "mac "+purpose))
	_, _ = h.Write([]byte(message))
	return h.Sum(nil)
}

func sealer(key []byte, purpose string) (cipher.AEAD, error) {
	block, err := aes.NewCipher(derive(key, "seal "+purpose))
	if err != nil {
		return nil, fmt.Errorf("make the cipher of a session key: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("make the cipher of a session key: %w", err)
	}
	return aead, nil
}

func keyID(key []byte) []byte { return derive(key, "id")[:keyIDSize] }

// derive returns the key of one purpose. HKDF fails for nothing but a length that SHA-256
// cannot give.
func derive(key []byte, purpose string) []byte {
	derived, err := hkdf.Key(sha256.New, key, nil, "kedge-hub session "+purpose, KeySize)
	if err != nil {
		panic(err)
	}
	return derived
}
