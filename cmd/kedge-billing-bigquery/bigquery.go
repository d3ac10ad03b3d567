package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
)

// tableName is the name of a table of BigQuery.
type tableName struct{ project, dataset, table string }

// parseTable reads PROJECT.DATASET.TABLE. The project may have the name of a domain before a colon.
func parseTable(text string) (tableName, error) {
	found := regexp.MustCompile(`^((?:[a-z0-9.-]+:)?[a-z0-9-]+)\.(\w+)\.([\w-]+)$`).FindStringSubmatch(text)
	if found == nil {
		return tableName{}, errors.New("must be PROJECT.DATASET.TABLE")
	}
	return tableName{found[1], found[2], found[3]}, nil
}

// create is a statement of BigQuery that makes a table that does.
func (t tableName) create() string {
	return fmt.Sprintf("CREATE TABLE `%s.%s.%s` (event_id STRING NOT NULL, starts TIMESTAMP NOT NULL, ends TIMESTAMP NOT NULL, "+
		"org_uuid STRING, org_name STRING, workspace_uuid STRING, workspace_name STRING, path STRING, cost_center STRING, labels JSON, phase STRING, "+
		"objects INT64, bytes INT64, requests INT64, writes INT64, people INT64, bots INT64) PARTITION BY DATE(starts)", t.project, t.dataset, t.table)
}

// bigQuery inserts rows with insertAll of the REST API.
type bigQuery struct {
	client   *http.Client
	endpoint string
	table    tableName
}

type insertRequest struct {
	Kind string      `json:"kind"`
	Rows []insertRow `json:"rows"`
}

type insertRow struct {
	InsertID string `json:"insertId"`
	JSON     row    `json:"json"`
}

// insertAnswer says, with 200, which rows were refused. None is inserted then.
type insertAnswer struct {
	InsertErrors []struct {
		Index  int           `json:"index"`
		Errors []insertError `json:"errors"`
	} `json:"insertErrors"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

type insertError struct {
	Reason   string `json:"reason"`
	Location string `json:"location"`
	Message  string `json:"message"`
}

// maxAnswer is the number of bytes of an answer that are read.
const maxAnswer = 1 << 20

// insert implements sink.
func (b *bigQuery) insert(ctx context.Context, rows []row) error {
	request := insertRequest{Kind: "bigquery#tableDataInsertAllRequest"}
	for _, r := range rows {
		request.Rows = append(request.Rows, insertRow{r.EventID, r})
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	url := fmt.Sprintf("%s/bigquery/v2/projects/%s/datasets/%s/tables/%s/insertAll",
		strings.TrimSuffix(b.endpoint, "/"), b.table.project, b.table.dataset, b.table.table)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answered, err := b.client.Do(r)
	if err != nil {
		return fmt.Errorf("insert into BigQuery: %w", err)
	}
	defer func() { _ = answered.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(answered.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the answer of BigQuery: %w", err)
	}
	var answer insertAnswer
	if err := json.Unmarshal(raw, &answer); err != nil && answered.StatusCode == http.StatusOK {
		return fmt.Errorf("the answer of BigQuery is no JSON: %w", err)
	}
	switch {
	case answered.StatusCode == http.StatusNotFound:
		return fmt.Errorf("BigQuery has no such table (%s); this one would do: %s", answer.Error.Message, b.table.create())
	case answered.StatusCode == http.StatusForbidden:
		return fmt.Errorf("BigQuery refuses the insert (%s); give the account bigquery.tables.updateData on the table", answer.Error.Message)
	case answered.StatusCode != http.StatusOK:
		return fmt.Errorf("BigQuery answers %s: %s", answered.Status, answer.Error.Message)
	}
	for _, refused := range answer.InsertErrors {
		for _, e := range refused.Errors {
			// The others were stopped because of this one.
			if e.Reason != "stopped" && refused.Index >= 0 && refused.Index < len(rows) {
				return fmt.Errorf("BigQuery refuses the row %s (%s: %s %s), and none was inserted; this table would do: %s",
					rows[refused.Index].EventID, e.Reason, e.Location, e.Message, b.table.create())
			}
		}
	}
	if len(answer.InsertErrors) > 0 {
		return errors.New("BigQuery inserted no row, and does not say why")
	}
	return nil
}
