/** What the migrations make of rows with segments, by name, as the catalogue tells it: see `schemaObjects`. */
export const segmentTriggers: readonly (readonly [name: string, definition: string])[] = [
  ['column fact.number', 'bigint not null'],
  ['column fact.run', 'bigint not null'],
  [
    'function event_follows',
    String.raw`
declare
  own xid8 := pg_current_xact_id();
  batch record;
  head record;
  previous xid8;
  states boolean := false;
begin
  for batch in select run_id, min(coalesce(first_seq, seq)) as first, max(seq) as last,
      sum(1 + seq - coalesce(first_seq, seq)) as events, min(epoch) as lowest, max(epoch) as highest, bool_and(xid = own) as is_own,
      bool_or(seq - first_seq not between 1 and 255 or (first_seq is not null and once_key is not null)) as is_misshapen,
      bool_or(once_key is not null) as states from added group by run_id
  loop
    states := states or batch.states;
    select head_seq, epoch into head from @.run where run.run_id = batch.run_id;
    select xid into previous from @.event where event.run_id = batch.run_id and event.seq = batch.first - 1;
    if head.head_seq is distinct from batch.last or batch.last - batch.first + 1 <> batch.events
      or head.epoch is distinct from batch.lowest or batch.lowest <> batch.highest
      or (batch.first <> 1 and previous is null) or batch.is_misshapen
    then
      raise exception 'tallystick: an event follows the last one of its run without a gap' using errcode = 'TL001';
    end if;
    if not batch.is_own or (previous > own and previous < pg_snapshot_xmax(pg_current_snapshot())) then
      raise exception 'tallystick: an event carries its own transaction, behind that of the event before it' using errcode = 'TL001';
    end if;
  end loop;
  if states then
    insert into @.fact (run, number)
    select run, ((turn * 64 + attempt) * 4096 + ordinal) * 512 + coalesce(start, 511) from (
      select run.pos as run, run_id, said[1] as called, said[2]::int8 as turn, said[3]::int8 as attempt, said[4]::int8 as ordinal,
        said[5]::int8 as start
      from added join @.run using (run_id) cross join lateral regexp_match(once_key, '^tool_(?:started|result) call_([0-9a-f]{32})_(0|[1-9]\d{0,8})_(0|[1-9]\d{0,8})_(0|[1-9]\d{0,8})(?: (0|[1-9]\d{0,8}))?$') as said
      where once_key is not null and type in ('tool_started', 'tool_result') and said is not null
    ) as told
    where called = replace(run_id, '-', '') and turn < 16777216 and attempt < 64 and ordinal < 4096 and coalesce(start, 0) < 511;
  end if;
  return null;
end
`,
  ],
  [
    'function fact_remains',
    `
begin
  if exists (select from gone join @.run on run.pos = gone.run
      left join @.removal on removal.run_id = run.run_id and removal.kind = 'dropped' where removal.pos is null) then
    raise exception 'tallystick: facts are never removed' using errcode = 'TL001';
  end if;
  return null;
end
`,
  ],
  [
    'function segments_stay',
    String.raw`
begin
  if new.pos <> old.pos or new.salt <> decode(repeat('00', 16), 'hex') or substring(new.body from 1 for position('\x0a'::bytea in new.body)) <> substring(old.body from 1 for position('\x0a'::bytea in old.body))
    or not exists (select from @.event join @.removal on removal.run_id = event.run_id
      and removal.from_seq <= event.seq and removal.to_seq >= event.first_seq where event.pos = old.pos and event.type = 'several')
  then
    raise exception 'tallystick: a payload loses segments only when their removal is on record' using errcode = 'TL001';
  end if;
  return new;
end
`,
  ],
  [
    'function payload_remains',
    `
begin
  if exists (select from gone join @.event using (pos) where not exists (select from @.removal where removal.run_id = event.run_id
      and removal.from_seq <= coalesce(event.first_seq, event.seq) and removal.to_seq >= event.seq
      and (removal.kind = 'dropped' or event.type <> 'several' or event.first_seq is null))) then
    raise exception 'tallystick: a payload goes only when its removal is on record' using errcode = 'TL001';
  end if;
  return null;
end
`,
  ],
  ['index fact_key', 'CREATE UNIQUE INDEX fact_key ON @.fact USING btree (run, number)'],
  ['table fact', 'logged'],
  [
    'trigger fact.fact_remains',
    'CREATE TRIGGER fact_remains AFTER DELETE ON @.fact REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION @.fact_remains()',
  ],
  [
    'trigger fact.fact_stays',
    `CREATE TRIGGER fact_stays BEFORE UPDATE OR TRUNCATE ON @.fact FOR EACH STATEMENT EXECUTE FUNCTION @.refuse('facts are never changed')`,
  ],
  [
    'trigger payload.payload_remains',
    'CREATE TRIGGER payload_remains AFTER DELETE ON @.payload REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION @.payload_remains()',
  ],
  [
    'trigger payload.payload_stays',
    `CREATE TRIGGER payload_stays BEFORE TRUNCATE ON @.payload FOR EACH STATEMENT EXECUTE FUNCTION @.refuse('payloads are never changed')`,
  ],
  [
    'trigger payload.segments_stay',
    'CREATE TRIGGER segments_stay BEFORE UPDATE ON @.payload FOR EACH ROW EXECUTE FUNCTION @.segments_stay()',
  ],
]
