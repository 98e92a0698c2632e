import { sql, type Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * Drops the indexes that every event of a turn had to be put into at a place of its own. Turns follow each other within a
 * run, so that the events of a turn are found by halving the run. Types that come in every turn are read with the run; all
 * others, also those that are not there yet, keep an index.
 */
export const fewerIndexesMigration: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await database.schema.dropIndex('event_turn').execute()
    await database.schema.dropIndex('event_type').execute()
    const rare = `create index event_rare_type on event (run_id, type, seq) where ${rareType}`
    await sql.raw(rare).execute(database)
  },
}

const typesOfEveryTurn: readonly string[] = [
  ...['model_call_started', 'assistant_started', 'assistant_text_delta', 'assistant_reasoning_delta'],
  ...['tool_input_delta', 'tool_request_ready', 'usage_updated', 'assistant_message_finished'],
  ...['tool_requests_collected', 'tool_started', 'tool_progress', 'tool_result', 'tool_results_injected'],
]

const rareType = `type not in (${typesOfEveryTurn.map((type) => `'${type}'`).join(', ')})`
