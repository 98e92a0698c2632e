import { ProviderError } from '@tallystick/core'
import type { ModelSignal } from '@tallystick/core/vocabulary'
import { Observable } from 'rxjs'
import { describe, expect, it, vi } from 'vitest'
import { createCommonFailures } from '../src/shared/failure.ts'
import { type Connection, type ForwardedCall, forwardEvents } from '../src/shared/call.ts'
import { type Overlong, SilenceWatch, type StreamEnding, type Timeouts } from '../src/shared/body.ts'
import { ManualClock } from './kit/manual-clock.ts'

const common = createCommonFailures({
  ...{ who: 'The wire', advice: { authentication: '', permission: '', not_found: '' } },
})
const failures: ForwardedCall<string>['failures'] = {
  ...common,
  failureInStream: (error) => common.failed({ class: 'server', retryable: true }, String(error)),
  toProviderError: (error) => (error instanceof ProviderError ? error : common.thrownFailure(error)),
}
const broken = (code: string) => Object.assign(new Error('broken'), { code })
const said = (text: string): ModelSignal => ({ type: 'model_text', part: 0, text })

/** What an answer holds: texts to show, `end` for its terminal event, `fail`, a wait for the test, or an error to throw. */
type Step = string | Error | Promise<unknown>

interface Attempt {
  readonly steps: readonly Step[]
  /** Endings that prove the reply whole. */
  readonly wholeAt?: readonly StreamEnding[]
  readonly observed?: boolean
  readonly facts?: Connection['facts']
  /** What the answer waits for before it begins. */
  readonly begins?: Promise<unknown>
}

/** A call whose attempts are these, one after the other, and what is seen of it. */
function callOf(attempts: readonly Attempt[], mayFallBack: (failure: ProviderError) => boolean = () => true) {
  const clock = new ManualClock()
  const seen = { read: [] as string[], signals: [] as string[], connections: [] as Connection[] }
  const endings: string[] = []
  const connectTo =
    ({ steps, wholeAt = [], observed = false, facts = {}, begins }: Attempt) =>
    async (connection: Connection) => {
      seen.connections.push(connection)
      connection.observed = observed
      Object.assign(connection.facts, facts)
      await begins
      const state = { finished: false, failure: undefined as ProviderError | undefined }
      return {
        events: eventsOf(steps, connection.abort.signal),
        reader: {
          read(event: string) {
            seen.read.push(event)
            if (event === 'end') state.finished = true
            if (event === 'fail') state.failure = common.failed({ class: 'refused', retryable: false }, 'No')
            return ['end', 'fail', 'nothing'].includes(event) ? [] : [said(event)]
          },
          end(ending: StreamEnding) {
            endings.push(ending)
            return wholeAt.includes(ending) ? [said(`whole at ${ending}`)] : undefined
          },
          get finished() {
            return state.finished
          },
          get failure() {
            return state.failure
          },
        },
      }
    }
  let next = 1
  /** How many errors the subscriber is handed, also after its completion. */
  let errorCount = (): number => 0
  const stream = new Observable<ModelSignal>((subscriber) => {
    const error = vi.spyOn(subscriber, 'error')
    errorCount = () => error.mock.calls.length
    return forwardEvents<string>({
      ...{ context: { clock }, subscriber, failures },
      timeouts: { responseTimeoutMs: 500, idleTimeoutMs: 100, contentTimeoutMs: 250, totalTimeoutMs: 2000 },
      connect: connectTo(attempts[0]!),
      fallbackRequest: (failure) => {
        const attempt = mayFallBack(failure) ? attempts[next++] : undefined
        return attempt && connectTo(attempt)
      },
    })
  })
  const subscription = stream.subscribe({
    next: (signal) => seen.signals.push((signal as { readonly text: string }).text),
    complete: () => endings.push('complete'),
    error: (error: unknown) => endings.push(error instanceof ProviderError ? error.class : String(error)),
  })
  const isClosed = () => seen.connections.map(({ abort }) => abort.signal.aborted)
  return { ...seen, endings, errorCount: () => errorCount(), clock, subscription, isClosed }
}

