import { filter, firstValueFrom, take, toArray } from 'rxjs'
import { describe, expect, it } from 'vitest'
import {
  type Clock,
  ConfigurationError,
  createRuntime,
  defineAgent,
  type Ledger,
  memoryLedger,
  type Runtime,
  type RuntimeEvent,
} from '@tallystick/core'
import {
  checkLaws,
  manualClock,
  type ManualClock,
  scriptedModel,
  waitUntilSettled,
} from '@tallystick/testkit'
import type { EventOf } from '@tallystick/core/vocabulary'
import { findEventShapeFault } from '../src/events/event.ts'
import { findNextTime } from '../src/machine/schedule.ts'

const at = (text: string): number => Date.parse(text)
const hour = 3_600_000

/** A clock on the wall that can be set, beside the time that passes. */
function wall(even: ManualClock): Clock & { aheadMs: number } {
  const clock = {
    aheadMs: 0,
    now: (): number => even.now() + clock.aheadMs,
    even: (): number => even.now(),
    schedule: even.schedule.bind(even),
  }
  return clock
}

function world(start = at('2026-03-01T00:00:00Z')) {
  const even = manualClock(start)
  const clock = wall(even)
  const ledger = memoryLedger({ clock })
  const agent = defineAgent({
    name: 'clerk',
    instructions: 'Sum up.',
    model: scriptedModel(Array.from({ length: 500 }, () => ({ text: 'Done.' }))),
  })
  const process = (own: Ledger = ledger) => createRuntime({ ledger: own, agents: [agent], host: { clock } })
  return { even, clock, ledger, agent, process, runtime: process() }
}

async function read(ledger: Ledger, runId: string): Promise<readonly RuntimeEvent[]> {
  return await Array.fromAsync(ledger.read(runId as never))
}

async function firings(ledger: Ledger, runId: string): Promise<readonly EventOf<'schedule_fired'>[]> {
  return (await read(ledger, runId)).flatMap((event) => (event.type === 'schedule_fired' ? [event] : []))
}

async function runsStarted(ledger: Ledger): Promise<readonly string[]> {
  const keys: string[] = []
  for await (const event of ledger.find({ types: ['run_started'] }))
    if (event.type === 'run_started' && event.idempotencyKey !== undefined) keys.push(event.idempotencyKey)
  return keys
}

/** Lets time pass until a schedule that this runtime drives has fired so often. */
async function untilFired(
  { even }: { even: ManualClock },
  runtime: Runtime,
  scheduleId: string,
  count: number,
) {
  const fired = runtime.resume(scheduleId).events$.pipe(
    filter((event): event is EventOf<'schedule_fired'> & RuntimeEvent => event.type === 'schedule_fired'),
    take(count),
    toArray(),
  )
  return await waitUntilSettled(even, firstValueFrom(fired))
}

const toTimes = (fired: readonly { readonly scheduledAt: number }[]): readonly string[] =>
  fired.map(({ scheduledAt }) => new Date(scheduledAt).toISOString())

/** Waits until what was asked has happened, without letting time pass. */
async function quiet(): Promise<void> {
  for (let turn = 0; turn < 200; turn++) await Promise.resolve()
  await new Promise((resolve) => setImmediate(resolve))
}

const often = { name: 'often', cron: '*/5 * * * *', input: 'Sum up.' } as const
const daily = { name: 'nightly', cron: '0 3 * * *', input: 'Sum up.' } as const

