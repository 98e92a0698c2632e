import { createRuntime, defineAgent, type Ledger } from '@tallystick/core'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'
import { applyRetention, readLedgerStats, redact } from '@tallystick/ledger'

export interface Column {
  readonly name: string
  readonly type: 'number' | 'text' | 'bytes' | 'other'
  /** Whether it names its row, alone or with others. */
  readonly isKey: boolean
}

/** A store that an attacker changes, one statement at a time. */
export interface DamagedBed {
  readonly tables: readonly string[]
  columnsOf(table: string): Promise<readonly Column[]>
  /** Of each row the condition that it alone fits, in SQL. */
  rowsOf(table: string, keys: readonly string[]): Promise<readonly string[]>
  /** A column of bytes with its first byte changed, in SQL. */
  flipped(column: string): string
  /** What `verify` makes of the store after a change, which is undone; `refused` where the store takes no such value. */
  after(statement: string): Promise<'found' | 'not found' | 'refused'>
}

/**
 * What every table of a ledger holds something of: runs of a session with contents that they share, a run that was
 * redacted and some that were dropped, an inbox with a command that waits and one that was taken, and projections.
 */
export async function recordEverything(ledger: Ledger): Promise<void> {
  let dumps = 0
  const dump = testTool({ name: 'dump', run: () => `${'a long answer. '.repeat(2_000)}${dumps++ % 2}` })
  const ask = testTool({ name: 'ask', effect: 'write', check: () => ({ kind: 'ask' }) })
  const done = { text: 'Done.', usage: { inputTokens: 10, outputTokens: 2 } }
  const looking = { toolCalls: ['a', 'b'].map((at) => ({ name: 'dump', input: { at } })) }
  const asking = { toolCalls: [{ name: 'ask', input: {} }] }
  const steps = [done, done, looking, done, looking, done, done, asking, done, asking, done]
  const agent = defineAgent({
    name: 'agent',
    instructions: 'Act.',
    model: scriptedModel(steps),
    tools: [dump, ask],
  })
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock: manualClock() } })
  for (const input of ['Gone.', 'Gone, too.']) await runtime.run(agent, input).result
  await runtime.idle()
  await applyRetention(ledger, { factsMs: 0 })
  const ids = []
  for (const input of ['Look.', 'Again.', 'And now?']) {
    const run = await runtime.session('s').run(agent, input)
    await run.result
    ids.push(run.id)
  }
  const [first] = ids
  const asked = runtime.run(agent, 'Ask me.')
  const { pendingApprovals } = await asked.result
  await asked.approve(pendingApprovals[0]?.toolCallId as never, { by: 'ann' })
  await asked.result
  const waiting = runtime.run(agent, 'Ask me, too.')
  await waiting.result
  await runtime.idle()
  await ledger.put(waiting.id, { key: 'one', at: 5, command: { type: 'cancel', reason: 'Stop.' } })
  const alone = runtime.run(agent, 'Hello?')
  await alone.result
  await runtime.idle()
  const why = { by: 'ann', reason: 'asked' }
  if (first !== undefined) await redact(ledger, first, [5, 6], why)
  await redact(ledger, alone.id, [1], why)
  await readLedgerStats(ledger, { since: 0, maxListed: 1 })
}

/** A change of one row, by what it changes: `table.column` or `table`, and how. */
export interface Damage {
  readonly what: string
  readonly how: string
  readonly statement: string
}

/** Changes of one column of a row to null, to what another row has, and to other values of its type. */
function changesOf(bed: DamagedBed, { name, type }: Column, table: string): Readonly<Record<string, string>> {
  const another = `(select other.${name} from ${table} as other where other.${name} is distinct from ${table}.${name}
    order by other.${name} DIRECTION limit 1)`
  return {
    null: 'null',
    'least other': another.replace('DIRECTION', 'asc'),
    'greatest other': another.replace('DIRECTION', 'desc'),
    ...(type === 'number' && { more: `${name} + 1`, 'much more': `${name} + 1000`, less: `${name} - 1` }),
    // No number of JavaScript.
    ...(type === 'number' && { most: '9223372036854775807', least: '-9223372036854775807 - 1' }),
    ...(type === 'text' && { longer: `coalesce(${name}, '') || 'x'`, empty: `''`, cut: `'{"sealed":'` }),
    ...(type === 'bytes' && { flipped: bed.flipped(name) }),
  }
}

