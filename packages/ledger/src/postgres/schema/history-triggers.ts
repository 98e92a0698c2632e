/** What the migrations make of histories, by name, as the catalogue tells it: see `schemaObjects`. */
export const historyTriggers: readonly (readonly [name: string, definition: string])[] = [
  ['column history.before', 'text collate C'],
  ['column history.body', 'bytea not null'],
  ['column history.digest', 'text not null collate C'],
  ['column history.name', 'text not null collate C'],
  ['column history_use.name', 'text not null collate C'],
  ['column history_use.pos', 'bigint not null'],
  [
    'function history_use_remains',
    `
begin
  if exists (select from gone join @.payload using (pos)) then
    raise exception 'tallystick: a use of a history goes only with the payload' using errcode = 'TL001';
  end if;
  return null;
end
`,
  ],
  ['index history_before', 'CREATE INDEX history_before ON @.history USING btree (before)'],
  ['index history_pkey', 'CREATE UNIQUE INDEX history_pkey ON @.history USING btree (name)'],
  ['index history_use_name', 'CREATE INDEX history_use_name ON @.history_use USING btree (name)'],
  ['index history_use_pkey', 'CREATE UNIQUE INDEX history_use_pkey ON @.history_use USING btree (pos)'],
  ['reference history.history_before_there', 'FOREIGN KEY (before) REFERENCES @.history(name)'],
  ['reference history_use.history_use_name_there', 'FOREIGN KEY (name) REFERENCES @.history(name)'],
  ['table history', 'logged'],
  ['table history_use', 'logged'],
  [
    'trigger history.history_stays',
    `CREATE TRIGGER history_stays BEFORE UPDATE OR TRUNCATE ON @.history FOR EACH STATEMENT EXECUTE FUNCTION @.refuse('histories are never changed')`,
  ],
  [
    'trigger history_use.history_use_remains',
    'CREATE TRIGGER history_use_remains AFTER DELETE ON @.history_use REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION @.history_use_remains()',
  ],
  [
    'trigger history_use.history_use_stays',
    `CREATE TRIGGER history_use_stays BEFORE UPDATE OR TRUNCATE ON @.history_use FOR EACH STATEMENT EXECUTE FUNCTION @.refuse('uses of histories are never changed')`,
  ],
]
