-- +goose Up
-- What all members of an Organization see of its audit log, which is little: a member cannot make the database read the rest.
CREATE INDEX IF NOT EXISTS audit_events_rescue ON audit_events (org, time, replica, log, seq)
    WHERE NOT outsider AND action = 'POST /api/admin/orgs/{org}/admins';

-- +goose Down
DROP INDEX audit_events_rescue;
