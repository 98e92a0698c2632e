import { createRuntime, defineAgent, type Ledger } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'

/** What holds a table's columns to what was written. */
export type Guard =
  /** The chain: each column is tried in the tests of verifying. */
  | 'chain'
  /** Its digest, and the rows that refer to it. */
  | 'digest'
  /** Its own digest and the events that it is about: tried in the tests of removals. */
  | 'removal'
  /** Nothing: it can be dropped at any time, and is made anew. */
  | 'derived'
  /** Nothing: what was taken from it is on record as events, and what waits in it is not part of the chain. */
  | 'inbox'

/** Every table of a ledger, in either store. One that is not here has to be given a place. */
export const guards: Readonly<Record<string, Guard>> = {
  run: 'chain',
  event: 'chain',
  history: 'digest',
  removal: 'removal',
  snapshot: 'derived',
  projection: 'derived',
  run_summary: 'derived',
  run_term: 'derived',
  inbox: 'inbox',
}

/** Tables that are held to digests. */
export const digestedTables: readonly string[] = Object.keys(guards).filter(
  (table) => guards[table] === 'digest',
)

/** A run whose tool answers much, and one that begins with what it said. */
export async function recordLargeRun(ledger: Ledger): Promise<void> {
  const dump = testTool({ name: 'dump', run: () => 'a long answer. '.repeat(4_000) })
  const done = { text: 'Done.' }
  const model = scriptedModel([{ toolCalls: [{ name: 'dump', input: {} }] }, done, done])
  const agent = defineAgent({ name: 'large', instructions: 'Act.', model, tools: [dump] })
  const session = createRuntime({ ledger, agents: [agent] }).session('s')
  for (const input of ['Go.', 'Again.']) await (await session.run(agent, input)).result
}

/** Changes a column of one row, in the SQL of both stores, by the type of its values. */
export function changeOf(table: string, column: string, type: string, bytes: string): string {
  const value = /int/i.test(type)
    ? `${column} + 1000`
    : /text/i.test(type)
      ? `coalesce(${column}, '') || 'x'`
      : bytes
  return `update ${table} set ${column} = ${value}`
}
