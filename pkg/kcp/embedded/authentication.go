package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kcp-dev/kcp/pkg/server"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"

	"github.com/faroshq/kedge-hub/pkg/durable"
)

const authenticationFile = "authentication.json"

// acceptTokens has kcp accept static tokens. The aggregator is the first of kcp's servers: its
// authentication is that of all requests.
func (s *Server) acceptTokens(config *server.Config) {
	if s.options.Tokens == nil {
		return
	}
	authn := &config.MiniAggregator.GenericConfig.Authentication
	tokens := authenticator.WrapAudienceAgnosticToken(authn.APIAudiences, s.options.Tokens)
	authn.Authenticator = union.New(
		group.NewAuthenticatedGroupAdder(union.New(bearertoken.New(tokens), websocket.NewProtocolAuthenticator(tokens))),
		authn.Authenticator,
	)
}

// SetIssuers replaces the issuers of people's tokens. kcp reads its file within a minute.
func (s *Server) SetIssuers(jwt []apiserverv1.JWTAuthenticator) error {
	return s.writeAuthentication(jwt)
}

// keepAuthentication writes the issuers of people's tokens, or removes the file of an earlier start: Standalone learns from
// it whether there are any.
func (s *Server) keepAuthentication() error {
	if len(s.options.JWT) > 0 {
		return s.writeAuthentication(s.options.JWT)
	}
	if err := os.Remove(filepath.Join(s.options.Dir, authenticationFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove kcp's old authentication configuration: %w", err)
	}
	return nil
}

// authentication is the structured authentication configuration of kcp.
func authentication(jwt []apiserverv1.JWTAuthenticator) ([]byte, error) {
	raw, err := json.Marshal(apiserverv1.AuthenticationConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "AuthenticationConfiguration"},
		JWT:      jwt,
	})
	if err != nil {
		return nil, fmt.Errorf("write kcp's authentication configuration: %w", err)
	}
	return raw, nil
}

// writeAuthentication writes the file with the authentication configuration for kcp. kcp follows
// changes of the file, so it is written whole or not at all.
func (s *Server) writeAuthentication(jwt []apiserverv1.JWTAuthenticator) error {
	path := filepath.Join(s.options.Dir, authenticationFile)
	raw, err := authentication(jwt)
	if err != nil {
		return err
	}
	if err := durable.Replace(path, raw, 0o600); err != nil {
		return fmt.Errorf("write kcp's authentication configuration: %w", err)
	}
	return nil
}