async function* eventsOf(steps: readonly Step[], signal: AbortSignal): AsyncGenerator<string> {
  const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
  for (const step of steps) {
    if (step instanceof Error) throw step
    if (typeof step === 'string') yield step
    else await Promise.race([step, aborted])
  }
}

const forever = new Promise<never>(() => {})
/** Lets everything happen that waits for no timer. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

const page = { contentType: 'text/html' }
const events = { contentType: 'text/event-stream; charset=utf-8' }
const reset = broken('ECONNRESET')
const late = broken('ETIMEDOUT')
/** An answer that is whole when it ends like this, and shows a last text then. */
const wholeAt = (ending: StreamEnding, ...steps: readonly Step[]) => ({
  ...{ steps, wholeAt: [ending], signals: ['a', `whole at ${ending}`] },
})

describe('the events of an answer', () => {
  it.each<Attempt & { name: string; signals?: readonly string[]; endings: readonly string[] }>([
    {
      name: 'ends as the wire says',
      steps: ['a', 'b', 'end', 'late'],
      signals: ['a', 'b'],
      endings: ['complete'],
    },
    { name: 'says that it failed', steps: ['a', 'fail', 'b'], endings: ['refused'] },
    { name: 'just stops', steps: ['a'], endings: ['clean', 'truncated'] },
    { name: 'is empty', steps: [], signals: [], endings: ['clean', 'truncated'] },
    { name: 'is an empty page', steps: [], facts: page, signals: [], endings: ['clean', 'protocol'] },
    { name: 'is an empty stream', steps: [], facts: events, signals: [], endings: ['clean', 'truncated'] },
    { name: 'is a page with an event', steps: ['a'], facts: page, endings: ['clean', 'truncated'] },
    { name: 'stops when it is whole', ...wholeAt('clean', 'a'), endings: ['clean', 'complete'] },
    { name: 'breaks when it is whole', ...wholeAt('broken', 'a', reset), endings: ['broken', 'complete'] },
    { name: 'is late when it is whole', ...wholeAt('broken', 'a', late), endings: ['broken', 'complete'] },
    { name: 'breaks before', steps: ['a', reset], endings: ['broken', 'network'] },
    {
      name: 'goes wrong',
      ...wholeAt('broken', 'a', new Error('odd')),
      signals: ['a'],
      endings: ['protocol'],
    },
  ])('of one that $name are forwarded', async ({ signals = ['a'], endings, ...attempt }) => {
    const call = callOf([attempt])
    await settle()
    expect([call.signals, call.endings, call.clock.waiting]).toEqual([signals, endings, 0])
    expect(call.errorCount()).toBe(endings.at(-1) === 'complete' ? 0 : 1)
  })

  it('are read no further once the subscriber has left, whatever the client still hands on', async () => {
    const later = Promise.withResolvers<void>()
    const call = callOf([{ steps: ['a', later.promise, 'b', 'c'] }])
    await settle()
    call.subscription.unsubscribe()
    later.resolve()
    await settle()
    expect([call.read, call.signals, call.endings, call.isClosed()]).toEqual([['a'], ['a'], [], [true]])
  })

  it('that follow the end are waited for a second, and never read', async () => {
    const call = callOf([{ steps: ['end', 'late', forever] }])
    await settle()
    expect([call.read, call.endings, call.isClosed()]).toEqual([['end'], ['complete'], [false]])
    call.clock.advance(999)
    expect(call.isClosed()).toEqual([false])
    call.clock.advance(1)
    expect(call.isClosed()).toEqual([true])
  })

  it('count as signs of life where the wire reports no bytes', async () => {
    for (const observed of [true, false]) {
      const steps = [1, 2].map(() => Promise.withResolvers<void>())
      const call = callOf([{ observed, steps: ['a', steps[0]!.promise, 'b', steps[1]!.promise, 'end'] }])
      await settle()
      for (const step of steps) {
        call.clock.advance(80)
        step.resolve()
        await settle()
      }
      expect(call.endings).toEqual(observed ? ['broken', 'timeout'] : ['complete'])
    }
  })

  it('may begin as late as the one limit says, and pause as long as the other does', async () => {
    const begins = Promise.withResolvers<void>()
    const call = callOf([{ steps: ['a', forever], begins: begins.promise }])
    call.clock.advance(499)
    begins.resolve()
    await settle()
    call.clock.advance(99)
    expect([call.signals, call.endings]).toEqual([['a'], []])
    call.clock.advance(1)
    expect([call.endings, call.isClosed()]).toEqual([['broken', 'timeout'], [true]])
    const tooLate = callOf([{ steps: ['a'], begins: forever }])
    tooLate.clock.advance(499)
    expect(tooLate.endings).toEqual([])
    tooLate.clock.advance(1)
    expect([tooLate.endings, tooLate.isClosed()]).toEqual([['timeout'], [true]])
  })

  it('are given up when nothing of the reply came for long, whatever keeps the connection alive', async () => {
    const ticks = Array.from({ length: 8 }, () => Promise.withResolvers<void>())
    const [word, ...pings] = ticks
    const steps = [word!.promise, 'a', ...pings.flatMap(({ promise }) => [promise, 'nothing'])]
    const call = callOf([{ steps, wholeAt: [] }])
    for (const tick of ticks.slice(0, 3)) {
      call.clock.advance(80)
      tick.resolve()
      await settle()
    }
    call.clock.advance(80)
    await settle()
    expect([call.signals, call.endings]).toEqual([['a'], []])
    ticks[3]!.resolve()
    await settle()
    call.clock.advance(10)
    expect([call.endings, call.isClosed()]).toEqual([['broken', 'timeout'], [true]])
  })

  it('are given up when the reply takes longer than any may', async () => {
    const ticks = Array.from({ length: 26 }, () => Promise.withResolvers<void>())
    const call = callOf([{ steps: ticks.flatMap(({ promise }) => [promise, 'a']) }])
    for (const tick of ticks) {
      expect(call.endings).toEqual([])
      call.clock.advance(80)
      tick.resolve()
      await settle()
      if (call.endings.length > 0) break
    }
    expect(call.clock.now()).toBeGreaterThanOrEqual(2000)
    expect([call.endings, call.isClosed()]).toEqual([['broken', 'timeout'], [true]])
  })

  it('are whole at a silence that comes after the last word', async () => {
    const call = callOf([{ steps: ['a', forever], wholeAt: ['broken'] }])
    await settle()
    call.clock.advance(100)
    expect(call.errorCount()).toBe(0)
    expect([call.signals, call.endings, call.isClosed()]).toEqual([
      ['a', 'whole at broken'],
      ['broken', 'complete'],
      [true],
    ])
  })
})

