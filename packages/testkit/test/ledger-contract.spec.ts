import { concat, defer, EMPTY, NEVER, take } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { effort } from '../../../scripts/testing/effort.ts'
import {
  type Ledger,
  LedgerConflictError,
  memoryLedger,
  type Message,
  type RuntimeEvent,
} from '@tallystick/core'
import { toCanonicalJson, type InboxEntry } from '@tallystick/core/vocabulary'
import { ledgerContract } from '@tallystick/testkit/contract'
import { tailFaults, type Fault } from './tail-faults.ts'

const restamped = (events: readonly RuntimeEvent[], seq: number, epoch: number): readonly RuntimeEvent[] =>
  events.map((event, index) => ({ ...event, seq: seq + index + 1, epoch }))

const inOrder = (left: InboxEntry, right: InboxEntry): number => (left.key < right.key ? -1 : 1)

/** Each filter of a search left out, and answers in other orders. */
function searchFaults(): Readonly<Record<string, Fault>> {
  const filters = ['sessionId', 'runId', 'turn', 'toolCallId', 'types', 'fromAt', 'toAt'] as const
  const deaf = filters.map((filter): [string, Fault] => [
    `searches without minding ${filter}`,
    (sound) => ({ find: ({ [filter]: _ignored, ...query } = {}) => sound.find(query) }),
  ])
  const reordered = (order: (left: RuntimeEvent, right: RuntimeEvent) => number): Fault => {
    return (sound) => ({
      async *find(query) {
        yield* (await Array.fromAsync(sound.find(query))).toSorted(order)
      },
    })
  }
  return {
    ...Object.fromEntries(deaf),
    'finds the latest first': reordered((left, right) => right.at - left.at),
    'finds run after run': reordered((left, right) =>
      left.runId < right.runId ? -1 : left.runId > right.runId ? 1 : 0,
    ),
    'leaves out the ends of a time': (sound) => ({
      async *find(query = {}) {
        for await (const event of sound.find(query)) {
          if (event.at !== query.fromAt && event.at !== query.toAt) yield event
        }
      },
    }),
    'finds one thousand events and no more': (sound) => ({
      async *find(query) {
        let found = 0
        for await (const event of sound.find(query)) if (++found <= 1000) yield event
      },
    }),
    'follows the log for ever': (sound) => ({
      async *find(query) {
        let found = 0
        for (let isMore = true; isMore;) {
          const all = await Array.fromAsync(sound.find(query))
          isMore = all.length > found
          for (const event of all.slice(found)) {
            found++
            yield event
          }
        }
      },
    }),
    'takes no types for any type': (sound) => ({
      find: ({ types = [], ...query } = {}) => sound.find(types.length > 0 ? { ...query, types } : query),
    }),
  }
}

