-- +goose Up
CREATE TABLE IF NOT EXISTS audit_events (
    replica    text        NOT NULL,
    log        text        NOT NULL,
    seq        bigint      NOT NULL,
    time       text        NOT NULL,
    id         text        NOT NULL,
    stage      text        NOT NULL,
    action     text        NOT NULL,
    actor_kind text        NOT NULL,
    actor      text        NOT NULL,
    org        text        NOT NULL,
    workspace  text        NOT NULL,
    object     text        NOT NULL,
    outsider   integer NOT NULL,
    code       integer     NOT NULL,
    facts      text,
    event      text        NOT NULL,
    prev       text        NOT NULL,
    hash       text        NOT NULL,
    PRIMARY KEY (replica, log, seq)
);
CREATE INDEX IF NOT EXISTS audit_events_org ON audit_events (org, time, replica, log, seq);
CREATE INDEX IF NOT EXISTS audit_events_actor ON audit_events (org, actor, time, replica, log, seq);
CREATE INDEX IF NOT EXISTS audit_events_object ON audit_events (org, object, time, replica, log, seq);
CREATE INDEX IF NOT EXISTS audit_events_workspace ON audit_events (org, workspace, time, replica, log, seq);
CREATE INDEX IF NOT EXISTS audit_events_time ON audit_events (time, replica, log, seq);
CREATE TABLE IF NOT EXISTS audit_heads (
    replica text        NOT NULL,
    log     text        NOT NULL,
    seq     bigint      NOT NULL,
    hash    text        NOT NULL,
    as_of   text        NOT NULL,
    PRIMARY KEY (replica, log)
);
CREATE TABLE IF NOT EXISTS audit_anchors (
    replica text        NOT NULL,
    log     text        NOT NULL,
    seq     bigint      NOT NULL,
    hash    text        NOT NULL,
    PRIMARY KEY (replica, log)
);

-- +goose Down
DROP TABLE audit_events;
DROP TABLE audit_heads;
DROP TABLE audit_anchors;
