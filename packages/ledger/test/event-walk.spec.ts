import {
  createRuntime,
  defineAgent,
  LedgerDamagedError,
  memoryLedger,
  type Ledger,
  type RuntimeEvent,
} from '@tallystick/core'
import { manualClock, scriptedModel } from '@tallystick/core/testing'
import { verifyRun } from '@tallystick/ledger'
import { describe, expect, it } from 'vitest'
import { EventAudit } from '../src/verify/event-audit.ts'

/** A run whose reply comes in so many pieces, and the place of the first one. */
async function replying(count: number): Promise<readonly [readonly RuntimeEvent[], number]> {
  const ledger = memoryLedger()
  const model = scriptedModel([{ text: 'x'.repeat(count) }])
  const agent = defineAgent({ name: 'a', instructions: '', model })
  const host = { clock: manualClock() }
  const { runId } = await createRuntime({ ledger, agents: [agent], host }).run(agent, 'Count.').result
  const events = await Array.fromAsync(ledger.read(runId))
  const first = events.findIndex(({ type }) => type === 'assistant_text_delta')
  const piece = { ...events[first], text: 'x' } as RuntimeEvent
  const others = events.filter(({ type }) => type !== 'assistant_text_delta')
  const pieces = Array.from({ length: count }, () => piece)
  const all = [...others.slice(0, first), ...pieces, ...others.slice(first)]
  return [all.map((event, index) => ({ ...event, seq: index + 1 })), first]
}

/** A ledger that lends no rows, and reads these events; then it fails, if it is to. */
function reading(events: readonly RuntimeEvent[], failure?: Error): Ledger {
  const ledger = {
    head: async () => ({ seq: events.length, epoch: 1 }),
    inbox: async () => [],
    async *read() {
      yield* events
      if (failure) throw failure
    },
  }
  return ledger as unknown as Ledger
}

async function verdictOn(events: readonly RuntimeEvent[], failure?: Error): Promise<object> {
  const { ok, events: sound, broken } = await verifyRun(reading(events, failure), events[0]!.runId)
  return { ok, events: sound, ...(broken && { seq: broken.seq, what: broken.what }) }
}

/** What one audit of each event alone says. */
function oneByOne(events: readonly RuntimeEvent[]): object {
  const audit = new EventAudit()
  for (const [index, event] of events.entries()) {
    const isNext = event.seq === index + 1 && event.runId === events[0]?.runId
    const found = isNext ? audit.faultOf(event) : { what: 'seq' }
    if (found) return { ok: false, events: index, seq: index + 1, what: found.what }
  }
  return { ok: true, events: events.length }
}

function changed(events: readonly RuntimeEvent[], index: number, change: object): readonly RuntimeEvent[] {
  return events.map((event, at) => (at === index ? Object.assign({ ...event }, change) : event))
}

describe('a verdict on the events of any ledger', () => {
  it.each([1, 2, 8, 255, 256, 257, 600])('takes %i pieces of a reply', async (count) => {
    const [events] = await replying(count)
    expect(events.filter(({ type }) => type === 'assistant_text_delta')).toHaveLength(count)
    expect(await verdictOn(events)).toEqual({ ok: true, events: events.length })
  })

  it.each<readonly [string, object, string]>([
    ['is earlier than the one before it', { at: 0 }, 'law 4'],
    ['is of another attempt', { attempt: 2 }, 'law 5'],
    ['has another shape', { cause: 'nobody' }, 'cause'],
    ['says more than the message', { text: 'y' }, 'law 12'],
    ['is of another run', { runId: 'other' }, 'seq'],
    ['is not the next one', { seq: 99 }, 'seq'],
    ['is of another type', { type: 'tool_dreamt' }, 'tool_dreamt'],
    ['is reasoning', { type: 'assistant_reasoning_delta' }, 'law 12'],
    ['was taken away', { removed: { kind: 'gone' } }, 'removed.kind'],
    ['has no text', { text: undefined }, 'assistant_text_delta'],
  ])('names the first piece that %s, wherever it is', async (_name, change, what) => {
    const [events, first] = await replying(8)
    for (const index of [first + 1, first + 4, first + 7]) {
      const odd = changed(events, index, change)
      const verdict = await verdictOn(odd)
      expect([index, verdict]).toEqual([index, oneByOne(odd)])
      expect(verdict).toMatchObject({ ok: false, what })
    }
  })

  it('takes the pieces that a run ends with as yet, and names what is wrong with them', async () => {
    const [events, first] = await replying(8)
    const some = events.slice(0, first + 4)
    expect(await verdictOn(some)).toEqual({ ok: true, events: some.length })
    const odd = changed(some, first + 3, { part: -1 })
    expect(await verdictOn(odd)).toEqual({ ok: false, events: first + 3, seq: first + 4, what: 'part' })
  })

  it('names what is wrong before the place where reading fails, and that place otherwise', async () => {
    const [events, first] = await replying(8)
    const some = events.slice(0, first + 4)
    const failure = new LedgerDamagedError('It is damaged.')
    const at = { ok: false, events: some.length, seq: some.length + 1, what: 'pages' }
    expect(await verdictOn(some, failure)).toEqual(at)
    const odd = changed(some, first + 2, { part: -1 })
    expect(await verdictOn(odd, failure)).toEqual(oneByOne(odd))
    expect(oneByOne(odd)).toMatchObject({ seq: first + 3, what: 'part' })
    await expect(verifyRun(reading(some, new Error('No.')), some[0]!.runId)).rejects.toThrow('No.')
  })
})
