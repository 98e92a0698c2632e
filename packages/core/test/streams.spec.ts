import { firstValueFrom, lastValueFrom, map, merge, startWith, tap, toArray } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { type Ledger, memoryLedger, type RunState, type RuntimeEvent } from '@tallystick/core'
import { readMessages } from '@tallystick/core/internal'
import { evolve } from '@tallystick/core/machine'
import { testTool } from '@tallystick/testkit'
import { stage, typesOf, type Stage } from './stage.ts'

const seqs = (events: readonly { readonly seq: number }[]): readonly number[] => events.map(({ seq }) => seq)
const upTo = (last: number): readonly number[] => Array.from({ length: last }, (_, index) => index + 1)

/** A run that looks once and answers. */
function looking(ledger?: Ledger): Stage {
  return stage({
    steps: [{ text: 'Looking.', toolCalls: [{ name: 'look', input: {} }] }, { text: 'It is blue.' }],
    tools: [testTool({ name: 'look' })],
    ...(ledger && { ledger }),
  })
}

/** A run that waits for a person, twice. */
function asking(): Stage {
  const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
  const step = { toolCalls: [{ name: 'pay', input: {} }] }
  return stage({ steps: [step, step, { text: 'Paid.' }], tools: [pay] })
}

describe('events$', () => {
  it('gives every subscriber all of it, once and in order, however late it comes', async () => {
    const { start, waitUntilSettled: settle, eventsOf } = looking()
    const run = start()
    const early: RuntimeEvent[] = []
    run.events$.subscribe((event) => early.push(event))
    const midway = new Promise<readonly RuntimeEvent[]>((resolve, reject) => {
      let subscribed = false
      run.events$.subscribe(({ type }) => {
        if (type !== 'tool_started' || subscribed) return
        subscribed = true
        firstValueFrom(run.events$.pipe(toArray())).then(resolve, reject)
      })
    })
    await settle(run.result)
    const late = await settle(firstValueFrom(run.events$.pipe(toArray())))
    const recorded = await eventsOf(run)
    expect(late).toEqual(recorded)
    expect(early).toEqual(recorded)
    expect(await midway).toEqual(recorded)
    expect(seqs(recorded)).toEqual(upTo(recorded.length))
  })

  it('shows nothing that is not in the ledger yet', async () => {
    const ledger = memoryLedger()
    let appended = 0
    const watched: Ledger = {
      ...ledger,
      async append(runId, expected, events, options) {
        const head = await ledger.append(runId, expected, events, options)
        appended = head.seq
        return head
      },
    }
    const { start, waitUntilSettled: settle } = looking(watched)
    const run = start()
    const tooEarly: number[] = []
    run.events$.subscribe(({ seq }) => {
      if (seq > appended) tooEarly.push(seq)
    })
    await settle(run.result)
    expect(appended).toBeGreaterThan(10)
    expect(tooEarly).toEqual([])
  })

  it('loses nothing that is appended while the past is still being read', async () => {
    const ledger = memoryLedger()
    let release: () => void = () => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const slow: Ledger = {
      ...ledger,
      async *read(runId, range) {
        for await (const event of ledger.read(runId, range)) {
          yield event
          if (event.seq === 3) await gate
        }
      },
    }
    const { start, waitUntilSettled: settle, eventsOf } = looking(slow)
    const run = start()
    const seen: number[] = []
    // With the run under way: one that has just been started has no past to read.
    await firstValueFrom(run.events$)
    run.events$.subscribe(({ seq, type }) => {
      seen.push(seq)
      if (type === 'run_finished') seen.push(-1)
    })
    await settle(run.result)
    release()
    const recorded = await settle(eventsOf(run))
    await settle(firstValueFrom(run.events$.pipe(toArray())))
    expect(seen).toEqual([...upTo(recorded.length), -1])
  })

  it('stays open while the run is suspended, and completes after its end', async () => {
    const { start, waitUntilSettled: settle } = asking()
    const run = start()
    const seen: string[] = []
    run.events$.subscribe({ next: ({ type }) => seen.push(type), complete: () => seen.push('complete') })
    for (let turn = 1; turn <= 2; turn++) {
      const { pendingApprovals } = await settle(run.result)
      expect(seen.at(-1)).toBe('approval_requested')
      await settle(run.approve(pendingApprovals[0]!.toolCallId, { by: 'ada' }))
    }
    await settle(run.result)
    expect(seen.slice(-2)).toEqual(['run_finished', 'complete'])
  })

  it('reads nothing for a subscriber that comes with the start of the run, and the ledger for a later one', async () => {
    const ledger = memoryLedger()
    let asked = 0
    const counting: Ledger = {
      ...ledger,
      head: (runId) => (asked++, ledger.head(runId)),
      read: (runId, range) => (asked++, ledger.read(runId, range)),
    }
    const { start, waitUntilSettled: settle, eventsOf } = looking(counting)
    const run = start()
    const seen: RuntimeEvent[] = []
    run.events$.subscribe((event) => seen.push(event))
    await settle(run.result)
    expect(asked).toBe(0)
    const late = await settle(firstValueFrom(run.events$.pipe(toArray())))
    expect(asked).toBe(2)
    expect(seen).toEqual(late)
    expect(await eventsOf(run)).toEqual(late)
  })

  it('reads what is on record of a run whose first append failed after it was written', async () => {
    const ledger = memoryLedger()
    const failing: Ledger = {
      ...ledger,
      async append(...given) {
        await ledger.append(...given)
        throw new Error('no answer')
      },
    }
    const { start, waitUntilSettled: settle } = looking(failing)
    const run = start()
    await settle(run.result.catch(() => {}))
    const seen: number[] = []
    const failed = lastValueFrom(run.events$.pipe(tap(({ seq }) => seen.push(seq))))
    await expect(settle(failed)).rejects.toThrow('no answer')
    expect(seen.slice(0, 2)).toEqual([1, 2])
  })

  it('can be left: a subscriber that unsubscribes gets nothing more', async () => {
    const { start, waitUntilSettled: settle } = looking()
    const run = start()
    const seen: number[] = []
    const subscription = run.events$.subscribe(({ seq }) => {
      seen.push(seq)
      if (seq === 4) subscription.unsubscribe()
    })
    await settle(run.result)
    expect(seen).toEqual([1, 2, 3, 4])
  })
})

