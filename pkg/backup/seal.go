package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
	"github.com/klauspost/compress/gzip"
)

// ageHeader begins what age encrypts.
const ageHeader = "age-encryption.org/"

// Recipients reads the public keys of age. An error does not have the text, which may be a private key by mistake.
func Recipients(texts []string) (all []age.Recipient, err error) {
	for i, text := range texts {
		r, err := age.ParseX25519Recipient(text)
		if err != nil {
			return nil, fmt.Errorf("number %d is no public key of age, age1 and 58 more letters", i+1)
		}
		all = append(all, r)
	}
	return all, nil
}

// sealed ends what is around a file, from the inside.
type sealed struct {
	io.Writer
	layers []io.Closer
}

// Seal compresses what is written, and encrypts it if there are recipients. Close writes the end, and leaves to open.
// The hub serves people on the same cores meanwhile: the library of klauspost takes half of the time of Go's own.
func Seal(to io.Writer, recipients []age.Recipient) (io.WriteCloser, error) {
	s := &sealed{}
	if len(recipients) > 0 {
		encrypted, err := age.Encrypt(to, recipients...)
		if err != nil {
			return nil, err
		}
		to, s.layers = encrypted, []io.Closer{encrypted}
	}
	compressed, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	s.Writer, s.layers = compressed, append([]io.Closer{compressed}, s.layers...)
	return s, nil
}

// Close implements io.Closer.
func (s *sealed) Close() (err error) {
	for _, layer := range s.layers {
		err = errors.Join(err, layer.Close())
	}
	return err
}

// isEncrypted reports whether a file begins as one that age encrypted.
func isEncrypted(begin []byte) bool { return bytes.HasPrefix(begin, []byte(ageHeader)) }
