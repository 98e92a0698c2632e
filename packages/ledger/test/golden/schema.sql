CREATE VIEW each_event as
with recursive place (n) as (select 0 union all select n + 1 from place where n < 255),
said as (
  select event.*, payload.body, event.type = 'several' and event.first_seq is not null as is_several
  from event left join payload using (pos)
),
segment as (
  select run_id, coalesce(first_seq, seq) as first, seq as last, epoch, turn, tool_call_id, type, v, at,
    case when substr(body, 1, 1) in (x'7b', x'5b') then cast(body as text) end as body
  from said where not is_several
  union all
  select run_id,
    seq + 1 - (select sum(coalesce(case type when 'object' then value ->> '$.events' end, 1)) from json_each(said.body, '$.heads') where key >= head.key),
    seq - (select coalesce(sum(coalesce(case type when 'object' then value ->> '$.events' end, 1)), 0) from json_each(said.body, '$.heads') where key > head.key), epoch, turn,
    'call_' || replace(run_id, '-', '') || '_'
      || case head.type when 'object' then head.value ->> '$.call' else nullif(substr(head.value, instr(head.value || ' ', ' ') + 1), '') end,
    case head.type when 'object' then head.value ->> '$.type' else substr(head.value, 1, instr(head.value || ' ', ' ') - 1) end,
    coalesce(case head.type when 'object' then head.value ->> '$.v' end, 1),
    at - coalesce(case head.type when 'object' then head.value ->> '$.earlier' end, 0),
    case when json_type(said.body, '$.segments[' || head.key || ']') = 'object'
      then json_extract(said.body, '$.segments[' || head.key || ']') end
  from (select run_id, seq, epoch, turn, at, cast(body as text) as body from said where is_several) as said,
    json_each(said.body, '$.heads') as head
)
select run_id, first + n as seq, epoch, turn, tool_call_id, type, v,
  at - case when last > first then coalesce(json_extract(body, '$.earlier[' || n || ']'), 0) else 0 end as at,
  case when last > first
    then json_set(json_extract(body, '$.same'), '$.text', body -> ('$.text[' || n || ']'))
    else body end as body
from segment join place on n <= last - first;
CREATE TRIGGER content_once before insert on content for each row when exists (select 1 from content where digest = new.digest) begin select raise(abort, 'tallystick: contents are never changed'); end;
CREATE TRIGGER content_remains before delete on content for each row when exists (select 1 from content_use where digest = old.digest) begin select raise(abort, 'tallystick: a content stays as long as an event refers to it'); end;
CREATE TRIGGER content_stays before update on content for each row begin select raise(abort, 'tallystick: contents are never changed'); end;
CREATE TRIGGER content_use_remains before delete on content_use for each row when exists (select 1 from payload where pos = old.pos) begin select raise(abort, 'tallystick: a use of a content goes only with the payload'); end;
CREATE TRIGGER content_use_stays before update on content_use for each row begin select raise(abort, 'tallystick: uses of contents are never changed'); end;
CREATE TRIGGER event_follows before insert on event for each row when coalesce(new.first_seq, new.seq) <> 1 + coalesce((select max(seq) from event where run_id = new.run_id), 0) or new.seq - new.first_seq not between 1 and 255 or (new.first_seq is not null and new.once_key is not null) or exists (select 1 from event where pos = new.pos) begin select raise(abort, 'tallystick: an event follows the last one of its run without a gap'); end;
CREATE TRIGGER event_remains before delete on event for each row when not exists (select 1 from removal where run_id = old.run_id and kind = 'dropped') begin select raise(abort, 'tallystick: events are never removed'); end;
CREATE TRIGGER event_states after insert on event for each row when new.once_key is not null and new.type in ('tool_started', 'tool_result') begin
  insert into fact (run, number) 
  select run, ((turn * 64 + attempt) * 4096 + ordinal) * 512 + coalesce(start, 511) as number from (
    select run, json_extract(said, '$[0]') as turn, json_extract(said, '$[1]') as attempt, json_extract(said, '$[2]') as ordinal,
      json_extract(said, '$[3]') as start, json_array_length(said) as told,
      coalesce(json_type(said, '$[3]'), 'integer') as written
    from (select '[' || replace(replace(substr(new.once_key, instr(new.once_key, ' ') + 39), '_', ','), ' ', ',') || ']' as said, first.pos - (first.seq - coalesce(first.first_seq, first.seq)) as run from (
        select pos, seq, first_seq from event where run_id = new.run_id order by seq limit 1) as first where true
        and substr(new.once_key, instr(new.once_key, ' ') + 1, 38) = 'call_' || replace(new.run_id, '-', '') || '_'
        and json_valid('[' || replace(replace(substr(new.once_key, instr(new.once_key, ' ') + 39), '_', ','), ' ', ',') || ']'))
  ) where told in (3, 4) and turn < 16777216 and attempt < 64 and ordinal < 4096
    and written = 'integer' and coalesce(start, 0) between 0 and 510;
