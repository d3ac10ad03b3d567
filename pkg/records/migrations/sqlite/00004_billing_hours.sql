-- +goose Up
CREATE VIEW IF NOT EXISTS billing_hours AS
WITH RECURSIVE b AS (
    SELECT w.*, lead(valid_from) OVER (PARTITION BY workspace ORDER BY valid_from) AS next_from,
        COALESCE(valid_to, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) AS until
    FROM billing_workspaces w
), h AS (
    SELECT id, until, substr(valid_from, 1, 13) || ':00:00.000000Z' AS hour FROM b WHERE valid_from < until
    UNION ALL
    SELECT id, until, strftime('%Y-%m-%dT%H:00:00.000000Z', hour, '+1 hour') FROM h
    WHERE strftime('%Y-%m-%dT%H:00:00.000000Z', hour, '+1 hour') < until
)
SELECT h.hour, b.org AS org_uuid, b.org_name, b.workspace AS workspace_uuid, b.name AS workspace_name, b.path,
    b.cost_center, b.labels, b.phase,
    COALESCE(u.objects, 0) AS objects, COALESCE(u.bytes, 0) AS bytes,
    COALESCE(u.reads + u.writes + u.watches, 0) AS requests, COALESCE(u.writes, 0) AS writes,
    COALESCE(u.people, 0) AS people, COALESCE(u.bots, 0) AS bots
FROM h JOIN b ON b.id = h.id
LEFT JOIN usage_hours u ON u.hour = h.hour AND u.org = b.org AND u.workspace = b.workspace
-- Of the rows of an hour the last one counts.
WHERE b.next_from IS NULL OR b.next_from >= strftime('%Y-%m-%dT%H:00:00.000000Z', h.hour, '+1 hour');

-- +goose Down
DROP VIEW billing_hours;
