-- +goose Up
CREATE TABLE IF NOT EXISTS access_intervals (
    id             text NOT NULL PRIMARY KEY,
    kind           text NOT NULL,
    org            text NOT NULL,
    workspace      text NOT NULL,
    subject        text NOT NULL,
    token          text NOT NULL,
    name           text NOT NULL,
    role           text NOT NULL,
    sudo           boolean NOT NULL,
    manager        boolean NOT NULL,
    roles          text NOT NULL,
    sources        text NOT NULL,
    default_access text NOT NULL,
    expires_at     text NOT NULL,
    valid_from     text NOT NULL,
    valid_to       text,
    unseen         boolean NOT NULL DEFAULT false
);
CREATE UNIQUE INDEX IF NOT EXISTS access_intervals_valid_from ON access_intervals (org, kind, workspace, subject, token, valid_from);
CREATE UNIQUE INDEX IF NOT EXISTS access_intervals_open ON access_intervals (org, kind, workspace, subject, token) WHERE valid_to IS NULL;
CREATE INDEX IF NOT EXISTS access_intervals_valid_to ON access_intervals (valid_to) WHERE valid_to IS NOT NULL;
CREATE TABLE IF NOT EXISTS access_looks (
    id         text NOT NULL PRIMARY KEY,
    valid_from text NOT NULL,
    valid_to   text NOT NULL
);
CREATE INDEX IF NOT EXISTS access_looks_valid_from ON access_looks (valid_from);

-- +goose Down
DROP TABLE access_looks;
DROP TABLE access_intervals;
