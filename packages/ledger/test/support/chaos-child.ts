// A process that works on a Postgres ledger whose server is killed again and again, for `chaos.ts`. It says on stdout, a
// JSON line each, what was acknowledged or seen. On stdin it receives that the server has `died`, which a writer says again,
// so that the reader knows what it did before and after; and that it is `back`. It ends when stdin does.
// Usage: chaos-child.ts write|follow <connection string> <schema> <argument>
import { EventEmitter, once } from 'node:events'
import { createInterface } from 'node:readline'
import { ConfigurationError, LedgerConflictError, LedgerUnavailableError, type RunId } from '@tallystick/core'
import { type Fact, type Head, type TailCursor } from '@tallystick/core/vocabulary'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { watchLedger } from '@tallystick/ledger'
import { postgresLedger } from '@tallystick/ledger/postgres'
import type { Written, Followed } from './chaos.ts'

const [task = '', connectionString = '', schema = '', argument = ''] = process.argv.slice(2)
const ledger = postgresLedger({ connectionString, schema })
const stop = new AbortController()
const server = new EventEmitter()
let [deaths, isDead] = [0, false]
createInterface({ input: process.stdin })
  .on('line', (word) => {
    isDead = word === 'died'
    if (isDead) deaths++
    if (isDead && task === 'write') say({ kind: 'death', deaths })
    if (!isDead) server.emit('back')
  })
  .on('close', () => stop.abort())

/** Until the server is back; before the parent has reported its death, for a moment. */
async function pause(): Promise<void> {
  if (isDead) await once(server, 'back')
  else await new Promise((resolve) => setImmediate(resolve))
}

function say(line: Written | Followed): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

/** Asks until the server answers, however often it dies meanwhile. */
async function untilAnswered<T>(
  work: () => Promise<T>,
): Promise<{ readonly answer: T; readonly failures: number }> {
  for (let failures = 0; ; failures++) {
    try {
      return { answer: await work(), failures }
    } catch (error) {
      if (!(error instanceof LedgerUnavailableError)) throw error
      await pause()
    }
  }
}

function delta(runId: RunId, text: string): Fact {
  return { ...sampleFacts(runId).assistant_text_delta, text }
}

/** Appends events of its own to runs that it shares with other processes. It repeats an append that is in doubt. */
async function write(): Promise<void> {
  const [name, runs, before] = JSON.parse(argument) as [string, number, number]
  deaths = before
  const heads = new Map<RunId, Head>()
  for (let step = 0; !stop.signal.aborted; step++) {
    const runId = sampleRunId(1 + ((step * 7) % runs))
    const known = heads.get(runId) ?? (await untilAnswered(() => ledger.head(runId))).answer
    const head = known ?? { seq: 0, epoch: 1 }
    const texts = [`${name} ${step} a`, `${name} ${step} b`].slice(step % 2)
    const events = stampFacts(
      runId,
      texts.map((text) => delta(runId, text)),
      { afterSeq: head.seq, epoch: head.epoch },
    )
    const durability = step % 3 === 0 ? 'barrier' : 'lazy'
    const expected = { expectedSeq: head.seq, epoch: head.epoch }
    const begun = deaths
    try {
      const { answer, failures } = await untilAnswered(() =>
        ledger.append(runId, expected, events, { durability }),
      )
      heads.set(runId, answer)
      say({
        kind: 'acknowledged',
        runId,
        seq: head.seq + 1,
        texts,
        durability,
        failures,
        begun,
        ended: deaths,
      })
    } catch (error) {
      if (!(error instanceof LedgerConflictError)) throw error
      // What was lazy may be lost with the server, and then the others are as right as this one.
      heads.delete(runId)
      say({ kind: 'conflict' })
    }
  }
}

/** Follows every run after a cursor; when the server is back it continues where it was. */
async function follow(): Promise<void> {
  let cursor: TailCursor | undefined = argument === '' ? undefined : argument
  while (!stop.signal.aborted) {
    try {
      await watchLedger(ledger, cursor).forEach((tailed) => {
        cursor = tailed.cursor
        const { runId, seq } = tailed.event
        const text = tailed.event.type === 'assistant_text_delta' ? tailed.event.text : ''
        say({ kind: 'seen', cursor, runId, seq, text })
      })
    } catch (error) {
      if (error instanceof ConfigurationError) throw error
      await pause()
    }
  }
}

const working = task === 'follow' ? follow() : write()
const stopped = once(stop.signal, 'abort')
await (task === 'follow' ? Promise.race([working, stopped]) : working)
await untilAnswered(() => ledger.close())
process.exit()
