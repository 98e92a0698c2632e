import { historyTriggers } from './history-triggers.ts'
import { inboxTriggers } from './inbox-triggers.ts'
import { segmentTriggers } from './segment-triggers.ts'

/**
 * What the migrations make, by name, as the catalogue tells it; `@` replaces the name of the schema. A test holds the
 * two together.
 */
export const schemaObjects: ReadonlyMap<string, string> = new Map([
  ['column content.body', 'bytea not null'],
  ['column content.digest', 'text not null collate C'],
  ['column content_use.digest', 'text not null collate C'],
  ['column content_use.pos', 'bigint not null'],
  ['column event.at', 'bigint not null'],
  ['column event.body_commit', 'bytea not null'],
  ['column event.epoch', 'bigint not null'],
  ['column event.first_seq', 'bigint'],
  ['column event.hash', 'bytea not null'],
  ['column event.once_key', 'text collate C'],
  ['column event.pos', 'bigint not null'],
  ['column event.run_id', 'text not null collate C'],
  ['column event.seq', 'bigint not null'],
  ['column event.tool_call_id', 'text collate C'],
  ['column event.turn', 'bigint not null'],
  ['column event.type', 'text not null collate C'],
  ['column event.v', 'bigint not null'],
  ['column event.xid', 'xid8 not null'],
  ['column inbox.at', 'bigint not null'],
  ['column inbox.body', 'bytea not null'],
  ['column inbox.key', 'text not null collate C'],
  ['column inbox.kind', 'text not null collate C'],
  ['column inbox.pos', 'bigint not null identity'],
  ['column inbox.run_id', 'text not null collate C'],
  ['column inbox.taken_seq', 'bigint'],
  ['column ledger.application', 'text not null collate default'],
  ['column ledger.version', 'bigint not null'],
  ['column payload.body', 'bytea not null'],
  ['column payload.pos', 'bigint not null'],
  ['column payload.salt', 'bytea not null'],
  ['column removal.at', 'bigint not null'],
  ['column removal.by', 'text not null collate C'],
  ['column removal.from_seq', 'bigint not null'],
  ['column removal.hash', 'bytea not null'],
  ['column removal.head_hash', 'text collate C'],
  ['column removal.kept', 'text collate C'],
  ['column removal.kind', 'text not null collate C'],
  ['column removal.pos', 'bigint not null'],
  ['column removal.reason', 'text collate C'],
  ['column removal.run_id', 'text not null collate C'],
  ['column removal.to_seq', 'bigint not null'],
  ['column run.epoch', 'bigint not null'],
  ['column run.head_hash', 'bytea not null'],
  ['column run.head_seq', 'bigint not null'],
  ['column run.pos', 'bigint not null'],
  ['column run.run_id', 'text not null collate C'],
  ['column run.seal', 'bytea not null'],
  ['column run.session_id', 'text collate C'],
  ['column run.session_place', 'bigint'],
  [
    'function content_remains',
    `
begin
  if exists (select from gone join @.content_use using (digest)) then
    raise exception 'tallystick: a content stays as long as an event refers to it' using errcode = 'TL001';
  end if;
  return null;
end
`,
  ],
  [
    'function content_use_remains',
    `
begin
  if exists (select from gone join @.payload using (pos)) then
    raise exception 'tallystick: a use of a content goes only with the payload' using errcode = 'TL001';
  end if;
  return null;
end
`,
  ],
  [
    'function event_remains',
    `
begin
  if exists (select from gone left join @.removal on removal.run_id = gone.run_id and removal.kind = 'dropped' where removal.pos is null) then
    raise exception 'tallystick: events are never removed' using errcode = 'TL001';
  end if;
  return null;
end
`,
  ],
  [
    'function inbox_remains',
    `
begin
  if exists (select from gone left join @.removal on removal.run_id = gone.run_id and removal.kind = 'dropped' where removal.pos is null) then
    raise exception 'tallystick: inbox keys are known for ever' using errcode = 'TL001';
  end if;
  return null;
end
`,
  ],
  [
    'function refuse',
    `
begin
  raise exception 'tallystick: %', tg_argv[0] using errcode = 'TL001';
end
`,
  ],
  [
    'function run_remains',
    `
begin
  if exists (select from gone left join @.removal on removal.run_id = gone.run_id and removal.kind = 'dropped' where removal.pos is null) then
    raise exception 'tallystick: runs are never removed' using errcode = 'TL001';
  end if;
  return null;
end
`,
  ],
  [
    'function run_returns',
    `
begin
  if exists (select from @.removal where removal.run_id = new.run_id and removal.kind = 'dropped') then
    raise exception 'tallystick: a run that was dropped does not come back' using errcode = 'TL001';
  end if;
  return new;
end
`,
  ],
  ['index content_pkey', 'CREATE UNIQUE INDEX content_pkey ON @.content USING btree (digest)'],
  ['index content_use_digest', 'CREATE INDEX content_use_digest ON @.content_use USING btree (digest)'],
  ['index content_use_key', 'CREATE UNIQUE INDEX content_use_key ON @.content_use USING btree (pos, digest)'],
  ['index event_at', 'CREATE INDEX event_at ON @.event USING btree (at)'],
  [
    'index event_once',
    'CREATE UNIQUE INDEX event_once ON @.event USING btree (run_id, once_key) WHERE (once_key IS NOT NULL)',
  ],
  ['index event_pkey', 'CREATE UNIQUE INDEX event_pkey ON @.event USING btree (pos)'],
  ['index event_seq', 'CREATE UNIQUE INDEX event_seq ON @.event USING btree (run_id, seq)'],
  ['index event_tail', 'CREATE UNIQUE INDEX event_tail ON @.event USING btree (xid, pos)'],
  [
    'index event_tool_call',
    'CREATE INDEX event_tool_call ON @.event USING btree (tool_call_id, seq) WHERE (tool_call_id IS NOT NULL)',
  ],
  ['index event_turn', 'CREATE INDEX event_turn ON @.event USING btree (run_id, turn, seq)'],
  ['index event_type', 'CREATE INDEX event_type ON @.event USING btree (run_id, type, seq)'],
  ['index inbox_key', 'CREATE UNIQUE INDEX inbox_key ON @.inbox USING btree (run_id, key)'],
  [
    'index inbox_open',
    'CREATE INDEX inbox_open ON @.inbox USING btree (run_id, pos) WHERE (taken_seq IS NULL)',
  ],
  ['index inbox_pkey', 'CREATE UNIQUE INDEX inbox_pkey ON @.inbox USING btree (pos)'],
  ['index ledger_pkey', 'CREATE UNIQUE INDEX ledger_pkey ON @.ledger USING btree (application)'],
  ['index payload_pkey', 'CREATE UNIQUE INDEX payload_pkey ON @.payload USING btree (pos)'],
  ['index removal_pkey', 'CREATE UNIQUE INDEX removal_pkey ON @.removal USING btree (pos)'],
  ['index removal_run', 'CREATE INDEX removal_run ON @.removal USING btree (run_id, to_seq)'],
  ['index run_pkey', 'CREATE UNIQUE INDEX run_pkey ON @.run USING btree (run_id)'],
  ['index run_pos', 'CREATE UNIQUE INDEX run_pos ON @.run USING btree (pos)'],
  [
    'index run_session',
    'CREATE UNIQUE INDEX run_session ON @.run USING btree (session_id, session_place) WHERE (session_id IS NOT NULL)',
  ],
  ['table content', 'logged'],
  ['table content_use', 'logged'],
  ['table event', 'logged'],
  ['table inbox', 'logged'],
  ['table ledger', 'logged'],
  ['table payload', 'logged'],
  ['table removal', 'logged'],
  ['table run', 'logged'],
  [
    'trigger content.content_remains',
    'CREATE TRIGGER content_remains AFTER DELETE ON @.content REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION @.content_remains()',
  ],
  [
    'trigger content.content_stays',
    `CREATE TRIGGER content_stays BEFORE UPDATE OR TRUNCATE ON @.content FOR EACH STATEMENT EXECUTE FUNCTION @.refuse('contents are never changed')`,
  ],
  [
    'trigger content_use.content_use_remains',
    'CREATE TRIGGER content_use_remains AFTER DELETE ON @.content_use REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION @.content_use_remains()',
  ],
  [
    'trigger content_use.content_use_stays',
    `CREATE TRIGGER content_use_stays BEFORE UPDATE OR TRUNCATE ON @.content_use FOR EACH STATEMENT EXECUTE FUNCTION @.refuse('uses of contents are never changed')`,
  ],
  [
    'trigger event.event_follows',
    'CREATE TRIGGER event_follows AFTER INSERT ON @.event REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION @.event_follows()',
  ],
  [
    'trigger event.event_remains',
    'CREATE TRIGGER event_remains AFTER DELETE ON @.event REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION @.event_remains()',
  ],
  [
    'trigger event.event_stays',
    `CREATE TRIGGER event_stays BEFORE UPDATE OR TRUNCATE ON @.event FOR EACH STATEMENT EXECUTE FUNCTION @.refuse('events stay as they were written')`,
  ],
  [
    'trigger inbox.inbox_is_taken_once',
    `CREATE TRIGGER inbox_is_taken_once BEFORE UPDATE ON @.inbox FOR EACH ROW WHEN (((new.taken_seq IS NULL) OR (new.pos <> old.pos) OR (new.run_id <> old.run_id) OR (new.key <> old.key) OR (new.kind <> old.kind) OR (new.at <> old.at) OR ((new.body <> old.body) AND (length(new.body) > 0)) OR ((old.taken_seq IS NOT NULL) AND (new.taken_seq <> old.taken_seq)))) EXECUTE FUNCTION @.refuse('an inbox entry is taken once, and never changed')`,
  ],
  [
    'trigger inbox.inbox_remains',
    'CREATE TRIGGER inbox_remains AFTER DELETE ON @.inbox REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION @.inbox_remains()',
  ],
  [
    'trigger inbox.inbox_stays',
    `CREATE TRIGGER inbox_stays BEFORE TRUNCATE ON @.inbox FOR EACH STATEMENT EXECUTE FUNCTION @.refuse('inbox keys are known for ever')`,
  ],
  [
    'trigger removal.removal_stays',
    `CREATE TRIGGER removal_stays BEFORE DELETE OR UPDATE OR TRUNCATE ON @.removal FOR EACH STATEMENT EXECUTE FUNCTION @.refuse('removals stay as they were written')`,
  ],
  [
    'trigger run.run_advances',
    `CREATE TRIGGER run_advances BEFORE UPDATE ON @.run FOR EACH ROW WHEN (((new.run_id <> old.run_id) OR (new.pos <> old.pos) OR (new.head_seq < old.head_seq) OR (new.epoch < old.epoch) OR ((new.head_seq = old.head_seq) AND (new.head_hash <> old.head_hash)) OR (new.session_id IS DISTINCT FROM old.session_id) OR (new.session_place IS DISTINCT FROM old.session_place))) EXECUTE FUNCTION @.refuse('the head and the epoch of a run never fall, and its place in a session stays')`,
  ],
  [
    'trigger run.run_remains',
    'CREATE TRIGGER run_remains AFTER DELETE ON @.run REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION @.run_remains()',
  ],
  [
    'trigger run.run_returns',
    'CREATE TRIGGER run_returns BEFORE INSERT ON @.run FOR EACH ROW EXECUTE FUNCTION @.run_returns()',
  ],
  [
    'trigger run.run_stays',
    `CREATE TRIGGER run_stays BEFORE TRUNCATE ON @.run FOR EACH STATEMENT EXECUTE FUNCTION @.refuse('runs are never removed')`,
  ],
  ...historyTriggers,
  ...inboxTriggers,
  ...segmentTriggers,
])