/** Stores that break one promise each, as careless stores do. */
const faults: Readonly<Record<string, Fault>> = {
  'appends wherever the head is': (sound) => ({
    async append(runId, expected, events, options) {
      const seq = (await sound.head(runId))?.seq ?? 0
      return sound.append(
        runId,
        { ...expected, expectedSeq: seq },
        restamped(events, seq, expected.epoch),
        options,
      )
    },
  }),
  'lets a writer append under any epoch': (sound) => ({
    async append(runId, expected, events, options) {
      const epoch = (await sound.head(runId))?.epoch ?? 1
      const signed = restamped(events, expected.expectedSeq, epoch)
      return sound.append(runId, { ...expected, epoch }, signed, options)
    },
  }),
  'answers conflicts as if all was well': (sound) => ({
    append: (runId, expected, events, options) =>
      sound.append(runId, expected, events, options).catch((error: unknown) => {
        if (!(error instanceof LedgerConflictError)) throw error
        return { seq: expected.expectedSeq + events.length, epoch: expected.epoch }
      }),
  }),
  'calls every conflict a seq conflict': (sound) => ({
    append: (runId, expected, events, options) =>
      sound.append(runId, expected, events, options).catch((error: unknown) => {
        if (!(error instanceof LedgerConflictError)) throw error
        throw new LedgerConflictError('seq', error.message)
      }),
  }),
  'writes a batch one by one': (sound) => ({
    async append(runId, expected, events, options) {
      let head = { seq: expected.expectedSeq, epoch: expected.epoch }
      for (const event of events) {
        head = await sound.append(runId, { ...expected, expectedSeq: head.seq }, [event], options)
      }
      return events.length > 0 ? head : sound.append(runId, expected, events, options)
    },
  }),
  'names what runs begin with by its last message': (sound) => {
    const named = new Map<string, readonly Message[]>()
    return {
      async append(runId, expected, events, options) {
        for (const event of events) {
          if (event.type !== 'history_carried') continue
          const name = toCanonicalJson(event.messages.at(-1))
          if (!named.has(name)) named.set(name, event.messages)
        }
        return sound.append(runId, expected, events, options)
      },
      async *read(runId, range) {
        for await (const event of sound.read(runId, range)) {
          if (event.type !== 'history_carried') yield event
          else {
            const name = toCanonicalJson(event.messages.at(-1))
            yield { ...event, messages: named.get(name) ?? [] }
          }
        }
      },
    }
  },
  'tells runs without what they begin with': (sound) => ({
    async *tail(after) {
      for await (const { cursor, event } of sound.tail(after)) {
        yield { cursor, event: event.type === 'history_carried' ? { ...event, messages: [] } : event }
      }
    },
  }),
  'takes a run with another beginning for a lost acknowledgement': (sound) => ({
    async append(runId, expected, events, options) {
      const head = await sound.head(runId)
      const isCarrying = events.some(({ type }) => type === 'history_carried')
      return head && isCarrying ? head : sound.append(runId, expected, events, options)
    },
  }),
  'knows no lost acknowledgement': (sound) => ({
    async append(runId, expected, events, options) {
      const seq = (await sound.head(runId))?.seq ?? 0
      if (seq !== expected.expectedSeq && events.length > 0) throw new LedgerConflictError('seq', 'no')
      return sound.append(runId, expected, events, options)
    },
  }),
  'takes any append after the head for a lost acknowledgement': (sound) => ({
    async append(runId, expected, events, options) {
      const head = await sound.head(runId)
      if (head && events.length > 0 && head.seq >= expected.expectedSeq + events.length) return head
      return sound.append(runId, expected, events, options)
    },
  }),
  'tells a relieved writer the new epoch': (sound) => ({
    async append(runId, expected, events, options) {
      await sound.append(runId, expected, events, options)
      return (await sound.head(runId)) ?? { seq: 0, epoch: 1 }
    },
  }),
  'takes from the inbox before it knows the head': (sound) => ({
    async append(runId, expected, events, options) {
      const head = await sound.head(runId)
      if (head) await sound.append(runId, { expectedSeq: head.seq, epoch: head.epoch }, [], options)
      return sound.append(runId, expected, events, options)
    },
  }),
  'leaves taken entries in the inbox': (sound) => ({
    append: (runId, expected, events, { durability }) =>
      sound.append(runId, expected, events, { durability }),
  }),
  'takes a run over without raising the epoch': (sound) => ({
    acquire: async (runId) => (await sound.head(runId)) ?? sound.acquire(runId),
  }),
  'makes a run by taking it over': (sound) => ({
    acquire: async (runId) => ((await sound.head(runId)) ? sound.acquire(runId) : { seq: 0, epoch: 2 }),
  }),
  'reads up to the upper bound without it': (sound) => ({
    read: (runId, range) =>
      sound.read(runId, range?.toSeq === undefined ? range : { ...range, toSeq: range.toSeq - 1 }),
  }),
  'ignores the lower bound': (sound) => ({
    read: (runId, range) => sound.read(runId, range?.toSeq === undefined ? {} : { toSeq: range.toSeq }),
  }),
  'hands out the same object twice, to be changed': (sound) => {
    const known = new Map<string, RuntimeEvent>()
    return {
      async *read(runId, range) {
        for await (const event of sound.read(runId, range)) {
          const key = `${runId} ${event.seq}`
          known.set(key, known.get(key) ?? structuredClone(event))
          yield known.get(key) as RuntimeEvent
        }
      },
    }
  },
  'mends half surrogate pairs': (sound) => ({
    async *read(runId, range) {
      for await (const event of sound.read(runId, range)) {
        const text = toCanonicalJson(event).replaceAll(/\\ud[89a-f][0-9a-f]{2}/g, '\ufffd')
        yield JSON.parse(text) as RuntimeEvent
      }
    },
  }),
  'cuts text at a NUL': (sound) => ({
    async *read(runId, range) {
      for await (const event of sound.read(runId, range)) {
        yield 'text' in event ? { ...event, text: event.text.split('\0')[0] ?? '' } : event
      }
    },
  }),
  'takes ids as other ids': (sound) => {
    const mended = (text: string): string => text.replaceAll('\0', '').toWellFormed()
    return {
      append: (runId, expected, events, options) =>
        sound.append(
          mended(runId) as never,
          expected,
          events.map((event) => {
            const texts = Object.entries(event).filter(([, value]) => typeof value === 'string')
            return {
              ...event,
              ...Object.fromEntries(texts.map(([key, text]) => [key, mended(text as string)])),
            }
          }) as never,
          options,
        ),
    }
  },
  'lists the oldest run first': (sound) => ({
    async *runs() {
      yield* (await Array.fromAsync(sound.runs())).toReversed()
    },
  }),
  'lists every run, whatever the limit': (sound) => ({
    runs: ({ limit: _limit, ...filter } = {}) => sound.runs(filter),
  }),
  'begins every page with the run that ended the last': (sound) => ({
    async *runs({ before, ...filter } = {}) {
      const all = await Array.fromAsync(sound.runs(filter))
      yield* all.slice(all.findIndex(({ runId }) => runId === before))
    },
  }),
  'begins the list anew for a run that it does not know': (sound) => ({
    async *runs({ before, limit = Infinity, ...filter } = {}) {
      const all = await Array.fromAsync(sound.runs(filter))
      const from = all.findIndex(({ runId }) => runId === before) + 1
      yield* all.slice(from, from + limit)
    },
  }),
  'takes any limit for none': (sound) => ({
    runs: ({ limit, ...filter } = {}) =>
      sound.runs(limit !== undefined && Number.isSafeInteger(limit) ? { ...filter, limit } : filter),
  }),
  ...searchFaults(),
  ...tailFaults,
  'calls every key new': (sound) => ({ put: async (runId, entry) => (await sound.put(runId, entry), true) }),
  'orders the inbox by key': (sound) => ({
    inbox: async (runId) => (await sound.inbox(runId)).toSorted(inOrder),
  }),
  'keeps one inbox for all runs': (sound) => {
    const keys = new Set<string>()
    return {
      async put(runId, entry) {
        const isKnown = keys.has(entry.key)
        keys.add(entry.key)
        return isKnown ? false : sound.put(runId, entry)
      },
    }
  },
  'hints at nothing': () => ({ changes: () => EMPTY }),
  'is closed to a run that has rested': (sound) => {
    const released = new Set<string>()
    return {
      release: async (runId) => void released.add(runId),
      async append(runId, ...given) {
        if (released.has(runId)) throw new LedgerConflictError('epoch', 'it rests')
        return sound.append(runId, ...given)
      },
    }
  },
  'takes the lease of no append': (sound) => ({
    append: (runId, expected, events, options) =>
      sound.append(runId, expected, events, { ...options, lease: undefined }),
  }),
  'takes a run over whoever drives it': (sound) => ({
    acquire: async (runId, claim) => {
      const from = (await sound.lease(runId))?.holder
      return await sound.acquire(runId, claim && { ...claim, from })
    },
  }),
  'takes no run from a holder that has died': (sound) => ({
    acquire: (runId, claim) => sound.acquire(runId, claim && { ...claim, from: undefined }),
  }),
  'renews no lease': (sound) => ({ renew: (runIds, claim) => sound.renew(runIds, { ...claim, forMs: 0 }) }),
  'lets anybody release a run': (sound) => ({
    release: async (runId) => {
      const lease = await sound.lease(runId)
      if (lease) await sound.release(runId, lease.holder)
    },
  }),
  'releases no run': () => ({ release: async () => {} }),
  'forgets what a run waits for': (sound) => ({ release: (runId, holder) => sound.release(runId, holder) }),
  'lets a run wait whatever its inbox holds': (sound) => {
    const waits = new Map<string, number>()
    return {
      release: async (runId, holder, { wakeAt } = {}) => {
        if (wakeAt !== undefined) waits.set(runId, wakeAt)
        await sound.release(runId, holder)
      },
      async *due(filter) {
        for await (const { runId, dueAt } of sound.due({ ...filter, limit: undefined }))
          yield { runId, dueAt: waits.get(runId) ?? dueAt }
      },
    }
  },
  'lets a run wait for a child run that has ended': (sound) => ({
    release: (runId, holder, wait) => sound.release(runId, holder, wait && { ...wait, children: undefined }),
  }),
  'wakes no parent': (sound) => ({
    append: (runId, expected, events, options) =>
      sound.append(runId, expected, events, { ...options, wakes: undefined }),
  }),
  'calls driven runs due': (sound) => ({
    async *due() {
      for await (const { runId } of sound.runs()) yield { runId, dueAt: 0 }
    },
  }),
  'begins every page of due runs anew': (sound) => ({
    due: ({ before, limit }) => sound.due({ before, limit }),
  }),
  'lists every due run, whatever the limit': (sound) => ({
    due: ({ before, after }) => sound.due({ before, after }),
  }),
  'lists what it read ahead after it was closed': (sound) => ({
    async *runs(filter) {
      yield* await Array.fromAsync(sound.runs(filter))
    },
  }),
  'reads what it read ahead after it was closed': (sound) => ({
    async *read(runId, range) {
      yield* await Array.fromAsync(sound.read(runId, range))
    },
  }),
  'finds what it read ahead after it was closed': (sound) => ({
    async *find(query) {
      yield* await Array.fromAsync(sound.find(query))
    },
  }),
  'tails what it read ahead after it was closed': (sound) => ({
    async *tail(after) {
      yield* await Array.fromAsync(sound.tail(after))
    },
  }),
  'stays open after closing': () => ({ close: async () => undefined }),
  'hints for ever after it was closed': (sound) => ({
    changes: (...given) => concat(sound.changes(...given), NEVER),
  }),
  'ends its hints before it refuses to be read': (sound) => ({
    changes: (...given) => sound.changes(...given).pipe(take(0)),
  }),
  'has hints for ever for those that come after it was closed': (sound) => {
    let isClosed = false
    return {
      changes: (...given) => defer(() => (isClosed ? NEVER : sound.changes(...given))),
      close: async () => {
        isClosed = true
        await sound.close()
      },
    }
  },
}

