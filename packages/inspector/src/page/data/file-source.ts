import { type EventOf, isAfterEnd } from '@tallystick/core/vocabulary'
import type { RuntimeEvent } from '@tallystick/core'
import type { RunPage, RunQuery, RunRow, Self } from '../../api.ts'
import type { RunOrigin } from '../worker/run-origin.ts'
import { type Source, SourceError } from './source.ts'

/** Finds the rows of a run, one as JSON a line; `undefined` if the export has none. */
type ReadRecord = (runId: string) => readonly string[] | undefined

/** The messages that a line leaves out, since an earlier one has them. */
interface SharedMessages {
  readonly runId: string
  readonly seq: number
  readonly messages: number
}

/** Runs of an export, in memory. */
export class FileSource implements Source {
  readonly kind = 'file'
  readonly #title: string
  readonly #runs = new Map<string, string[]>()
  readonly #readRecord: ReadRecord

  /** `lines` are those of an export: one event each. Throws a `SourceError` for a line that is none. */
  constructor(title: string, lines: Iterable<string>, readRecord: ReadRecord = () => undefined) {
    this.#title = title
    this.#readRecord = readRecord
    let number = 0
    for (const line of lines) {
      number++
      if (line.trim() === '') continue
      const event = parseLine(line, number)
      const whole = this.#makeWhole(event, number)
      const known = this.#runs.get(event.runId)
      if (known) known.push(whole ?? line)
      else this.#runs.set(event.runId, [whole ?? line])
    }
  }

  /** An export holds messages once that several runs begin with: the line with those of earlier runs, too. */
  #makeWhole(event: RuntimeEvent, number: number): string | undefined {
    if (event.type !== 'history_carried' || !('shared' in event)) return undefined
    const { shared, ...own } = event as typeof event & { readonly shared: SharedMessages }
    const other = this.#runs.get(shared.runId)?.[shared.seq - 1]
    const { messages = [] } = other === undefined ? {} : (JSON.parse(other) as Partial<typeof event>)
    if (messages.length >= shared.messages) {
      return JSON.stringify({ ...own, messages: [...messages.slice(0, shared.messages), ...own.messages] })
    }
    throw new SourceError(
      `Line ${number} begins with ${shared.messages} messages of event ${shared.seq} of run ${shared.runId}, which no line before it holds. Drop the whole export.`,
    )
  }

  async readSelf(): Promise<Self> {
    return { name: '', may: [], agents: [], title: this.#title, isImported: true }
  }

  async listRuns({
    agent,
    reason,
    status,
    startedSince = 0,
    startedUntil = Infinity,
  }: RunQuery): Promise<RunPage> {
    const rows = [...this.#runs.values()].map(describeRun).reverse()
    return {
      runs: rows.filter(
        (row) =>
          (agent === undefined || row.agent === agent) &&
          (reason === undefined || row.reason === reason) &&
          row.startedAt >= startedSince &&
          row.startedAt < startedUntil &&
          (status === undefined || status.includes(row.status)),
      ),
    }
  }

  locateRun(runId: string): RunOrigin {
    const record = this.#readRecord(runId)
    return { kind: 'lines', lines: this.#runs.get(runId) ?? [], ...(record && { record }) }
  }

  watchRuns(): () => void {
    return () => undefined
  }

  read<Answer>(): Promise<Answer> {
    return Promise.reject(new SourceError('This is an export: there is no server to ask.'))
  }

  send<Answer>(): Promise<Answer> {
    return this.read()
  }
}

function parseLine(line: string, number: number): RuntimeEvent {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch (error) {
    throw new SourceError(`Line ${number} is not JSON: ${(error as Error).message}`, { cause: error })
  }
  const { runId, seq, type } = Object(value) as Partial<RuntimeEvent>
  if (typeof runId === 'string' && typeof seq === 'number' && typeof type === 'string')
    return value as RuntimeEvent
  throw new SourceError(`Line ${number} is not an event. Drop a file that tallystick export has written.`)
}

/** The end of a run, behind which only feedback stands. */
function findEnd(lines: readonly string[]): EventOf<'run_finished'> | undefined {
  for (const line of lines.toReversed()) {
    const event = JSON.parse(line) as RuntimeEvent
    if (event.type === 'run_finished') return event
  }
  return undefined
}

function describeRun(lines: readonly string[]): RunRow {
  const first = JSON.parse(lines[0]!) as RuntimeEvent
  const last = JSON.parse(lines.at(-1)!) as RuntimeEvent
  const end = isAfterEnd(last) ? findEnd(lines) : undefined
  const failed = end && !['answered', 'handed_back', 'stopped', 'cancelled'].includes(end.reason)
  const input = lines
    .slice(0, 20)
    .map((line) => JSON.parse(line) as RuntimeEvent)
    .find((event) => event.type === 'input_received')
  const words =
    input?.type === 'input_received' ? input.message.parts.find((part) => part.type === 'text') : undefined
  return {
    runId: first.runId,
    status: failed ? 'failed' : end ? 'done' : 'suspended',
    agent: first.type === 'run_started' ? first.agent : '',
    ...(words?.type === 'text' && { firstWords: words.text.slice(0, 200) }),
    startedAt: first.at,
    lastAt: end?.at ?? last.at,
    seq: last.seq,
    turns: last.turn,
    toolCalls: end?.toolCalls ?? 0,
    ...(end && { reason: end.reason }),
    ...(end?.costUsd !== undefined && { costUsd: end.costUsd }),
    tools: [],
  }
}