end;
CREATE TRIGGER event_stays before update on event for each row begin select raise(abort, 'tallystick: events are never changed'); end;
CREATE TRIGGER fact_remains before delete on fact for each row when exists (select 1 from run where run.pos = old.run and not exists (
       select 1 from removal where removal.run_id = run.run_id and removal.kind = 'dropped')) begin select raise(abort, 'tallystick: facts are never removed'); end;
CREATE TRIGGER fact_stays before update on fact for each row begin select raise(abort, 'tallystick: facts are never changed'); end;
CREATE TRIGGER history_follows before insert on history for each row when exists (select 1 from history where name = new.name) or (new.before is not null and not exists (select 1 from history where name = new.before)) begin select raise(abort, 'tallystick: a piece of history stands once, behind one that is there'); end;
CREATE TRIGGER history_remains before delete on history for each row when exists (select 1 from history_use where name = old.name) or exists (select 1 from history where before = old.name) begin select raise(abort, 'tallystick: a history stays as long as a run begins with it'); end;
CREATE TRIGGER history_stays before update on history for each row begin select raise(abort, 'tallystick: histories are never changed'); end;
CREATE TRIGGER history_use_follows before insert on history_use for each row when not exists (select 1 from history where name = new.name) begin select raise(abort, 'tallystick: a run begins with a history that is there'); end;
CREATE TRIGGER history_use_remains before delete on history_use for each row when exists (select 1 from payload where pos = old.pos) begin select raise(abort, 'tallystick: a use of a history goes only with the payload'); end;
CREATE TRIGGER history_use_stays before update on history_use for each row begin select raise(abort, 'tallystick: uses of histories are never changed'); end;
CREATE TRIGGER inbox_is_open before insert on inbox for each row when exists (select 1 from event where run_id = new.run_id and once_key = 'run_finished') begin select raise(abort, 'tallystick: a run that has ended takes no command'); end;
CREATE TRIGGER inbox_is_taken_once before update on inbox for each row when new.taken_seq is null or new.pos <> old.pos or new.run_id <> old.run_id or new.key <> old.key or new.kind <> old.kind or new.at <> old.at or (new.body <> old.body and length(new.body) > 0) or (old.taken_seq is not null and new.taken_seq <> old.taken_seq) begin select raise(abort, 'tallystick: an inbox entry is taken once, and never changed'); end;
CREATE TRIGGER inbox_once before insert on inbox for each row when exists (select 1 from inbox where pos = new.pos or (run_id = new.run_id and key = new.key)) begin select raise(abort, 'tallystick: inbox entries are never replaced'); end;
CREATE TRIGGER inbox_remains before delete on inbox for each row when not exists (select 1 from removal where run_id = old.run_id and kind = 'dropped') begin select raise(abort, 'tallystick: inbox keys are known for ever'); end;
CREATE TRIGGER payload_once before insert on payload for each row when exists (select 1 from payload where pos = new.pos) begin select raise(abort, 'tallystick: payloads are never changed'); end;
CREATE TRIGGER payload_remains before delete on payload for each row when exists (select 1 from event where event.pos = old.pos and not exists (select 1 from removal
       where removal.run_id = event.run_id and removal.from_seq <= event.seq and removal.to_seq >= event.seq and removal.from_seq <= coalesce(event.first_seq, event.seq)
         and (removal.kind = 'dropped' or not (event.type = 'several' and event.first_seq is not null)))) begin select raise(abort, 'tallystick: a payload goes only when its removal is on record'); end;