const refused: Attempt = { steps: ['fail'] }

describe('another request in place of one that failed', () => {
  it.each<{ name: string; attempts: readonly Attempt[]; endings: readonly string[]; sent: number }>([
    {
      name: 'is sent where nothing was shown',
      attempts: [refused, { steps: ['b', 'end'] }],
      endings: ['complete'],
      sent: 2,
    },
    {
      name: 'is sent after one that stopped',
      attempts: [{ steps: [] }, { steps: ['end'] }],
      endings: ['clean', 'complete'],
      sent: 2,
    },
    { name: 'may fail itself', attempts: [refused, refused], endings: ['refused'], sent: 2 },
    {
      name: 'is not sent after a word',
      attempts: [{ steps: ['a', 'fail'] }, refused],
      endings: ['refused'],
      sent: 1,
    },
    {
      name: 'is not sent for a failure that it does not mend',
      attempts: [{ steps: [reset] }, refused],
      endings: ['broken', 'network'],
      sent: 1,
    },
    {
      name: 'starts with nothing seen',
      attempts: [{ steps: ['nothing', 'fail'] }, { steps: [], facts: page }],
      endings: ['clean', 'protocol'],
      sent: 2,
    },
  ])('$name', async ({ attempts, endings, sent }) => {
    const call = callOf(attempts, ({ class: kind }) => kind === 'refused' || kind === 'truncated')
    await settle()
    expect([call.endings, call.connections.length]).toEqual([endings, sent])
    expect(call.isClosed().slice(0, -1)).toEqual(call.connections.slice(1).map(() => true))
  })

  it('is not sent once the subscriber has left', async () => {
    const later = Promise.withResolvers<void>()
    const call = callOf([{ steps: [later.promise, 'fail'] }, { steps: ['b'] }])
    await settle()
    call.subscription.unsubscribe()
    await settle()
    expect([call.connections.length, call.endings]).toEqual([1, []])
  })

  it('may wait for its answer as long as the first', async () => {
    const later = Promise.withResolvers<void>()
    const call = callOf([{ steps: [later.promise, 'fail'] }, { steps: [], begins: forever }])
    await settle()
    call.clock.advance(90)
    later.resolve()
    await settle()
    call.clock.advance(499)
    expect(call.endings).toEqual([])
    call.clock.advance(1)
    expect([call.endings, call.isClosed()]).toEqual([['timeout'], [true, true]])
  })
})

