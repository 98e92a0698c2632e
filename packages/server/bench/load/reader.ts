import { createHash } from 'node:crypto'
import { Agent, get, type IncomingMessage } from 'node:http'
import type { Place } from './serving.ts'

/** What a reader has got of its run. */
export interface Reading {
  readonly runId: string
  /** The number of its last event; every event before it came once, in order. */
  readonly seq: number
  /** A digest over its events as they came. */
  readonly digest: string
  /** How long it had no event after each lost connection, in milliseconds. */
  readonly gapsMs: readonly number[]
}

/** Where readers find their runs, and what they tell meanwhile. */
export interface ReaderHost {
  /** Who serves the runs now. */
  readonly place: () => Place
  /** Called for each event with the milliseconds from its decision to its reader. */
  readonly onEvent: (lagMs: number) => void
  /** Ends every reader. */
  readonly signal: AbortSignal
}

/** What a server answers that is too busy to read the request in time, or stops. */
const comesAgain = new Set([408, 503])

/** Every reader has a connection of its own. */
const agent = new Agent({ maxSockets: Infinity })
const retryMs = 50

/**
 * Follows a run to its end as a client of server-sent events does: after a lost connection it continues after its last
 * event. Rejects if an event is missing or comes twice.
 */
export async function followRun(runId: string, host: ReaderHost): Promise<Reading> {
  const hash = createHash('sha256')
  const gapsMs: number[] = []
  let [seq, hasEnded, lostAt] = [0, false, 0]
  const take = (frame: string): void => {
    const [, id, data = ''] = /^id: (\d+)\ndata: (.*)$/.exec(frame) ?? []
    if (id === undefined) return
    if (Number(id) !== seq + 1)
      throw new Error(`A reader of run ${runId} got event ${id} after event ${seq}.`)
    seq++
    hash.update(data)
    host.onEvent(Date.now() - Number(/"at":(\d+)/.exec(data)?.[1]))
    if (lostAt > 0) gapsMs.push(performance.now() - lostAt)
    lostAt = 0
    hasEnded ||= data.includes('"type":"run_finished"')
  }
  for (;;) {
    try {
      let text = ''
      for await (const chunk of await open(runId, seq, host)) {
        const frames = (text + chunk).split('\n\n')
        text = frames.pop() ?? ''
        for (const frame of frames) take(frame)
      }
    } catch (error) {
      if (!isLostConnection(error)) throw error
    }
    if (hasEnded) break
    host.signal.throwIfAborted()
    lostAt ||= performance.now()
    await new Promise((resolve) => void setTimeout(resolve, retryMs))
  }
  return { runId, seq, digest: hash.digest('hex'), gapsMs }
}

async function open(
  runId: string,
  after: number,
  { place, signal }: ReaderHost,
): Promise<AsyncIterable<string>> {
  const { url, headers } = place()
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const last = after === 0 ? {} : { 'last-event-id': String(after) }
    const options = { agent, signal, headers: { ...headers, ...last, accept: 'text/event-stream' } }
    get(`${url}/runs/${runId}/events`, options, resolve).on('error', reject)
  })
  const { statusCode = 0 } = response
  if (statusCode === 200) return response.setEncoding('utf8')
  response.resume()
  if (comesAgain.has(statusCode)) throw Object.assign(new Error(`status ${statusCode}`), { code: 'EAGAIN' })
  throw new Error(`The events of run ${runId} after ${after} were answered with ${statusCode}.`)
}

/** Whether an error is one of the network: what a reader gets when its server is gone. */
function isLostConnection(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^E[A-Z]+$/.test(String(error.code))
}
