package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/server/options"
)

// ErrNotLooked says that the audit log could not be read.
var ErrNotLooked = errors.New("the audit log cannot be read")

// errFindings says that chains are broken. The findings were printed.
var errFindings = errors.New("the audit log was changed, or a part of it is missing")

// Audit walks the chains of the audit log in files, or in those of the configuration and in its database if none are
// named, and prints what is wrong. heads are ends of chains that were recorded elsewhere. inKCP returns those that kcp has,
// if it can be asked: they count where no files are named.
func Audit(
	ctx context.Context, c options.Config, files, heads []string,
	inKCP func(context.Context, options.Config) (heads []audit.Head, read bool, err error), out io.Writer,
) error {
	recorded := make([]audit.Head, 0, len(heads))
	for _, text := range heads {
		h, err := audit.ParseHead(text)
		if err != nil {
			return fmt.Errorf("--head: %w: %w", err, ErrNotLooked)
		}
		recorded = append(recorded, h)
	}
	var findings []audit.Finding
	var known []audit.Head
	var unread error
	where := ""
	if len(files) == 0 {
		stored, found, err := auditTable(ctx, c)
		if err != nil {
			return fmt.Errorf("--database: %w: %w", err, ErrNotLooked)
		}
		if stored != nil {
			where, findings = " and the table", found
		}
		// The database knew these ends before the files are walked.
		known = stored
		// So did kcp.
		ends, read, err := inKCP(ctx, c)
		if known = append(known, ends...); read {
			where += ", beside the ends that kcp has"
		}
		unread = err
		for _, path := range []string{c.AuditLogFile, c.Audit().WritesFile()} {
			found, err := audit.Files(path)
			if err != nil {
				return fmt.Errorf("%w: %w", err, ErrNotLooked)
			}
			files = append(files, found...)
		}
		if len(files) == 0 && stored == nil {
			return fmt.Errorf("there is no %s; name the files, or give the flags of the hub: %w", c.AuditLogFile, ErrNotLooked)
		}
	}
	v := audit.NewVerifier()
	for _, f := range files {
		if err := v.File(f); err != nil {
			return fmt.Errorf("%w: %w", err, ErrNotLooked)
		}
	}
	// The database has the chains of other replicas, too.
	known = slices.DeleteFunc(known, func(h audit.Head) bool { return !v.Has(h.Replica) })
	findings = append(findings, v.Done(append(known, recorded...)...)...)
	for _, f := range findings {
		fmt.Fprintln(out, f)
	}
	if len(findings) > 0 {
		return errFindings
	}
	if unread != nil {
		return fmt.Errorf("%w: the files%s are whole; %w", ErrNotLooked, where, unread)
	}
	fmt.Fprintf(out, "%d files%s: the chains are whole\n", len(files), where)
	return nil
}

// auditTable walks the chains in the database, and returns how far they go. They are nil without one.
func auditTable(ctx context.Context, c options.Config) (heads []audit.Head, findings []audit.Finding, err error) {
	if c.Records.Database == records.None || !records.Exists(c.Records.Records()) {
		return nil, nil, nil
	}
	db, err := records.Open(c.Records.Records())
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = db.Close() }()
	v := audit.NewVerifier()
	if heads, err = db.Verify(ctx, v); err != nil {
		return nil, nil, err
	}
	return append([]audit.Head{}, heads...), v.Done(heads...), nil
}