describe('a watch for silence', () => {
  const limits = { responseTimeoutMs: 100, idleTimeoutMs: 50, contentTimeoutMs: 120, totalTimeoutMs: 1000 }
  const watched = (timeouts: Timeouts = limits) => {
    const clock = new ManualClock()
    const onOver = vi.fn<(what: Overlong, limitMs: number) => void>()
    return { clock, onOver, watch: new SilenceWatch(clock, timeouts, onOver) }
  }

  it('goes off once, when the limit has passed since the last sign of life, with one timer', () => {
    const { clock, onOver, watch } = watched()
    clock.advance(60)
    watch.signOfLife()
    clock.advance(99)
    expect([onOver.mock.calls, clock.waiting]).toEqual([[], 1])
    clock.advance(1)
    expect(onOver.mock.calls).toEqual([['silent', 100]])
    clock.advance(2000)
    expect([onOver.mock.calls.length, clock.waiting]).toEqual([1, 0])
  })

  it('allows less once the answer has begun, and counts what it says', () => {
    const { clock, onOver, watch } = watched()
    clock.advance(90)
    watch.begun()
    for (let passed = 0; passed < 110; passed += 10) {
      clock.advance(10)
      watch.signOfLife()
    }
    watch.content()
    clock.advance(49)
    watch.signOfLife()
    clock.advance(49)
    watch.signOfLife()
    expect(onOver.mock.calls).toEqual([])
    clock.advance(22)
    expect(onOver.mock.calls).toEqual([['empty', 120]])
    const silent = watched()
    silent.watch.begun()
    silent.clock.advance(50)
    expect(silent.onOver.mock.calls).toEqual([['silent', 50]])
  })

  it('bounds the whole call, over all of its requests', () => {
    const { clock, onOver, watch } = watched()
    for (let passed = 0; passed < 990; passed += 90) {
      clock.advance(90)
      watch.sent()
    }
    expect(onOver.mock.calls).toEqual([])
    clock.advance(10)
    expect(onOver.mock.calls).toEqual([['endless', 1000]])
  })

  it('begins no more after it went off or stopped', () => {
    const { clock, onOver, watch } = watched()
    clock.advance(100)
    watch.begun()
    watch.sent()
    expect([onOver.mock.calls.length, clock.waiting]).toEqual([1, 0])
    const stopped = watched()
    stopped.watch.stop()
    stopped.watch.stop()
    stopped.watch.begun()
    expect(stopped.clock.waiting).toBe(0)
  })

  it.each<readonly [string, number]>([
    ['silent', 120_000],
    ['empty', 600_000],
    ['endless', 3_600_000],
  ])('notices what is %s after %i ms where no option says more', (what, limitMs) => {
    const { clock, onOver, watch } = watched({})
    watch.begun()
    for (let passed = 0; passed < limitMs - 60_000; passed += 60_000) {
      clock.advance(60_000)
      if (what !== 'silent') watch.signOfLife()
      if (what === 'endless') watch.content()
    }
    expect(onOver.mock.calls).toEqual([])
    clock.advance(60_000)
    expect(onOver.mock.calls).toEqual([[what, limitMs]])
  })
})
