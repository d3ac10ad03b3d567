package check

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/faroshq/kedge-hub/pkg/backup"
	"github.com/faroshq/kedge-hub/pkg/kcp/connect"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/server/options"
	"github.com/faroshq/kedge-hub/pkg/version"
)

// Standalone returns the command lines of an etcd and a kcp that serve the data of an embedded kcp. tokenFile is the file
// of static tokens, or empty. It is a parameter, so that this package does not link a kcp.
type Standalone func(o connect.EmbeddedOptions, tokenFile string) (etcd, kcp []string, err error)

// Promote prints how the data folder of a hub with an embedded kcp is served by an etcd, a kcp and a hub in processes of
// their own. given are the arguments of the hub that the caller has given, without its data folder. The output is a
// shell script with comments.
func Promote(c options.Config, standalone Standalone, given []string, out io.Writer) error {
	if err := promotable(c); err != nil {
		return err
	}
	dir := c.KCP().Embedded.Dir
	etcd, kcp, err := standalone(c.KCP().Embedded, c.TokenFile)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("--data-dir: %w; run this as the user of the hub", err)
	}
	if err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	external := []string{"--kcp-kubeconfig=" + filepath.Join(dir, "admin.kubeconfig")}
	if c.Records.Records().Local() {
		// A hub with a file of SQLite is the only one.
		external = append(external, "--leader-elect=false")
	}
	hub := append([]string{"kedge-hub", "--data-dir=" + c.DataDir}, append(given, external...)...)
	if c.Records.Database == records.DefaultURL(c.DataDir) {
		hub = append(hub, "--database="+c.Records.Database)
	}
	if c.Policy.EnforcementWindow == options.New().Policy.EnforcementWindow {
		// This kcp is one process.
		hub = append(hub, "--policy-enforcement-window=0s")
	}
	note := "kcp reads the static tokens at its start alone: restart it after a change of the file."
	if c.TokenFile == "" {
		note = "kcp accepts no static tokens, because no --token-file was given."
	}
	fmt.Fprintf(out, `# An etcd, a kcp and a hub in processes of their own serve %[1]s.
# Run them on this machine, as the user of the hub: they use the files of the folder, and loopback.

# 1. Keep the hub of this folder stopped: nothing else may work with it.

# 2. etcd %[2]s, https://github.com/etcd-io/etcd/releases/tag/%[2]s
%[3]s
# 3. When etcd serves: kcp %[4]s, https://github.com/kcp-dev/kcp/releases/tag/%[4]s
#    %[5]s
%[6]s%[7]s
# 4. Repeat this until it ends with 0: kcp is ready.
%[8]s
# 5. The hub, with its variables and its file of before.
%[9]s
# To go back, stop the hub, then kcp, then etcd, and start the hub as before.
`, c.DataDir, version.Etcd(), script(etcd), version.KCP(), note, certificateNote(dir), script(kcp),
		script(append([]string{"kedge-hub", "check", "--data-dir=" + c.DataDir}, external...)), script(hub))
	return nil
}

// promotable returns an error if the data folder is none of a hub with an embedded kcp, or a restore of it is not over.
func promotable(c options.Config) error {
	if !c.Embedded {
		return errors.New("--kcp-kubeconfig: this hub has an external kcp; give the flags of a hub with an embedded one")
	}
	switch info, err := os.Stat(c.DataDir); {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir():
		return fmt.Errorf("--data-dir: %s is no folder; name that of the hub", c.DataDir)
	case err != nil:
		return fmt.Errorf("--data-dir: %w", err)
	}
	if err := backup.Whole(c.DataDir); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	if exists(filepath.Join(c.DataDir, backup.RestoreDir)) {
		return fmt.Errorf("--data-dir: %s was restored from a backup, and its hub has not ended yet what ended after that; "+
			"start the hub until it is ready, and stop it", c.DataDir)
	}
	kcp := c.KCP().Embedded.Dir
	if exists(kcp) {
		return nil
	}
	for _, name := range []string{"tls", "audit", "run"} {
		if exists(filepath.Join(c.DataDir, name)) {
			return fmt.Errorf("--data-dir: %s is the folder of a hub with an external kcp: there is no %s", c.DataDir, kcp)
		}
	}
	return fmt.Errorf("--data-dir: %s is not the folder of a hub: there is no %s; name that of the hub", c.DataDir, kcp)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// certificateNote says until when the certificate of kcp is valid, which nobody renews.
func certificateNote(dir string) string {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "apiserver.crt"), filepath.Join(dir, "apiserver.key"))
	if err != nil {
		// kcp makes them at its start, or says what is wrong with them.
		return ""
	}
	const note = `#    Its certificate is valid until %s. kcp makes another one at a start for which you removed
#    apiserver.crt and apiserver.key in %s.
`
	return fmt.Sprintf(note, pair.Leaf.NotAfter.Format(time.RFC3339), dir)
}

// script returns a command line for a shell, with a flag on each line.
func script(words []string) string {
	var line strings.Builder
	for i, word := range words {
		switch {
		case i == 0:
		case strings.HasPrefix(word, "-"):
			line.WriteString(" \\\n  ")
		default:
			line.WriteString(" ")
		}
		line.WriteString(quote(word))
	}
	return line.String() + "\n"
}

// quote returns a word for a shell.
func quote(word string) string {
	if regexp.MustCompile(`^[a-zA-Z0-9_@%+=:,./-]+$`).MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
