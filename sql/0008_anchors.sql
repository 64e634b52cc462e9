create table anchors (
  hour timestamptz primary key
    constraint anchor_hour_is_a_whole_one check (hour = date_trunc('hour', hour, 'UTC')),
  size bigint not null
    constraint anchor_counts_its_forecasts check (size >= 0),
  root text not null
    constraint anchor_root_is_sha256 check (root ~ '^[0-9a-f]{64}$'),
  made_at timestamptz not null default clock_timestamp(),
  constraint anchor_is_made_after_its_hour check (made_at >= hour + interval '1 hour')
);
comment on table anchors is
  'the RFC 6962 root over the hashes of all forecasts issued in a UTC hour, ordered by house/game/market as bytes and then by seq; every hour since the first forecast has one';
comment on column anchors.size is 'forecasts of the hour; an hour with none has the root of the empty tree, so that nothing can be slipped into it later';

create index forecasts_of_hour on forecasts (issue_hour, table_id);
