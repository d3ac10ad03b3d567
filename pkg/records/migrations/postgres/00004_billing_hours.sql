-- +goose Up
CREATE OR REPLACE VIEW billing_hours AS
SELECT h.hour, b.org AS org_uuid, b.org_name, b.workspace AS workspace_uuid, b.name AS workspace_name, b.path,
    b.cost_center, b.labels::jsonb AS labels, b.phase,
    COALESCE(u.objects, 0) AS objects, COALESCE(u.bytes, 0) AS bytes,
    COALESCE(u.reads + u.writes + u.watches, 0) AS requests, COALESCE(u.writes, 0) AS writes,
    COALESCE(u.people, 0) AS people, COALESCE(u.bots, 0) AS bots
FROM (
    SELECT w.*, lead(valid_from) OVER (PARTITION BY workspace ORDER BY valid_from) AS next_from
    FROM billing_workspaces w
) b
CROSS JOIN LATERAL generate_series(
    date_trunc('hour', b.valid_from, 'UTC'), COALESCE(b.valid_to, now()) - interval '1 microsecond', interval '1 hour') AS h (hour)
LEFT JOIN usage_hours u ON u.hour = h.hour AND u.org = b.org AND u.workspace = b.workspace
-- Of the rows of an hour the last one counts.
WHERE b.next_from IS NULL OR b.next_from >= h.hour + interval '1 hour';

-- +goose Down
DROP VIEW billing_hours;