describe('a schedule', () => {
  it('starts a run at each of its times, on record, until it is removed', async () => {
    const site = world()
    const { even, ledger, agent, runtime } = site
    const { scheduleId, nextAt } = await runtime.schedule(agent, often)
    expect(nextAt).toBe(at('2026-03-01T00:05:00Z'))
    const fired = await untilFired(site, runtime, scheduleId, 2)
    expect(toTimes(fired)).toEqual(['2026-03-01T00:05:00.000Z', '2026-03-01T00:10:00.000Z'])
    expect(fired.at(-1)?.nextAt).toBe(at('2026-03-01T00:15:00Z'))
    for (const { startedRun = '' } of fired) {
      const run = waitUntilSettled(even, runtime.resume(startedRun).result)
      expect(await run).toMatchObject({ status: 'done', text: 'Done.' })
    }
    expect(await runsStarted(ledger)).toEqual([
      'schedule often 2026-03-01T00:05:00.000Z',
      'schedule often 2026-03-01T00:10:00.000Z',
    ])
    expect(await Array.fromAsync(runtime.schedules())).toMatchObject([
      { scheduleId, name: 'often', started: 2, paused: false, isOver: false, agent: 'clerk' },
    ])
    await runtime.send(scheduleId, { type: 'cancel', by: 'ada' })
    expect(await Array.fromAsync(runtime.schedules())).toEqual([])
    expect(checkLaws(await read(ledger, scheduleId))).toEqual([])
    expect(await waitUntilSettled(even, runtime.resume(scheduleId).result)).toMatchObject({
      reason: 'cancelled',
    })
  })

  it.each([
    ['time', { every: hour }, { every: 2 * hour }],
    ['input', { every: hour }, { every: hour, input: 'Other.' }],
  ])('set at once under one name with another %s has what the later one says', async (_, first, second) => {
    const { agent, ledger, runtime, clock, even } = world()
    // It reports that the run which it began is another's.
    const other = createRuntime({ ledger, agents: [agent], host: { clock, report: () => {} } })
    const set = async (by: Runtime, own: { readonly every: number }) =>
      await by.schedule(agent, { name: 'n', input: 'Go.', ...own })
    for (const [one, two] of [
      [runtime, runtime],
      [runtime, other],
    ] as const) {
      const records = await waitUntilSettled(even, Promise.all([set(one, first), set(two, second)]))
      const [left, ...more] = await Array.fromAsync(runtime.schedules())
      expect(more).toEqual([])
      expect(new Set(records.map(({ scheduleId }) => scheduleId)).size).toBe(2)
      expect(records.map(({ everyMs }) => everyMs)).toEqual([first.every, second.every])
      expect(records.map(({ scheduleId }) => scheduleId)).toContain(left?.scheduleId)
      await runtime.send(left!.scheduleId, { type: 'cancel', reason: 'Next.' })
    }
    expect(await runsStarted(ledger)).toEqual([])
  })

  it.each([undefined, {}])('is refused without an agent, as a run that is enqueued is: %j', async (agent) => {
    const { runtime } = world()
    for (const set of [
      () => runtime.schedule(agent as never, { every: hour, input: 'Go.' }),
      () => runtime.enqueue(agent as never, 'Go.'),
    ])
      await expect(set()).rejects.toThrow(/the given agent .*made with defineAgent/)
  })

  it('fires once over two processes, also where the first one dies', async () => {
    const site = world()
    const { ledger, agent, runtime, process } = site
    const { scheduleId } = await runtime.schedule(agent, often)
    const other = process()
    expect(await other.schedule(agent, often)).toMatchObject({ scheduleId })
    await untilFired(site, runtime, scheduleId, 1)
    await runtime.drain(0)
    await untilFired(site, other, scheduleId, 3)
    expect(new Set(toTimes(await firings(ledger, scheduleId))).size).toBe(3)
    expect(await runsStarted(ledger)).toHaveLength(3)
    await other.drain(0)
  })

  it('starts one run where a process dies between the start and the record of the firing', async () => {
    const site = world()
    const { even, ledger, agent, runtime, process } = site
    const dying: Ledger = {
      ...ledger,
      append: async (runId, expected, events, options) => {
        if (events.some(({ type }) => type === 'schedule_fired')) throw new Error('The process dies.')
        return await ledger.append(runId, expected, events, options)
      },
    }
    const reported: unknown[] = []
    const first = createRuntime({
      ledger: dying,
      agents: [agent],
      host: { clock: site.clock, report: (error) => reported.push(error) },
    })
    const { scheduleId } = await first.schedule(agent, often)
    const lost = first.resume(scheduleId).result
    await expect(waitUntilSettled(even, lost)).rejects.toThrow('The process dies.')
    expect(await runsStarted(ledger)).toHaveLength(1)
    expect(await firings(ledger, scheduleId)).toEqual([])
    await untilFired(site, process(), scheduleId, 1)
    expect(await runsStarted(ledger)).toEqual(['schedule often 2026-03-01T00:05:00.000Z'])
    await runtime.drain(0)
  })

  it.each([
    ['skip', [], 4],
    ['once', ['2026-03-05T03:00:00.000Z'], 4],
    ['each', [1, 2, 3, 4, 5].map((day) => `2026-03-0${day}T03:00:00.000Z`), undefined],
  ] as const)('after five days without a process starts what %s says', async (missed, started, left) => {
    const site = world()
    const { even, ledger, agent, runtime, process } = site
    const { scheduleId } = await runtime.schedule(agent, { ...daily, missed })
    await runtime.drain(0)
    even.advance(4 * 24 * hour + 12 * hour)
    const next = process()
    await untilFired(site, next, scheduleId, missed === 'each' ? 5 : 1)
    expect(await runsStarted(ledger)).toEqual(started.map((time) => `schedule nightly ${time}`))
    const [first] = await firings(ledger, scheduleId)
    expect(first?.missed).toBe(left)
    const [record] = await Array.fromAsync(next.schedules())
    expect(record?.nextAt).toBe(at('2026-03-06T03:00:00Z'))
    await next.drain(0)
  })

  it('follows the clock on the wall, whatever it is set to', async () => {
    const site = world()
    const { even, clock, ledger, agent, runtime } = site
    const { scheduleId } = await runtime.schedule(agent, daily)
    await quiet()
    // Set ahead to 3:30: the time has come within a minute, not in three hours.
    clock.aheadMs = 3.5 * hour
    even.advance(60_000)
    await quiet()
    expect(toTimes(await firings(ledger, scheduleId))).toEqual(['2026-03-01T03:00:00.000Z'])
    // Set back: 3:00 comes again, and is past.
    clock.aheadMs = 0
    even.advance(4 * hour)
    await quiet()
    expect(await firings(ledger, scheduleId)).toHaveLength(1)
    for (let passed = 0; passed < 24; passed++) {
      even.advance(hour)
      await quiet()
    }
    expect(toTimes(await firings(ledger, scheduleId))).toEqual([
      '2026-03-01T03:00:00.000Z',
      '2026-03-02T03:00:00.000Z',
    ])
    await runtime.drain(0)
  })

  it('is set once under its name, and replaced where it is another', async () => {
    const site = world()
    const { even, ledger, agent, runtime } = site
    const first = await runtime.schedule(agent, often)
    expect(await runtime.schedule(agent, often)).toEqual(first)
    const changed = runtime.schedule(agent, { ...often, input: 'Sum up in French.' })
    const second = await waitUntilSettled(even, changed)
    expect(second.scheduleId).not.toBe(first.scheduleId)
    expect(await Array.fromAsync(runtime.schedules())).toMatchObject([{ scheduleId: second.scheduleId }])
    await untilFired(site, runtime, second.scheduleId, 1)
    const [run] = await firings(ledger, second.scheduleId)
    const { messages } = await waitUntilSettled(even, runtime.resume(run!.startedRun!).result)
    expect(messages[0]).toMatchObject({ parts: [{ text: 'Sum up in French.' }] })
    await runtime.drain(0)
  })

  it('starts nothing while it is paused, and goes on with the next time', async () => {
    const site = world()
    const { even, ledger, agent, runtime } = site
    const { scheduleId } = await runtime.schedule(agent, often)
    const pause = runtime.send(scheduleId, { type: 'set_schedule', paused: true, by: 'ada' })
    expect(await waitUntilSettled(even, pause)).toEqual({ accepted: true })
    even.advance(12 * 60_000)
    await quiet()
    expect(await firings(ledger, scheduleId)).toEqual([])
    expect(await Array.fromAsync(runtime.schedules())).toMatchObject([{ paused: true }])
    await runtime.send(scheduleId, { type: 'set_schedule', paused: false })
    const [fired] = await untilFired(site, runtime, scheduleId, 1)
    expect(fired).toMatchObject({ scheduledAt: at('2026-03-01T00:15:00Z') })
    expect(fired).not.toHaveProperty('missed')
    const steered = await runtime.send(scheduleId, {
      ...{ type: 'steer', receipt: 'r' },
      message: { role: 'user', parts: [{ type: 'text', text: 'Hi.' }] },
    })
    expect(steered).toMatchObject({ accepted: false, code: 'not_supported' })
    await runtime.drain(0)
  })

  it('of a single time ends once that has come', async () => {
    const { even, ledger, agent, runtime } = world()
    const when = new Date('2026-03-01T00:10:00Z')
    const { scheduleId } = await runtime.schedule(agent, { at: when, input: 'Wish a good morning.' })
    const result = await waitUntilSettled(even, runtime.resume(scheduleId).result)
    expect(result).toMatchObject({ status: 'done', reason: 'stopped', detail: 'Its last time has come.' })
    expect(toTimes(await firings(ledger, scheduleId))).toEqual(['2026-03-01T00:10:00.000Z'])
    expect(await runsStarted(ledger)).toHaveLength(1)
  })

  it('that is left to others is due at once, and then at its time', async () => {
    const { even, ledger, agent, runtime, process } = world()
    const { scheduleId } = await runtime.schedule(agent, { every: hour, input: 'Look.', drive: false })
    const due = async (): Promise<readonly string[]> =>
      (await Array.fromAsync(ledger.due({ before: even.now() }))).map(({ runId }) => runId)
    expect(await due()).toEqual([scheduleId])
    const worker = process()
    const rest = await worker.drive(scheduleId)
    expect(rest).toMatchObject({ status: 'parked', wakeAt: even.now() + hour, pending: false })
    expect(await due()).toEqual([])
    even.advance(hour)
    expect(await due()).toEqual([scheduleId])
    const fired = await worker.drive(scheduleId)
    const [{ startedRun } = {}] = await firings(ledger, scheduleId)
    expect(fired).toMatchObject({ status: 'parked', wakeAt: even.now() + hour, started: [startedRun] })
    expect(await due()).toEqual([startedRun])
    // The first process may have died before it woke the run.
    expect(await process().drive(scheduleId)).toMatchObject({ started: [startedRun] })
    expect(await worker.drive(startedRun!)).toMatchObject({ status: 'done' })
    expect(await process().drive(scheduleId)).not.toHaveProperty('started')
  })

  it('once, later than a ledger can say, is due at the last moment that it can', async () => {
    const { ledger, agent, runtime, even } = world()
    const options = { at: new Date(8.64e15), input: 'Go.' }
    const { scheduleId, nextAt } = await waitUntilSettled(even, runtime.schedule(agent, options))
    expect(nextAt).toBe(at('9999-12-31T23:59:59.999Z'))
    for (const event of await read(ledger, scheduleId)) expect(findEventShapeFault(event)).toBe(undefined)
  })

  it('of every year ends before a ledger can say its next time', () => {
    const after = at('9999-01-01T00:00:00Z')
    expect(findNextTime({ cron: '0 0 1 1 *' }, { after, since: 0 })).toBe(undefined)
    expect(findNextTime({ everyMs: 366 * 24 * hour }, { after, since: after })).toBe(undefined)
  })

  it.each([
    [{}, 'one of cron, at and every, and 0 of them'],
    [{ cron: '0 3 * * *', every: 5_000 }, 'and 2 of them'],
    [{ cron: '0 3 * *' }, 'five'],
    [{ cron: '0 0 30 2 *' }, 'never comes'],
    [
      { cron: '0 3 * * *', timeZone: 'Mars/Olympus\u0000' },
      'cannot go by the time zone "Mars/Olympus\\u0000", which does not exist',
    ],
    [{ every: 5_000, timeZone: 'UTC' }, 'Leave it out'],
    [{ every: 10 }, 'every'],
    [{ every: Number.MAX_SAFE_INTEGER }, 'every 9007199254740991 milliseconds comes after the year 9999'],
    [{ every: 5_000, missed: 'all' }, 'missed'],
    [{ every: 5_000, sessionId: 's' }, 'sessionId'],
    [
      { every: 5_000, guardrails: [] },
      'guardrails is not an option. Did you mean guardrails of createRuntime?',
    ],
    [{ every: 5_000, nestHandoffHistory: true }, 'Did you mean nestHandoffHistory of createRuntime?'],
    [{ every: 5_000, hooks: {} }, 'Did you mean hooks of createRuntime?'],
  ])('refuses what could not work: %o', async (options, why) => {
    const { ledger, agent, runtime } = world()
    const refused = runtime.schedule(agent, { input: 'Go.', ...options } as never)
    await expect(refused).rejects.toThrow(ConfigurationError)
    await expect(refused).rejects.toThrow(why)
    expect(await Array.fromAsync(ledger.runs())).toEqual([])
  })
})