/** Every change of chosen rows of a table: of each column, the row taken away, and the row there twice. */
async function damagesOf(
  bed: DamagedBed,
  table: string,
  choose: (rows: readonly string[]) => readonly string[],
): Promise<readonly Damage[]> {
  const columns = await bed.columnsOf(table)
  const keys = columns.filter(({ isKey }) => isKey).map(({ name }) => name)
  const rows = await bed.rowsOf(table, keys)
  const names = columns.map(({ name }) => name)
  return choose(rows).flatMap((row): Damage[] => [
    ...columns.flatMap((column) =>
      Object.entries(changesOf(bed, column, table)).map(([how, value]) => ({
        what: `${table}.${column.name}`,
        how,
        statement: `update ${table} set ${column.name} = ${value} where ${row} and ${column.name} is distinct from ${value}`,
      })),
    ),
    { what: table, how: 'deleted', statement: `delete from ${table} where ${row}` },
    ...columns
      .filter(({ isKey }) => isKey)
      .map(({ name, type }) => {
        const other = {
          number: `${name} + 5000`,
          text: `${name} || 'y'`,
          bytes: bed.flipped(name),
          other: name,
        }
        const values = names.map((each) => (each === name ? other[type] : each))
        return {
          what: table,
          how: `doubled by ${name}`,
          statement: `insert into ${table} (${names.join(', ')}) select ${values.join(', ')} from ${table} where ${row}`,
        }
      }),
  ])
}

/**
 * The tables and columns in which `verify` does not find every change, and why none of these changes what is read, resumed or
 * removed. Everything else is found, in whatever way a row is changed.
 */
const unchecked: Readonly<Record<string, string>> = {
  inbox: 'holds requests, which any process may put there; what a run took of them is on record as events',
  projection: 'says which code made the rows of runs, which are made anew for other code',
  'run_summary deleted': 'is made anew by the next list',
  'run_summary.seq least': 'says that the row lags behind its run: it is made anew by the next list',
  'run_term doubled by term':
    'finds a run that does not fit, which a list leaves out: each is compared with what was asked',
  'run_term doubled by pos': 'likewise',
  sqlite_sequence: 'has the last place given; places are compared with the events, and others are given anew',
  'run.lease_holder': 'says who may resume a run, and is not part of the record: epochs fence writers',
  'run.lease_until': 'likewise',
  'run.due_at': 'says when a run is to be looked at, and is not part of the record: looking at it decides',
  ledger: 'has the version of the schema, without which the ledger is not opened',
  'event.xid': 'orders a tail over all runs; within a run it is compared',
}

/** Which rows of a table are changed, and how: all ways where none are named. */
export interface Tried {
  readonly choose: (rows: readonly string[]) => readonly string[]
  readonly ways?: readonly string[]
}

/** What `verify` did not find, by table or column and by how it was changed. */
export async function unfound(bed: DamagedBed, { choose, ways }: Tried): Promise<readonly Damage[]> {
  const missed: Damage[] = []
  for (const table of bed.tables) {
    for (const damage of await damagesOf(bed, table, choose)) {
      if (ways && !ways.includes(damage.how)) continue
      if ((await bed.after(damage.statement)) === 'not found') missed.push(damage)
    }
  }
  return missed
}

/** Those of them that `unchecked` names neither by their table nor by their column. */
export function surprises(missed: readonly Damage[]): readonly string[] {
  return missed
    .filter(
      ({ what, how }) =>
        ![`${what} ${how}`, what, what.split('.')[0] ?? ''].some((name) => Object.hasOwn(unchecked, name)),
    )
    .map(({ what, how }) => `${what} ${how}`)
}
