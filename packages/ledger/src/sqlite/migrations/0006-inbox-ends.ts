import { sql, type Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Every inbox entry has an end: a run ends only with its inbox read, and takes no entry once it has ended. */
export const inboxEndsMigration: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    for (const trigger of triggers) await sql.raw(trigger).execute(database)
  },
}

function refusal(name: string, on: string, when: string, why: string): string {
  return `create trigger ${name} before ${on} for each row when ${when} begin select raise(abort, 'tallystick: ${why}'); end`
}

const triggers: readonly string[] = [
  refusal(
    'run_ends_read',
    'insert on event',
    `new.once_key = 'run_finished' ` +
      'and exists (select 1 from inbox where run_id = new.run_id and taken_seq is null)',
    'a run ends with its inbox read',
  ),
  refusal(
    'inbox_is_open',
    'insert on inbox',
    `exists (select 1 from event where run_id = new.run_id and once_key = 'run_finished')`,
    'a run that has ended takes no command',
  ),
]
