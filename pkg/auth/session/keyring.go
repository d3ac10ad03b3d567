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
)

// KeySize is the size of a session key in bytes.
const KeySize = 32

// keyIDSize is the number of bytes that tell which key has sealed something.
const keyIDSize = 4

// errSealed is returned for everything that cannot be opened; it does not say why.
var errSealed = errors.New("not sealed with a session key of this hub")

// Keyring encrypts and authenticates with the session keys. The first key seals; all keys
// open and verify, so that keys can be rotated. Each purpose has keys of its own, derived
// from the session keys: what was sealed for one purpose cannot be used for another.
type Keyring struct {
	keys   atomic.Pointer[[][]byte]
	random io.Reader
}

// NewKeyring returns a Keyring of keys of KeySize bytes. random is the source of nonces.
func NewKeyring(keys [][]byte, random io.Reader) (*Keyring, error) {
	k := &Keyring{random: random}
	return k, k.Replace(keys)
}

// Replace replaces the keys. A text that was sealed with a removed key can no longer be opened.
func (k *Keyring) Replace(keys [][]byte) error {
	if len(keys) == 0 {
		return errors.New("there is no session key")
	}
	for i, key := range keys {
		if len(key) != KeySize {
			return fmt.Errorf("session key %d has %d bytes instead of %d", i+1, len(key), KeySize)
		}
	}
	k.keys.Store(&keys)
	return nil
}

// first returns the key that seals.
func (k *Keyring) first() []byte { return (*k.keys.Load())[0] }

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

// Seal encrypts plain with the first key. Only Open with the same purpose returns it.
func (k *Keyring) Seal(purpose string, plain []byte) ([]byte, error) {
	key := k.first()
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

// Open returns what Seal has encrypted with any of the keys.
func (k *Keyring) Open(purpose string, sealed []byte) ([]byte, error) {
	if len(sealed) < keyIDSize {
		return nil, errSealed
	}
	for _, key := range *k.keys.Load() {
		if !bytes.Equal(sealed[:keyIDSize], keyID(key)) {
			continue
		}
		aead, err := sealer(key, purpose)
		if err != nil {
			return nil, err
		}
		rest := sealed[keyIDSize:]
		if len(rest) < aead.NonceSize() {
			return nil, errSealed
		}
		if plain, err := aead.Open(nil, rest[:aead.NonceSize()], rest[aead.NonceSize():], []byte(purpose)); err == nil {
			return plain, nil
		}
	}
	return nil, errSealed
}

// Current reports whether sealed was made with the current first key. A text that was sealed with
// another key is lost when that key is removed.
func (k *Keyring) Current(sealed []byte) bool {
	return len(sealed) >= keyIDSize && bytes.Equal(sealed[:keyIDSize], keyID(k.first()))
}

// MAC authenticates message with the first key, in base64url.
func (k *Keyring) MAC(purpose, message string) string {
	return base64.RawURLEncoding.EncodeToString(mac(k.first(), purpose, message))
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
	for _, key := range *k.keys.Load() {
		if hmac.Equal(raw, mac(key, purpose, message)) {
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
