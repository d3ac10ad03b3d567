-- +goose Up
CREATE TABLE IF NOT EXISTS billing_workspaces (
    id          text NOT NULL PRIMARY KEY,
    workspace   text NOT NULL,
    name        text NOT NULL,
    org         text NOT NULL,
    org_name    text NOT NULL,
    path        text NOT NULL,
    cost_center text NOT NULL,
    labels      text NOT NULL,
    phase       text NOT NULL,
    valid_from  text NOT NULL,
    valid_to    text
);
CREATE UNIQUE INDEX IF NOT EXISTS billing_workspaces_valid_from ON billing_workspaces (workspace, valid_from);
CREATE UNIQUE INDEX IF NOT EXISTS billing_workspaces_open ON billing_workspaces (workspace) WHERE valid_to IS NULL;
CREATE INDEX IF NOT EXISTS billing_workspaces_org ON billing_workspaces (org, valid_from);

-- +goose Down
DROP TABLE billing_workspaces;
