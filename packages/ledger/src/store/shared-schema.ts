/* What the schemas of SQLite and Postgres have in common beside the names of tables and columns. */

/** Types that come in every turn: their events are found with their run, and all others by an index of their own. */
const typesOfEveryTurn: readonly string[] = [
  ...['model_call_started', 'assistant_started', 'assistant_text_delta', 'assistant_reasoning_delta'],
  ...['tool_input_delta', 'tool_request_ready', 'usage_updated', 'assistant_message_finished'],
  ...['tool_requests_collected', 'tool_started', 'tool_progress', 'tool_result', 'tool_results_injected'],
]

/** The condition of the index by type. A query that is to use the index has to state the same. */
export const rareType: string = `type not in (${typesOfEveryTurn.map((type) => `'${type}'`).join(', ')})`

/** Whether the index by type has the events of a type. */
export function isRareType(type: string): boolean {
  return !typesOfEveryTurn.includes(type)
}

/** The columns of sums, each a whole number of a type of the database. */
export function amountsOf(type: string): string {
  return [
    ...['unpriced', 'cost_nano', 'input_tokens', 'output_tokens', 'cache_read_tokens', 'cache_write_tokens'],
    ...[
      'reasoning_tokens',
      'cache_write_long_tokens',
      'web_searches',
      'cache_write_long_told',
      'web_searches_told',
    ],
    ...['input_told', 'output_told', 'cache_read_told', 'cache_write_told', 'reasoning_told'],
  ]
    .map((name) => `${name} ${type} not null`)
    .join(', ')
}