describe('the next time of a schedule', () => {
  const next = (cron: string, after: string, timeZone = 'Europe/Berlin'): string =>
    new Date(findNextTime({ cron, timeZone }, { after: at(after), since: 0 }) ?? 0).toISOString()

  it.each([
    ['as clocks are set forward, is later', '30 2 * * *', '2026-03-28T12:00:00Z', '2026-03-29T01:00:00.000Z'],
    ['as clocks are set back, comes once', '30 2 * * *', '2026-10-24T12:00:00Z', '2026-10-25T00:30:00.000Z'],
    ['after that, is of the next day', '30 2 * * *', '2026-10-25T00:30:00Z', '2026-10-26T01:30:00.000Z'],
    [
      'of each hour, comes in each that passes',
      '0 * * * *',
      '2026-10-25T00:00:00Z',
      '2026-10-25T01:00:00.000Z',
    ],
    ['at midnight of a year', '0 0 1 1 *', '2026-06-01T00:00:00Z', '2026-12-31T23:00:00.000Z'],
    ['of a leap year', '0 0 29 2 *', '2026-06-01T00:00:00Z', '2028-02-28T23:00:00.000Z'],
  ])('%s', (_name, cron, after, expected) => {
    expect(next(cron, after)).toBe(expected)
  })

  it('of an interval counts from its start, whenever it is asked', () => {
    const since = 1_000_000
    const of = (after: number): number | undefined => findNextTime({ everyMs: 5_000 }, { after, since })
    expect([of(since), of(since + 4_999), of(since + 5_000), of(since - 50)]).toEqual([
      since + 5_000,
      since + 5_000,
      since + 10_000,
      since + 5_000,
    ])
  })
})
