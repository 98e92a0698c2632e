import { defer, EMPTY, finalize, NEVER, Subject, throwError, type Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { type Ledger, LedgerUnavailableError, memoryLedger, type RuntimeEvent } from '@tallystick/core'
import {
  caughtUp,
  type ChangeOptions,
  type Changes,
  followChanges,
  followAllChanges,
} from '@tallystick/core/store-kit'
import { createHintsEndedError } from '../src/ledger/changes.ts'
import { sampleFacts, manualClock, sampleRunId, stampFacts } from '@tallystick/testkit'

const run = sampleRunId(1)
const facts = sampleFacts(run)

async function append(ledger: Ledger, ...seqs: readonly number[]): Promise<void> {
  for (const seq of seqs) {
    const fact = seq === 1 ? facts.run_started : { ...facts.assistant_text_delta, text: `${seq}` }
    const events = stampFacts(run, [fact], { afterSeq: seq - 1 })
    await ledger.append(run, { expectedSeq: seq - 1, epoch: 1 }, events, { durability: 'lazy' })
  }
}

/** The next items of changes, each event as its number, and `|` where the reader has caught up. */
async function take(changes: Changes<RuntimeEvent>, count: number): Promise<string> {
  const seen: string[] = []
  while (seen.length < count) {
    const { done, value } = await changes.next()
    if (done) return [...seen, 'end'].join(' ')
    seen.push(value === caughtUp ? '|' : `${value.seq}`)
  }
  return seen.join(' ')
}

/** A ledger whose hints a test sends, and counts the subscribers of. */
function hintedLedger(
  sound: Ledger,
  view: Partial<Ledger> = {},
): { ledger: Ledger; hints$: Subject<void>; subscribers: () => number } {
  const hints$ = new Subject<void>()
  let subscribers = 0
  const changes = (): Observable<void> =>
    defer(() => {
      subscribers++
      return hints$.pipe(finalize(() => subscribers--))
    })
  return { ledger: { ...sound, changes, ...view }, hints$, subscribers: () => subscribers }
}

const everyMinute = (clock: ReturnType<typeof manualClock>): ChangeOptions => ({
  after: 0,
  poll: { clock, delayMs: () => 60_000 },
})

describe('the changes of a run', () => {
  it('are the events that are there and those that come, after each look a sign that the reader has all', async () => {
    const ledger = memoryLedger()
    await append(ledger, 1, 2, 3)
    const changes = followChanges(ledger, run, { after: 1 })
    expect(await take(changes, 3)).toBe('2 3 |')
    const next = take(changes, 2)
    await append(ledger, 4)
    expect(await next).toBe('4 |')
  })

  it('come without a gap where an append follows the first look and precedes the wait', async () => {
    const sound = memoryLedger()
    await append(sound, 1)
    let isFirst = true
    const ledger: Ledger = {
      ...sound,
      async *read(runId, range) {
        yield* await Array.fromAsync(sound.read(runId, range))
        if (isFirst) await append(sound, 2)
        isFirst = false
      },
    }
    expect(await take(followChanges(ledger, run, { after: 0 }), 4)).toBe('1 | 2 |')
  })

  it('come without a gap where an append follows the subscription and precedes the first look', async () => {
    const sound = memoryLedger()
    await append(sound, 1)
    let appended: Promise<void> | undefined
    const ledger: Ledger = {
      ...sound,
      changes: (runId) =>
        defer(() => {
          appended = append(sound, 2)
          return sound.changes(runId)
        }),
    }
    expect(await take(followChanges(ledger, run, { after: 0 }), 3)).toBe('1 2 |')
    await appended
  })

  it('are yielded to a slow reader one by one, with one look for all hints that came meanwhile', async () => {
    const sound = memoryLedger()
    await append(sound, 1)
    let looks = 0
    const { ledger, hints$ } = hintedLedger(sound, {
      read(runId, range) {
        looks++
        return sound.read(runId, range)
      },
    })
    const changes = followChanges(ledger, run, { after: 0 })
    expect(await take(changes, 1)).toBe('1')
    await append(sound, 2, 3, 4)
    for (let hint = 0; hint < 5; hint++) hints$.next()
    expect(changes.isWoken).toBe(true)
    expect(await take(changes, 5)).toBe('| 2 3 4 |')
    expect({ looks, isWoken: changes.isWoken }).toEqual({ looks: 2, isWoken: false })
  })

  it('show a hint without an event: a command in the inbox', async () => {
    const ledger = memoryLedger()
    await append(ledger, 1)
    const changes = followChanges(ledger, run, { after: 0 })
    expect(await take(changes, 2)).toBe('1 |')
    const next = take(changes, 1)
    await ledger.put(run, { key: 'a', command: { type: 'cancel' }, at: 0 })
    expect(await next).toBe('|')
  })

  it('end for a reader that stops while it waits, and no subscription is left', async () => {
    const { ledger, subscribers } = hintedLedger(memoryLedger())
    const changes = followChanges(ledger, run, { after: 0 })
    expect(await take(changes, 1)).toBe('|')
    const waiting = take(changes, 1)
    expect(subscribers()).toBe(1)
    await changes.return()
    expect(subscribers()).toBe(0)
    expect(await waiting).toBe('end')
    expect(await take(changes, 1)).toBe('end')
  })

  it('end for a reader that stops while the ledger is being read', async () => {
    const sound = memoryLedger()
    await append(sound, 1, 2)
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
    const { ledger, subscribers } = hintedLedger(sound, {
      async *read(runId, range) {
        await answered
        yield* sound.read(runId, range)
      },
    })
    const changes = followChanges(ledger, run, { after: 0 })
    const reading = take(changes, 1)
    const stopped = changes.return()
    expect(subscribers()).toBe(0)
    answer()
    await stopped
    expect(await reading).toBe('end')
  })

  it('reject with the error of a read, and leave no subscription', async () => {
    const sound = memoryLedger()
    const { ledger, subscribers } = hintedLedger(sound, {
      async *read(runId, range) {
        yield* sound.read(runId, range)
        throw new LedgerUnavailableError('The disk is gone.')
      },
    })
    await expect(take(followChanges(ledger, run, { after: 0 }), 1)).rejects.toThrow('The disk is gone.')
    expect(subscribers()).toBe(0)
  })

  it('reject with the error of the hints, once everything is read', async () => {
    const sound = memoryLedger()
    await append(sound, 1)
    const ledger = { ...sound, changes: () => throwError(() => new LedgerUnavailableError('No hints.')) }
    const changes = followChanges(ledger, run, { after: 0 })
    expect(await take(changes, 2)).toBe('1 |')
    await expect(take(changes, 1)).rejects.toThrow('No hints.')
  })

  it.each<[string, (hints$: Subject<void>) => void, string]>([
    ['reject', (hints$) => hints$.error(new LedgerUnavailableError('No hints.')), 'No hints.'],
    ['reject', (hints$) => hints$.complete(), createHintsEndedError().message],
  ])('%s for a reader that waits when no hint can come any more (%#)', async (_how, stop, said) => {
    const { ledger, hints$, subscribers } = hintedLedger(memoryLedger())
    const changes = followChanges(ledger, run, { after: 0 })
    expect(await take(changes, 1)).toBe('|')
    const waiting = take(changes, 1).catch(({ message }: Error) => message)
    stop(hints$)
    expect(await waiting).toBe(said)
    expect(subscribers()).toBe(0)
  })

  it('reject with the error of a closed ledger, whatever the reader is doing', async () => {
    const waiting = memoryLedger()
    await append(waiting, 1)
    const changes = followChanges(waiting, run, { after: 0 })
    expect(await take(changes, 2)).toBe('1 |')
    const next = take(changes, 1)
    expect(changes.isCutOff).toBe(false)
    await waiting.close()
    await expect(next).rejects.toThrow(/in-memory ledger is closed/)
    expect(changes.isCutOff).toBe(true)
    const closed = followChanges(waiting, run, { after: 0 })
    await expect(take(closed, 1)).rejects.toThrow(/in-memory ledger is closed/)
  })

  it('look again when the reader wakes them', async () => {
    const sound = memoryLedger()
    await append(sound, 1)
    const changes = followChanges({ ...sound, changes: () => NEVER }, run, { after: 0 })
    expect(await take(changes, 2)).toBe('1 |')
    await append(sound, 2)
    changes.wake()
    expect(await take(changes, 2)).toBe('2 |')
  })
})

describe('the changes of a run that is polled', () => {
  const silent: Readonly<Record<string, () => Observable<void>>> = {
    'come late': () => NEVER,
    fail: () => throwError(() => new LedgerUnavailableError('No hints.')),
    'have ended': () => EMPTY,
  }
  it.each(Object.entries(silent))('are found by the clock where hints %s', async (_how, changes) => {
    const [sound, clock] = [memoryLedger(), manualClock()]
    await append(sound, 1)
    const polled = followChanges({ ...sound, changes }, run, everyMinute(clock))
    expect(await take(polled, 2)).toBe('1 |')
    await append(sound, 2)
    const next = take(polled, 2)
    await untilScheduled(clock)
    clock.advance(60_000)
    expect(await next).toBe('2 |')
    await polled.return()
    expect(clock.pending).toBe(0)
  })

  it('come at a hint, before the time of the poll, whose timer is gone then', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    await append(ledger, 1)
    const polled = followChanges(ledger, run, everyMinute(clock))
    expect(await take(polled, 2)).toBe('1 |')
    const next = take(polled, 1)
    await untilScheduled(clock)
    await append(ledger, 2)
    expect(await next).toBe('2')
    expect(clock.pending).toBe(0)
  })

  it('reject with the error of a closed ledger: its reader waits for an answer', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    await append(ledger, 1)
    const polled = followChanges(ledger, run, everyMinute(clock))
    expect(await take(polled, 2)).toBe('1 |')
    await ledger.close()
    await expect(take(polled, 1)).rejects.toThrow(LedgerUnavailableError)
  })
})

it('the changes of every run follow a cursor through all of them', async () => {
  const ledger = memoryLedger()
  await append(ledger, 1, 2, 3)
  const [first] = await Array.fromAsync(ledger.tail())
  const seen: number[] = []
  const changes = followAllChanges(ledger, first?.cursor)
  for await (const tailed of changes) {
    if (tailed !== caughtUp) seen.push(tailed.event.seq)
    else if (seen.length === 2) await append(ledger, 4)
    else break
  }
  expect(seen).toEqual([2, 3, 4])
})

/** Resolves once the reader waits for the clock. */
async function untilScheduled(clock: ReturnType<typeof manualClock>): Promise<void> {
  for (let turn = 0; clock.pending === 0 && turn < 100; turn++) await Promise.resolve()
}
