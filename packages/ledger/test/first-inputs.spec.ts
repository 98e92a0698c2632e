import { join } from 'node:path'
import {
  type Ledger,
  LedgerUnavailableError,
  memoryLedger,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import { computeDigest, type JsonObject } from '@tallystick/core/vocabulary'
import { readFirstInputs } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { sampleFacts, sampleMessage, sampleRunId, stampFacts } from '@tallystick/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import { forgeRun } from './support/forged-ledger.ts'
import { tamper } from './support/raw-database.ts'
import { recorded, verified } from './support/recorded.ts'
import { lastingFolder } from '../../../scripts/testing/temporary-folder.ts'

describe('the first inputs of runs', () => {
  const folder = lastingFolder()
  let files = 0

  /** Records runs that begin with these texts; one without a text has no input yet. */
  async function record(ledger: Ledger, texts: readonly (string | undefined)[]): Promise<readonly RunId[]> {
    const runIds = texts.map((_, index) => sampleRunId(index + 1))
    for (const [index, said] of texts.entries()) {
      const runId = runIds[index] as RunId
      const { run_started, input_received: input } = sampleFacts(runId)
      const { sessionId: _session, sessionPlace: _place, parent: _parent, ...start } = run_started
      const inputs = said === undefined ? [] : [said, 'and then?']
      const facts = [start, ...inputs.map((each) => ({ ...input, message: sampleMessage(each) }))]
      await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, stampFacts(runId, facts), {
        durability: 'lazy',
      })
    }
    return runIds
  }

  /** A ledger on disk with such runs, and how its file is changed while it is closed. */
  async function stored(
    texts: readonly (string | undefined)[],
    spoil: (path: string, runIds: readonly RunId[]) => void = () => {},
  ): Promise<{ readonly ledger: Ledger; readonly runIds: readonly RunId[] }> {
    const path = join(folder, `${++files}.db`)
    const first = sqliteLedger(path)
    const runIds = await record(first, texts)
    await first.close()
    spoil(path, runIds)
    const ledger = sqliteLedger(path)
    onTestFinished(() => ledger.close())
    return { ledger, runIds }
  }

  /** What each run begins with, by its id. */
  async function found(ledger: Ledger, runIds: readonly RunId[]): Promise<Readonly<Record<string, string>>> {
    const inputs = await readFirstInputs(ledger, runIds)
    return Object.fromEntries(
      [...inputs].map(([runId, { message }]) => [
        runId,
        message.parts.map((part) => (part.type === 'text' ? part.text : part.type)).join(),
      ]),
    )
  }

  it.each([
    ['on disk', () => stored(['one', undefined, 'three'])],
    [
      'in memory',
      async () => {
        const ledger = memoryLedger()
        return { ledger, runIds: await record(ledger, ['one', undefined, 'three']) }
      },
    ],
  ])('given runs %s, when asked for, then each is searched', async (_where, make) => {
    const { ledger, runIds } = await make()
    expect(await found(ledger, runIds)).toEqual({
      [runIds[0] as RunId]: 'one',
      [runIds[2] as RunId]: 'three',
    })
    expect(await found(ledger, [])).toEqual({})
  })

  it('given many runs, when asked for, then 64 are searched at once', async () => {
    const ledger = memoryLedger()
    const runIds = await record(
      ledger,
      Array.from({ length: 130 }, (_, index) => `question ${index + 1}`),
    )
    const find = ledger.find.bind(ledger)
    let [searches, most] = [0, 0]
    Object.assign(ledger, {
      async *find(query: Parameters<typeof find>[0]) {
        most = Math.max(most, ++searches)
        await Promise.resolve()
        try {
          yield* find(query)
        } finally {
          searches--
        }
      },
    })
    expect(Object.keys(await found(ledger, runIds))).toHaveLength(130)
    expect(most).toBe(64)
  })

  it('given a run without an input, when asked for, then it is left out', async () => {
    const { ledger, runIds } = await stored(['one', undefined])
    expect(await found(ledger, runIds)).toEqual({ [runIds[0] as RunId]: 'one' })
  })

  it('given an input that was changed, when asked for, then that run is left out, and no later input stands for it', async () => {
    const { ledger, runIds } = await stored(['one', 'two'], (path, [first]) => {
      tamper(path, (database) => {
        database.exec(`update event set body = '{}' where run_id = '${first}' and seq = 2`)
      })
    })
    expect(await found(ledger, runIds)).toEqual({ [runIds[1] as RunId]: 'two' })
  })

  it('given an input of forged bytes that are no JSON, when asked for, then that run is left out', async () => {
    const { ledger, runIds } = await stored(['one', 'two'], (path, [first]) => {
      forgeRun(path, first as RunId, (event) =>
        event.type === 'input_received' ? { ...event, text: '{"message":' } : event,
      )
    })
    expect(await found(ledger, runIds)).toEqual({ [runIds[1] as RunId]: 'two' })
  })

  it('given a store that cannot be read, when asked for, then it finds none; a fault in the code is thrown', async () => {
    const { ledger, runIds } = await stored(['one', 'two'])
    const find = (error: Error) => () => ({
      // oxlint-disable-next-line require-yield
      async *[Symbol.asyncIterator](): AsyncGenerator<never> {
        throw error
      },
    })
    Object.assign(ledger, { find: find(new LedgerUnavailableError('out of reach')) })
    expect(await found(ledger, runIds)).toEqual({})
    Object.assign(ledger, { find: find(new TypeError('no such function')) })
    await expect(readFirstInputs(ledger, runIds)).rejects.toThrow('no such function')
  })
})

async function eventsOf(path: string, runId: RunId): Promise<readonly RuntimeEvent[]> {
  const ledger = sqliteLedger(path, { readOnly: true })
  const events = await Array.fromAsync(ledger.read(runId))
  await ledger.close()
  return events
}

/** Writes the digest anew that the start of a call carries; without one, leaves the field out. */
function forgeStart(path: string, runId: RunId, inputDigest?: string): void {
  forgeRun(path, runId, (event) => {
    if (event.type !== 'tool_started') return event
    const { inputDigest: _recorded, ...body } = event.body
    return { ...event, body: inputDigest === undefined ? body : { ...body, inputDigest } }
  })
}

describe('the start of a call', () => {
  it('carries the digest of the input that was asked for', async () => {
    const { path, runId } = await recorded()
    const events = await eventsOf(path, runId)
    const inputs = new Map<string, JsonObject>()
    for (const event of events)
      if (event.type === 'tool_request_ready') inputs.set(event.toolCallId, event.input)
    const starts = events.filter((event) => event.type === 'tool_started')
    expect(starts.length).toBeGreaterThan(0)
    expect(starts.map((event) => event.inputDigest)).toEqual(
      starts.map((event) => computeDigest(inputs.get(event.toolCallId) ?? {})),
    )
  })

  it('with another digest is found by verify, though every hash holds', async () => {
    const { path, runId } = await recorded()
    const { seq } = (await eventsOf(path, runId)).find(({ type }) => type === 'tool_started')!
    forgeStart(path, runId, computeDigest({ amount: 1_000_000 }))
    expect(await verified(path, runId)).toMatchObject({ ok: false, broken: { seq, what: 'law 13' } })
  })

  it('without a digest, as older releases wrote it, is sound', async () => {
    const { path, runId } = await recorded()
    forgeStart(path, runId)
    expect(await verified(path, runId)).toMatchObject({ ok: true })
  })
})
