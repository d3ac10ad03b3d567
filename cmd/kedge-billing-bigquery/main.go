// Command kedge-billing-bigquery copies the billing table that kedge-hub fills (--billing-table) to BigQuery.
//
// It reads the table in the order in which rows came, and inserts them with BigQuery's insertAll, with the ID of a row as
// insert ID. A file has the ID of the last row that BigQuery took: after a restart the program goes on behind it. If it
// ended before it could write that file, it inserts these rows again, and BigQuery drops them by their insert IDs if the
// restart comes within a minute; deduplicate by event_id where that is too little. One process may run at a time.
//
// It is a module of its own, so that the hub has no client of Google.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

// scope is what the program may do at Google: insert rows.
const scope = "https://www.googleapis.com/auth/bigquery.insertdata"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "kedge-billing-bigquery:", err)
		os.Exit(1)
	}
}

type options struct {
	database, passwordFile, from, to, credentials, endpoint, position string
	every                                                             time.Duration
}

func run(ctx context.Context, args []string) error {
	var o options
	fs := flag.NewFlagSet("kedge-billing-bigquery", flag.ContinueOnError)
	fs.StringVar(&o.database, "database", os.Getenv("KEDGE_BILLING_DATABASE"), "URL of the PostgreSQL with the table: postgres://USER@HOST/NAME. Default: the environment variable KEDGE_BILLING_DATABASE.")
	fs.StringVar(&o.passwordFile, "database-password-file", "", "File with the password of --database. It is read for every connection.")
	fs.StringVar(&o.from, "billing-table", "", "The [SCHEMA.]TABLE that the hub fills.")
	fs.StringVar(&o.to, "bigquery-table", "", "The table of BigQuery, PROJECT.DATASET.TABLE.")
	fs.StringVar(&o.position, "position-file", "", "File with the ID of the last row that BigQuery took. It is made at the first one.")
	fs.StringVar(&o.credentials, "credentials-file", "", "Google's credentials: a key of a service account, or a configuration of workload identity federation. Without it, those of the environment.")
	fs.StringVar(&o.endpoint, "bigquery-endpoint", "https://bigquery.googleapis.com", "URL of BigQuery's REST API.")
	fs.DurationVar(&o.every, "every", time.Minute, "Time between two looks for new rows.")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if err := o.validate(); err != nil {
		return err
	}
	table, err := parseTable(o.to)
	if err != nil {
		return fmt.Errorf("--bigquery-table: %w", err)
	}
	config, err := pgx.ParseConfig(o.database)
	if err != nil {
		// The error has the URL, which can have a password.
		return errors.New("--database: is no URL of a PostgreSQL")
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "kedge-billing-bigquery"
	}
	db := stdlib.OpenDB(*config, stdlib.OptionBeforeConnect(func(_ context.Context, c *pgx.ConnConfig) error {
		if o.passwordFile == "" {
			return nil
		}
		raw, err := os.ReadFile(o.passwordFile)
		c.Password = strings.TrimRight(string(raw), "\r\n")
		return err
	}))
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	tokens, err := o.tokens(ctx)
	if err != nil {
		return fmt.Errorf("--credentials-file: %w", err)
	}
	client := oauth2.NewClient(ctx, tokens)
	client.Timeout = requestTimeout
	f := &follower{
		db: db, from: pgx.Identifier(strings.Split(o.from, ".")).Sanitize(), position: o.position, every: o.every,
		sink: &bigQuery{client: client, endpoint: o.endpoint, table: table}, log: slog.New(slog.NewJSONHandler(os.Stderr, nil)),
	}
	return f.run(ctx)
}

func (o options) validate() error {
	for _, f := range []struct{ name, value string }{
		{"database", o.database}, {"billing-table", o.from}, {"bigquery-table", o.to}, {"position-file", o.position},
	} {
		if f.value == "" {
			return fmt.Errorf("--%s is required; see --help", f.name)
		}
	}
	if strings.Count(o.from, ".") > 1 {
		return errors.New("--billing-table: must be TABLE or SCHEMA.TABLE")
	}
	if o.every < time.Second {
		return fmt.Errorf("--every: %v is less than a second", o.every)
	}
	return nil
}

// tokens returns what the requests to BigQuery authenticate with.
func (o options) tokens(ctx context.Context) (oauth2.TokenSource, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Timeout: requestTimeout})
	if o.credentials == "" {
		found, err := google.FindDefaultCredentials(ctx, scope)
		if err != nil {
			return nil, err
		}
		return found.TokenSource, nil
	}
	raw, err := os.ReadFile(o.credentials)
	if err != nil {
		return nil, err
	}
	// The operator wrote the file: every kind of credentials in it is meant.
	found, err := google.CredentialsFromJSON(ctx, raw, scope) //nolint:staticcheck // the file is the operator's own
	if err != nil {
		return nil, err
	}
	return found.TokenSource, nil
}
