package embedded

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// renewCertificate removes kcp's serving certificate and its key if two thirds of its life are over,
// or if they are no pair that can be read: the hub may have been killed between the two. kcp makes
// both for a year where there is neither, does not start with one of them, and serves with an
// expired certificate for ever. It writes the new one to admin.kubeconfig at its start.
func renewCertificate(dir string, now time.Time) error {
	certificate, key := filepath.Join(dir, "apiserver.crt"), filepath.Join(dir, "apiserver.key")
	pair, err := tls.LoadX509KeyPair(certificate, key)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("read kcp's certificate: %w", err)
	case err == nil && now.Before(pair.Leaf.NotBefore.Add(pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)/3*2)):
		return nil
	}
	for _, name := range []string{certificate, key} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove kcp's old certificate: %w", err)
		}
	}
	return nil
}
