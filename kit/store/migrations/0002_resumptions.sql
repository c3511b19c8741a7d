CREATE TABLE resumptions (
  started_utc VARCHAR NOT NULL, kit_version VARCHAR NOT NULL, first_launch INTEGER NOT NULL, host JSON NOT NULL
);