CREATE TRIGGER payload_stays before update on payload for each row when new.pos <> old.pos or new.salt <> zeroblob(16)
       or substr(new.body, 1, instr(new.body, x'0a')) <> substr(old.body, 1, instr(old.body, x'0a')) or not exists (
       select 1 from event join removal on removal.run_id = event.run_id and removal.from_seq <= event.seq and removal.to_seq >= event.first_seq
       where event.pos = old.pos and event.type = 'several' and event.first_seq is not null) begin select raise(abort, 'tallystick: a payload loses segments only when their removal is on record'); end;
CREATE TRIGGER removal_follows before insert on removal for each row when new.pos <> 1 + coalesce((select max(pos) from removal), 0) begin select raise(abort, 'tallystick: a removal follows the last one'); end;
CREATE TRIGGER removal_remains before delete on removal for each row begin select raise(abort, 'tallystick: removals are never removed'); end;
CREATE TRIGGER removal_stays before update on removal for each row begin select raise(abort, 'tallystick: removals are never changed'); end;
CREATE TRIGGER run_advances before update on run for each row when new.run_id <> old.run_id or new.pos <> old.pos or new.head_seq < old.head_seq or new.epoch < old.epoch or (new.head_seq = old.head_seq and new.head_hash <> old.head_hash) or new.session_id is not old.session_id or new.session_place is not old.session_place begin select raise(abort, 'tallystick: the head and the epoch of a run never fall, and its place in a session stays'); end;
CREATE TRIGGER run_ends_read before insert on event for each row when new.once_key = 'run_finished' and exists (select 1 from inbox where run_id = new.run_id and taken_seq is null) begin select raise(abort, 'tallystick: a run ends with its inbox read'); end;
CREATE TRIGGER run_once before insert on run for each row when exists (select 1 from run where run_id = new.run_id or pos = new.pos or (session_id = new.session_id and session_place = new.session_place)) begin select raise(abort, 'tallystick: runs are never replaced'); end;
CREATE TRIGGER run_remains before delete on run for each row when not exists (select 1 from removal where run_id = old.run_id and kind = 'dropped') begin select raise(abort, 'tallystick: runs are never removed'); end;
CREATE TRIGGER run_returns before insert on run for each row when exists (select 1 from removal where run_id = new.run_id and kind = 'dropped') begin select raise(abort, 'tallystick: a run that was dropped does not come back'); end;
CREATE TABLE "barrier" ("id" integer primary key check (id = 1), "count" integer not null) strict;
CREATE TABLE "content" ("digest" text not null primary key, "body" blob not null) strict;
CREATE TABLE "content_use" ("pos" integer not null, "digest" text not null, constraint "content_use_key" primary key ("pos", "digest")) strict, without rowid;
CREATE TABLE "event" ("pos" integer primary key autoincrement, "run_id" text not null, "seq" integer not null, "epoch" integer not null, "type" text not null, "v" integer not null, "turn" integer not null, "tool_call_id" text, "at" integer not null, "once_key" text, "body_commit" blob not null, "hash" blob not null, "first_seq" integer, constraint "event_seq" unique ("run_id", "seq")) strict;
CREATE TABLE "fact" ("run" integer not null, "number" integer not null, constraint "fact_key" primary key ("run", "number")) strict, without rowid;
CREATE TABLE "history" ("name" text not null primary key, "before" text, "digest" text not null, "body" blob not null) strict;
CREATE TABLE "history_use" ("pos" integer primary key, "name" text not null) strict;
CREATE TABLE "inbox" ("pos" integer primary key autoincrement, "run_id" text not null, "key" text not null, "kind" text not null, "body" blob not null, "at" integer not null, "taken_seq" integer, constraint "inbox_key" unique ("run_id", "key")) strict;
CREATE TABLE "lease" ("run_id" text not null primary key, "holder" text not null, "epoch" integer not null, "until" integer not null) strict, without rowid;
CREATE TABLE "payload" ("pos" integer primary key, "salt" blob not null, "body" blob not null) strict;
CREATE TABLE "projection" ("name" text not null primary key, "version" text not null, "revision" integer not null, "cursor" text not null) strict, without rowid;
CREATE TABLE "removal" ("pos" integer primary key autoincrement, "run_id" text not null, "from_seq" integer not null, "to_seq" integer not null, "kind" text not null, "at" integer not null, "by" text not null, "reason" text, "kept" text, "head_hash" text, "hash" blob not null) strict;
CREATE TABLE "run" ("run_id" text not null primary key, "pos" integer not null unique, "head_seq" integer not null, "head_hash" blob not null, "epoch" integer not null, "seal" blob not null, "session_id" text, "session_place" integer) strict, without rowid;
CREATE TABLE "run_agent" ("agent" text not null, "pos" integer not null, constraint "run_agent_key" primary key ("agent", "pos")) strict, without rowid;
CREATE TABLE "run_summary" ("pos" integer primary key, "run_id" text not null unique, "seq" integer not null, "head_hash" blob not null, "status" text not null, "session_id" text, "started_at" integer not null, "last_at" integer not null, "shares" text not null, "summary" text, "notes" text) strict;
CREATE TABLE "schema_migration" ("name" varchar(255) not null primary key, "timestamp" varchar(255) not null);
CREATE TABLE "schema_migration_lock" ("id" varchar(255) not null primary key, "is_locked" integer default 0 not null);
CREATE TABLE "session_summary" ("session_id" text not null primary key, "runs" integer not null, "started_at" integer not null, "last_at" integer not null, "turns" integer not null, "tool_calls" integer not null, "unpriced" integer not null, "cost_nano" integer not null, "input_tokens" integer not null, "output_tokens" integer not null, "cache_read_tokens" integer not null, "cache_write_tokens" integer not null, "reasoning_tokens" integer not null, "cache_write_long_tokens" integer not null, "web_searches" integer not null, "cache_write_long_told" integer not null, "web_searches_told" integer not null, "input_told" integer not null, "output_told" integer not null, "cache_read_told" integer not null, "cache_write_told" integer not null, "reasoning_told" integer not null) strict;
CREATE TABLE "snapshot" ("run_id" text not null, "reducer" text not null, "seq" integer not null, "state" blob not null, "head_hash" blob not null, "seal" blob not null, constraint "snapshot_key" primary key ("run_id", "reducer", "seq")) strict;
CREATE TABLE "spending" ("hour" integer not null, "agent" text not null, "provider" text not null, "api" text not null, "model_id" text not null, "calls" integer not null, "unpriced" integer not null, "cost_nano" integer not null, "input_tokens" integer not null, "output_tokens" integer not null, "cache_read_tokens" integer not null, "cache_write_tokens" integer not null, "reasoning_tokens" integer not null, "cache_write_long_tokens" integer not null, "web_searches" integer not null, "cache_write_long_told" integer not null, "web_searches_told" integer not null, "input_told" integer not null, "output_told" integer not null, "cache_read_told" integer not null, "cache_write_told" integer not null, "reasoning_told" integer not null, constraint "spending_key" primary key ("hour", "agent", "provider", "api", "model_id")) strict, without rowid;
CREATE INDEX "content_use_digest" on "content_use" ("digest");
CREATE INDEX "event_at" on "event" ("at");
CREATE UNIQUE INDEX "event_once" on "event" ("run_id", "once_key") where "once_key" is not null;
CREATE INDEX event_rare_type on event (run_id, type, seq) where type not in ('model_call_started', 'assistant_started', 'assistant_text_delta', 'assistant_reasoning_delta', 'tool_input_delta', 'tool_request_ready', 'usage_updated', 'assistant_message_finished', 'tool_requests_collected', 'tool_started', 'tool_progress', 'tool_result', 'tool_results_injected', 'several');
CREATE INDEX "event_tool_call" on "event" ("tool_call_id", "seq") where "tool_call_id" is not null;
CREATE INDEX "history_before" on "history" ("before") where "before" is not null;
CREATE INDEX "history_use_name" on "history_use" ("name");
CREATE INDEX "inbox_open" on "inbox" ("run_id", "pos") where "taken_seq" is null;
CREATE INDEX "removal_run" on "removal" ("run_id", "to_seq");
CREATE INDEX "run_agent_pos" on "run_agent" ("pos");
CREATE UNIQUE INDEX "run_session" on "run" ("session_id", "session_place") where "session_id" is not null;
CREATE INDEX "run_summary_last" on "run_summary" ("last_at");
CREATE INDEX "run_summary_session" on "run_summary" ("session_id", "pos") where "session_id" is not null;
CREATE INDEX "run_summary_stale" on "run_summary" ("pos") where "summary" is null;
CREATE INDEX run_summary_status on run_summary (status, pos, last_at);
CREATE INDEX "session_summary_last" on "session_summary" ("last_at", "cost_nano");
