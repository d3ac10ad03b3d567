-- +goose Up
CREATE TABLE IF NOT EXISTS billing_pushes (
    target    text NOT NULL PRIMARY KEY,
    pushed_to timestamptz NOT NULL
);

-- +goose Down
DROP TABLE billing_pushes;
