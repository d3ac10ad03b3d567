package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// The purposes of seals and MACs. A secret of one client is none of the other.
const (
	purposeSecret  = "secret "
	purposeCode    = "code"
	purposeDevice  = "device"
	purposeIDToken = "id-token"
	purposeGrant   = "grant"
)

// maxPresented is the maximum length of a secret or code that is looked at, in bytes.
const maxPresented = 256

// secretOf returns the secret of a generation of a session.
func (k *Keyring) secretOf(client v1alpha1.SessionClient, name string, generation int64) string {
	body := name + "." + strconv.FormatInt(generation, 10)
	return body + "." + k.MAC(purposeSecret+string(client), body)
}

// parseSecret returns the session and the generation of a secret that the hub has made.
func (k *Keyring) parseSecret(client v1alpha1.SessionClient, secret string) (name string, generation int64, ok bool) {
	if _, ok := k.open(purposeSecret+string(client), secret); !ok {
		return "", 0, false
	}
	return secretParts(secret)
}

// secretParts returns what a secret says that it is for, whether or not the hub has made it.
func secretParts(secret string) (name string, generation int64, ok bool) {
	dot := strings.LastIndexByte(secret, '.')
	if dot < 0 || len(secret) > maxPresented {
		return "", 0, false
	}
	name, number, _ := strings.Cut(secret[:dot], ".")
	generation, err := strconv.ParseInt(number, 10, 64)
	return name, generation, err == nil
}

// PortalSession returns the name of the session that a cookie of the portal is for. ok is
// false if the hub has not made the cookie. The session may have ended.
func (k *Keyring) PortalSession(cookie string) (name string, ok bool) {
	name, _, ok = k.parseSecret(v1alpha1.SessionPortal, cookie)
	return name, ok
}

// CLISession returns the name of the session that a secret of the command line is for, like
// PortalSession.
func (k *Keyring) CLISession(secret string) (name string, ok bool) {
	name, _, ok = k.parseSecret(v1alpha1.SessionCLI, secret)
	return name, ok
}

// Genuine returns the name of the Session or the device login that a secret, a cookie or a code is
// for. ok is false if the hub has not made it. It computes MACs and reads nothing.
func (k *Keyring) Genuine(presented string) (name string, ok bool) {
	for _, client := range []v1alpha1.SessionClient{v1alpha1.SessionCLI, v1alpha1.SessionPortal} {
		if name, _, ok := k.parseSecret(client, presented); ok {
			return name, true
		}
	}
	for _, purpose := range []string{purposeCode, purposeDevice} {
		if name, ok := k.parseCode(purpose, presented); ok {
			return name, true
		}
	}
	return "", false
}

// Session returns a func that finds the Session that a secret of the command line or a cookie of the
// portal is for. find is the cache of Sessions.
func (k *Keyring) Session(find func(name string) (*v1alpha1.Session, bool)) func(secret string) (*v1alpha1.Session, bool) {
	return func(secret string) (*v1alpha1.Session, bool) {
		name, ok := k.PortalSession(secret)
		if !ok {
			name, ok = k.CLISession(secret)
		}
		if !ok {
			return nil, false
		}
		return find(name)
	}
}

// newCode returns a code for the object of that name, and the hash that is stored.
func (k *Keyring) newCode(purpose, name string) (code, hash string, err error) {
	random, err := k.randomHex()
	if err != nil {
		return "", "", err
	}
	body := name + "." + random
	code = body + "." + k.MAC(purpose, body)
	return code, hashOf(code), nil
}

// randomHex returns 128 random bits in hexadecimal digits.
func (k *Keyring) randomHex() (string, error) {
	random := make([]byte, 16)
	if _, err := io.ReadFull(k.random, random); err != nil {
		return "", fmt.Errorf("read random bytes: %w", err)
	}
	return hex.EncodeToString(random), nil
}

// parseCode returns the name of the object of a code that the hub has made.
func (k *Keyring) parseCode(purpose, code string) (name string, ok bool) {
	body, ok := k.open(purpose, code)
	if !ok {
		return "", false
	}
	name, _, ok = strings.Cut(body, ".")
	return name, ok
}

// open returns the part of a secret or code that its MAC authenticates.
func (k *Keyring) open(purpose, presented string) (body string, ok bool) {
	if len(presented) > maxPresented {
		return "", false
	}
	dot := strings.LastIndexByte(presented, '.')
	if dot < 0 || !k.Verify(purpose, presented[:dot], presented[dot+1:]) {
		return "", false
	}
	return presented[:dot], true
}

// hashOf is the hash of a token or code in hexadecimal digits, as Sessions store it.
func hashOf(token string) string {
	hash := sha256.Sum256([]byte(token))
	return hex.EncodeToString(hash[:])
}

// nameOf returns the name of the Session of a login: that of l.Once, or a new one.
func (s *Service) nameOf(l Login, now time.Time) (string, error) {
	if l.Once == "" {
		return newName(now, s.Random)
	}
	hash := sha256.Sum256([]byte(l.Once))
	return newName(l.BeganAt, bytes.NewReader(hash[:]))
}

// newName returns a version 7 UUID, which carries the time.
func newName(now time.Time, random io.Reader) (string, error) {
	var id uuid.UUID
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return "", fmt.Errorf("read random bytes: %w", err)
	}
	var millis [8]byte
	binary.BigEndian.PutUint64(millis[:], uint64(max(0, now.UnixMilli())))
	copy(id[:6], millis[2:])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id.String(), nil
}
