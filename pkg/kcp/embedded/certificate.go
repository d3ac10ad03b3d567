package embedded

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// renewCertificate removes kcp's serving certificate and its key if two thirds of its life are over,
// or if it cannot be read. kcp makes one for a year where there is none, and serves with an expired
// one for ever. It writes the new one to admin.kubeconfig at its start.
func renewCertificate(dir string, now time.Time) error {
	file := filepath.Join(dir, "apiserver.crt")
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read kcp's certificate: %w", err)
	}
	if block, _ := pem.Decode(raw); block != nil {
		c, err := x509.ParseCertificate(block.Bytes)
		if err == nil && now.Before(c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore)/3*2)) {
			return nil
		}
	}
	for _, name := range []string{file, filepath.Join(dir, "apiserver.key")} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove kcp's old certificate: %w", err)
		}
	}
	return nil
}
