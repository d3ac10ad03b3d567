package embedded

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
)

const authenticationFile = "authentication.json"

// writeAuthentication writes the structured authentication configuration for kcp, and returns
// its path. kcp follows changes of the file, so it is written whole or not at all.
func (s *Server) writeAuthentication() (string, error) {
	path := filepath.Join(s.options.Dir, authenticationFile)
	raw, err := json.Marshal(apiserverv1.AuthenticationConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "AuthenticationConfiguration"},
		JWT:      s.options.JWT,
	})
	if err != nil {
		return "", fmt.Errorf("write kcp's authentication configuration: %w", err)
	}
	next := path + ".next"
	if err := os.WriteFile(next, raw, 0o600); err != nil {
		return "", fmt.Errorf("write kcp's authentication configuration: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return "", fmt.Errorf("write kcp's authentication configuration: %w", err)
	}
	return path, nil
}
