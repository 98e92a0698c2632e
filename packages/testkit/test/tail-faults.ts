import { EMPTY } from 'rxjs'
import type { Ledger } from '@tallystick/core'

/** What a careless store does in place of a sound one. */
export type Fault = (sound: Ledger) => Partial<Ledger>

/** Cursors that lead elsewhere, and tails that know no order, no start or no end. */
export const tailFaults: Readonly<Record<string, Fault>> = {
  'begins every tail with the first event': (sound) => ({ tail: () => sound.tail() }),
  'continues with the event of the cursor': (sound) => ({
    async *tail(after) {
      const all = await Array.fromAsync(sound.tail())
      yield* all.slice(
        Math.max(
          0,
          all.findIndex(({ cursor }) => cursor === after),
        ),
      )
    },
  }),
  'takes a cursor that it does not know for none': (sound) => ({
    async *tail(after) {
      const all = await Array.fromAsync(sound.tail())
      yield* sound.tail(all.some(({ cursor }) => cursor === after) ? after : undefined)
    },
  }),
  'tails run after run': (sound) => ({
    async *tail(after) {
      const all = await Array.fromAsync(sound.tail(after))
      const byRun = Map.groupBy(all, ({ event }) => event.runId)
      for (const tailed of byRun.values()) yield* tailed
    },
  }),
  'yields each event of a tail twice': (sound) => ({
    async *tail(after) {
      for await (const tailed of sound.tail(after)) yield* [tailed, tailed]
    },
  }),
  'leaves the last event of a tail out': (sound) => ({
    async *tail(after) {
      yield* (await Array.fromAsync(sound.tail(after))).slice(0, -1)
    },
  }),
  'leaves out of a tail what is appended lazily': (sound) => {
    const lazy = new Set<string>()
    return {
      async append(runId, expected, events, options) {
        if (options.durability === 'lazy') for (const { seq } of events) lazy.add(`${runId} ${seq}`)
        return sound.append(runId, expected, events, options)
      },
      async *tail(after) {
        for await (const tailed of sound.tail(after)) {
          if (!lazy.has(`${tailed.event.runId} ${tailed.event.seq}`)) yield tailed
        }
      },
    }
  },
  'has one cursor for the events of an append': (sound) => ({
    async *tail(after) {
      let last: string | undefined
      for await (const { event, cursor } of sound.tail(after)) {
        last = event.seq % 2 === 0 ? (last ?? cursor) : cursor
        yield { event, cursor: last }
      }
    },
  }),
  'lets a tail follow the log for ever': (sound) => ({
    async *tail(after) {
      let last = after
      for (let isMore = true; isMore;) {
        isMore = false
        for await (const tailed of sound.tail(last)) {
          isMore = true
          last = tailed.cursor
          yield tailed
        }
      }
    },
  }),
  'hints at nothing where no run is named': (sound) => ({
    changes: (runId) => (runId === undefined ? EMPTY : sound.changes(runId)),
  }),
}