/** Rejects once nothing can happen any more: no case on a store in memory waits for anything outside of it. */
async function hanging(): Promise<never> {
  await new Promise((resolve) => setImmediate(resolve))
  throw new Error('The case hangs.')
}

/** The first promise that a store with this fault breaks, if any: one is enough, and the others take their time. */
async function brokenPromise(fault: Fault): Promise<string | undefined> {
  for (const { promise, needs, run } of ledgerContract) {
    if (needs !== undefined) continue
    const open = async (): Promise<Ledger> => {
      const sound = memoryLedger()
      return { ...sound, ...fault(sound) }
    }
    const isKept = await Promise.race([run(open), hanging()]).then(
      () => true,
      () => false,
    )
    if (!isKept) return promise
  }
  return undefined
}

/** All of them in a thorough run, and some of each kind in a quick one. */
const tried = Object.entries(faults).filter(
  (_fault, index) => index % effort({ quick: 3, thorough: 1 }) === 0,
)

describe('the ledger contract', () => {
  it('has a name of its own for every promise', () => {
    const promises = ledgerContract.map(({ promise }) => promise)
    expect(new Set(promises).size).toBe(promises.length)
    expect(promises.length).toBeGreaterThan(80)
  })

  it('finds nothing to blame in a sound store', async () => {
    expect(await brokenPromise(() => ({}))).toBeUndefined()
  })

  it.each(tried)('turns red for a store that %s', async (_name, fault) => {
    expect(await brokenPromise(fault)).toBeDefined()
  })
})
