package framework

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// People are the users of the token file.
func People() []string {
	return []string{"alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "victor", "wendy"}
}

// Token is the static token of a person.
func Token(name string) string { return "token-of-" + name }

// WriteTokens writes the token file for People and others.
func WriteTokens(path string, others ...string) error {
	var b strings.Builder
	for _, name := range append(People(), others...) {
		fmt.Fprintf(&b, "%s,%s,uid-%s,\"dev\"\n", Token(name), name, name)
	}
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

// KCP is a real kcp in a process of its own.
type KCP struct {
	*Process
	Dir        string
	Kubeconfig string
	TokenFile  string
	// authentication is the file that names the issuers of people's tokens.
	authentication string
	// flags are further flags of kcpserver.
	flags []string
	// shared is nil in a copy of a KCP, which has other addresses.
	shared *shared
}

// StartKCP starts a kcp with its data in dir and waits until it serves. It accepts the ID
// tokens of the issuers as hubs do with the default options.
func StartKCP(dir string, issuers ...*Dex) (*KCP, error) { return startKCP(dir, issuers) }

// StartKCPWithoutLookup is StartKCP for a kcp that accepts tokens of ServiceAccounts and Secrets
// that were deleted.
func StartKCPWithoutLookup(dir string) (*KCP, error) {
	return startKCP(dir, nil, "--skip-account-lookup")
}

func startKCP(dir string, issuers []*Dex, flags ...string) (*KCP, error) {
	k := &KCP{
		flags: flags, shared: &shared{trees: map[*Dex]*tree{}},
		Dir: dir, Kubeconfig: filepath.Join(dir, "admin.kubeconfig"), TokenFile: filepath.Join(dir, "tokens.csv"),
		authentication: filepath.Join(dir, "issuers.json"),
	}
	if err := WriteTokens(k.TokenFile); err != nil {
		return nil, err
	}
	if err := writeIssuers(k.authentication, issuers); err != nil {
		return nil, err
	}
	if err := k.Start(); err != nil {
		return nil, err
	}
	return k, nil
}

// Start starts a kcp that has ended, with the same data and ports, and waits until it
// serves. Its admin gets a new token.
func (k *KCP) Start() error {
	program, err := Bin("kcpserver")
	if err != nil {
		return err
	}
	ready := filepath.Join(k.Dir, "ready")
	_ = os.Remove(ready)
	if k.Process, err = StartProcess(program, append([]string{"--data-dir", k.Dir, "--token-file", k.TokenFile, "--authentication-config", k.authentication}, k.flags...)...); err != nil {
		return err
	}
	deadline := time.After(Long)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(ready); err == nil {
			return nil
		}
		select {
		case <-k.Ended():
			return fmt.Errorf("kcp ended while it started:\n%s", k.Output)
		case <-deadline:
			k.Kill()
			return errors.New("kcp did not become ready:\n" + k.Output.String())
		case <-tick.C:
		}
	}
}

// writeIssuers writes what an operator gives to kcp beside a hub with the same issuers.
func writeIssuers(file string, issuers []*Dex) error {
	jwt := []map[string]any{}
	for _, dex := range issuers {
		ca, err := os.ReadFile(dex.CAFile)
		if err != nil {
			return err
		}
		jwt = append(jwt, map[string]any{
			"issuer": map[string]any{
				"url": dex.Issuer, "certificateAuthority": string(ca),
				"audiences": []string{HubClient, OtherClient}, "audienceMatchPolicy": "MatchAny",
			},
			"claimMappings": map[string]any{"username": map[string]string{"claim": "sub", "prefix": "kedge:"}},
		})
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": jwt})
	if err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o600)
}
