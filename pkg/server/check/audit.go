package check

import (
	"errors"
	"fmt"
	"io"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/server/options"
)

// ErrNotLooked says that the audit log could not be read.
var ErrNotLooked = errors.New("the audit log cannot be read")

// errFindings says that chains are broken. The findings were printed.
var errFindings = errors.New("the audit log was changed, or a part of it is missing")

// Audit walks the chains of the audit log in files, or in those of the configuration if none are named, and
// prints what is wrong. heads are ends of chains that were recorded elsewhere.
func Audit(c options.Config, files, heads []string, out io.Writer) error {
	recorded := make([]audit.Head, 0, len(heads))
	for _, text := range heads {
		h, err := audit.ParseHead(text)
		if err != nil {
			return fmt.Errorf("--head: %w: %w", err, ErrNotLooked)
		}
		recorded = append(recorded, h)
	}
	if len(files) == 0 {
		for _, path := range []string{c.AuditLogFile, c.Audit().WritesFile()} {
			found, err := audit.Files(path)
			if err != nil {
				return fmt.Errorf("%w: %w", err, ErrNotLooked)
			}
			files = append(files, found...)
		}
		if len(files) == 0 {
			return fmt.Errorf("there is no %s; name the files, or give the flags of the hub: %w", c.AuditLogFile, ErrNotLooked)
		}
	}
	v := audit.NewVerifier()
	for _, f := range files {
		if err := v.File(f); err != nil {
			return fmt.Errorf("%w: %w", err, ErrNotLooked)
		}
	}
	findings := v.Done(recorded...)
	for _, f := range findings {
		fmt.Fprintln(out, f)
	}
	if len(findings) > 0 {
		return errFindings
	}
	fmt.Fprintf(out, "%d files: the chains are whole\n", len(files))
	return nil
}
