-- +goose Up
CREATE INDEX IF NOT EXISTS audit_events_all_actor ON audit_events (actor, time, replica, log, seq);
CREATE INDEX IF NOT EXISTS audit_events_all_object ON audit_events (object, time, replica, log, seq);
CREATE INDEX IF NOT EXISTS audit_events_all_workspace ON audit_events (workspace, time, replica, log, seq);

-- +goose Down
DROP INDEX audit_events_all_actor;
DROP INDEX audit_events_all_object;
DROP INDEX audit_events_all_workspace;