describe('a subscriber that throws', () => {
  it('hurts no other: it is dropped, its error is reported, the run and the others continue', async () => {
    const { start, waitUntilSettled: settle, reported, eventsOf } = looking()
    const run = start()
    const others: number[] = []
    let received = 0
    run.events$.subscribe(() => {
      received++
      throw new Error('bad subscriber')
    })
    run.events$.subscribe(({ seq }) => others.push(seq))
    expect(await settle(run.result)).toMatchObject({ reason: 'answered' })
    expect(reported.map(String)).toEqual(['Error: bad subscriber'])
    expect(received).toBe(1)
    expect(others).toEqual(seqs(await eventsOf(run)))
  })

  it('hurts no other after an operator either', async () => {
    const { start, waitUntilSettled: settle, reported } = looking()
    const run = start()
    const throwing = (): never => {
      throw new Error('piped')
    }
    run.events$.pipe(map(({ type }) => type)).subscribe(throwing)
    run.text$.pipe(map((text) => text.length)).subscribe(throwing)
    run.state$.subscribe(throwing)
    const failed: unknown[] = []
    run.events$.pipe(tap(throwing)).subscribe({ error: (error: unknown) => failed.push(error) })
    expect(await settle(run.result)).toMatchObject({ reason: 'answered' })
    expect(reported.map(String)).toEqual(Array.from({ length: 3 }, () => 'Error: piped'))
    expect(failed.map(String)).toEqual(['Error: piped'])
  })

  it('is dropped also where it throws while it subscribes', async () => {
    const { start, waitUntilSettled: settle, reported } = looking()
    const run = start()
    let received = 0
    run.events$.pipe(startWith('begin')).subscribe(() => {
      received++
      throw new Error('at once')
    })
    expect(await settle(run.result)).toMatchObject({ reason: 'answered' })
    expect([received, reported.map(String)]).toEqual([1, ['Error: at once']])
  })

  it('hurts no other when it throws at the end', async () => {
    const { start, waitUntilSettled: settle, reported } = looking()
    const run = start()
    run.events$.subscribe({
      complete: () => {
        throw new Error('at the end')
      },
    })
    expect(await settle(run.result)).toMatchObject({ reason: 'answered' })
    expect(reported.map(String)).toEqual(['Error: at the end'])
  })

  it('gets a failure of the ledger, or its failure is reported where it does not listen for errors', async () => {
    const ledger = memoryLedger()
    const broken: Ledger = {
      ...ledger,
      read() {
        throw new Error('no disk')
      },
    }
    const { start, waitUntilSettled: settle, reported } = looking(broken)
    const run = start()
    const received: unknown[] = []
    await settle(run.result)
    run.events$.subscribe({ error: (error: unknown) => received.push(error) })
    run.events$.subscribe()
    await settle(Promise.resolve())
    expect(received.map(String)).toEqual(['Error: no disk'])
    expect(reported.map(String)).toEqual(['Error: no disk'])
  })
})

