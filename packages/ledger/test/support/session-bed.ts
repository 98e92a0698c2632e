import {
  type Agent,
  createRuntime,
  defineAgent,
  type Ledger,
  type RunId,
  type RuntimeEvent,
  type SessionRunOptions,
} from '@tallystick/core'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'
import type { RemovalBed } from './removal-bed.ts'

/** A store of its own for a test of sessions. */
export interface SessionBed extends RemovalBed {
  /** How many runs a long session has. Default 200. */
  readonly runsMany?: number
  /** How many rows the store has beside those of deltas, and how many bytes they hold. */
  readonly stored: () => Promise<{ readonly rows: number; readonly bytes: number }>
  /**
   * By how many rows two runs of the same content may differ. Default 0. Where an append takes a while, what arrives meanwhile
   * is appended together, and shares a row.
   */
  readonly rowsApart?: number
  /** How many pieces of histories the store has. */
  readonly pieces: () => Promise<number>
  /** How many of them were read so far. */
  readonly piecesRead: () => number
}

/** The tables that hold what cannot be made again. */
export const keptTables = ['run', 'event', 'inbox', 'history'] as const

const deltas = `('assistant_text_delta', 'assistant_reasoning_delta', 'tool_input_delta')`

/**
 * The rows of a kept table that are counted, `prefix` before the names of tables. How many deltas share a row is a matter
 * of time.
 */
export function countedRows(table: string, prefix = ''): string {
  if (table === 'event') return `${prefix}event as each where type not in ${deltas}`
  return `${prefix}${table} as each`
}

const usage = { inputTokens: 120, outputTokens: 17 }
const words = 'some words that are said again and again. '

/** An agent that looks, and then answers: of each run the model's words say which it is, and are as many. */
export function chatAgent(runs: number): Agent<unknown> {
  const said = (text: string, run: number): string => `${text} ${String(run).padStart(4, '0')} ${words}`
  const steps = Array.from({ length: runs }, (_, run) => [
    { text: said('looking', run), toolCalls: [{ name: 'look', input: { at: 'tea' } }], usage },
    { text: said('answered', run), usage },
  ])
  const look = testTool({ name: 'look', run: () => `seen ${words}` })
  return defineAgent<unknown>({
    name: 'chat',
    instructions: 'Chat.',
    model: scriptedModel(steps.flat()),
    tools: [look],
  })
}

/** Runs of one session, one after the other; answers their ids. */
export async function chat(
  ledger: Ledger,
  count: number,
  {
    agent = chatAgent(count),
    sessionId = 's',
    behind = async () => undefined,
    ...options
  }: SessionRunOptions & {
    readonly agent?: Agent<unknown>
    readonly sessionId?: string
    readonly behind?: (run: number) => Promise<unknown>
  } = {},
): Promise<readonly RunId[]> {
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock: manualClock() } })
  const ids: RunId[] = []
  for (let run = 1; run <= count; run++) {
    const handle = await runtime.session(sessionId).run(agent, `What is it? ${words}`, options)
    const { reason } = await handle.result
    if (reason !== 'answered') throw new Error(`Run ${run} of the session ended as ${reason}.`)
    await runtime.idle()
    ids.push(handle.id)
    await behind(run)
  }
  return ids
}

/** What is asked of a ledger. */
export interface Asked {
  events: number
  runs: number
}

/** A ledger, and how many events and runs it has answered. */
export function counted(ledger: Ledger): { readonly ledger: Ledger; readonly asked: Asked } {
  const asked: Asked = { events: 0, runs: 0 }
  async function* each<T>(items: AsyncIterable<T>, what: keyof Asked): AsyncGenerator<T> {
    for await (const item of items) {
      asked[what]++
      yield item
    }
  }
  const counting: Ledger = {
    ...ledger,
    read: (...args) => each(ledger.read(...args), 'events'),
    find: (query) => each(ledger.find(query), 'events'),
    runs: (filter) => each(ledger.runs(filter), 'runs'),
  }
  return { ledger: counting, asked }
}

/** What a run began with. */
export async function carriedBy(
  ledger: Ledger,
  runId: RunId,
): Promise<Extract<RuntimeEvent, { readonly type: 'history_carried' }>> {
  for await (const event of ledger.read(runId, { toSeq: 2 })) {
    if (event.type === 'history_carried') return event
  }
  throw new Error(`Run ${runId} begins without a history.`)
}
