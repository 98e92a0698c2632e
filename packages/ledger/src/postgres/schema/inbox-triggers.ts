/** What the migrations make of the end of an inbox, by name, as the catalogue tells it: see `schemaObjects`. */
export const inboxTriggers: readonly (readonly [name: string, definition: string])[] = [
  [
    'function inbox_is_open',
    `
begin
  perform from @.run where run.run_id = new.run_id for share;
  if exists (select from @.event where event.run_id = new.run_id and event.once_key = 'run_finished') then
    raise exception 'tallystick: a run that has ended takes no command' using errcode = 'TL003';
  end if;
  return new;
end
`,
  ],
  [
    'function run_ends_read',
    `
begin
  if exists (select from @.inbox where inbox.run_id = new.run_id and inbox.taken_seq is null) then
    raise exception 'tallystick: a run ends with its inbox read' using errcode = 'TL002';
  end if;
  return null;
end
`,
  ],
  [
    'trigger event.run_ends_read',
    `CREATE TRIGGER run_ends_read AFTER INSERT ON @.event FOR EACH ROW WHEN ((new.once_key = 'run_finished'::text)) EXECUTE FUNCTION @.run_ends_read()`,
  ],
  [
    'trigger inbox.inbox_is_open',
    'CREATE TRIGGER inbox_is_open BEFORE INSERT ON @.inbox FOR EACH ROW EXECUTE FUNCTION @.inbox_is_open()',
  ],
]