describe('text$ and state$', () => {
  it('are the same streams whenever they are asked for, of the whole run and after an event', async () => {
    const { start, waitUntilSettled: settle } = looking()
    const run = start()
    const rest = run.after(2)
    for (const views of [run, rest]) {
      const { state$, text$, textUpdates$ } = views
      expect(views.state$).toBe(state$)
      expect(views.text$).toBe(text$)
      expect(views.textUpdates$).toBe(textUpdates$)
    }
    await settle(run.result)
    expect(await settle(firstValueFrom(rest.state$.pipe(map(({ seq }) => seq))))).toBe(3)
  })

  it('give the model’s text message by message, and the state after each event', async () => {
    const { start, waitUntilSettled: settle, eventsOf } = looking()
    const run = start()
    const texts: string[] = []
    run.text$.subscribe((text) => texts.push(text))
    const states: RunState[] = []
    run.state$.subscribe((state) => states.push(state))
    const result = await settle(run.result)
    expect(texts).toEqual(['Looking.', 'It is blue.'])
    expect(result.text).toBe('It is blue.')
    const folded: RunState[] = []
    for (const event of await eventsOf(run)) folded.push(evolve(folded.at(-1), event))
    const shown = (list: readonly RunState[]): unknown =>
      list.map(({ seq, phase, history }) => ({ seq, phase, messages: readMessages(history) }))
    expect(shown(states)).toEqual(shown(folded))
  })

  it('can be put together with the streams of others', async () => {
    const first = looking()
    const second = looking()
    const runs = [first.start(), second.start()]
    const texts = firstValueFrom(merge(...runs.map(({ text$ }) => text$)).pipe(toArray()))
    await first.waitUntilSettled(runs[0]!.result)
    await second.waitUntilSettled(runs[1]!.result)
    expect((await texts).join('')).toHaveLength('Looking.It is blue.'.length * 2)
  })
})

describe('for await over a run', () => {
  const collect = async (run: AsyncIterable<RuntimeEvent>): Promise<readonly RuntimeEvent[]> => {
    const events: RuntimeEvent[] = []
    for await (const event of run) events.push(event)
    return events
  }

  it('gives all events and ends after the last', async () => {
    const { start, waitUntilSettled: settle, eventsOf } = looking()
    const run = start()
    const live = await settle(collect(run))
    expect(live).toEqual(await eventsOf(run))
    expect(await settle(collect(run))).toEqual(live)
  })

  it('ends where the run is suspended, and a new one goes further', async () => {
    const { start, waitUntilSettled: settle } = asking()
    const run = start()
    const first = await settle(collect(run))
    expect(typesOf(first).at(-1)).toBe('approval_requested')
    const { pendingApprovals } = await settle(run.result)
    const approved = run.approve(pendingApprovals[0]!.toolCallId, { by: 'ada' })
    const second = await settle(collect(run))
    expect(await approved).toEqual({ accepted: true })
    expect(second.slice(0, first.length)).toEqual(first)
    expect(second.length).toBeGreaterThan(first.length + 5)
    expect(typesOf(second).at(-1)).toBe('approval_requested')
  })

  it('can be left at any event', async () => {
    const { start, waitUntilSettled: settle } = looking()
    const run = start()
    const seen: number[] = []
    const look = async (): Promise<void> => {
      for await (const { seq } of run) {
        seen.push(seq)
        if (seq === 3) break
      }
    }
    await settle(look())
    expect(seen).toEqual([1, 2, 3])
    expect(await settle(run.result)).toMatchObject({ reason: 'answered' })
  })

  it('throws what the run fails with, after the events that are on record', async () => {
    const ledger = memoryLedger()
    let appends = 0
    const dying: Ledger = {
      ...ledger,
      async append(...append) {
        appends++
        if (appends === 2) throw new Error('disk full')
        return await ledger.append(...append)
      },
    }
    const { start, waitUntilSettled: settle, eventsOf } = looking(dying)
    const run = start()
    const seen: number[] = []
    const look = async (): Promise<void> => {
      for await (const { seq } of run) seen.push(seq)
    }
    await expect(settle(look())).rejects.toThrow('disk full')
    await expect(settle(run.result)).rejects.toThrow('disk full')
    expect(seen).toEqual(seqs(await eventsOf(run)))
    expect(seen.length).toBeGreaterThan(1)
  })
})
