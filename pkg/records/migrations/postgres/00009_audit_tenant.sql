-- +goose Up
-- A tenant's events without those of outsiders, who can send as many as they like. What is there already is indexed, and
-- an older hub goes on; while an index is built, the table takes no events, and they wait in the files.
CREATE INDEX IF NOT EXISTS audit_events_tenant ON audit_events (org, time, replica, log, seq) WHERE NOT outsider;
CREATE INDEX IF NOT EXISTS audit_events_tenant_actor ON audit_events (org, actor, time, replica, log, seq) WHERE NOT outsider;
CREATE INDEX IF NOT EXISTS audit_events_tenant_object ON audit_events (org, object, time, replica, log, seq) WHERE NOT outsider;
CREATE INDEX IF NOT EXISTS audit_events_tenant_workspace ON audit_events (org, workspace, time, replica, log, seq) WHERE NOT outsider;

-- +goose Down
DROP INDEX audit_events_tenant;
DROP INDEX audit_events_tenant_actor;
DROP INDEX audit_events_tenant_object;
DROP INDEX audit_events_tenant_workspace;
