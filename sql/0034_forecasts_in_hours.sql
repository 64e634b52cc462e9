-- One index for both what an hour holds and what an hour of a table holds; a look-up by its seq is not led astray by it.
-- Those that it replaces go with the next migration, so that readers are kept waiting by no index that is being made.
create index forecasts_in_hours on forecasts (issue_hour, table_id, model, feature);
