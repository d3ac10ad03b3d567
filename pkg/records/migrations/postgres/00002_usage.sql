-- +goose Up
CREATE TABLE IF NOT EXISTS usage_requests (
    org            text   NOT NULL,
    workspace      text   NOT NULL,
    starts         timestamptz NOT NULL,
    process        text   NOT NULL,
    reads          bigint NOT NULL,
    writes         bigint NOT NULL,
    watches        bigint NOT NULL,
    bytes_out      bigint NOT NULL,
    stream_seconds double precision NOT NULL,
    PRIMARY KEY (org, starts, workspace, process)
);
CREATE INDEX IF NOT EXISTS usage_requests_starts ON usage_requests (starts);
CREATE TABLE IF NOT EXISTS usage_callers (
    org       text NOT NULL,
    workspace text NOT NULL,
    starts    timestamptz NOT NULL,
    kind      text NOT NULL,
    caller    text NOT NULL,
    PRIMARY KEY (org, starts, workspace, kind, caller)
);
CREATE INDEX IF NOT EXISTS usage_callers_starts ON usage_callers (starts);
CREATE TABLE IF NOT EXISTS usage_stored (
    org       text   NOT NULL,
    workspace text   NOT NULL,
    starts    timestamptz NOT NULL,
    objects   bigint NOT NULL,
    bytes     bigint NOT NULL,
    PRIMARY KEY (org, starts, workspace)
);
CREATE INDEX IF NOT EXISTS usage_stored_starts ON usage_stored (starts);
CREATE TABLE IF NOT EXISTS usage_orgs (
    org        text   NOT NULL,
    starts     timestamptz NOT NULL,
    members    bigint NOT NULL,
    workspaces bigint NOT NULL,
    entries    bigint NOT NULL,
    PRIMARY KEY (org, starts)
);
CREATE INDEX IF NOT EXISTS usage_orgs_starts ON usage_orgs (starts);
CREATE TABLE IF NOT EXISTS usage_replicas (
    replica text NOT NULL PRIMARY KEY,
    as_of   timestamptz NOT NULL
);
CREATE OR REPLACE VIEW usage_hours AS
SELECT hour, org, workspace, max(objects) AS objects, max(bytes) AS bytes,
    sum(reads)::bigint AS reads, sum(writes)::bigint AS writes, sum(watches)::bigint AS watches, sum(bytes_out)::bigint AS bytes_out,
    count(DISTINCT person) AS people, count(DISTINCT bot) AS bots, sum(stream_seconds) AS stream_seconds
FROM (
    SELECT date_trunc('hour', starts, 'UTC') AS hour, org, workspace, 0::bigint AS objects, 0::bigint AS bytes,
        reads, writes, watches, bytes_out, stream_seconds, NULL::text AS person, NULL::text AS bot
    FROM usage_requests
    UNION ALL
    SELECT date_trunc('hour', starts, 'UTC'), org, workspace, objects, bytes, 0, 0, 0, 0, 0, NULL, NULL
    FROM usage_stored
    UNION ALL
    SELECT date_trunc('hour', starts, 'UTC'), org, workspace, 0, 0, 0, 0, 0, 0, 0,
        CASE kind WHEN 'person' THEN caller END, CASE kind WHEN 'bot' THEN caller END
    FROM usage_callers
) u
GROUP BY hour, org, workspace;

-- +goose Down
DROP VIEW usage_hours;
DROP TABLE usage_requests;
DROP TABLE usage_callers;
DROP TABLE usage_stored;
DROP TABLE usage_orgs;
DROP TABLE usage_replicas;
